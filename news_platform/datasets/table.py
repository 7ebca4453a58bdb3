"""What a table in storage looks like: its columns, their meaning, its place and its partitions.

A schema lives once, here beside its row type; Parquet writers, readers, the data dictionary and the
column tables in the Dagster UI are all derived from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, Polars type and what a value means (units, zone, what null means)."""

    name: str
    dtype: pl.DataType
    description: str


@dataclass(frozen=True, slots=True)
class Table:
    """A dataset kept as Parquet files.

    `path` is the pattern under the root; `partition_columns` live in the path only and are strings.
    """

    name: str
    room: str
    description: str
    path: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """Return the columns inside the files, in the order written."""
        return {column.name: column.dtype for column in self.columns}

    @property
    def full_schema(self) -> Mapping[str, pl.DataType]:
        """Return all columns a reader sees: those in the files, then those in the path."""
        return {column.name: column.dtype for column in (*self.columns, *self.partition_columns)}
