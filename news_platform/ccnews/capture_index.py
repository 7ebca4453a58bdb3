"""Merge the runs of a day into its index, and find captures by URL, prefix, host or domain.

Start here for lookups. The file of a day is sorted by `url_surtkey`, and its footer has the first
and last key of every row group: a site takes one read of the file's tail and one of the row group.
Days that are not merged yet are read from their runs, as long as they are in the newest months.
"""

import io
import tempfile
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import polars as pl

from news_platform.ccnews.captures import INDEX_LEVEL, surt_key, write_sorted
from news_platform.ccnews.listing import indexed_names
from news_platform.datasets.captures import CAPTURE_INDEX, CAPTURES
from news_platform.errors import InputError, StorageError
from news_platform.storage.commit.collected import REMOVED, collected_names
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import naming_damaged, path_values, read_table, scan_table
from news_platform.storage.units import unit_files, wanted_inputs
from news_platform.takedowns.build_filters import build_obeying, read_hidden, without_covered
from news_platform.takedowns.match import Takedowns

if TYPE_CHECKING:
    import pyarrow.parquet as pq

Match = Literal["exact", "prefix", "host", "domain"]
# The tail of a file that is read at once: more than the footer of any day takes.
_LEAST_TAIL, _TAIL_SHARE = 64 << 10, 128
_CONCURRENT_DAYS = 16
# Of these months, runs that are not merged yet are looked for: five listings.
_NEWEST_MONTHS = 2
# A WARC is named by the time at which its first record was written.
_WARC_SPAN = timedelta(days=1)


def build_index(store: ObjectStore, day: str) -> int | None:
    """Replace the index of a day by its merged runs; return its captures.

    None if the day has no runs. What is taken down is left out.
    """
    # Before reading: a run that changes meanwhile leaves the day stale, not wrong.
    inputs = wanted_inputs(store, CAPTURE_INDEX).get(day, REMOVED)
    paths = run_paths(store, day)
    if inputs == REMOVED or not paths:
        return None
    rows = build_obeying(store, partial(_merge, store, day, paths))
    write_marker(store, CAPTURE_INDEX.name, day, inputs=inputs, report={"rows": rows})
    return rows


def run_paths(store: ObjectStore, day: str) -> list[str]:
    """Return the runs of a day whose WARCs are collected or indexed: others are being written."""
    done = collected_names(store, day=date.fromisoformat(day)) | indexed_names(store, day)
    found = unit_files(store, CAPTURES, [day]).get(day, [])
    return [info.path for info in found if path_values(info.path)["filename"] in done]


def _merge(store: ObjectStore, day: str, paths: Sequence[str], takedowns: Takedowns) -> int:
    with tempfile.TemporaryDirectory() as folder:
        rows = pl.concat([read_table(store, path, CAPTURES) for path in paths])
        if rows["url_surtkey"].null_count():
            message = f"captures of {day} were written by an older version: collect the day again"
            raise StorageError(message, thing=day)
        kept = without_covered(rows, CAPTURES, takedowns)
        file = Path(folder) / "index.parquet"
        write_sorted(kept, file, level=INDEX_LEVEL)
        store.put(CAPTURE_INDEX.place.path(date=day), file)
        return kept.height


@dataclass(frozen=True, slots=True)
class KeyRange:
    """The keys from `start` up to, but without, `end`."""

    start: str
    end: str

    def overlaps(self, first: str, last: str) -> bool:
        """Return whether a sorted block of keys may hold one of the range."""
        return first < self.end and last >= self.start

    def contains(self) -> pl.Expr:
        """Return whether a capture is in the range."""
        return pl.col("url_surtkey").is_between(pl.lit(self.start), pl.lit(self.end), closed="left")


@dataclass(frozen=True, slots=True)
class CaptureQuery:
    """Which captures are wanted: those of a URL, or of all that begin like it, in a span of time.

    As in other CDX servers, `*.example.org` means a domain and `example.org/news/*` a prefix.
    """

    url: str
    match: Match = "exact"
    since: datetime | None = None
    until: datetime | None = None

    @classmethod
    def parse(
        cls,
        url: str,
        match: Match | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
    ) -> "CaptureQuery":
        """Return the query of a URL that may have a wildcard instead of a match type."""
        if not url.strip():
            raise InputError("expected a URL")
        if match is None and url.startswith("*."):
            url, match = url.removeprefix("*."), "domain"
        elif match is None and url.endswith("*"):
            url, match = url.removesuffix("*"), "prefix"
        return cls(url, match or "exact", since, until)

    def ranges(self) -> tuple[KeyRange, ...]:
        """Return the ranges of keys that hold the captures."""
        key = surt_key(self.url)
        host = key.partition(")")[0]
        if self.match == "exact":
            return (KeyRange(key, f"{key}\0"),)
        if self.match == "host":
            return (KeyRange(f"{host})", f"{host}*"),)
        if self.match == "domain":
            # Ports sort behind the names of other domains: `com,example-x`, `com,example:8080`.
            return (KeyRange(f"{host})", f"{host}-"), KeyRange(f"{host}:", f"{host};"))
        for end in "/?":
            if self.url.endswith(end) and not key.endswith(end):
                key += end
        return (KeyRange(key, key[:-1] + chr(ord(key[-1]) + 1)),)

    def has_day(self, day: str) -> bool:
        """Return whether WARCs of a day may have captures of the span of time."""
        if self.since and date.fromisoformat(day) < (self.since - _WARC_SPAN).date():
            return False
        return not self.until or date.fromisoformat(day) <= self.until.date()

    def chosen(self, rows: pl.DataFrame) -> pl.DataFrame:
        """Return the rows that are wanted."""
        tests = [pl.any_horizontal(one.contains() for one in self.ranges())]
        tests += [pl.col("fetch_time") >= self.since] if self.since else []
        tests += [pl.col("fetch_time") <= self.until] if self.until else []
        return rows.filter(*tests)


class CaptureFiles:
    """The indexes of all days, and the runs of days that are not merged yet."""

    def __init__(self, store: ObjectStore) -> None:
        self.store = store
        self._indexes = unit_files(store, CAPTURE_INDEX)
        self._hidden = read_hidden(store)

    def days(self, query: CaptureQuery) -> list[str]:
        """Return the days that may have captures, oldest first."""
        known = {*self._indexes, *self._new_days()}
        return sorted(day for day in known if query.has_day(day))

    def iter_days(
        self, query: CaptureQuery, days: Collection[str] | None = None
    ) -> Iterator[pl.DataFrame]:
        """Yield the captures of each day that has any, in the order of their keys."""
        chosen = self.days(query) if days is None else sorted(days)
        with ThreadPoolExecutor(_CONCURRENT_DAYS) as threads:
            # A few at a time: those who need the first captures do not read ten years.
            for start in range(0, len(chosen), _CONCURRENT_DAYS):
                part = chosen[start : start + _CONCURRENT_DAYS]
                yield from (it for it in threads.map(partial(self.of_day, query), part) if len(it))

    def of_day(self, query: CaptureQuery, day: str) -> pl.DataFrame:
        """Return the captures of one day in the order of their keys."""
        if day in self._indexes:
            rows = read_ranges(self.store, self._indexes[day][0], query.ranges())
        else:
            paths = run_paths(self.store, day)
            near = pl.any_horizontal(one.contains() for one in query.ranges())
            with naming_damaged(self.store, paths, CAPTURES):
                rows = scan_table(self.store, paths, CAPTURES).filter(near).collect()
            rows = rows.select(*CAPTURES.schema).sort("url_surtkey", "fetch_time")
        rows = query.chosen(rows).with_columns(pl.lit(day).alias("date"))
        return without_covered(rows, CAPTURE_INDEX, self._hidden)

    def iter_frames(self, day: str) -> Iterator[pl.DataFrame]:
        """Yield the whole index of a merged day, one row group at a time."""
        info = self._indexes[day][0]
        with _naming(self.store, info):
            file = _RangeFile(self.store, info)
            parquet = file.open_parquet()
            for number in range(parquet.num_row_groups):
                file.load_groups([number])
                rows = _captures(parquet, [number]).with_columns(pl.lit(day).alias("date"))
                yield without_covered(rows, CAPTURE_INDEX, self._hidden)

    @property
    def indexed_days(self) -> list[str]:
        """Return the days that are merged, oldest first."""
        return sorted(self._indexes)

    def _new_days(self) -> set[str]:
        """Return the days of the newest months that have runs and no index."""
        years = self.store.list_folders(CAPTURES.place.folder)
        months = list(chain.from_iterable(map(self.store.list_folders, years[-2:])))
        folders = chain.from_iterable(map(self.store.list_folders, months[-_NEWEST_MONTHS:]))
        values = (path_values(f"{folder}/") for folder in folders)
        return {CAPTURES.unit(one) for one in values} - self._indexes.keys()


def read_ranges(store: ObjectStore, info: ObjectInfo, ranges: Sequence[KeyRange]) -> pl.DataFrame:
    """Return the captures of an index file whose keys are in the ranges."""
    try:
        with _naming(store, info):
            return _read_groups(store, info, ranges)
    except StorageError:
        # Whoever replaces the file between two reads makes the second one fail.
        with _naming(store, info):
            return _read_groups(store, store.head(info.path), ranges)


def _read_groups(store: ObjectStore, info: ObjectInfo, ranges: Sequence[KeyRange]) -> pl.DataFrame:
    file = _RangeFile(store, info)
    parquet = file.open_parquet()
    groups = map(parquet.metadata.row_group, range(parquet.num_row_groups))
    chosen = [n for n, group in enumerate(groups) if _may_hold(group.column(0), ranges)]
    for first, last in _adjacent(chosen):
        file.load_groups(range(first, last + 1))
    return _captures(parquet, chosen).filter(pl.any_horizontal(one.contains() for one in ranges))


def _captures(parquet: "pq.ParquetFile", groups: Sequence[int]) -> pl.DataFrame:
    found = pl.DataFrame(pl.from_arrow(parquet.read_row_groups(groups, use_threads=False)))
    return found.select(pl.col(name).cast(kind) for name, kind in CAPTURES.schema.items())


@contextmanager
def _naming(store: ObjectStore, info: ObjectInfo) -> Iterator[None]:
    """Raise StorageError with the name of an index file that cannot be read."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError, pl.exceptions.PolarsError) as error:
        day = path_values(info.path)["date"]
        raise StorageError(
            f"cannot read {store.uri(info.path)!r}: {error}; run `captures build --days {day} "
            "--again`",
            thing=info.path,
        ) from error


def _may_hold(keys: "pq.ColumnChunkMetaData", ranges: Sequence[KeyRange]) -> bool:
    """Return whether a row group may have keys of the ranges; it is unknown for very long keys."""
    found = keys.statistics
    if found is None or not found.has_min_max:
        return True
    return any(one.overlaps(found.min, found.max) for one in ranges)


def _adjacent(numbers: Sequence[int]) -> list[tuple[int, int]]:
    """Return the first and the last of each series of consecutive numbers."""
    firsts = [n for n in numbers if n - 1 not in numbers]
    lasts = [n for n in numbers if n + 1 not in numbers]
    return list(zip(firsts, lasts, strict=True))


def _span(group: "pq.RowGroupMetaData") -> tuple[int, int]:
    """Return the bytes of a row group in its file."""
    columns = [group.column(number) for number in range(group.num_columns)]
    start = min(one.dictionary_page_offset or one.data_page_offset for one in columns)
    return start, start + sum(one.total_compressed_size for one in columns)


class _RangeFile(io.RawIOBase):
    """A stored file of which only some ranges are read; others are fetched when they are needed."""

    def __init__(self, store: ObjectStore, info: ObjectInfo) -> None:
        super().__init__()
        self._store = store
        self._info = info
        self._position = 0
        self._tail = (0, b"")
        self._loaded = (0, b"")
        self._groups: list[pq.RowGroupMetaData] = []

    def open_parquet(self) -> "pq.ParquetFile":
        """Read the tail of the file, and its footer from it."""
        # pyarrow costs 0.4 s, which only those who look up captures should pay.
        import pyarrow.parquet as pq

        size = self._info.size_bytes
        length = min(size, max(_LEAST_TAIL, size // _TAIL_SHARE))
        self._tail = (size - length, self._fetch(size - length, length))
        parquet = pq.ParquetFile(self, pre_buffer=False)
        numbers = range(parquet.num_row_groups)
        self._groups = [parquet.metadata.row_group(number) for number in numbers]
        return parquet

    def load_groups(self, numbers: Sequence[int]) -> None:
        """Read adjacent row groups at once, in place of those that were read before."""
        start, end = _span(self._groups[numbers[0]])[0], _span(self._groups[numbers[-1]])[1]
        if start < self._tail[0]:  # a small file is in its tail as a whole
            self._loaded = (start, self._fetch(start, end - start))

    def _fetch(self, start: int, length: int) -> bytes:
        return self._store.read_range(self._info.path, start, length) if length else b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def tell(self) -> int:
        """Return the position of the next read."""
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position and return it."""
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._info.size_bytes}
        self._position = base[whence] + offset
        return self._position

    def read(self, size: int = -1) -> bytes:
        """Return the bytes at the position."""
        left = self._info.size_bytes - self._position
        size = left if size < 0 else min(size, left)
        start, self._position = self._position, self._position + size
        for first, data in (self._tail, self._loaded):
            if first <= start and start + size <= first + len(data):
                return data[start - first : start - first + size]
        return self._fetch(start, size)
