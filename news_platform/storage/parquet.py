"""Write and read tables as Parquet files, with partition columns from the path as strings."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from io import BytesIO
from urllib.parse import unquote

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import ObjectStore

# The best trade-off on news text: higher levels take longer and save little.
_ZSTD_LEVEL = 1


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
