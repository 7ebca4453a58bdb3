"""Pure: decide whether a URL is taken down. One matcher serves all of the platform.

    takedowns = Takedowns.read(root)
    takedowns.covers(canonical_url(address))

A lookup takes 1 to 2 µs with 100,000 entries: a set of keys, a sorted list of prefixes, and a set
of domains.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Self

from news_platform.datasets.takedowns import TakedownKind, TakedownRequest
from news_platform.storage.commit.markers import fingerprint
from news_platform.web.urls import (
    canonical_url,
    is_public_suffix,
    plain_host,
    registrable_domain,
    url_hash,
    url_host,
)

if TYPE_CHECKING:
    from news_platform.storage.objects.store import ObjectStore

# https://DOMAIN.cdn.ampproject.org/c/s/PAGE, https://www.google.com/amp/s/PAGE, and Bing's cache.
_AMP_CACHE = re.compile(
    r"(?:[^/]+\.cdn\.ampproject\.org/(?:[a-z]/)?|google\.[a-z.]+/amp/|bing-amp\.com/c/)(?:s/)?(?=[^/]+\.)"
)
_HOSTS = ("www.", "m.", "mobile.", "amp.")
"""Further hosts of a site that show the same pages."""
_OTHER_HOSTS = _HOSTS[1:]
_OTHER_HOST = re.compile(r"(www|m|mobile|amp)\.(?=[^/]+\.)")
_AMP_FOLDER = re.compile(r"/amp(?:\.html?)?(?=/|$|\?)")
_AMP_END = re.compile(r"\.amp(?=\.html?$|\.html?\?|$|\?)")
_AMP_QUERY = re.compile(
    r"(?<=[?&])(?:amp(?:=(?:1|true|)|)|(?:outputtype|output|view)=amp)(?:&|$)", re.IGNORECASE
)


def bare_key(url: str) -> str:
    """Return a canonical URL without scheme and `www.`."""
    start = url.find("://") + 3
    if start < 3:  # not a web address
        return url
    return url[start + 4 :] if url.startswith("www.", start) else url[start:]


def plain_key(key: str) -> str:
    """Return the key of the page that an AMP or mobile address shows; others as they are.

    docs/takedown.md lists the spellings.
    """
    found = key
    if "ampproject" in key or "/s/" in key or key.startswith("bing-amp."):
        found = _AMP_CACHE.sub("", found)
    if found is not key or key.startswith(_OTHER_HOSTS):
        found = _without_other_hosts(found)
    if "amp" in found:
        found = _AMP_END.sub("", _AMP_FOLDER.sub("", found, count=1))
        if "?" in found:
            found = _AMP_QUERY.sub("", found).rstrip("?&")
    return found if "/" in found else f"{found}/"


def page_keys(url: str) -> tuple[str, str]:
    """Return the two keys of a page, with and without a slash at its end."""
    key = plain_key(bare_key(url))
    slashed = key if key.endswith("/") or "?" in key else f"{key}/"
    return key, slashed if slashed != key else key.rstrip("/") if key.count("/") > 1 else key


def _prefix_key(url: str) -> str:
    # Only the host: without its folder, the prefix of all AMP pages would cover every page.
    return _without_other_hosts(bare_key(url))


def _without_other_hosts(key: str) -> str:
    """Return a key without the names of further hosts; `amp.gov.uk` is a site of its own."""
    while found := _OTHER_HOST.match(key):
        left = key[found.end() :]
        if found[1] != "www" and is_public_suffix(left.partition("/")[0]):
            break
        key = left
    return key


def shown_spellings(url: str) -> tuple[str, ...]:
    """Return the addresses of a page whose hashes name stored things."""
    keys = dict.fromkeys(page_keys(url))
    is_suffix = any(is_public_suffix(key.partition("/")[0]) for key in keys)
    return tuple(
        f"{scheme}://{host}{key}"
        for key in keys
        for scheme in ("https", "http")
        for host in ("", *(_HOSTS[:1] if is_suffix else _HOSTS))
    )


@dataclass(frozen=True, slots=True)
class PageAddress:
    """A canonical URL, its registrable domain, and the hashes of its spellings."""

    url: str
    domain: str
    keys: frozenset[str]
    hashes: tuple[str, ...]

    @classmethod
    def of(cls, url: str) -> Self:
        """Return the address of a page from any spelling; the hash of its own comes first."""
        canonical = canonical_url(url)
        spellings = dict.fromkeys((canonical, *shown_spellings(canonical)))
        return cls(
            url=canonical,
            domain=registrable_domain(url_host(canonical)),
            keys=frozenset(page_keys(canonical)),
            hashes=tuple(map(url_hash, spellings)),
        )

    def is_same(self, url: str) -> bool:
        """Return whether another address leads to the page, whatever its scheme or `www.`."""
        return plain_key(bare_key(canonical_url(url))) in self.keys


# `www.gov.uk` is covered as the host `gov.uk`, of which keys consist, without the hosts under it.
_IS_HOST, _IS_DOMAIN, _IS_WHOLE = 1, 2, 4
_IS_COVERED = _IS_DOMAIN | _IS_WHOLE
TakedownUse = Literal["collection", "removal", "export"]
"""Must not be collected, must not be stored, or must not leave the root in an export."""


@dataclass(frozen=True, slots=True)
class Takedowns:
    """The URLs, prefixes and domains that are taken down; empty without any request.

    `fingerprint` changes with the requests and aliases, so that a long run can tell whether it
    still obeys all of them.
    """

    urls: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    domains: frozenset[str] = frozenset()
    # The hosts of URLs and prefixes, and the domains, each with what it is.
    names: Mapping[str, int] = field(default_factory=dict, repr=False)
    fingerprint: str = ""
    # The addresses as they were requested, for people and for the search in bytes.
    pages: tuple[str, ...] = field(default=(), repr=False)
    lists: tuple[tuple[str, int], ...] = ()
    # What must not be exported, where it is not simply the same.
    exports: "Takedowns | None" = field(default=None, repr=False)

    @classmethod
    def read(
        cls,
        root: "str | ObjectStore",
        *,
        aliases: Iterable[Sequence[str]] = (),
        now: datetime | None = None,
        use: TakedownUse = "collection",
    ) -> "Takedowns":
        """Return what the requests under a root forbid.

        `aliases` are groups of addresses that lead to one page: if one of a group is covered, all
        are. Those that were found before are stored with the requests. Without `now` a request
        never expires. For `removal`, what must not be stored counts instead of what must not be
        collected, and for `export` also what is kept but must not be exported.
        """
        from news_platform.storage.objects.store import open_store
        from news_platform.takedowns.requests import read_current

        store = open_store(root) if isinstance(root, str) else root
        states, known = read_current(store, now=now)
        named, exported = (
            tuple(one.request for one in states if one.is_active(each, now))
            for each in (use, "export")
        )
        groups = tuple(map(tuple, [*known, *aliases]))
        return _matcher(named, None if named == exported else exported, groups)

    @classmethod
    def of(
        cls,
        requests: Iterable[TakedownRequest],
        *,
        aliases: Iterable[Sequence[str]] = (),
        exported: Iterable[TakedownRequest] | None = None,
    ) -> "Takedowns":
        """Return the matcher of these requests; exports obey `exported`, by default the same."""
        values: dict[TakedownKind, list[str]] = {kind: [] for kind in TakedownKind}
        lists = []
        for request in requests:
            lists += [request.list_version] if request.list_version else []
            for kind, value in request.iter_entries():
                values[kind].append(value)
        direct = cls(
            frozenset(key for url in values[TakedownKind.url] for key in page_keys(url)),
            _outermost(_prefix_key(prefix) for prefix in values[TakedownKind.prefix]),
            frozenset(values[TakedownKind.domain]),
            pages=tuple(values[TakedownKind.url]),
        )
        further = _followed(direct, aliases)
        parts = [f"{kind} {value}" for kind, found in values.items() for value in found]
        urls = direct.urls | {key for url in further for key in page_keys(url)}
        return replace(
            direct,
            urls=urls,
            names=_names(urls, direct.prefixes, direct.domains),
            pages=(*direct.pages, *further),
            fingerprint=fingerprint([*parts, *further]) if parts else "",
            lists=tuple(sorted(lists)),
            exports=None if exported is None else cls.of(exported, aliases=aliases),
        )

    def __bool__(self) -> bool:
        return bool(self.urls or self.prefixes or self.domains)

    def covers(self, canonical_url: str) -> bool:
        """Return whether a page, given by its canonical URL, is taken down."""
        if not self.fingerprint:
            return False
        # As in `bare_key`, spelled out: this runs for every page of the crawl.
        start = canonical_url.find("://") + 3
        if canonical_url.startswith("www.", start):
            start += 4
        key = canonical_url[start:] if start > 2 else canonical_url
        # The test spares nearly all addresses the regular expressions.
        if self._has(key):
            return True
        if "amp" in key or key.startswith(_OTHER_HOSTS):
            return self._has(plain_key(key))
        return False

    def covers_export(self, canonical_url: str) -> bool:
        """Return whether a page must not be exported: it is taken down, or only kept."""
        return self.exported.covers(canonical_url)

    def list_versions(self) -> tuple[tuple[str, int], ...]:
        """Return the opt-out lists that exports obey, each by name and version."""
        return self.exported.lists

    @property
    def exported(self) -> "Takedowns":
        """Return what must not be exported."""
        return self if self.exports is None else self.exports

    def covers_url(self, url: str | None) -> bool:
        """Return whether a page, given by any spelling of its URL, is taken down."""
        return bool(url) and bool(self.fingerprint) and self.covers(canonical_url(url or ""))

    def covers_domain(self, domain: str | None) -> bool:
        """Return whether a whole host or domain, in natural order, is taken down."""
        return bool(domain) and bool(self.domains) and self._has_host(plain_host(domain or ""))

    @property
    def registrable_domains(self) -> frozenset[str]:
        """Return the registrable domains that have covered pages, in natural order."""
        return _registrable_domains(self.urls, self.prefixes, self.domains)

    def _has(self, key: str) -> bool:
        end = key.find("/")
        host = key if end < 0 else key[:end]
        names = self.names
        # Nearly all pages are of hosts that no request names: one lookup decides.
        if kind := names.get(host):
            if kind & _IS_COVERED or key in self.urls:
                return True
            place = bisect_right(self.prefixes, key)
            if place and key.startswith(self.prefixes[place - 1]):
                return True
        return bool(self.domains) and self._has_parent(host)

    def _has_parent(self, host: str) -> bool:
        """Return whether a host, which may have a port, lies under a covered domain."""
        if ":" in host:
            return self._has_host(host.partition(":")[0])
        names, dot = self.names, host.find(".")
        while dot >= 0:
            host = host[dot + 1 :]
            dot = host.find(".")
            # A single label is no domain.
            if dot >= 0 and names.get(host, 0) & _IS_DOMAIN:
                return True
        return False

    def _has_host(self, host: str) -> bool:
        return bool(self.names.get(host, 0) & _IS_COVERED) or self._has_parent(host)


# Long runs read the requests again before every commit, and most often nothing has changed.
@lru_cache(4)
def _matcher(
    requests: tuple[TakedownRequest, ...],
    exported: tuple[TakedownRequest, ...] | None,
    aliases: tuple[tuple[str, ...], ...],
) -> Takedowns:
    return Takedowns.of(requests, aliases=aliases, exported=exported)


# For code that runs without a root, such as benchmarks.
NO_TAKEDOWNS = Takedowns()


def _outermost(prefixes: Iterable[str]) -> tuple[str, ...]:
    """Return sorted prefixes of which none begins with another, so that one comparison decides."""
    kept: list[str] = []
    for prefix in sorted(prefixes):
        if not (kept and prefix.startswith(kept[-1])):
            kept.append(prefix)
    return tuple(kept)


# Asked for once per column of every dataset.
@lru_cache(4)
def _registrable_domains(*keys: Collection[str]) -> frozenset[str]:
    found = {registrable_domain(url_host(f"https://{key}")) for some in keys for key in some}
    # Both spellings of a site directly under a public suffix, such as www.gov.uk.
    bare = {one.removeprefix("www.") for one in found}
    return frozenset(found | bare | {f"www.{one}" for one in bare if is_public_suffix(one)})


def _names(
    urls: Iterable[str], prefixes: Iterable[str], domains: Iterable[str]
) -> Mapping[str, int]:
    names = {key.partition("/")[0]: _IS_HOST for key in (*urls, *prefixes)}
    for domain in domains:
        names[domain] = names.get(domain, 0) | _IS_DOMAIN
        if domain.startswith("www."):
            bare = domain.removeprefix("www.")
            names[bare] = names.get(bare, 0) | _IS_WHOLE
    return names


def _followed(direct: Takedowns, aliases: Iterable[Sequence[str]]) -> tuple[str, ...]:
    """Return the addresses that lead to covered pages and are not covered by themselves."""
    groups = [[canonical_url(url) for url in group] for group in aliases]
    names = _names(direct.urls, direct.prefixes, direct.domains)
    known = replace(direct, fingerprint="direct", names=names)
    found: dict[str, None] = {}
    while True:
        before = len(found)
        for group in groups:
            if any(url in found or known.covers(url) for url in group):
                found.update(dict.fromkeys(url for url in group if not known.covers(url)))
        if len(found) == before:  # an alias may lead on to another group
            return tuple(found)
