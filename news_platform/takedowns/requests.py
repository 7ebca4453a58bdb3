"""Write and read requests, their withdrawals, their aliases and the partitions still to rewrite."""

import json
import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import PurePosixPath

from news_platform.datasets.takedowns import (
    ALIASES,
    APPLIED,
    PENDING,
    REQUESTS,
    ROOT,
    SEARCHED,
    WITHDRAWN,
    TakedownAliases,
    TakedownKind,
    TakedownRequest,
    TakedownScope,
    parse_aliases,
    parse_list_id,
    parse_request,
    pending_of,
    pending_path,
    request_path,
    takedown_id,
)
from news_platform.errors import InputError
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.takedowns.match import TakedownUse, bare_key
from news_platform.web.urls import canonical_url, has_registrable_domain, plain_host, url_host

_HOST = re.compile(r"(?=.{1,253}$)[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})+")
# Marks of partitions, requests and aliases are small and many.
_CONCURRENT_READS = _CONCURRENT_WRITES = 16
# Requests and aliases never change, so a process reads and parses each once.
_REMEMBERED = 1 << 18


@dataclass(frozen=True, slots=True)
class TakedownState:
    """A request and what became of it."""

    request: TakedownRequest
    is_withdrawn: bool = False
    is_searched: bool = False
    is_applied: bool = False

    def is_expired(self, now: datetime | None) -> bool:
        """Return whether the request has ended by itself; never without `now`."""
        expires_at = self.request.expires_at
        return now is not None and expires_at is not None and expires_at <= now

    def is_active(self, use: TakedownUse, now: datetime | None) -> bool:
        """Return whether the request bans collection, removes what is stored, or bans exports.

        A request for stored data alone is served once: what is collected later may stay.
        """
        if self.is_withdrawn or self.is_expired(now):
            return False
        match self.request.scope:
            case TakedownScope.future:
                return use == "collection"
            case TakedownScope.export:
                return use == "export"
            case TakedownScope.stored:
                return use != "collection" and not self.is_applied
        return True

    def is_served_once(self, now: datetime | None) -> bool:
        """Return whether the request is for what was stored before it, and has been served."""
        is_over = self.is_withdrawn or self.is_expired(now)
        return self.request.scope is TakedownScope.stored and self.is_applied and not is_over

    def status(self, now: datetime | None) -> str:
        """Return one word for people."""
        if self.is_withdrawn:
            return "withdrawn"
        if self.is_expired(now):
            return "expired"
        if self.request.scope is TakedownScope.future:
            return "active"
        return "applied" if self.is_applied else "to apply"


@dataclass(frozen=True, slots=True)
class TakedownTerms:
    """What a new request says besides the things it names."""

    reason: str
    requested_by: str = ""
    scope: TakedownScope = TakedownScope.both
    expires_at: datetime | None = None


def new_request(
    kind: TakedownKind, values: Iterable[str], *, terms: TakedownTerms, now: datetime
) -> TakedownRequest:
    """Return a valid request; raise InputError for what names no page or domain."""
    cleaned = tuple(dict.fromkeys(clean_value(kind, value) for value in values))
    if not cleaned:
        raise InputError("nothing to take down: give URLs, --prefix or --domain")
    if not terms.reason.strip():
        raise InputError("a takedown needs a reason")
    at = now.astimezone(UTC).replace(microsecond=0)
    if terms.expires_at is not None and terms.expires_at <= at:
        raise InputError(
            f"it would end on {terms.expires_at:%Y-%m-%d}, which is over: give a later day, or "
            "leave --expires out"
        )
    return TakedownRequest(
        takedown_id(kind, cleaned, at),
        kind,
        cleaned,
        terms.reason.strip(),
        at,
        terms.requested_by.strip(),
        terms.scope,
        terms.expires_at,
    )


def clean_value(kind: TakedownKind, value: str) -> str:
    """Return what a request names; raise InputError for what would cover nothing or too much.

    The values of lists are clean: `lists.parse_list` cleans them one by one.
    """
    if kind is TakedownKind.list:
        return value
    if "*" in value:
        without = value.replace("*.", "").replace("*", "")
        raise InputError(
            f"cannot take down {value!r}: `*` has no meaning here. --domain covers all hosts of a "
            f"domain and --prefix all that begins with it: write {without!r}, or `%2A` for the "
            "character itself",
            thing=value,
        )
    return _cleaned_domain(value) if kind is TakedownKind.domain else _cleaned_url(kind, value)


def _cleaned_url(kind: TakedownKind, value: str) -> str:
    url = canonical_url(value)
    if not url.startswith(("http://", "https://")) or not _HOST.fullmatch(url_host(url)):
        raise InputError(f"cannot take down {value!r}: expected a web address", thing=value)
    if kind is TakedownKind.prefix and re.search("[?#]", value):
        # Stored queries are sorted and without trackers: no beginning of one can be compared.
        raise InputError(
            f"invalid prefix {value!r}: write {re.split('[?#]', value)[0]!r}, or give the whole "
            "addresses of the pages",
            thing=value,
        )
    return url


def _cleaned_domain(value: str) -> str:
    host = plain_host(url_host(value))
    # `www.gov.uk` lies directly under a public suffix: without `www.` it would name all others.
    while host.startswith("www.") and has_registrable_domain(host.removeprefix("www.")):
        host = host.removeprefix("www.")
    if not has_registrable_domain(host) or not _HOST.fullmatch(host) or "@" in value:
        raise InputError(
            f"cannot take down {value!r}: expected a domain such as example.org", thing=value
        )
    if bare_key(canonical_url(value)).partition("/")[2]:
        raise InputError(
            f"cannot take down {value!r} as a domain: write --domain {host}, or --prefix and the "
            "address",
            thing=value,
        )
    return host


def add_request(store: ObjectStore, request: TakedownRequest) -> bool:
    """Store a request; return whether it is new."""
    return store.put_if_absent(request_path(request.id), request.to_json())


def withdraw_request(store: ObjectStore, takedown: str, *, reason: str, now: datetime) -> bool:
    """End the ban of a request; return whether it was not withdrawn before."""
    require_request(store, takedown)
    body = {"withdrawn_at": now.isoformat(), "reason": reason}
    return store.put_if_absent(f"{WITHDRAWN}/{takedown}.json", json.dumps(body).encode())


def require_request(store: ObjectStore, takedown: str) -> TakedownState:
    """Return a request with its state; raise InputError if there is none of this id."""
    for state in read_states(store):
        if state.request.id == takedown:
            return state
    message = f"there is no takedown {takedown!r}: `news-platform takedown list` shows all"
    raise InputError(message, thing=takedown)


def read_states(store: ObjectStore) -> list[TakedownState]:
    """Return all requests in the order of their ids, with one LIST."""
    infos = list(store.list(ROOT))
    names = {info.path for info in infos}
    listed = [info for info in infos if info.path.startswith(f"{REQUESTS}/")]
    return [_state(request, names) for request in _read_requests(store, _newest(listed))]


def _newest(infos: Iterable[ObjectInfo]) -> list[ObjectInfo]:
    """Return the files of requests without those of older versions of lists."""
    newest: dict[str, tuple[int, ObjectInfo]] = {}
    for info in infos:
        stem = PurePosixPath(info.path).stem
        name, version = parse_list_id(stem) or (stem, 0)
        if name not in newest or newest[name][0] < version:
            newest[name] = version, info
    return [info for _, info in newest.values()]


def _state(request: TakedownRequest, names: set[str]) -> TakedownState:
    return TakedownState(
        request,
        is_withdrawn=f"{WITHDRAWN}/{request.id}.json" in names,
        is_searched=f"{SEARCHED}/{request.id}.json" in names,
        is_applied=f"{APPLIED}/{request.id}.json" in names,
    )


def _read_requests(store: ObjectStore, infos: Sequence[ObjectInfo]) -> list[TakedownRequest]:
    return [_parse_request(body, path) for path, body in read_files(store, infos).items()]


@lru_cache(_REMEMBERED)
def _parse_request(body: bytes, path: str) -> TakedownRequest:
    return parse_request(body, path)


def read_current(
    store: ObjectStore, *, now: datetime | None
) -> tuple[list[TakedownState], list[tuple[str, ...]]]:
    """Return the requests that have not ended, and all known groups of aliases."""
    infos = _newest(store.list(REQUESTS))
    requests = _read_requests(store, infos) if infos else []
    # Only what decides is listed: a hundred thousand requests have as many other files.
    folders = [WITHDRAWN] if requests else []
    if any(one.scope is TakedownScope.stored for one in requests):
        folders.append(APPLIED)
    names = {info.path for folder in folders for info in store.list(folder)}
    states = (_state(request, names) for request in requests)
    current = [one for one in states if not one.is_withdrawn and not one.is_expired(now)]
    return current, read_aliases(store) if current else []


def read_active(
    store: ObjectStore, *, now: datetime | None, use: TakedownUse
) -> tuple[list[TakedownRequest], list[tuple[str, ...]]]:
    """Return the requests that count for a use, and all known groups of aliases."""
    states, aliases = read_current(store, now=now)
    return [one.request for one in states if one.is_active(use, now)], aliases


def read_aliases(store: ObjectStore) -> list[tuple[str, ...]]:
    """Return the groups of addresses that lead to one page."""
    found = read_files(store, list(store.list(ALIASES)))
    return [parse_aliases(body, path).urls for path, body in found.items()]


def add_aliases(store: ObjectStore, urls: Iterable[str], *, now: datetime) -> None:
    """Store that these addresses lead to one page, which is taken down."""
    group = tuple(sorted({canonical_url(url) for url in urls}))
    if len(group) > 1:
        found = TakedownAliases(group, now)
        store.put_if_absent(found.path, found.to_json())


def mark_pending(store: ObjectStore, dataset: str, partitions: Iterable[str]) -> None:
    """Record that these partitions are to be rewritten, whoever comes to it."""
    paths = [pending_path(dataset, partition) for partition in partitions]
    if paths:
        with ThreadPoolExecutor(_CONCURRENT_WRITES) as threads:
            list(threads.map(lambda path: store.put(path, b""), paths))


def mark_late(store: ObjectStore, dataset: str, partitions: Iterable[str]) -> None:
    """Record that partitions were written while requests came or were being served.

    Such a mark differs from every other, so that whoever cleaned the partition before it was
    written does not take it for his own.
    """
    for partition in partitions:
        store.put(pending_path(dataset, partition), uuid.uuid4().hex.encode())


def find_mark(store: ObjectStore, dataset: str, partition: str) -> str:
    """Return the ETag of the mark of a partition, empty without one."""
    found = store.find(pending_path(dataset, partition))
    return found.etag if found is not None else ""


def clear_pending(store: ObjectStore, dataset: str, partition: str, *, mark: str) -> None:
    """Record that a partition was rewritten, unless it was marked again since."""
    if find_mark(store, dataset, partition) == mark:
        store.delete([pending_path(dataset, partition)])


def list_pending(store: ObjectStore) -> list[tuple[str, str]]:
    """Return the datasets and partitions that are still to be rewritten."""
    return [pending_of(info.path) for info in store.list(PENDING)]


def write_searched(store: ObjectStore, takedown: str, found: Mapping[str, object]) -> None:
    """Record what a request was found to touch, after its partitions were marked."""
    store.put(f"{SEARCHED}/{takedown}.json", json.dumps(found, indent=1).encode())


def write_applied(store: ObjectStore, takedown: str, report: Mapping[str, object]) -> None:
    """Record that nothing of a request is stored any more: when, what and how many bytes."""
    store.put(f"{APPLIED}/{takedown}.json", json.dumps(report, indent=1).encode())


def read_record(store: ObjectStore, takedown: str) -> Mapping[str, object]:
    """Return what is recorded about the removal of a request; empty before it."""
    for folder in (APPLIED, SEARCHED):
        try:
            return dict(json.loads(store.read(f"{folder}/{takedown}.json")))
        except NotFound:
            continue
    return {}


def read_files(store: ObjectStore, infos: Sequence[ObjectInfo]) -> dict[str, bytes]:
    """Return the contents of listed requests or aliases by path, many at once."""
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        bodies = list(threads.map(lambda info: _read(store, info.path, info.etag), infos))
    return dict(zip((info.path for info in infos), bodies, strict=True))


@lru_cache(_REMEMBERED)
def _read(store: ObjectStore, path: str, etag: str) -> bytes:
    return store.read(path)
