"""Write the Parquet files of a WARC again without some rows, as a new collection would write them.

A file whose rows fit into one row group gets the very bytes that it would have had if the rows had
never been there. In larger files the row groups keep their borders.
"""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from news_platform.ccnews.writer import CAPTURES_ROWS, arrow_schema, writer_options
from news_platform.datasets.captures import CAPTURES, FEED_CANDIDATES
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.dropped_responses import DROPPED_RESPONSES
from news_platform.datasets.raw_news import RAW_NEWS

IsDropped = Callable[[pl.Series], pl.Series]
"""From a column of URLs to whether each row goes."""


def rewrite_news(source: BinaryIO | Path, target: Path, is_dropped: IsDropped) -> tuple[int, int]:
    """Write a file of raw_news without some rows; return the rows kept and dropped."""
    return _rewrite(source, target, RAW_NEWS, _news_groups, is_dropped)


def rewrite_captures(
    source: BinaryIO | Path, target: Path, is_dropped: IsDropped
) -> tuple[int, int]:
    """Write a file of captures without some rows; return the rows kept and dropped."""
    return _rewrite(source, target, CAPTURES, _captures_groups, is_dropped)


def rewrite_dropped(
    source: BinaryIO | Path, target: Path, is_dropped: IsDropped
) -> tuple[int, int]:
    """Write a file of dropped_responses without some rows; return the rows kept and dropped."""
    return _rewrite(source, target, DROPPED_RESPONSES, _one_group, is_dropped)


def write_feeds(source: BinaryIO | Path, target: Path, rows: pa.Table) -> None:
    """Write other rows of feed_candidates with the schema and options of a file."""
    schema = _written_schema(pq.ParquetFile(source).schema_arrow, FEED_CANDIDATES)
    with _writer(target, schema) as writer:
        writer.write_table(rows.cast(schema))


def _rewrite(
    source: BinaryIO | Path,
    target: Path,
    table: Dataset,
    arranged: Callable[[Iterable[pa.Table]], Iterable[pa.Table]],
    is_dropped: IsDropped,
) -> tuple[int, int]:
    file = pq.ParquetFile(source)
    schema = _written_schema(file.schema_arrow, table)
    kept = dropped = 0

    def groups() -> Iterator[pa.Table]:
        nonlocal dropped
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number, use_threads=False).cast(schema)
            gone = is_dropped(pl.Series("uri", rows["uri"].to_pylist(), dtype=pl.String))
            dropped += int(gone.sum())
            yield rows.filter(pa.array((~gone).to_list(), pa.bool_())) if gone.any() else rows

    with _writer(target, schema) as writer:
        for group in arranged(groups()):
            writer.write_table(group)
            kept += group.num_rows
    return kept, dropped


def _written_schema(found: pa.Schema, table: Dataset) -> pa.Schema:
    """Return the schema as it was written: readers name the items of a list differently."""
    known = arrow_schema(table)
    fields = [known.field(it.name) if it.name in known.names else it for it in found]
    return pa.schema(fields, metadata=found.metadata)


def _writer(target: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(target, schema, **writer_options(schema.names))


def _news_groups(groups: Iterable[pa.Table]) -> Iterator[pa.Table]:
    for rows in groups:
        if rows.num_rows:
            yield _one_page_per_chunk(rows.combine_chunks())


def _one_page_per_chunk(rows: pa.Table) -> pa.Table:
    """Return the rows with one chunk per page in `tree`, as the writer of a WARC has them."""
    place = rows.schema.get_field_index("tree")
    pages = rows.column(place).chunk(0)
    single = [pages.slice(number, 1) for number in range(len(pages))]
    return rows.set_column(place, rows.schema.field(place), pa.chunked_array(single, pages.type))


def _one_group(groups: Iterable[pa.Table]) -> Iterator[pa.Table]:
    yield _whole(groups)


def _captures_groups(groups: Iterable[pa.Table]) -> Iterator[pa.Table]:
    rows = _whole(groups)
    full = range(0, rows.num_rows - rows.num_rows % CAPTURES_ROWS, CAPTURES_ROWS)
    yield from (rows.slice(start, CAPTURES_ROWS) for start in full)
    yield rows.slice(len(full) * CAPTURES_ROWS)


def _whole(groups: Iterable[pa.Table]) -> pa.Table:
    return pa.concat_tables(list(groups)).combine_chunks()
