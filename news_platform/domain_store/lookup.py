"""Look up the records of a domain: by hash, binary search and one range read per fragment.

A `DomainStore` reads the manifest of each bucket once and keeps it until `refresh`. Files that a
newer generation does not name stay readable for the builder's grace period.
"""

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property, lru_cache, partial
from itertools import islice
from pathlib import Path

import polars as pl
from pydantic_core import from_json

from news_platform.datasets.domain_store import DOMAIN_CATALOG, RANGES, RECORDS
from news_platform.domain_store.fragments import (
    Fragment,
    Row,
    iter_lines_of_fragments,
    iter_rows,
    parse_row,
)
from news_platform.domain_store.layout import bucket_of, data_path_of, records_path
from news_platform.domain_store.manifest import (
    Manifest,
    check_bucket_count,
    read_bucket_count,
    read_current,
)
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import NotFound, ObjectStore, StoreOptions, open_store
from news_platform.storage.parquet import read_table, scan_table
from news_platform.takedowns.build_filters import read_hidden, without_covered, without_hidden
from news_platform.takedowns.match import Takedowns
from news_platform.text.readable import as_day
from news_platform.web.urls import plain_host, registrable_domain

# Blocks of the index in memory, of about 20 KB each.
CACHED_BLOCKS = 1024
DEFAULT_OPTIONS = StoreOptions()
# Quotes inside a text are escaped, so nothing else matches.
_DAY = re.compile(rb'"year":"(\d+)","month":"(\d+)","day":"(\d+)"[,}]')


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """The index entry of a domain: its record count and where the records are."""

    domain: str
    count: int
    fragments: tuple[Fragment, ...]


class DomainStore:
    """The domain store under a root, which is a path, a URL or an opened store."""

    def __init__(
        self,
        root: str | Path | ObjectStore,
        *,
        options: StoreOptions = DEFAULT_OPTIONS,
        hidden: Takedowns | None = None,
    ) -> None:
        self._store = (
            root if isinstance(root, ObjectStore) else open_store(str(root), options=options)
        )
        self._hidden = hidden
        self._opened: dict[int, _Bucket] = {}

    @cached_property
    def buckets(self) -> int:
        """Return the number of buckets."""
        return read_bucket_count(self._store)

    @cached_property
    def hidden(self) -> Takedowns:
        """Return what is taken down and still stored, which is not shown."""
        return read_hidden(self._store) if self._hidden is None else self._hidden

    def records(
        self, domain: str, *, limit: int | None = None, since: date | str | None = None
    ) -> Iterator[Row]:
        """Yield the records of a domain, oldest batch first; none for an unknown domain.

        `since` keeps the records whose WARC day is that day or later. The domain may have upper
        case, a trailing dot and non-ASCII letters; a subdomain does not match its domain.
        """
        return map(parse_row, self.lines(domain, limit=limit, since=since))

    def lines(
        self, domain: str, *, limit: int | None = None, since: date | str | None = None
    ) -> Iterator[bytes]:
        """Yield the same records as stored: JSON without a line end."""
        first_day = None if since is None else as_day(since, name="since")
        lines = self._iter_lines(domain, first_day)
        if self.hidden and registrable_domain(domain) in self.hidden.registrable_domains:
            lines = (it for it in lines if not self.hidden.covers_url(str(parse_row(it)["uri"])))
        if first_day is not None:
            lines = filter(partial(_is_since, first_day=first_day), lines)
        return islice(lines, _at_least_0(limit, "limit"))

    def count(self, domain: str) -> int:
        """Return the number of records of a domain; 0 for an unknown domain."""
        if self.hidden and registrable_domain(domain) in self.hidden.registrable_domains:
            return sum(1 for _ in self.lines(domain))
        entry = self.entry(domain)
        return entry.count if entry else 0

    def domains(self) -> Iterator[str]:
        """Yield every domain, bucket by bucket, sorted within each."""
        for bucket in range(self.buckets):
            yield from self.catalog(bucket)["domain"]

    def catalog(self, bucket: int) -> pl.DataFrame:
        """Return the domains of one bucket as rows of the catalog."""
        manifest = self.manifest(bucket)
        if manifest is None:
            return pl.DataFrame(schema=DOMAIN_CATALOG.schema)
        ranges = read_table(self._store, manifest.index.ranges_path, RANGES)
        return _catalog_rows(without_covered(ranges, RANGES, self.hidden), bucket)

    def entry(self, domain: str) -> IndexEntry | None:
        """Return the index entry of a domain; None for an unknown domain."""
        # Rows of other crawls may have any spelling, so an exact match has precedence.
        if self.hidden.covers_domain(domain):
            return None
        found = self._spelled_entry(domain)
        if found is None and (other := plain_host(domain)) != domain:
            return self._spelled_entry(other)
        return found

    def manifest(self, bucket: int) -> Manifest | None:
        """Return the manifest of a bucket that this reader uses; None for an empty bucket."""
        return self._bucket(bucket).manifest

    def scan_records(self, domain: str | None = None) -> pl.LazyFrame:
        """Return one narrow row per record of the whole store, or of one domain."""
        buckets = range(self.buckets) if domain is None else [bucket_of(domain, self.buckets)]
        frames = [
            scan_table(self._store, [records_path(bucket, segment.name)], RECORDS).filter(
                ~pl.col("batch").is_in(list(segment.dropped))
            )
            for bucket in buckets
            for segment in getattr(self.manifest(bucket), "segments", ())
            if segment.files
        ]
        rows = pl.concat(frames) if frames else pl.LazyFrame(schema=RECORDS.schema)
        rows = without_hidden(rows, RECORDS, self.hidden)
        return rows if domain is None else rows.filter(pl.col("domain") == domain)

    def refresh(self) -> None:
        """Forget the manifests, so that lookups use the newest generations."""
        self._opened.clear()

    def _iter_lines(self, domain: str, since: date | None) -> Iterator[bytes]:
        lines = self._iter_known(domain, since)
        try:
            first = next(lines, None)
        except NotFound:
            # The manifest is older than the grace period, and its files have been deleted.
            self.refresh()
            lines = self._iter_known(domain, since)
            first = next(lines, None)
        if first is not None:
            yield first
            yield from lines

    def _iter_known(self, domain: str, since: date | None) -> Iterator[bytes]:
        entry = self.entry(domain)
        if entry is None:
            return
        manifest = self.manifest(bucket_of(entry.domain, self.buckets))
        # Whole files are skipped by the manifest; the lines of the others are filtered one by one.
        too_old = _files_before(manifest, since)
        wanted = [part for part in entry.fragments if part.path not in too_old]
        yield from iter_lines_of_fragments(self._store, wanted)

    def _spelled_entry(self, domain: str) -> IndexEntry | None:
        try:
            number = bucket_of(domain, self.buckets)
        except UnicodeEncodeError:
            return None  # A lone surrogate, which no stored domain can have.
        try:
            line = self._bucket(number).line(domain)
        except NotFound:
            self._opened.pop(number, None)  # As in `_iter_lines`.
            line = self._bucket(number).line(domain)
        return parse_index_entry(line) if line is not None else None

    def _bucket(self, number: int) -> "_Bucket":
        found = self._opened.get(number)
        if found is None:
            manifest = check_bucket_count(read_current(self._store, number).manifest, self.buckets)
            found = _Bucket(self._store, manifest)
            self._opened[number] = found
        return found


class _Bucket:
    """One generation of a bucket, with the recently read blocks of its index."""

    def __init__(self, store: ObjectStore, manifest: Manifest | None) -> None:
        self.manifest = manifest
        self._store = store
        self._firsts = [domain for domain, _ in manifest.index.sparse] if manifest else []
        # A cache per bucket, so that `refresh` frees it.
        self._block = lru_cache(CACHED_BLOCKS)(self._read_block)

    def line(self, domain: str) -> bytes | None:
        """Return the index line of a domain; None for an unknown domain."""
        number = bisect_right(self._firsts, domain) - 1
        if number < 0:
            return None
        block = self._block(number)
        # Searched as bytes, so that only the line of the domain is parsed.
        start = block.find(_line_head(domain))
        return None if start < 0 else block[start : block.index(b"\n", start)]

    def _read_block(self, number: int) -> bytes:
        assert self.manifest is not None
        index = self.manifest.index
        first, start = index.sparse[number]
        is_last = number + 1 == len(index.sparse)
        end = index.size_bytes if is_last else index.sparse[number + 1][1]
        block = self._store.read_range(index.path, start, end - start)
        # An index file that was changed would give wrong byte ranges without an error.
        if not (block.startswith(_line_head(first)) and block.endswith(b"\n")):
            where = self._store.uri(index.path)
            raise StorageError(
                f"{where!r} does not match its manifest: run `store repair`", thing=where
            )
        return block


def read_rows_from_offset(
    filepath: str | Path,
    offset: int,
    limit: int | None = None,
    *,
    options: StoreOptions = DEFAULT_OPTIONS,
) -> Iterator[Row]:
    """Yield `limit` rows of a data file from the first byte of a domain; None reads to the end."""
    folder, slash, name = str(filepath).rpartition("/")
    store = open_store(folder or slash or ".", options=options)
    start = _at_least_0(offset, "offset") or 0
    return islice(iter_rows(store, name, start), _at_least_0(limit, "limit"))


def parse_index_entry(line: bytes) -> IndexEntry:
    """Parse one line of the index."""
    try:
        document = from_json(line)
        fragments = tuple(
            Fragment(data_path_of(f["filepath"]), f["offset"], f["length"], f["record_count"])
            for f in document["files"]
        )
        return IndexEntry(document["domain"], document["count"], fragments)
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(f"cannot parse index line {line[:80]!r}") from error


def _catalog_rows(ranges: pl.DataFrame, bucket: int) -> pl.DataFrame:
    """Return one row per domain from the byte ranges of a bucket."""
    return ranges.group_by("domain", maintain_order=True).agg(
        pl.lit(bucket, dtype=pl.UInt32).alias("bucket"),
        pl.col("records").sum(),
        pl.col("length").sum().alias("bytes"),
        pl.len().alias("fragments"),
        pl.col("languages").explode().drop_nulls().unique().sort(),
        pl.col("first_seen").min(),
        pl.col("last_seen").max(),
    )


def _files_before(manifest: Manifest | None, since: date | None) -> set[str]:
    """Return the data files in which every record is older than `since`."""
    if manifest is None or since is None:
        return set()
    return {
        file.path
        for segment in manifest.segments
        if segment.last_day is not None and segment.last_day < since
        for file in segment.files
    }


def _is_since(line: bytes, first_day: date) -> bool:
    """Return whether the WARC day of a record is known and not before `first_day`."""
    # After these columns a record has only numbers.
    found = _DAY.match(line, max(0, line.rfind(b'"year":')))
    # Compared as numbers: other crawls may write May as 5.
    day = tuple(map(int, found.groups())) if found else ()
    return day >= (first_day.year, first_day.month, first_day.day)


def _line_head(domain: str) -> bytes:
    """Return the first bytes of the index line of a domain."""
    return b'{"domain":%b,' % json.dumps(domain, ensure_ascii=False).encode()


def _at_least_0(number: int | None, name: str) -> int | None:
    if number is not None and number < 0:
        raise InputError(f"invalid {name} {number}: expected 0 or more")
    return number
