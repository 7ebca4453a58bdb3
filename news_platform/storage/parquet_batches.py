"""Read a Parquet file of any size in frames of bounded memory, from any store."""

import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import polars as pl

from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Rows in memory at a time, by their size in the Parquet file.
FRAME_BYTES = 4 << 20
BUFFER_BYTES = 1 << 20
# The large columns. In files of other crawls they may be dictionary-encoded: then a repeated page
# is stored once, and the size of the file does not bound the memory of its rows.
PAGE_COLUMNS = frozenset({"tree", "text"})
DICTIONARY_ROWS = 64


def iter_frames(
    store: ObjectStore,
    path: str,
    *,
    columns: Collection[str],
    frame_bytes: int = FRAME_BYTES,
    scratch: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of a file in order, with those of the columns that it has."""
    # Imported here because pyarrow costs 0.4 s, which every process would pay.
    import pyarrow as pa
    import pyarrow.parquet as pq

    uri = store.uri(path)
    with _opened(store, path, scratch) as file:
        try:
            parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES)
            known = [name for name in columns if name in parquet.schema_arrow.names]
            for number in range(parquet.num_row_groups):
                for batch in parquet.iter_batches(
                    batch_size=_batch_rows(parquet.metadata.row_group(number), frame_bytes),
                    row_groups=[number],
                    columns=known,
                    use_threads=False,
                ):
                    yield pl.DataFrame(pl.from_arrow(batch))
        # Damaged pages raise OSError, unsupported types an ArrowException or an error of Polars.
        except (pa.ArrowException, OSError, pl.exceptions.PolarsError) as error:
            raise InputError(f"cannot read {uri!r} as Parquet: {error}", thing=uri) from error


def _batch_rows(group: "pq.RowGroupMetaData", frame_bytes: int) -> int:
    fitting = int(max(1, group.num_rows * frame_bytes // max(group.total_byte_size, 1)))
    return min(fitting, DICTIONARY_ROWS) if _has_repeated_pages(group) else fitting


def _has_repeated_pages(group: "pq.RowGroupMetaData") -> bool:
    """Return whether a column of pages is dictionary-encoded."""
    columns = (group.column(number) for number in range(group.num_columns))
    pages = (column for column in columns if column.path_in_schema in PAGE_COLUMNS)
    return any("DICTIONARY" in encoding for column in pages for encoding in column.encodings)


@contextmanager
def _opened(store: ObjectStore, path: str, scratch: str | None) -> Iterator[BinaryIO]:
    """Open a local file in place, or an unnamed local copy of a remote one."""
    if store.local_folder is not None:
        store.head(path)  # Raises our own error for a missing file.
        with (store.local_folder / path).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile(dir=scratch) as copy, store.stream(path) as source:
        shutil.copyfileobj(source, copy, 1 << 20)
        copy.seek(0)
        yield copy
