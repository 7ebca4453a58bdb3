"""Open the SQL ledger, SQLite under a local root or PostgreSQL by URL, and migrate its schema."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine.interfaces import DBAPIConnection
from sqlalchemy.pool import ConnectionPoolEntry

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.objects.error_mapping import map_errors

# Writers in other processes hold the lock for milliseconds; after a minute one must be hanging.
_BUSY_TIMEOUT_MS = 60_000
_MIGRATIONS = Path(__file__).parent / "migrations"
# Any constant works, as long as all our processes take the same PostgreSQL advisory lock.
_MIGRATION_LOCK = 7_236_120_455
_READ_ONLY = "news_platform_read_only"


def ledger_url(root: str, configured: str | None) -> str:
    """Return the configured URL, or the URL of `ledger.sqlite` under a local root."""
    if configured:
        return configured
    if "://" in root and not root.startswith("file://"):
        cause = "a remote root needs a PostgreSQL or SQLite ledger elsewhere; set the ledger URL"
        raise ConfigError(f"no ledger for root {root!r}: {cause}", thing=root)
    folder = Path(unquote(root.removeprefix("file://")) if "://" in root else root).expanduser()
    return f"sqlite:///{folder.absolute() / 'ledger.sqlite'}"


def open_engine(url: str) -> sa.Engine:
    """Return an engine for `sqlite:///…` or `postgresql+psycopg2://…`.

    Open a write transaction with `engine.begin()`, and one that only reads with
    `read_transaction(engine)`. On SQLite a write transaction takes the write lock at once (`BEGIN
    IMMEDIATE`), so that two writers wait for each other instead of failing half-way.
    """
    try:
        # The ping replaces connections that a restarted PostgreSQL server has dropped.
        engine = sa.create_engine(_checked(url), pool_pre_ping=True)
    except ImportError as error:
        cure = "install news-platform with its extra `cluster`"
        raise ConfigError(f"the ledger's driver {error.name!r} is missing; {cure}") from error
    if engine.dialect.name == "sqlite":
        _tune_sqlite(engine)
    return engine


@contextmanager
def read_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Open a transaction that only reads; on SQLite it does not wait for writers."""
    with engine.execution_options(**{_READ_ONLY: True}).begin() as connection:
        yield connection


def migrate(engine: sa.Engine) -> None:
    """Upgrade the schema to the newest revision; safe if several processes do it at once."""
    thing = engine.url.render_as_string(hide_password=True)
    try:
        with engine.begin() as connection:
            _upgrade(connection)
    except sa.exc.OperationalError as error:
        cause = f"{_first_line(error)}; check the address and the server"
        raise StorageError(f"cannot open ledger {thing!r}: {cause}", thing=thing) from error


def _upgrade(connection: sa.Connection) -> None:
    # Alembic takes 0.2 s to import, and only a process that opens a ledger needs it.
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    config.attributes["connection"] = connection
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_MIGRATION_LOCK)))
    command.upgrade(config, "head")


def _checked(url: str) -> sa.URL:
    try:
        parsed = sa.make_url(url)
    except sa.exc.ArgumentError as error:
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


def _first_line(error: sa.exc.DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]


def _tune_sqlite(engine: sa.Engine) -> None:
    database = engine.url.database
    if database and database != ":memory:":
        with map_errors("open", database):
            Path(database).parent.mkdir(parents=True, exist_ok=True)
    event.listen(engine, "connect", _prepare)
    event.listen(engine, "begin", _begin)


def _prepare(connection: DBAPIConnection, _record: ConnectionPoolEntry) -> None:
    # `_begin` opens transactions, so the driver must not do it.
    connection.isolation_level = None
    cursor = connection.cursor()
    for pragma in (
        f"busy_timeout = {_BUSY_TIMEOUT_MS}",
        # With a write-ahead log, readers do not wait for the writer.
        "journal_mode = WAL",
        # A power cut may lose the last commits but never damages the file.
        "synchronous = NORMAL",
        "foreign_keys = ON",
    ):
        cursor.execute(f"PRAGMA {pragma}")
    cursor.close()


def _begin(connection: sa.Connection) -> None:
    is_read_only = connection.get_execution_options().get(_READ_ONLY, False)
    connection.exec_driver_sql("BEGIN" if is_read_only else "BEGIN IMMEDIATE")
