"""Describe a stored table: its columns and their meaning, its path and its partitions.

Each schema is defined once. Parquet writers, readers, the data dictionary and the column tables in
the Dagster UI are derived from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl


@dataclass(frozen=True, slots=True)
class Column:
    """One column: its name, Polars type and meaning (units, time zone, what null means)."""

    name: str
    dtype: pl.DataType
    description: str


@dataclass(frozen=True, slots=True)
class Table:
    """A dataset and its schema.

    `path` is the pattern of its files under the root. `partition_columns` are in the path only and
    are strings. `feature` is the package that writes the dataset.
    """

    name: str
    feature: str
    description: str
    path: str
    columns: tuple[Column, ...]
    partition_columns: tuple[Column, ...] = ()

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """Return the columns in the files, in the order they are written."""
        return {column.name: column.dtype for column in self.columns}

    @property
    def full_schema(self) -> Mapping[str, pl.DataType]:
        """Return all columns of a reader: those in the files, then those in the path."""
        return {column.name: column.dtype for column in (*self.columns, *self.partition_columns)}
