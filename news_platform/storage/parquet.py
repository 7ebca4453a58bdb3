"""Write and read tables as Parquet files, also those that do not fit into memory.

Partition columns come from the path, as strings.
"""

import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import ObjectStore

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# The best trade-off on news text: higher levels take longer and save little.
_ZSTD_LEVEL = 1
# Rows in memory at a time, by their size in the Parquet file.
FRAME_BYTES = 4 << 20
BUFFER_BYTES = 1 << 20
# The large columns. In files of other crawls they may be dictionary-encoded: then a repeated page
# is stored once, and the size of the file does not bound the memory of its rows.
PAGE_COLUMNS = frozenset({"tree", "text"})
DICTIONARY_ROWS = 64


def write_table(
    store: ObjectStore,
    path: str,
    frame: pl.DataFrame,
    table: Dataset,
    *,
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Write the frame as one Parquet file with the columns of the table, in the table's order.

    `metadata` goes into the file's footer. Partition columns are in the path, not in the file.
    """
    store.put(path, parquet_bytes(frame, table, metadata=metadata))


def parquet_bytes(
    frame: pl.DataFrame, table: Dataset, *, metadata: Mapping[str, str] | None = None
) -> bytes:
    """Return the frame as the bytes of a Parquet file, for publishing several files at once."""
    try:
        fitted = frame.select(pl.col(name).cast(dtype) for name, dtype in table.schema.items())
    except pl.exceptions.PolarsError as error:
        message = f"rows do not fit table {table.name!r}: {error}"
        raise InputError(message, thing=table.name) from error
    file = BytesIO()
    fitted.write_parquet(
        file, compression="zstd", compression_level=_ZSTD_LEVEL, metadata=dict(metadata or {})
    )
    return file.getvalue()


def read_table(store: ObjectStore, path: str, table: Dataset) -> pl.DataFrame:
    """Return one file of the table with its partition columns, read through the store."""
    body = BytesIO(store.read(path))
    try:
        rows = _scan(body, table).collect()
    except pl.exceptions.PolarsError as error:
        thing = store.uri(path)
        message = f"cannot read {thing!r} as table {table.name!r}: {error}"
        raise StorageError(message, thing=thing) from error
    return with_path_columns(rows, path, table)


def with_path_columns(rows: pl.DataFrame, path: str, table: Dataset) -> pl.DataFrame:
    """Return the rows of a file with the columns that are in its path."""
    values = path_values(path)
    return rows.with_columns(
        pl.lit(values.get(column.name), dtype=pl.String).alias(column.name)
        for column in table.partition_columns
    )


def scan_table(store: ObjectStore, paths: Iterable[str], table: Dataset) -> pl.LazyFrame:
    """Return a lazy frame over these files, read by Polars itself; without files it is empty.

    Partition columns come from the path as strings; a filter on them skips files without opening
    them.
    """
    uris = [store.uri(path) for path in paths]
    if not uris:
        return pl.LazyFrame(schema=table.full_schema)
    # Polars requires every key=value of the path to be declared, also those of the root itself.
    keys = dict.fromkeys([*path_values(uris[0]), *(c.name for c in table.partition_columns)])
    rows = _scan(
        uris, table, hive_schema=dict.fromkeys(keys, pl.String()), options=store.polars_options()
    )
    return rows.select(*table.full_schema)


@contextmanager
def naming_damaged(store: ObjectStore, paths: Iterable[str], table: Dataset) -> Iterator[None]:
    """Name the file if one of those that are scanned cannot be read; Polars does not."""
    try:
        yield
    except pl.exceptions.PolarsError:
        for path in paths:
            read_table(store, path, table)
        raise


def path_values(path: str) -> dict[str, str]:
    """Return the key=value folders of a path, percent-decoded as Polars and DuckDB do."""
    folders = path.split("/")[:-1]
    pairs = (folder.partition("=") for folder in folders if "=" in folder)
    return {key: unquote(value) for key, _, value in pairs}


def _scan(
    source: BytesIO | list[str],
    table: Dataset,
    *,
    hive_schema: Mapping[str, pl.DataType] | None = None,
    options: Mapping[str, str] | None = None,
) -> pl.LazyFrame:
    # Columns are only ever added to a table: an older file may lack some, a newer one have more.
    return pl.scan_parquet(
        source,
        glob=False,
        schema=table.schema,
        hive_partitioning=hive_schema is not None,
        hive_schema=dict(hive_schema) if hive_schema else None,
        storage_options=dict(options) if options else None,
        missing_columns="insert",
        extra_columns="ignore",
    )


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
