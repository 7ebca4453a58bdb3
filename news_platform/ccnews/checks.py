"""Check the stored rows of raw_news: counts, schema and completeness.

Files are found by listing the folder, not by the markers that they are compared with, so an extra
file, a missing file and an altered file are all found.

pyarrow is imported where it is used: every Dagster process imports this module, few run a check.
"""

import io
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING

from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_FIRST, Warc, raw_news_day_prefix
from news_platform.storage.commit.collected import collected_names, read_collected
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

if TYPE_CHECKING:
    import pyarrow as pa

# The crawl uploads WARCs hours after the timestamp in their names.
GRACE = timedelta(days=2)
# A day has up to 18 WARCs with 45 languages each, so most of the time is waiting for the store.
_CONCURRENT_READS = 16
# One read of this size fetches the whole footer of nearly every file.
_FOOTER_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class ParquetFooter:
    """Row count and schema of a Parquet file, or the `problem` that kept it from being read."""

    path: str
    rows: int = 0
    schema: "pa.Schema | None" = None
    problem: str = ""


def read_footers(store: ObjectStore, *, day: date) -> tuple[ParquetFooter, ...]:
    """Read the footer of every raw_news file in a day's folder."""
    found = list(store.list(raw_news_day_prefix(day)))
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        return tuple(threads.map(partial(_footer, store), found))


def row_problems(store: ObjectStore, footers: Iterable[ParquetFooter], *, day: date) -> list[str]:
    """Return the files whose row count differs from what the markers state."""
    stated = {
        path: marker.languages[language]
        for marker in read_collected(store, [day])
        for language, path in marker.news_paths().items()
    }
    held = {footer.path: footer for footer in footers}
    problems = [f"{path}: not named by any marker" for path in sorted(held.keys() - stated)]
    problems += [f"{path}: missing" for path in sorted(stated.keys() - held)]
    for path in sorted(stated.keys() & held):
        footer = held[path]
        if footer.problem or footer.rows != stated[path]:
            found = footer.problem or f"{footer.rows} rows"
            problems.append(f"{path}: {found}, expected {stated[path]} by its marker")
    return problems


def truncated_warcs(store: ObjectStore, *, day: date) -> list[str]:
    """Return the WARCs of a day that were accepted although they are broken."""
    return [
        f"{marker.warc}: broken at its source, read up to byte {marker.truncated_at}"
        for marker in read_collected(store, [day])
        if marker.truncated_at is not None
    ]


def schema_problems(footers: Iterable[ParquetFooter]) -> list[str]:
    """Return the files whose columns are not exactly those of raw_news.

    A file may lack columns that were added to raw_news after it was written.
    """
    return [
        f"{footer.path}: {footer.problem or footer.schema}"
        for footer in footers
        if footer.schema is None or not _is_raw_news(footer.schema)
    ]


def _is_raw_news(schema: "pa.Schema") -> bool:
    import pyarrow as pa

    from news_platform.ccnews.captures import arrow_schema

    required = {*schema.names, *RAW_NEWS_FIRST}
    expected = [field for field in arrow_schema(RAW_NEWS) if field.name in required]
    return bool(schema.remove_metadata().equals(pa.schema(expected)))


def uncollected(
    store: ObjectStore, listed: Mapping[date, Iterable[Warc]], *, today: date
) -> list[str]:
    """Return the names of the listed WARCs older than GRACE that have no marker."""
    return [
        warc.name
        for day, warcs in sorted(listed.items())
        if day <= today - GRACE
        for collected in [collected_names(store, day=day)]
        for warc in warcs
        if warc.name not in collected
    ]


def _footer(store: ObjectStore, info: ObjectInfo) -> ParquetFooter:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        found = pq.read_metadata(io.BytesIO(_tail(store, info)))
        return ParquetFooter(info.path, found.num_rows, found.schema.to_arrow_schema())
    except (pa.ArrowException, OSError) as error:
        return ParquetFooter(info.path, problem=f"unreadable: {error}")


def _tail(store: ObjectStore, info: ObjectInfo) -> bytes:
    """Return the end of a Parquet file, with its whole footer."""
    size = min(_FOOTER_BYTES, info.size_bytes)
    tail = store.read_range(info.path, info.size_bytes - size, size) if size else b""
    # The last 8 bytes are the length of the footer and a magic number.
    size = int.from_bytes(tail[-8:-4], "little") + 8
    if len(tail) < size <= info.size_bytes:
        tail = store.read_range(info.path, info.size_bytes - size, size)
    return tail
