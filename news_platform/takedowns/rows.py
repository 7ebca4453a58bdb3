"""Find what a takedown covers: rows and files by the roles of columns, texts by what they name."""

import gzip
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, reduce
from itertools import islice
from operator import or_

import polars as pl

from news_platform.datasets.dataset import Column, Dataset, Role
from news_platform.datasets.registry import DATASETS
from news_platform.storage.commit.markers import change_report, read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns, shown_spellings
from news_platform.web.urls import reversed_domain, unicode_host, url_hash

# A host that may be spelled otherwise than in punycode and lower case.
_ODD_HOST = r"^[^/]*//[^/]*[%\x{80}-\x{10FFFF}]"
_GZIP = b"\x1f\x8b"
_FEW = 32
ROW_ROLES = (Role.url, Role.url_hash, Role.domain, Role.host)
"""The roles of the columns that say which page or domain a row is about."""
EXPORTS = frozenset(name for name, one in DATASETS.items() if "huggingface" in one.kinds)
"""The datasets that are made to leave the root: they also lose what must not be exported."""
ADDRESSES = frozenset(("uri", "url", "sourceURL", "raw_url"))
"""Fields of JSON documents that state the address of the page that a document is about."""
DOMAINS = frozenset(("domain", "registrable_domain", "normalized_domain"))
"""Fields of JSON documents that state its domain."""

# The parts of documents that describe them: of a snapshot, a refused record, a source record.
_PAGES = "data"
_DESCRIBING = frozenset((_PAGES, "metadata", "record", "provenance"))


def covered_urls(urls: Iterable[str | None], takedowns: Takedowns) -> frozenset[str]:
    """Return those of the URLs that are taken down."""
    return frozenset(url for url in set(urls) if url and takedowns.covers_url(url))


def is_covered(urls: pl.Series, takedowns: Takedowns) -> pl.Series:
    """Return for each URL of a column whether it is taken down."""
    likely = urls.to_frame("url").filter(may_be_covered("url", takedowns))["url"]
    return urls.is_in(list(covered_urls(likely, takedowns))).fill_null(False)


def may_be_covered(column: str, takedowns: Takedowns) -> pl.Expr:
    """Return an expression that is true for every covered URL and false for nearly all others.

    It runs inside the scan, so that only few addresses become Python objects.
    """
    if not takedowns.registrable_domains:
        return pl.lit(False)
    text = pl.col(column).fill_null("")
    return contain_needles(text, takedowns.registrable_domains) | text.str.contains(_ODD_HOST)


def contain_needles(text: pl.Expr, needles: frozenset[str]) -> pl.Expr:
    """Return an expression that is true for texts with one of the needles, in any case.

    Polars keeps compiled patterns, but builds the automaton of `contains_any` at every call: with
    10,000 needles that takes 12 ms, longer than most files need.
    """
    if len(needles) <= _FEW:
        return text.str.contains_any(sorted(needles), ascii_case_insensitive=True)
    return text.str.to_lowercase().str.contains(_pattern(needles))


@lru_cache(8)
def _pattern(needles: frozenset[str]) -> str:
    return "|".join(map(re.escape, sorted(needles)))


def covered_hashes(takedowns: Takedowns) -> frozenset[str]:
    """Return the hashes by which stored things refer to the requested pages."""
    return _hashes(takedowns.pages)


@lru_cache(4)
def _hashes(pages: tuple[str, ...]) -> frozenset[str]:
    return frozenset(url_hash(one) for page in pages for one in shown_spellings(page))


@dataclass(frozen=True, slots=True)
class TakedownTarget:
    """The pages and domains that are taken down, as the engines of datasets look for them."""

    takedowns: Takedowns

    def __bool__(self) -> bool:
        return bool(self.takedowns)

    @property
    def domains(self) -> frozenset[str]:
        """Return the registrable domains of everything that is covered."""
        return self.takedowns.registrable_domains

    def likely(self, dataset: Dataset) -> pl.Expr:
        """Return a cheap expression that is true for every row to find and few others."""
        return reduce(or_, map(self._likely, dataset.all_columns), pl.lit(False))

    def covered(self, dataset: Dataset, rows: pl.DataFrame) -> pl.Series:
        """Return for each row whether it is about a covered page or domain."""
        gone = pl.Series("gone", [False]).new_from_index(0, rows.height)
        for column in dataset.all_columns:
            if column.name in rows.columns:
                gone |= self.covered_values(column.role, rows[column.name])
        return gone

    def covers_file(
        self, dataset: Dataset, values: Mapping[str, str], read: Callable[[], bytes]
    ) -> bool:
        """Return whether a file is about a covered page or domain, by its path or its content."""
        named = {column.name: column.role for column in dataset.all_columns}
        if any(self.covers(named.get(name, Role.fact), value) for name, value in values.items()):
            return True
        return Role.url in named.values() and any(map(self.covers_document, iter_documents(read())))

    def covers_document(self, document: object) -> bool:
        """Return whether a JSON document states the address of a covered page or domain."""
        return any(
            (name in ADDRESSES and self.takedowns.covers_url(value))
            or (name in DOMAINS and self.takedowns.covers_domain(value))
            for name, value in stated_fields(document)
        )

    def left_of(self, body: bytes) -> bytes | None:
        """Return a file without its covered documents, None if no document is left.

        Lines of JSON and the pages of a crawl's answer go one by one.
        """
        if body.lstrip()[:1] not in (b"{", b"["):
            return body
        whole = _parsed(body)
        if whole is None:
            lines = body.splitlines(keepends=True)
            return b"".join(one for one in lines if not self.covers_document(_parsed(one))) or None
        pages = whole.get(_PAGES) if isinstance(whole, dict) else None
        if not self.covers_document(whole):
            return body
        if not isinstance(whole, dict) or not isinstance(pages, list):
            return None
        left = {**whole, _PAGES: [one for one in pages if not self.covers_document(one)]}
        is_left = left[_PAGES] and not self.covers_document(left)
        return json.dumps(left).encode() if is_left else None

    def covers(self, role: Role, value: str) -> bool:
        """Return whether a value of a column of this role names a covered page or domain."""
        match role:
            case Role.url:
                return self.takedowns.covers_url(value)
            case Role.url_hash:
                return value in covered_hashes(self.takedowns)
            case Role.domain:
                return self.takedowns.covers_domain(value)
            case Role.host:
                return self.takedowns.covers_domain(".".join(reversed(value.split("."))))
        return False

    def _likely(self, column: Column) -> pl.Expr:
        match column.role:
            case Role.url:
                return may_be_covered(column.name, self.takedowns)
            case Role.url_hash:
                return pl.col(column.name).is_in(list(covered_hashes(self.takedowns)))
            case Role.domain if self.takedowns.domains:
                return contain_needles(pl.col(column.name).fill_null(""), self.domains)
            case Role.host if self.takedowns.domains:
                return pl.col(column.name).is_in(_reversed(self.domains))
        return pl.lit(False)

    def covered_values(self, role: Role, values: pl.Series) -> pl.Series:
        """Return for each value of a column whether it names a covered page or domain."""
        if role is Role.url:
            return is_covered(values, self.takedowns)
        if role not in ROW_ROLES:
            return pl.Series([False]).new_from_index(0, values.len())
        found = [one for one in values.drop_nulls().unique() if self.covers(role, one)]
        return values.is_in(found).fill_null(False)


@lru_cache(4)
def _reversed(domains: frozenset[str]) -> pl.Series:
    return pl.Series(map(reversed_domain, sorted(domains)), dtype=pl.String)


def iter_documents(body: bytes) -> Iterator[object]:
    """Yield the JSON documents in a file: one, or one per line; none in any other file."""
    content = gzip.decompress(body) if body.startswith(_GZIP) else body
    if content.lstrip()[:1] not in (b"{", b"["):
        return
    whole = _parsed(content)
    yield from map(_parsed, content.splitlines()) if whole is None else [whole]


def _parsed(content: bytes) -> object:
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None


def stated_fields(document: object) -> Iterator[tuple[str, str]]:
    """Yield the texts with which a JSON document, or each of a list, says what it is about.

    Fields deeper inside are content: links, images, the answers of others.
    """
    for one in document if isinstance(document, list) else [document]:
        for name, value in one.items() if isinstance(one, dict) else ():
            if isinstance(value, str):
                yield name, value
            # The answer to a crawl has a list of pages.
            elif name in _DESCRIBING and isinstance(value, dict | list):
                yield from stated_fields(value)


# An address or a host as people and programs write it, with or without its scheme.
# It begins where a word does: within one, such as a long number, every try would be in vain.
_ADDRESS = re.compile(
    r"(?<![\w-])(?:https?://)?(?:[\w-]+\.)+[^\W\d_][\w-]+(?::\d+)?(?:/[^\s\"'<>|\\`\])}]*)?"
)
_AFTER = ".,;:!?"
# An address in a text may end at any of these, such as in a line of CSV.
_MAY_END = re.compile(r"(?<=[^:/])[,;&?#(*!]")
_MOST_ENDS = 8
_JSON_ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")


def page_needles(takedowns: Takedowns) -> frozenset[str]:
    """Return texts of which one occurs, in any case, wherever a covered page is named."""
    return _needles(frozenset(takedowns.names))


@lru_cache(4)
def _needles(hosts: frozenset[str]) -> frozenset[str]:
    plain = (host.partition(":")[0] for host in hosts)
    return frozenset(one for host in plain for one in (host, unicode_host(host)))


def contain_any(texts: Sequence[str], needles: frozenset[str]) -> list[bool]:
    """Return for each text whether it has a needle; the number of needles hardly matters."""
    # Polars has a fixed cost per call, which most files are too small to be worth.
    if len(texts) * len(needles) <= _FEW:
        return [any(needle in text.lower() for needle in needles) for text in texts]
    return (
        pl.select(contain_needles(pl.lit(pl.Series(texts, dtype=pl.String)), needles))
        .to_series()
        .to_list()
    )


def name_pages(texts: Sequence[str], takedowns: Takedowns) -> list[bool]:
    """Return for each text whether it names a covered page or domain."""
    if not texts or not takedowns:
        return [False] * len(texts)
    likely = contain_any(texts, page_needles(takedowns))
    return [may and any(_named(text, takedowns)) for text, may in zip(texts, likely, strict=True)]


def names_page(text: str, takedowns: Takedowns) -> bool:
    """Return whether a text names a covered page or domain."""
    return name_pages([text], takedowns)[0]


def _named(text: str, takedowns: Takedowns) -> Iterator[bool]:
    plain = _JSON_ESCAPE.sub(lambda found: chr(int(found[1], 16)), text.replace("\\/", "/"))
    # One at a time: the first covered address of a long page ends the search.
    for found in (match[0] for match in _ADDRESS.finditer(plain)):
        if "/" not in found:  # a host, and not the address of its home page
            yield takedowns.covers_domain(found.partition(":")[0])
            continue
        url = found if "://" in found else f"https://{found}"
        yield takedowns.covers_url(url.rstrip(_AFTER))
        # Whatever follows: a text too many is no loss.
        for end in islice(_MAY_END.finditer(url), _MOST_ENDS):
            yield takedowns.covers_url(url[: end.start()])


def forget_in_report(store: ObjectStore, dataset: str, unit: str, takedowns: Takedowns) -> None:
    """Remove covered pages and domains from what the marker of a unit tells about its run."""
    marker = read_markers(store, dataset).get(unit)
    if marker is None or not names_page(store.read(marker.path).decode(), takedowns):
        return

    def left(value: object) -> object:
        if isinstance(value, Mapping):
            return {key: left(one) for key, one in value.items() if not is_named(key)}
        return (
            [left(one) for one in value if not is_named(one)] if isinstance(value, list) else value
        )

    def is_named(value: object) -> bool:
        words = value if isinstance(value, list) else [value]
        return any(isinstance(word, str) and names_page(word, takedowns) for word in words)

    change_report(store, marker, lambda report: {key: left(one) for key, one in report.items()})
