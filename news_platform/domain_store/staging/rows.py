"""Reads Parquet files with the columns of raw_news, a bounded number of bytes at a time."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import BinaryIO
from urllib.parse import unquote

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from news_platform.datasets.raw_news import RAW_NEWS_ORDER
from news_platform.domain_store.staging.lines import as_raw_news
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore

FRAME_BYTES = 4 << 20
BUFFER_BYTES = 1 << 20
# The columns that are large, and how many rows are taken at once where a file tells each of them
# once however often it stands there (our own crawl's files do not).
PAGE_COLUMNS = frozenset({"tree", "text"})
DICTIONARY_ROWS = 64


def iter_rows(
    store: ObjectStore,
    paths: Iterable[str],
    *,
    frame_bytes: int = FRAME_BYTES,
    scratch: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of Parquet files in order; columns may also stand in the path (`day=01`)."""
    for path in paths:
        with _opened(store, path, scratch) as file:
            yield from _iter_frames(file, store.uri(path), frame_bytes=frame_bytes)


def _iter_frames(file: BinaryIO, path: str, *, frame_bytes: int) -> Iterator[pl.DataFrame]:
    folders = path_columns(path)
    try:
        parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES)
        columns = [name for name in RAW_NEWS_ORDER if name in parquet.schema_arrow.names]
        for number in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(
                batch_size=_batch_rows(parquet.metadata.row_group(number), frame_bytes),
                row_groups=[number],
                columns=columns,
                use_threads=False,
            ):
                frame = pl.DataFrame(pl.from_arrow(batch))
                missing = {k: pl.lit(v) for k, v in folders.items() if k not in frame.columns}
                yield as_raw_news(frame.with_columns(**missing), path)
    # Damaged pages are an OSError, odd types a NotImplementedError or one of Polars.
    except (pa.ArrowException, OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"cannot read {path!r} as Parquet: {error}", thing=path) from error


def _batch_rows(group: pq.RowGroupMetaData, frame_bytes: int) -> int:
    fitting = int(max(1, group.num_rows * frame_bytes // max(group.total_byte_size, 1)))
    return min(fitting, DICTIONARY_ROWS) if _has_repeated_pages(group) else fitting


def _has_repeated_pages(group: pq.RowGroupMetaData) -> bool:
    """Tell whether pages stand in a dictionary, so that the size says nothing of what they hold."""
    columns = (group.column(number) for number in range(group.num_columns))
    pages = (column for column in columns if column.path_in_schema in PAGE_COLUMNS)
    return any("DICTIONARY" in encoding for column in pages for encoding in column.encodings)


def path_columns(path: str) -> Mapping[str, str]:
    """Return the columns that stand in a path as `name=value` folders."""
    pairs = (part.partition("=") for part in path.split("/"))
    return {name: unquote(value) for name, sign, value in pairs if sign}


@contextmanager
def _opened(store: ObjectStore, path: str, scratch: str | None) -> Iterator[BinaryIO]:
    """Open a local file in place; bring a remote one to a nameless local copy first."""
    if store.local_folder is not None:
        store.head(path)
        with (store.local_folder / path).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile(dir=scratch) as copy, store.stream(path) as source:
        shutil.copyfileobj(source, copy, 1 << 20)
        copy.seek(0)
        yield copy
