"""The engine of Delta tables: partitions are replaced, and nothing of older versions stays."""

import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from news_platform.datasets.corpus import STATISTICS_COLUMNS
from news_platform.datasets.dataset import Dataset
from news_platform.storage.commit.markers import read_inputs
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.engines import TARGET_ROLES, RemovedRows, Target
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import iter_frames


@dataclass(frozen=True, slots=True)
class DeltaEngine:
    """A Delta table whose units are the values of its partition column."""

    store: ObjectStore
    dataset: Dataset

    @property
    def table(self) -> DeltaDataset:
        """Return the table itself."""
        return DeltaDataset(self.store, self.dataset, STATISTICS_COLUMNS)

    def units(self) -> Mapping[str, str]:
        """Return the fingerprint in the marker of every partition."""
        return read_inputs(self.store, self.dataset.writer)

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the rows of some partitions, or of all."""
        rows = self.table.scan()
        return rows if units is None else rows.filter(pl.col(self.table.key).is_in(list(units)))

    def find(self, target: Target) -> Mapping[str, int]:
        """Return the rows that are meant, by partition, those of unnamed files included."""
        names = (*self.dataset.columns_of(*TARGET_ROLES), self.table.key)
        likely: pl.DataFrame = (
            self.scan().filter(target.likely(self.dataset)).select(names).collect()
        )
        found = Counter(likely.filter(target.covered(self.dataset, likely))[self.table.key])
        for unit, info in self._unnamed_files():
            found[unit] += self._covered_in(info, target)
        return +found

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Replace a partition without the rows, then delete every file and log that had them."""
        table = self.table
        before = [file for file in table.files() if file.partition == unit]
        rows = 0

        def left() -> Iterator[pl.DataFrame]:
            nonlocal rows
            for file in before:
                for frame in iter_frames(self.store, file.path, columns=self.dataset.schema):
                    gone = target.covered(self.dataset, frame)
                    rows += int(gone.sum())
                    yield frame.filter(~gone)

        with tempfile.TemporaryDirectory() as scratch:
            done = table.replace(unit, left(), scratch=Path(scratch))
        table.delete_replaced()
        self._delete_unnamed(unit, target)
        # The statistics of a version have its first and last domain.
        table.forget_older_versions()
        size, written = sum(file.size_bytes for file in before), sum(done.file_bytes)
        return RemovedRows(rows, size, written)

    def delete(self, unit: str) -> None:
        """Remove all rows of a partition; `vacuum` deletes their files."""
        with tempfile.TemporaryDirectory() as scratch:
            self.table.replace(unit, [], scratch=Path(scratch))

    def _unnamed_files(self) -> list[tuple[str, ObjectInfo]]:
        """Return the files of older versions and dead writers, each with its partition."""
        named = {file.path for file in self.table.files()}
        infos = self.store.list(self.dataset.place.folder, name_prefix=f"{self.table.key}=")
        return [
            (info.path.partition("=")[2].partition("/")[0], info)
            for info in infos
            if info.path.endswith(".parquet") and info.path not in named
        ]

    def _covered_in(self, info: ObjectInfo, target: Target) -> int:
        columns = self.dataset.columns_of(*TARGET_ROLES)
        frames = iter_frames(self.store, info.path, columns=columns)
        return sum(int(target.covered(self.dataset, frame).sum()) for frame in frames)

    def _delete_unnamed(self, unit: str, target: Target) -> None:
        """Delete files with such rows that no version names.

        A writer that is about to commit one notices the request and builds the partition again.
        """
        others = [info for one, info in self._unnamed_files() if one == unit]
        self.store.delete([info.path for info in others if self._covered_in(info, target)])
