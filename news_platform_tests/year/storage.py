"""Dagster's SQLite storages with one engine per process instead of one per statement.

Dagster opens its storages anew for every evaluation of a sensor, and an engine for every statement:
in a simulation that is nearly all of the time. What they store, and how, is unchanged.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar

import dagster as dg
import sqlalchemy as sa
from dagster._core.storage.event_log import ConsolidatedSqliteEventLogStorage
from dagster._core.storage.runs import SqliteRunStorage
from dagster._core.storage.schedules import SqliteScheduleStorage
from dagster._core.storage.sqlite import SQLITE_BUSY_TIMEOUT_SECONDS


class _Shared:
    """One object and one engine per class and process."""

    _opened: ClassVar[dict[type, Any]] = {}
    _conn_string: str

    @classmethod
    def from_config_value(cls, inst_data: Any, config_value: Mapping[str, Any]) -> Any:
        """Return the one storage of this process."""
        if cls not in cls._opened:
            make: Any = getattr(cls, "from_local", cls)
            cls._opened[cls] = make(inst_data=inst_data, **config_value)
        return cls._opened[cls]

    @contextmanager
    def connect(self) -> Iterator[sa.Connection]:
        """Begin a transaction."""
        with self._engine.begin() as connection:
            yield connection

    @property
    def _engine(self) -> sa.Engine:
        found: sa.Engine | None = self.__dict__.get("_shared_engine")
        if found is None:
            timeout = {"timeout": SQLITE_BUSY_TIMEOUT_SECONDS}
            found = self.__dict__["_shared_engine"] = sa.create_engine(
                self._conn_string, connect_args=timeout
            )
            # Killed processes lose nothing by it, only killed machines do.
            sa.event.listen(found, "connect", lambda raw, _: raw.execute("PRAGMA synchronous=OFF"))
        return found

    def register_instance(self, instance: dg.DagsterInstance) -> None:
        """Belong to the first instance, which lives as long as the process."""
        if self.__dict__.get("_instance_weakref") is None:
            super().register_instance(instance)  # type: ignore[misc] # the other base has it

    def dispose(self) -> None:
        """Stay open for the next instance."""


class SharedRunStorage(_Shared, SqliteRunStorage):
    """Runs."""

    def has_run_stats_index_cols(self) -> bool:
        """Return what the tables of this version of Dagster have."""
        return True

    def has_backfill_id_column(self) -> bool:
        """Return what the tables of this version of Dagster have."""
        return True


class SharedScheduleStorage(_Shared, SqliteScheduleStorage):
    """Ticks and cursors."""

    def has_built_index(self, migration_name: str) -> bool:
        """Look once: a simulation migrates nothing."""
        known: dict[str, bool] = self.__dict__.setdefault("_indexes", {})
        if not known.get(migration_name):
            known[migration_name] = super().has_built_index(migration_name)
        return known[migration_name]

    def _has_instigators_table(self, conn: sa.Connection) -> bool:
        return True


class SharedEventLogStorage(_Shared, ConsolidatedSqliteEventLogStorage):
    """Events, all in one file: creating a file per run would take most of a run's time."""

    def _connect(self) -> Any:
        return self.connect()
