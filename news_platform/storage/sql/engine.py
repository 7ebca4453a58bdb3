"""Open the SQL ledger, SQLite under a local root or PostgreSQL by URL, and migrate its schema."""

import os
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Dialect
from sqlalchemy.engine.interfaces import DBAPIConnection, DBAPICursor, ExceptionContext
from sqlalchemy.pool import ConnectionPoolEntry
from sqlalchemy.types import TypeDecorator

from news_platform.errors import ConfigError, StorageError, StoreUnavailable
from news_platform.storage.objects.error_mapping import map_errors
from news_platform.storage.objects.store import local_folder
from news_platform.storage.sql.sqlite_file import check_file, is_new, sqlite_error
from news_platform.text.normalize import scrub_text

if TYPE_CHECKING:
    from alembic.config import Config

# Writers in other processes hold the lock for milliseconds; after a minute one must be hanging.
_BUSY_TIMEOUT_MS = 60_000
_LOG_ATTEMPTS, _LOG_PAUSE_SECONDS = 40, 0.05
# They know the tables of all features, which this package does not.
_MIGRATIONS = Path(__file__).parents[2] / "composition" / "migrations"
# Any constant works, as long as all our processes take the same PostgreSQL advisory lock.
_MIGRATION_LOCK = 7_236_120_455
_READ_ONLY = "news_platform_read_only"
NEWEST = "head"
"""The name of the newest revision of the schema."""


def ledger_url(root: str, configured: str | None) -> str:
    """Return the configured URL, or the URL of `ledger.sqlite` under a local root."""
    if configured:
        return configured
    folder = local_folder(root)
    if folder is None:
        cause = "a remote root needs a PostgreSQL or SQLite ledger elsewhere; set the ledger URL"
        raise ConfigError(f"no ledger for root {root!r}: {cause}", thing=root)
    # SQLAlchemy decodes `%` in a URL and cuts it at `?`; a folder may have both in its name.
    url = sa.URL.create("sqlite", database=str(folder / "ledger.sqlite"))
    return url.render_as_string(hide_password=False)


def open_engine(url: str) -> sa.Engine:
    """Return an engine for `sqlite:///…` or `postgresql+psycopg2://…`.

    Open a write transaction with `engine.begin()`, and one that only reads with
    `read_transaction(engine)`. On SQLite a write transaction takes the write lock at once (`BEGIN
    IMMEDIATE`), so that two writers wait for each other instead of failing half-way.

    A damaged SQLite file raises StorageError here, or later when a query meets the damage; so does
    every failure of the disk or the server.
    """
    try:
        # The ping replaces connections that a restarted PostgreSQL server has dropped.
        parsed = checked_url(url)
        file = sqlite_path(parsed)
        more: dict[str, Any] = {}
        if file is not None and file.exists() and not os.access(file.parent, os.W_OK):
            more["creator"] = partial(_open_fixed, file)
        engine = sa.create_engine(parsed, pool_pre_ping=True, **more)
    except ImportError as error:
        cure = "install news-platform with its extra `cluster`"
        raise ConfigError(f"the ledger's driver {error.name!r} is missing; {cure}") from error
    if engine.dialect.name == "sqlite":
        _tune_sqlite(engine, is_fixed="creator" in more)
    event.listen(engine, "handle_error", _as_our_error)
    return engine


def shown_url(url: sa.URL) -> str:
    """Return the URL for people: without its password, and without options, which may hold one."""
    return url.set(query={}).render_as_string(hide_password=True)


def has_table(engine: sa.Engine, name: str) -> bool:
    """Return whether the ledger has this table; a SQLite file that is new is not created."""
    if (file := sqlite_path(engine.url)) is not None and is_new(file):
        return False
    with read_transaction(engine) as connection:
        return sa.inspect(connection).has_table(name)


@contextmanager
def read_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that only reads; on SQLite it does not wait for writers."""
    with engine.execution_options(**{_READ_ONLY: True}).begin() as connection:
        yield connection


def migrate(engine: sa.Engine) -> None:
    """Upgrade the schema to the newest revision; safe if several processes do it at once.

    Raise StorageError for a ledger of a revision that is not known; nothing is written to it.
    """
    with engine.begin() as connection:
        upgrade(connection)


def upgrade(connection: sa.Connection, revision: str = NEWEST) -> None:
    """Upgrade the schema to a revision within the transaction of this connection."""
    from alembic import command

    config = _alembic_config(connection)
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
    found = read_revision(connection)
    for wanted in (found, revision):
        if wanted not in (None, NEWEST, *known_revisions()):
            thing = shown_url(connection.engine.url)
            cause = f"its revision {wanted!r} is of another version of news-platform"
            raise StorageError(
                f"cannot open ledger {thing!r}: {cause}; use that version", thing=thing
            )
    command.upgrade(config, revision)


def read_revision(connection: sa.Connection) -> str | None:
    """Return the revision of the schema; None for a database without one."""
    from alembic.runtime.migration import MigrationContext

    return MigrationContext.configure(connection).get_current_revision()


def known_revisions() -> tuple[str, ...]:
    """Return the revisions that this version knows, the newest first."""
    from alembic.script import ScriptDirectory

    scripts = ScriptDirectory.from_config(_alembic_config(None))
    return tuple(script.revision for script in scripts.walk_revisions())


def _alembic_config(connection: sa.Connection | None) -> "Config":
    # Alembic takes 0.2 s to import, and only a process that opens a ledger needs it.
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def checked_url(url: str) -> sa.URL:
    """Parse the URL of a ledger; raise ConfigError if it is not one, without showing it."""
    try:
        parsed = sa.make_url(url)
    except (sa.exc.ArgumentError, ValueError) as error:  # ValueError: the port is not a number
        raise _not_a_ledger() from error
    if parsed.drivername == "postgresql":
        # SQLAlchemy's default driver depends on its version.
        return parsed.set(drivername="postgresql+psycopg2")
    if parsed.drivername not in ("sqlite", "postgresql+psycopg2"):
        raise _not_a_ledger()
    return parsed


def _not_a_ledger() -> ConfigError:
    # The URL is not part of the message because it may contain a password.
    expected = "sqlite:///PATH or postgresql+psycopg2://HOST/DATABASE"
    return ConfigError(f"invalid ledger URL: expected {expected}")


def _as_our_error(context: ExceptionContext) -> BaseException | None:
    """Return our error for a failure of the ledger itself; None keeps an error of our SQL."""
    error = context.original_exception
    url = context.engine.url if context.engine is not None else None
    if url is None:
        return None
    if isinstance(error, sqlite3.Error):
        return sqlite_error(error, url.database or "")
    # By name, because the driver is installed only on clusters.
    if type(error).__module__.startswith("psycopg2") and isinstance(
        context.sqlalchemy_exception, sa.exc.OperationalError
    ):
        thing, cause = shown_url(url), str(error).strip().partition("\n")[0]
        message = f"cannot use ledger {thing!r}: {cause}; check the address and the server"
        return StoreUnavailable(message, thing=thing)
    return None


def sqlite_path(url: sa.URL) -> Path | None:
    """Return the file of a SQLite ledger; None for one in memory and for other databases."""
    is_file = url.get_backend_name() == "sqlite" and url.database not in (None, "", ":memory:")
    return Path(url.database or "") if is_file else None


def _open_fixed(file: Path) -> sqlite3.Connection:
    """Open a ledger in a folder that nobody can write to, where SQLite could make no side files."""
    log = file.with_name(f"{file.name}-wal")
    # Immutable: SQLite then looks for no log, which is right only if there is none.
    end = "" if log.exists() and log.stat().st_size else "&immutable=1"
    uri = f"file:{quote(str(file.absolute()))}?mode=ro{end}"
    return sqlite3.connect(uri, uri=True, check_same_thread=False)


def _tune_sqlite(engine: sa.Engine, *, is_fixed: bool) -> None:
    if (file := sqlite_path(engine.url)) is not None:
        check_file(file)
        with map_errors("open", str(file)):
            file.parent.mkdir(parents=True, exist_ok=True)
    path = engine.url.database or ":memory:"
    event.listen(engine, "connect", _preparer(path, has_log=not is_fixed))
    event.listen(engine, "begin", _begin_reading if is_fixed else _begin)


def _preparer(
    path: str, *, has_log: bool
) -> Callable[[DBAPIConnection, ConnectionPoolEntry], None]:
    def prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
        try:
            _prepare(connection, has_log=has_log)
        except sqlite3.Error as error:  # raised by a listener, so `handle_error` does not see it
            if (ours := sqlite_error(error, path)) is not None:
                raise ours from error
            raise

    return prepare


def _prepare(connection: DBAPIConnection, *, has_log: bool) -> None:
    # `_begin` opens transactions, so the driver must not do it.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {_BUSY_TIMEOUT_MS}")
    if has_log:
        _use_log(cursor)
    # A power cut may lose the last commits but never damages the file.
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.close()


def _use_log(cursor: DBAPICursor) -> None:
    """Use a write-ahead log, with which readers do not wait for the writer.

    Here SQLite does not wait for another process that sets the mode of a new file.
    """
    for _ in range(_LOG_ATTEMPTS):
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(_LOG_PAUSE_SECONDS)
    cursor.execute("PRAGMA journal_mode = WAL")


def _begin(connection: sa.Connection) -> None:
    is_read_only = connection.get_execution_options().get(_READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if is_read_only else "BEGIN IMMEDIATE")


def _begin_reading(connection: sa.Connection) -> None:
    connection.exec_driver_sql("BEGIN")


class ScrubbedText(TypeDecorator[str]):
    """Text without lone surrogates, NUL and control characters, in values and in conditions.

    PostgreSQL refuses NUL, SQLite stores it; neither takes a lone surrogate. Scrubbed here, no
    writer can forget it, and both ledgers hold the same text.
    """

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        """Return the text as every database stores it."""
        return None if value is None else scrub_text(value)
