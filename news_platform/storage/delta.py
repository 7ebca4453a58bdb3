"""Read and write Delta tables under a root: replace a partition atomically, optimize, vacuum.

A table is partitioned by one column. Readers see the version before or after a change, never a mix;
two writers of one partition conflict, and the later one gets Conflict. The library opens stores by
itself, so its options come from those of our store; temporary credentials are asked for anew at
every operation.
"""

import random
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote, unquote

import polars as pl

from news_platform.datasets.corpus import STATISTICS_COLUMNS
from news_platform.datasets.dataset import Dataset
from news_platform.errors import Conflict, StorageError, hide_credentials
from news_platform.storage.commit.markers import delete_marker, read_inputs
from news_platform.storage.delta_files import (
    FILE_BYTES,
    GROUP_ROWS,
    ZSTD_LEVEL,
    arrow_schema,
    write_parts,
)
from news_platform.storage.engines import TARGET_ROLES, RemovedRows, Target
from news_platform.storage.objects.error_mapping import mapped_error, without_secrets
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import PAGE_COLUMNS, iter_frames

if TYPE_CHECKING:
    from deltalake import DeltaTable, WriterProperties
    from deltalake.transaction import AddAction

# A commit is tried again after any other writer's: each has to know the version before its own.
_COMMIT_ATTEMPTS = 30
_LONGEST_PAUSE_SECONDS = 0.5
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class Maintenance:
    """What optimizing and vacuuming a table did."""

    files_added: int
    files_removed: int
    files_deleted: int


@dataclass(frozen=True, slots=True)
class ReplacedPartition:
    """The version that holds a partition, its rows, and the sizes of its files in bytes."""

    version: int
    rows: int
    file_bytes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DeltaFile:
    """One file of a version: its path under the root, its partition, and its size."""

    path: str
    partition: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class DeltaDataset:
    """One Delta table under a root, in the folder of the table's name.

    `statistics` are the columns whose smallest and largest values go into the log.
    """

    store: ObjectStore
    table: Dataset
    statistics: tuple[str, ...]

    @property
    def key(self) -> str:
        """Return the name of the partition column."""
        return self.table.partition_columns[0].name

    @property
    def uri(self) -> str:
        """Return the full path or URL of the table's folder."""
        return self.store.uri(self.table.name)

    @property
    def cure(self) -> str:
        """Return what to do about a damaged log."""
        name = self.table.name
        return (
            f"restore {name}/_delta_log from a backup, or delete the folder {name} and "
            f"markers/{name}, and its days are built again"
        )

    def exists(self) -> bool:
        """Return whether the table has a first version."""
        return next(self.store.list(f"{self.table.name}/_delta_log"), None) is not None

    def version(self) -> int | None:
        """Return the number of the newest version, or None without a table."""
        return self._opened().version() if self.exists() else None

    def partitions(self) -> list[str]:
        """Return the values of the partition column that have rows, sorted."""
        if not self.exists():
            return []
        return sorted({str(one[self.key]) for one in self._opened().partitions()})

    def files(self) -> list["DeltaFile"]:
        """Return the files of the newest version, sorted by partition and smallest values."""
        if not self.exists():
            return []
        # Polars, because `pyarrow.table` of a foreign object loads pandas.
        rows = pl.DataFrame(self._opened().get_add_actions(flatten=True)).to_dicts()
        first = [f"min.{name}" for name in self.statistics]
        rows.sort(
            key=lambda row: [str(row.get(name)) for name in (f"partition.{self.key}", *first)]
        )
        return [
            DeltaFile(
                f"{self.table.name}/{unquote(row['path'])}",
                str(row[f"partition.{self.key}"]),
                int(row["size_bytes"]),
            )
            for row in rows
        ]

    def scan(self, *, version: int | None = None) -> pl.LazyFrame:
        """Return a version, by default the newest, as a LazyFrame; empty without a table."""
        if not self.exists():
            return pl.LazyFrame(schema=dict(self.table.full_schema))
        with self._errors("read"):
            rows = pl.scan_delta(
                self._opened(version), storage_options=self.store.delta_options() or None
            )
            known = rows.collect_schema()
        # Columns are only ever added: an older table may lack some, a newer one have more.
        return rows.select(
            pl.col(name) if name in known else pl.lit(None, dtype=dtype).alias(name)
            for name, dtype in self.table.full_schema.items()
        )

    def replace(
        self, value: str, frames: Iterable[pl.DataFrame], *, scratch: Path
    ) -> "ReplacedPartition":
        """Replace all rows of a partition by the frames, in their order, and return what is there.

        Files are written to the folder `scratch` first. If another writer commits the same
        partition meanwhile, the last one wins: each writes all of it.
        """
        from deltalake.transaction import AddAction

        with self._errors("write"):
            parts = list(
                write_parts(frames, self.table, statistics=self.statistics, folder=scratch)
            )
        folder, actions = f"{self.key}={quote(value, safe='')}", []
        for part in parts:
            # Unique: a file that another writer's version needs is never overwritten.
            name = f"{folder}/{uuid.uuid4()}.parquet"
            self.store.put(f"{self.table.name}/{name}", part.path)
            size, made_at = part.path.stat().st_size, int(part.path.stat().st_mtime * 1000)
            actions.append(AddAction(name, size, {self.key: value}, made_at, True, part.statistics))
            part.path.unlink()
        version = self._committed(lambda: self._replaced(value, actions))
        sizes = tuple(action.size for action in actions)
        return ReplacedPartition(version, sum(part.rows for part in parts), sizes)

    def _replaced(self, value: str, actions: "list[AddAction]") -> int:
        table = self._opened_or_created()
        if actions or value in self.partitions():
            self._commit(table, value, actions)
        return self._opened().version()

    def _commit(self, table: "DeltaTable", value: str, actions: "list[AddAction]") -> None:
        from deltalake import CommitProperties, Transaction

        # Two commits with one application id conflict, also if the partition was empty before.
        mine = Transaction(app_id=f"{self.key}={value}", version=1, last_updated=None)
        table.create_write_transaction(
            actions,  # type: ignore[arg-type]  # a list of adds is a list of actions
            mode="overwrite",
            schema=arrow_schema(self.table),
            partition_by=[self.key],
            partition_filters=[(self.key, "=", value)],
            commit_properties=CommitProperties(app_transactions=[mine]),
        )

    def optimize(self) -> tuple[int, int]:
        """Join small files of a partition; return the numbers of files added and removed."""
        if not self.exists():
            return 0, 0

        def commit() -> tuple[int, int]:
            done = self._opened().optimize.compact(
                target_size=FILE_BYTES,
                max_concurrent_tasks=1,
                writer_properties=self._writer_properties(),
            )
            return int(done["numFilesAdded"]), int(done["numFilesRemoved"])

        return self._committed(commit)

    def vacuum(self, grace: timedelta) -> list[str]:
        """Delete files that no version within the grace period needs, and those of dead writers."""
        if not self.exists():
            return []
        with self._errors("vacuum"):
            return self._opened().vacuum(
                retention_hours=int(grace.total_seconds() // 3600),
                dry_run=False,
                enforce_retention_duration=False,
                full=True,
            )

    def delete_replaced(self) -> list[str]:
        """Delete the files of older versions at once, under readers that still have them.

        Files that no version names stay: another writer may be about to commit them.
        """
        if not self.exists():
            return []
        with self._errors("vacuum"):
            return self._opened().vacuum(
                retention_hours=0, dry_run=False, enforce_retention_duration=False, full=False
            )

    def forget_older_versions(self) -> None:
        """Delete the log of all versions but the newest, and the older checkpoints.

        Their statistics may name what was removed. A writer that began before has to start over.
        """
        if not self.exists():
            return
        with self._errors("checkpoint"):
            table = self._opened()
            table.create_checkpoint()
        newest = f"{table.version():020}"
        folder = f"{self.table.name}/_delta_log"
        names = ((info.path, info.path.rpartition("/")[2]) for info in self.store.list(folder))
        self.store.delete(path for path, name in names if name[:20].isdigit() and name < newest)

    def maintain(self, grace: timedelta) -> Maintenance:
        """Optimize and vacuum."""
        added, removed = self.optimize()
        return Maintenance(added, removed, len(self.vacuum(grace)))

    def _committed(self, commit: Callable[[], _Result]) -> _Result:
        for attempt in range(_COMMIT_ATTEMPTS):
            try:
                with self._errors("write"):
                    return commit()
            except Conflict:
                if attempt + 1 == _COMMIT_ATTEMPTS:
                    raise
                # Not in step with the other writer.
                time.sleep(random.uniform(0, _LONGEST_PAUSE_SECONDS))
        raise AssertionError("unreachable")

    def _opened(self, version: int | None = None) -> "DeltaTable":
        from deltalake import DeltaTable

        with self._errors("open"):
            return DeltaTable(self.uri, version=version, storage_options=self._options())

    def _opened_or_created(self) -> "DeltaTable":
        from deltalake import DeltaTable

        if self.exists():
            return self._with_all_columns(self._opened())
        with self._errors("create"):
            # `ignore`: another writer may create it at the same moment.
            return DeltaTable.create(
                self.uri,
                schema=arrow_schema(self.table),
                mode="ignore",
                partition_by=[self.key],
                configuration={"delta.dataSkippingStatsColumns": ",".join(self.statistics)},
                storage_options=self._options(),
            )

    def _with_all_columns(self, table: "DeltaTable") -> "DeltaTable":
        """Add the columns that a newer version of the schema has."""
        from deltalake import Schema

        wanted = Schema.from_arrow(arrow_schema(self.table))
        known = {field.name for field in table.schema().fields}
        if missing := [field for field in wanted.fields if field.name not in known]:
            table.alter.add_columns(missing)
        return table

    def _options(self) -> dict[str, str] | None:
        # A local table needs its folder: the library resolves its path at once.
        folder = self.store.local_folder
        if folder is not None:
            (folder / self.table.name).mkdir(parents=True, exist_ok=True)
        return self.store.delta_options() or None

    def _writer_properties(self) -> "WriterProperties":
        from deltalake import ColumnProperties, WriterProperties

        counted = ColumnProperties(statistics_enabled="CHUNK")
        page = ColumnProperties(statistics_enabled="NONE", dictionary_enabled=False)
        return WriterProperties(
            compression="ZSTD",
            compression_level=ZSTD_LEVEL,
            max_row_group_size=GROUP_ROWS,
            default_column_properties=ColumnProperties(statistics_enabled="NONE"),
            column_properties={
                **dict.fromkeys(self.statistics, counted),
                **dict.fromkeys(PAGE_COLUMNS & self.table.schema.keys(), page),
            },
        )

    @contextmanager
    def _errors(self, action: str) -> Iterator[None]:
        from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

        thing = without_secrets(self.uri)
        try:
            yield
        except CommitFailedError as error:
            cause = "another writer changed it first; try again"
            message = f"cannot {action} {thing!r}: {cause}"
            raise Conflict(message, thing=thing) from hide_credentials(error)
        except TableNotFoundError as error:
            message = f"cannot {action} {thing!r}: it is not a Delta table; build it first"
            raise StorageError(message, thing=thing) from hide_credentials(error)
        except (DeltaError, OSError, ValueError) as error:
            mapped = mapped_error(error, action, thing)
            if type(mapped) is StorageError and isinstance(error, DeltaError):
                message = f"{mapped}; if its log is damaged, {self.cure}"
                mapped = StorageError(message, thing=thing)
            raise mapped from hide_credentials(error)


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

    def require_readable(self) -> None:
        """Raise StorageError if the table cannot be opened, or is gone while its markers stay."""
        table = self.table
        if table.version() is None and self.units():
            thing = without_secrets(table.uri)
            raise StorageError(f"the log of {thing!r} is gone: {table.cure}", thing=thing)

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

    def delete(self, units: Collection[str]) -> None:
        """Replace partitions by nothing, then delete their markers."""
        stored = self.table.partitions()
        with tempfile.TemporaryDirectory() as scratch:
            for unit in units:
                if unit in stored:
                    self.table.replace(unit, [], scratch=Path(scratch))
                delete_marker(self.store, self.dataset.writer, unit)

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
