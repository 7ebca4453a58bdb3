"""Find, import and parse the research files under `raw/`, and turn their records into messages.

A record that gives no message is dropped with a reason, and written to quarantine.
"""

import hashlib
import ipaddress
import json
import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from pydantic import ValidationError

from news_platform.datasets.research_datasets import (
    RAW_FOLDER,
    RAW_METADATA,
    SUCCESS_SUFFIX,
    DomainQueueMessage,
    PartitionInfo,
    ResearchRecord,
    SeedQueueMessage,
    is_raw_file,
    raw_file_number,
    seed_message,
)
from news_platform.errors import InputError
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary
from news_platform.storage.commit.markers import content_part, fingerprint_of
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.text.normalize import scrub_json
from news_platform.web.urls import is_public_suffix, registrable_domain, url_host

# More would make the asset page unreadable.
_MAX_SHOWN_BYTES = 64 * 1024
UNKNOWN_AUTHORITY = "unknown"

# Letters, digits and hyphens as in RFC 1123, and the underscore that some real hosts use.
_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_DOMAIN = re.compile(rf"(?=.{{1,253}}$){_LABEL}(?:\.{_LABEL})+")
# A plain URL has no user info or backslash, about which URL parsers disagree.
_WEB_URL = re.compile(r"https?://[^\s/?#]", re.IGNORECASE)
_PLAIN_URL = re.compile(r"https?://[^\s/?#\\@]+(?:[/?#]|$)", re.IGNORECASE)
# A name that was meant for research data, such as `raw_1.json`.
_MISNAMED = re.compile(r"raw.*\.json", re.IGNORECASE)
# The authority is part of `domain_id`, whose parts are separated by colons.
_PLAIN_AUTHORITY = re.compile(r"[^a-z0-9_.-]+")


@dataclass(frozen=True, slots=True)
class DroppedResearchRecord:
    """A record that cannot be queued; `index` is its position in the file."""

    index: int
    reason: str
    record: object


def raw_batches(store: ObjectStore) -> dict[str, str]:
    """Return the fingerprint of every batch's research files by partition key."""
    part = content_part(store)
    return {key: fingerprint_of(infos, part) for key, infos in batch_files(store).items()}


def batch_files(store: ObjectStore) -> dict[str, list[ObjectInfo]]:
    """Return every batch's research files by partition key."""
    found: dict[str, list[ObjectInfo]] = {}
    for info, seed in _listed(store):
        if isinstance(seed, SeedQueueMessage):
            found.setdefault(seed.partition_info.key, []).append(info)
    return found


def misplaced_files(store: ObjectStore) -> dict[str, str]:
    """Return the files under `raw/` that were meant as research data but are not, and why."""
    return {info.path: seed for info, seed in _listed(store) if isinstance(seed, str)}


def _listed(store: ObjectStore) -> Iterator[tuple[ObjectInfo, SeedQueueMessage | str]]:
    """Yield every file named like research data with its message, or why it cannot be queued."""
    for info in store.list(RAW_FOLDER):
        try:
            seed = seed_message(info.path)
        except InputError as error:
            yield info, str(error)
            continue
        name = info.path.rpartition("/")[2]
        if seed is not None:
            yield info, seed
        elif _MISNAMED.fullmatch(name) and name != RAW_METADATA and not is_raw_file(name):
            yield info, f"misnamed: expected raw_NNNN.json with four or more digits, found {name!r}"
        elif is_raw_file(name):
            expected = "raw/country=CC/category=CAT/date=YYYY-MM-DD/raw_NNNN.json"
            yield info, f"not in a batch folder: expected {expected}"


def batch_fingerprint(store: ObjectStore, batch: PartitionInfo) -> str:
    """Return the fingerprint of one batch's research files."""
    return fingerprint_of(_infos(store, batch), content_part(store))


def iter_seeds(store: ObjectStore, batch: PartitionInfo) -> Iterator[SeedQueueMessage]:
    """Yield the research files of a batch, in their order."""
    for info in _infos(store, batch):
        yield SeedQueueMessage(raw_file_path=info.path, partition_info=batch)


def parse_records(body: bytes, *, path: str) -> list[object]:
    """Return the records of a research file; raise InputError if it is not one.

    Their text is as in the file, not yet scrubbed.
    """
    try:
        # NaN and infinities are not JSON: they stay text, so that dropped records can be written.
        document = json.loads(body, parse_constant=str, parse_float=_number)
    except ValueError as error:
        raise InputError(f"invalid JSON in {path!r}: {error}", thing=path) from error
    except RecursionError as error:
        raise InputError(f"invalid JSON in {path!r}: nested too deeply", thing=path) from error
    records = document.get("records") if isinstance(document, dict) else None
    if not isinstance(records, list):
        expected = "expected a JSON object with a list `records`"
        raise InputError(f"{path!r} is not a research file: {expected}", thing=path)
    return records


def import_file(store: ObjectStore, batch: PartitionInfo, *, name: str, body: bytes) -> str:
    """Store a research file under the next free number and return its path.

    Importing the same bytes twice returns the first path. Nothing is ever overwritten.
    `raw_metadata.json` keeps its name.
    """
    folder = f"{RAW_FOLDER}/{batch.folder}"
    if name == RAW_METADATA:
        return _import_metadata(store, f"{folder}/{RAW_METADATA}", body)
    parse_records(body, path=name)
    infos = _infos(store, batch)
    for info in infos:
        # The sizes are known from the LIST: only files of the same size are read.
        if info.size_bytes == len(body) and store.read(info.path) == body:
            return info.path
    # A file that was deleted leaves its success marker: its number is not used again.
    names = (info.path.rpartition("/")[2] for info in store.list(f"{folder}/"))
    number = max((raw_file_number(name.removesuffix(SUCCESS_SUFFIX)) for name in names), default=0)
    # Another import may take the same number at the same moment: then try the next one.
    while True:
        number += 1
        path = f"{folder}/raw_{number:04}.json"
        if store.put_if_absent(path, body):
            return path


def mark_read(store: ObjectStore, path: str) -> None:
    """Write the success marker of a research file whose domains are in the queue."""
    store.put_if_absent(f"{path}{SUCCESS_SUFFIX}", b"")


def write_dropped(store: ObjectStore, path: str, dropped: list[DroppedResearchRecord]) -> None:
    """Write the records that could not be queued to quarantine, one JSON line with reason each."""
    name = path.removeprefix(f"{RAW_FOLDER}/").removesuffix(".json")
    lines = [json.dumps(asdict(one)) for one in dropped]
    store.put(f"quarantine/research/{name}.jsonl", "".join(f"{one}\n" for one in lines).encode())


def read_raw_metadata(store: ObjectStore, batch: PartitionInfo) -> dict[str, object] | None:
    """Return the batch's `raw_metadata.json` for display, or None if there is none.

    If it cannot be displayed, return the reason under `problem`; the batch is queued all the same.
    """
    path = f"{RAW_FOLDER}/{batch.folder}/{RAW_METADATA}"
    if not store.exists(path):
        return None
    body = store.read(path)
    if len(body) > _MAX_SHOWN_BYTES:
        return {"problem": f"too large to show: {len(body)} bytes, at most {_MAX_SHOWN_BYTES}"}
    try:
        found = scrub_json(json.loads(body, parse_constant=str, parse_float=_number))
    except (ValueError, RecursionError) as error:
        return {"problem": f"invalid JSON: {error}"}
    return found if isinstance(found, dict) else {"content": found}


def sha256(body: bytes) -> str:
    """Return the digest that identifies the content of a research file."""
    return hashlib.sha256(body).hexdigest()


def _infos(store: ObjectStore, batch: PartitionInfo) -> list[ObjectInfo]:
    """Return the batch's research files, without those in folders below it."""
    folder = f"{RAW_FOLDER}/{batch.folder}/"
    return [info for info in store.list(folder) if is_raw_file(info.path.removeprefix(folder))]


def _number(text: str) -> float | str:
    """Return a number; one that JSON cannot represent (infinity) stays as its text."""
    number = float(text)
    return number if math.isfinite(number) else text


def _import_metadata(store: ObjectStore, path: str, body: bytes) -> str:
    if not store.put_if_absent(path, body) and store.read(path) != body:
        cure = "raw files are never overwritten; import it into another batch"
        raise InputError(f"{path!r} exists with other content: {cure}", thing=path)
    return path


def iter_messages(
    records: Iterable[object], *, seed: SeedQueueMessage
) -> Iterator[DomainQueueMessage | DroppedResearchRecord]:
    """Yield one message per domain, from its first record, and the records that were dropped."""
    # The queue keeps one message per batch and domain as well; this saves the later ones the trip.
    seen: set[str] = set()
    for index, record in enumerate(records):
        found: DomainQueueMessage | str = INTERNAL_ERROR
        with boundary("research record", f"{seed.raw_file_path}#{index}"):
            record = scrub_json(record)
            found = message_of(record, seed=seed)
        if isinstance(found, str):
            yield DroppedResearchRecord(index, found, record)
        elif found.registrable_domain not in seen:
            seen.add(found.registrable_domain)
            yield found


def message_of(record: object, *, seed: SeedQueueMessage) -> DomainQueueMessage | str:
    """Return the message of a record, or the reason why it is dropped."""
    bad: list[str] = []
    try:
        known = ResearchRecord.model_validate(record)
    except ValidationError as error:
        if not isinstance(record, dict):
            return "bad_record"
        # An invalid field costs itself, not the domain.
        bad = [str(one["loc"][0]) for one in error.errors()]
        good = {name: value for name, value in record.items() if name not in bad}
        known = ResearchRecord.model_validate(good)
    named = (known.normalized_domain or "").strip() or (known.raw_url or "").strip()
    if not named:
        return f"bad_{bad[0]}" if bad else "no_domain"
    domain = registrable_domain(named)
    if not is_domain(domain):
        return "not_a_domain"
    authority = _authority(known.source_type)
    return DomainQueueMessage(
        domain_id=f"{authority}:{seed.partition_info.country}:{domain}",
        domain_url=_domain_url(known.raw_url, domain),
        registrable_domain=domain,
        authority=authority,
        partition_info=seed.partition_info,
        source_file_path=seed.raw_file_path,
    )


def is_domain(name: str) -> bool:
    """Return whether a name is a site's: ASCII labels with a dot, not `co.uk`, or an IP address."""
    if _DOMAIN.fullmatch(name):
        return not is_public_suffix(name)
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _authority(source_type: str | None) -> str:
    return _PLAIN_AUTHORITY.sub("_", (source_type or "").strip().lower()) or UNKNOWN_AUTHORITY


def _domain_url(raw_url: str | None, domain: str) -> str:
    """Return the record's URL if it belongs to this domain, or else the domain's front page.

    Of a URL with a password or with unprintable characters, only the host is kept.
    """
    url = (raw_url or "").strip()
    if not _WEB_URL.match(url) or registrable_domain(url) != domain:
        return _front_page(domain)
    if _PLAIN_URL.match(url) and url.isprintable():
        return url
    host = url_host(url)
    return _front_page(host if is_domain(host) else domain)


def _front_page(host: str) -> str:
    return f"https://[{host}]/" if ":" in host else f"https://{host}/"


def is_taken_down(record: object, takedowns: Takedowns) -> bool:
    """Return whether a record of a research file names a domain or page that is taken down."""
    given = record if isinstance(record, dict) else {}
    domain, url = given.get("normalized_domain"), given.get("raw_url")
    return takedowns.covers_domain(str(domain or "")) or takedowns.covers_url(str(url or ""))
