"""Write the rows of one partition as Parquet files of about equal size, with their statistics."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.storage.parquet import PAGE_COLUMNS

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES = 128 << 20
# One domain of a day is read by reading the footer and the few groups that hold it. Smaller groups
# make the footer longer than what they save.
GROUP_ROWS = 2048
# Bounds the memory of a group of long texts.
_GROUP_BYTES = 32 << 20
ZSTD_LEVEL = 3


@dataclass(frozen=True, slots=True)
class LocalPart:
    """A finished local file: its rows, and its statistics as Delta's log states them."""

    path: Path
    rows: int
    statistics: str


def write_parts(
    frames: Iterable[pl.DataFrame], table: Dataset, *, statistics: tuple[str, ...], folder: Path
) -> Iterator[LocalPart]:
    """Write the frames to files in the folder, in their order, each of about `FILE_BYTES`."""
    groups = _groups(frames)
    for number, first in enumerate(groups):
        path = folder / f"part-{number:05}.parquet"
        yield _write_part(path, first, groups, table=table, statistics=statistics)


def _groups(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield frames of the size of a row group."""
    held: list[pl.DataFrame] = []
    rows = size = 0
    for frame in frames:
        for piece in frame.iter_slices(GROUP_ROWS):
            held.append(piece)
            rows, size = rows + piece.height, size + int(piece.estimated_size())
            if rows >= GROUP_ROWS or size >= _GROUP_BYTES:
                yield pl.concat(held)
                held, rows, size = [], 0, 0
    if rows:
        yield pl.concat(held)


def _write_part(
    path: Path,
    first: pl.DataFrame,
    more: Iterator[pl.DataFrame],
    *,
    table: Dataset,
    statistics: tuple[str, ...],
) -> LocalPart:
    import pyarrow.parquet as pq

    # The partition column is in the log, and not in the files.
    schema, seen = arrow_schema(table, with_partitions=False), _Statistics(statistics)
    with (
        path.open("wb") as file,
        pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=ZSTD_LEVEL,
            write_statistics=list(statistics),
            use_dictionary=repeating_columns(schema),
        ) as writer,
    ):
        group: pl.DataFrame | None = first
        while group is not None:
            seen.add(group)
            writer.write_table(group.select(*schema.names).to_arrow().cast(schema))
            group = next(more, None) if file.tell() < FILE_BYTES else None
    return LocalPart(path, seen.rows, seen.as_json())


def repeating_columns(schema: "pa.Schema") -> list[str]:
    """Return the paths of the columns for which a dictionary of values is worth its time."""
    return [path for field in schema if field.name not in PAGE_COLUMNS for path in _paths(field)]


def _paths(field: "pa.Field", before: str = "") -> Iterator[str]:
    """Yield the paths that Parquet gives to a column: one, or one for each part of a struct."""
    import pyarrow as pa

    name, kind = f"{before}{field.name}", field.type
    if pa.types.is_list(kind):
        name, kind = f"{name}.list.element", kind.value_type
    if pa.types.is_struct(kind):
        for part in kind:
            yield from _paths(part, f"{name}.")
    else:
        yield name


class _Statistics:
    """The number of rows, and the smallest and largest value and nulls of a few columns."""

    def __init__(self, columns: tuple[str, ...]) -> None:
        self.rows = 0
        self._nulls = dict.fromkeys(columns, 0)
        self._least: dict[str, str] = {}
        self._most: dict[str, str] = {}

    def add(self, rows: pl.DataFrame) -> None:
        """Count the rows of a frame."""
        self.rows += rows.height
        for name in self._nulls:
            values = rows[name]
            self._nulls[name] += values.null_count()
            if values.null_count() < rows.height:
                least, most = _stated(values.min()), _stated(values.max())
                self._least[name] = min(self._least.get(name, least), least)
                self._most[name] = max(self._most.get(name, most), most)

    def as_json(self) -> str:
        """Return the statistics as the log states them."""
        return json.dumps(
            {
                "numRecords": self.rows,
                "minValues": self._least,
                "maxValues": self._most,
                "nullCount": self._nulls,
            }
        )


def _stated(value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    return str(value)


def arrow_schema(table: Dataset, *, with_partitions: bool = True) -> "pa.Schema":
    """Return the columns of a table as an Arrow schema with the types that Delta knows."""
    import pyarrow as pa

    columns = table.full_schema if with_partitions else table.schema
    schema = pl.DataFrame(schema=dict(columns)).to_arrow().schema
    return pa.schema([pa.field(field.name, _delta_type(field.type)) for field in schema])


def _delta_type(kind: "pa.DataType") -> "pa.DataType":
    import pyarrow as pa

    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_list(kind):
        return pa.list_(_delta_type(kind.value_type))
    return kind
