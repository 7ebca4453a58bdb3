"""One small protocol for every way a dataset is stored, and the engines of Parquet and plain files.

A unit is what is read and rewritten as one: the partition of a dataset, or the day of one
that has a file per day. Delta, SQL, the domain store and the search index have engines of their own
behind the same protocol; `composition.engines` maps the place of a dataset to its engine.
"""

import logging
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Protocol

import polars as pl

from news_platform.datasets.dataset import WHOLE, Dataset, Role
from news_platform.datasets.registry import DATASETS
from news_platform.errors import StorageError
from news_platform.storage.commit.markers import delete_marker
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import naming_damaged, scan_table, with_path_columns
from news_platform.storage.units import gone_units, unit_files, unit_states

_log = logging.getLogger(__name__)
# Files that one scan opens; ten years of the crawl have millions.
_FILES_PER_SCAN = 2_000
# Above this share of the units of a dataset, deleting them at once is taken for a mistake.
REMOVAL_SHARE = 0.5
# Few units say nothing about shares: one of two is half of a dataset.
FEW_UNITS = 3
_SHOWN_UNITS = 5
ALLOW_REMOVAL_TAG = "news_platform/allow_removal"
"""The tag of a Dagster run that may remove as many units as have lost their inputs."""

TARGET_ROLES = (Role.url, Role.url_hash, Role.surt, Role.domain, Role.host, Role.links, Role.file)
"""The roles of the columns by which rows are found: `Target.covered` gets no others."""


class Target(Protocol):
    """What is looked for or removed: pages, prefixes or domains. Takedowns implement it.

    The roles of a dataset's columns tell which of them to compare.
    """

    @property
    def domains(self) -> Collection[str]:
        """Return the registrable domains of everything that is meant."""

    def likely(self, dataset: Dataset) -> pl.Expr:
        """Return a cheap expression that is true for every row to find and few others."""

    def covered(self, dataset: Dataset, rows: pl.DataFrame) -> pl.Series:
        """Return for each row whether it is meant."""

    def covers_file(
        self, dataset: Dataset, values: Mapping[str, str], read: Callable[[], bytes]
    ) -> bool:
        """Return whether a whole file is meant, by the values in its path or by its content.

        It is read only if its columns have addresses.
        """

    def left_of(self, body: bytes) -> bytes | None:
        """Return a file without the documents that are meant, None if none of it is left."""

    def covers(self, role: Role, value: str) -> bool:
        """Return whether a single value of a column of this role is meant."""


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """What rewriting a unit did: rows that are gone, bytes of the old and of the new files."""

    rows: int = 0
    bytes_removed: int = 0
    bytes_written: int = 0

    def __add__(self, other: "RemovedRows") -> "RemovedRows":
        return RemovedRows(
            self.rows + other.rows,
            self.bytes_removed + other.bytes_removed,
            self.bytes_written + other.bytes_written,
        )


class DatasetEngine(Protocol):
    """How the units of one dataset are listed, read and rewritten."""

    @property
    def store(self) -> ObjectStore:
        """Return the root."""

    @property
    def dataset(self) -> Dataset:
        """Return the declaration of the dataset."""

    def units(self) -> Mapping[str, str]:
        """Return the fingerprint of every unit that is stored, from listings alone."""

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the rows of some units, or of all; empty without any."""

    def find(self, target: Target) -> Mapping[str, int]:
        """Return the rows that are meant, by unit; units without any are left out."""

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Rewrite a unit without the rows; repeating it changes nothing.

        The fingerprint in the unit's marker stays, so that nothing built from it becomes stale.
        """

    def delete(self, units: Collection[str]) -> None:
        """Delete units with all their files and markers; builds call `remove_gone` instead."""


CURE = (
    "restore their inputs, or repeat with --allow-removal (in Dagster with the run tag "
    f"{ALLOW_REMOVAL_TAG!r})"
)


def remove_gone(
    engine: DatasetEngine, units: Collection[str] | None = None, *, allowed: bool = False
) -> list[str]:
    """Delete those of the units whose parents are gone, by default all; return them.

    No build removes units by any other way. All units that are gone count for the brake: each run
    builds a few of them, and every one by itself looks harmless.
    """
    gone = gone_units(engine.store, engine.dataset)
    chosen = [unit for unit in gone if units is None or unit in units]
    if chosen and not allowed:
        require_few_gone(engine.dataset, gone, held=len(engine.units()))
    if chosen:
        engine.delete(chosen)
        _log.warning("%s: removed %s: their inputs are gone", engine.dataset.name, chosen)
    return chosen


def require_few_gone(dataset: Dataset, gone: Collection[str], *, held: int) -> None:
    """Raise StorageError if too many of the built units have lost their inputs."""
    # An unmounted folder takes everything, however little that is.
    few = min(FEW_UNITS, held - 1)
    require_small_share(dataset.name, dict.fromkeys(gone, 1), held, unit="units", few=few)


def require_small_share(
    dataset: str,
    losses: Mapping[str, int],
    held: int,
    *,
    share: float = REMOVAL_SHARE,
    few: int = 0,
    unit: str = "records",
    cure: str = CURE,
) -> None:
    """Raise StorageError if a dataset would lose too much at once: the brake on mass removal.

    Inputs that disappear are removed, which is right for one day and a disaster for all of them: an
    unmounted folder or a mistyped root looks like ten years of removed days. `losses` are counted
    by unit, `held` is what the dataset has; `few` may go, whatever their share.
    """
    lost = sum(losses.values())
    if lost <= share * held or lost <= few:
        return
    raise StorageError(
        f"refused to remove {lost} of {held} {unit} of {dataset!r} ({lost / held:.0%}): "
        f"{_shown(losses, unit)}; {cure}",
        thing=dataset,
    )


def _shown(losses: Mapping[str, int], unit: str) -> str:
    largest = sorted(losses.items(), key=lambda item: (-item[1], item[0]))
    counted = [
        f"{name!r}" if unit == "units" else f"{count} of {name!r}" for name, count in largest
    ]
    more = len(counted) - _SHOWN_UNITS
    return ", ".join(counted[:_SHOWN_UNITS]) + (f" and {more} more" if more > 0 else "")


@dataclass(frozen=True, slots=True)
class FileEngine:
    """What all datasets of files have in common: units are found by the template of the path."""

    store: ObjectStore
    dataset: Dataset

    def files(self, units: Collection[str] | None = None) -> Mapping[str, list[ObjectInfo]]:
        """Return the stored files by unit, in the order of their paths."""
        return unit_files(self.store, self.dataset, units)

    def units(self) -> Mapping[str, str]:
        """Return the state of every unit that is stored, from listings alone."""
        return unit_states(self.store, self.dataset)

    def delete(self, units: Collection[str]) -> None:
        """Delete units with what the same asset writes beside them, pointers first, marker last."""
        beside = [one for one in DATASETS.values() if one.written_by == self.dataset.name]
        for dataset in (self.dataset, *beside):
            for place in (*dataset.places[1:], dataset.place):
                found = unit_files(self.store, dataset, units, place=place)
                self.store.delete(info.path for infos in found.values() for info in infos)
        for unit in units:
            delete_marker(self.store, self.dataset.name, unit)


class ParquetEngine(FileEngine):
    """Parquet files: rows are found by a scan and removed by writing the file again."""

    __slots__ = ()

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the rows of some units, or of all."""
        return scan_table(self.store, self._paths(units), self.dataset)

    def find(self, target: Target) -> Mapping[str, int]:
        """Return the rows that are meant, by unit."""
        paths = self._paths(None)
        found: Counter[str] = Counter()
        for start in range(0, len(paths), _FILES_PER_SCAN):
            rows = self._covered(paths[start : start + _FILES_PER_SCAN], target)
            keys = rows.select(column.name for column in self.dataset.partition_columns)
            found.update(self.dataset.unit(values) for values in keys.iter_rows(named=True))
            # A frame without columns has no rows to iterate over.
            found[WHOLE] += 0 if keys.width else rows.height
        return +found

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Rewrite the files of a unit that hold such rows; the last one stays."""
        infos = self.files([unit]).get(unit, [])
        done = RemovedRows()
        for info in infos:
            if self._covered([info.path], target).height:
                done += self._rewrite(info, target, is_last=len(infos) == 1)
        return done

    def _paths(self, units: Collection[str] | None) -> list[str]:
        return [info.path for infos in self.files(units).values() for info in infos]

    def _covered(self, paths: Sequence[str], target: Target) -> pl.DataFrame:
        """Return the addresses and partitions of the rows that are meant."""
        partitions = (column.name for column in self.dataset.partition_columns)
        names = dict.fromkeys([*self.dataset.columns_of(*TARGET_ROLES), *partitions])
        rows = scan_table(self.store, paths, self.dataset).filter(target.likely(self.dataset))
        with naming_damaged(self.store, paths, self.dataset):
            likely = rows.select(*names).collect()
        return likely.filter(target.covered(self.dataset, likely))

    def _rewrite(self, info: ObjectInfo, target: Target, *, is_last: bool) -> RemovedRows:
        def is_gone(rows: pl.DataFrame) -> pl.Series:
            return target.covered(self.dataset, with_path_columns(rows, info.path, self.dataset))

        with tempfile.TemporaryDirectory() as folder:
            copy = Path(folder) / "part.parquet"
            kept, gone = rewrite_parquet(self.store.read(info.path), copy, self.dataset, is_gone)
            size = copy.stat().st_size
            if kept or is_last:
                self.store.put(info.path, copy)
            else:
                # A language without pages has no file.
                self.store.delete([info.path])
                size = 0
        return RemovedRows(gone, info.size_bytes, size)


IsGone = Callable[[pl.DataFrame], pl.Series]
"""From the rows of a file to whether each of them goes."""


def rewrite_parquet(
    body: bytes, target: Path, dataset: Dataset, is_gone: IsGone
) -> tuple[int, int]:
    """Write a Parquet file without some rows; return the rows kept and removed.

    The schema, the metadata and the borders of row groups stay. There are no statistics on columns
    with addresses or other people's text: they would keep values of removed rows' neighbours.
    """
    # pyarrow costs 0.4 s, which only those who rewrite should pay.
    import pyarrow as pa
    import pyarrow.parquet as pq

    file = pq.ParquetFile(BytesIO(body))
    kept = gone = 0
    shown = [column.name for column in dataset.columns if column.is_shown]
    options = {"compression": "zstd", "compression_level": 1, "use_dictionary": shown}
    with pq.ParquetWriter(target, file.schema_arrow, write_statistics=shown, **options) as writer:
        for number in range(file.num_row_groups):
            rows = file.read_row_group(number, use_threads=False)
            going = is_gone(pl.DataFrame(pl.from_arrow(rows)))
            left = rows.filter(pa.array((~going).to_list(), pa.bool_()))
            writer.write_table(left)
            kept, gone = kept + left.num_rows, gone + int(going.sum())
    return kept, gone


class PlainFilesEngine(FileEngine):
    """Files of any content; those of several documents lose single ones, others go as a whole."""

    __slots__ = ()

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the path and the bytes of every file."""
        schema = {"path": pl.String(), "body": pl.Binary()}
        paths = [info.path for infos in self.files(units).values() for info in infos]
        rows = {"path": paths, "body": [self.store.read(path) for path in paths]}
        return pl.LazyFrame(rows, schema=schema)

    def find(self, target: Target) -> Mapping[str, int]:
        """Return the number of files that are meant, by unit."""
        counted = {unit: len(self._meant(infos, target)) for unit, infos in self.files().items()}
        return {unit: count for unit, count in counted.items() if count}

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Delete the files that are meant, or write those again of which something is left."""
        done, gone = RemovedRows(), []
        for info in self._meant(self.files([unit]).get(unit, ()), target):
            left = None
            if not self._is_meant(info.path, target, bytes):
                body = self.store.read(info.path)
                left = target.left_of(body)
                # What is packed cannot lose a part.
                left = None if left == body else left
            if left is None:
                gone.append(info.path)
            else:
                self.store.put(info.path, left)
            done += RemovedRows(1, info.size_bytes, len(left or b""))
        self.store.delete(gone)
        return done

    def _meant(self, infos: Iterable[ObjectInfo], target: Target) -> list[ObjectInfo]:
        read = self.store.read
        return [one for one in infos if self._is_meant(one.path, target, partial(read, one.path))]

    def _is_meant(self, path: str, target: Target, read: Callable[[], bytes]) -> bool:
        values = self.dataset.place.parse(path) or {}
        return target.covers_file(self.dataset, values, read)
