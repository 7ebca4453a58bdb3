"""The ledger on SQLite and PostgreSQL: opening, migrations and transactions."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.sql.engine import (
    has_table,
    ledger_url,
    migrate,
    open_engine,
    read_transaction,
)

METADATA = sa.MetaData()
COUNTERS = sa.Table(
    "counters",
    METADATA,
    sa.Column("name", sa.String, primary_key=True),
    sa.Column("value", sa.Integer, nullable=False),
)


@pytest.fixture(params=["sqlite", "postgres"])
def engine_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty database of each kind in turn."""
    if request.param == "sqlite":
        return ledger_url(str(tmp_path / "root"), None)
    return str(request.getfixturevalue("postgres_url"))


def _counting(url: str) -> sa.Engine:
    engine = open_engine(url)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        connection.execute(sa.insert(COUNTERS).values(name="a", value=0))
    return engine


def _read(engine: sa.Engine) -> int:
    with read_transaction(engine) as connection:
        return int(connection.execute(sa.select(COUNTERS.c.value)).scalar_one())


def test_a_local_root_has_its_ledger_inside(tmp_path: Path) -> None:
    expected = f"sqlite:///{tmp_path}/ledger.sqlite"
    assert ledger_url(str(tmp_path), None) == expected
    assert ledger_url(tmp_path.as_uri(), None) == expected
    assert ledger_url((tmp_path / "a b").as_uri(), None).endswith("/a b/ledger.sqlite")
    assert ledger_url(str(tmp_path), "postgresql+psycopg2:///x") == "postgresql+psycopg2:///x"


@pytest.mark.parametrize("root", ["s3://bucket/root", "gs://bucket"])
def test_a_remote_root_needs_a_ledger_url(root: str) -> None:
    with pytest.raises(ConfigError, match="set the ledger URL"):
        ledger_url(root, None)
    assert ledger_url(root, "sqlite:///x") == "sqlite:///x"


@pytest.mark.parametrize("url", ["nonsense", "mysql://u:hush@h/d", "postgresql://u:hush@h:port/d"])
def test_a_wrong_url_is_refused_without_showing_its_secrets(url: str) -> None:
    with pytest.raises(ConfigError, match="expected sqlite:///PATH or postgresql") as caught:
        open_engine(url)
    assert "hush" not in str(caught.value)


def test_an_unreachable_server_is_named_without_its_password() -> None:
    engine = open_engine("postgresql://me:hush@127.0.0.1:9/db?connect_timeout=2")
    with pytest.raises(StorageError, match=r"127.0.0.1:9/db.*refused.*check the address") as caught:
        migrate(engine)
    assert "hush" not in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_in_the_place_of_the_root_is_named(tmp_path: Path) -> None:
    (tmp_path / "root").write_text("")
    with pytest.raises(StorageError, match="is a file, not a folder"):
        open_engine(ledger_url(str(tmp_path / "root"), None))


def test_racing_writers_lose_no_step(engine_url: str) -> None:
    engine = _counting(engine_url)

    def add_one(_number: int) -> None:
        with engine.begin() as connection:
            query = sa.select(COUNTERS.c.value).with_for_update()
            value = connection.execute(query).scalar_one()
            connection.execute(sa.update(COUNTERS).values(value=value + 1))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(add_one, range(60)))
    assert _read(engine) == 60
    engine.dispose()


def test_a_reader_does_not_wait_for_a_writer(engine_url: str) -> None:
    engine = _counting(engine_url)
    with engine.begin() as writing:
        writing.execute(sa.update(COUNTERS).values(value=7))
        assert _read(engine) == 0
    assert _read(engine) == 7
    engine.dispose()


def test_a_failed_transaction_leaves_nothing(engine_url: str) -> None:
    engine = _counting(engine_url)
    with pytest.raises(sa.exc.IntegrityError), engine.begin() as connection:
        connection.execute(sa.update(COUNTERS).values(value=9))
        connection.execute(sa.insert(COUNTERS).values(name="a", value=1))
    assert _read(engine) == 0
    engine.dispose()


def test_migrations_run_to_the_newest_and_twice_is_once(engine_url: str) -> None:
    engine = open_engine(engine_url)
    migrate(engine)
    before = sa.inspect(engine).get_table_names()
    migrate(engine)
    assert sa.inspect(engine).get_table_names() == before
    engine.dispose()


def test_several_may_migrate_at_once(engine_url: str) -> None:
    engines = [open_engine(engine_url) for _ in range(3)]
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(migrate, engines))
    for engine in engines:
        engine.dispose()


def test_a_ledger_in_a_folder_that_cannot_be_written_to_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "ledger.sqlite"
    engine = open_engine(f"sqlite:///{file}")
    migrate(engine)
    engine.dispose()
    before = sorted(tmp_path.iterdir())
    # Permissions do not stop root, who may run the tests.
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) != tmp_path)
    fixed = open_engine(f"sqlite:///{file}")
    migrate(fixed)
    assert has_table(fixed, "raw")
    with pytest.raises(StorageError), fixed.begin() as connection:
        connection.execute(sa.text("delete from raw"))
    assert sorted(tmp_path.iterdir()) == before
    fixed.dispose()
