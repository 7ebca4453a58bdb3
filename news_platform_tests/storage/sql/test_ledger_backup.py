"""Backups of ledgers in use, ledgers restored or moved elsewhere, and what a check finds."""

import random
import shutil
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.errors import InputError, StorageError
from news_platform.rss.ledger.tables import DIAGNOSTICS, FEEDS, LINKS, ROBOTS, SEQUENCE
from news_platform.storage.sql.engine import (
    ledger_url,
    migrate,
    open_engine,
    read_transaction,
)
from news_platform.storage.sql.ledger_backup import (
    backup_ledger,
    check_ledger,
    move_ledger,
    read_counters,
    read_manifest,
    read_tables,
    restore_ledger,
    unpacked,
)

MOMENT = datetime(2025, 11, 1, 12, 30, 59, 123456, UTC)
KINDS = ("sqlite", "postgres")
NewLedger = Callable[[str], sa.Engine]


@pytest.fixture(scope="module")
def filled_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a filled SQLite ledger, which tests copy: migrating takes longer than most tests."""
    file = tmp_path_factory.mktemp("filled") / "ledger.sqlite"
    _fill(engine := open_engine(f"sqlite:///{file}"))
    engine.dispose()
    return file


@pytest.fixture
def filled(filled_file: Path, tmp_path: Path) -> Iterator[sa.Engine]:
    """Return a filled SQLite ledger of the test's own."""
    shutil.copy(filled_file, tmp_path / "filled.sqlite")
    engine = open_engine(f"sqlite:///{tmp_path}/filled.sqlite")
    yield engine
    engine.dispose()


@pytest.fixture
def new_ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[NewLedger]:
    """Return a function that opens an empty database of a kind."""
    opened: list[sa.Engine] = []

    def create(kind: str) -> sa.Engine:
        if kind == "sqlite":
            url = ledger_url(str(tmp_path / f"root{len(opened)}"), None)
        else:
            from news_platform_tests.emulators.postgres import new_database

            url = new_database(request.getfixturevalue("postgres_server_url"))
        opened.append(open_engine(url))
        return opened[-1]

    yield create
    for engine in opened:
        engine.dispose()


def _fill(engine: sa.Engine) -> sa.Engine:
    """Store rows of all kinds of values, and delete the newest of a numbered table."""
    migrate(engine)
    with engine.begin() as connection:
        feeds = [
            {"feed_url": f"https://a.example/{n}", "feed_url_canon": f"Ünï{n}\n'\"", "status": "on",
             "checked_at": MOMENT if n % 2 else None, "may_miss_items": n == 1, "changed_seq": n}
            for n in range(1_200)
        ]  # fmt: skip
        connection.execute(sa.insert(FEEDS), feeds)
        robots = {"origin": "o", "fetched_at": MOMENT, "status": 200, "body": bytes(range(256))}
        connection.execute(sa.insert(ROBOTS), robots)
        measured = {"run_at": MOMENT, "stage": "s", "metric": "m", "changed_seq": 1}
        rows = [{**measured, "value": value} for value in (0.1, 1e300, -2.0)]
        connection.execute(sa.insert(DIAGNOSTICS), rows)
        connection.execute(sa.delete(DIAGNOSTICS).where(DIAGNOSTICS.c.id == 3))
        connection.execute(sa.update(SEQUENCE).values(value=1_200))
    return engine


def _comparable(value: object) -> object:
    if isinstance(value, datetime):  # SQLite returns no time zone
        return value.replace(tzinfo=value.tzinfo or UTC).astimezone(UTC)
    return bytes(value) if isinstance(value, memoryview) else value


def _rows(engine: sa.Engine) -> dict[str, list[str]]:
    with read_transaction(engine) as connection:
        return {
            name: sorted(
                repr([_comparable(value) for value in row])
                for row in connection.execute(sa.select(table))
            )
            for name, table in read_tables(connection).items()
        }


def _backup(engine: sa.Engine, path: Path) -> Path:
    backup_ledger(engine, path, world="real", made_at="2025-11-01T00:00:00+00:00")
    return path


@pytest.mark.parametrize(("source", "target"), [("sqlite", "postgres"), ("postgres", "sqlite")])
def test_a_backup_restores_to_the_same_rows_on_either_database(
    source: str, target: str, new_ledger: NewLedger, filled: sa.Engine, tmp_path: Path
) -> None:
    ledger = filled if source == "sqlite" else _fill(new_ledger(source))
    restored = new_ledger(target)
    counts = restore_ledger(restored, _backup(ledger, tmp_path / "backup.zip"))
    assert _rows(restored) == _rows(ledger)
    assert (counts["feeds"], counts["robots"], counts["diagnostics"]) == (1_200, 1, 2)


@pytest.mark.parametrize("target", KINDS)
def test_a_moved_ledger_has_the_same_rows_and_goes_on_counting(
    target: str, new_ledger: NewLedger, filled: sa.Engine
) -> None:
    moved = new_ledger(target)
    move_ledger(filled, moved)
    assert _rows(moved) == _rows(filled)
    row = {"run_at": MOMENT, "stage": "s", "metric": "m", "value": 1.0, "changed_seq": 1}
    with moved.begin() as connection:
        added = sa.insert(DIAGNOSTICS).values(row).returning(DIAGNOSTICS.c.id)
        # The number of the deleted row 3 is not used again.
        assert connection.execute(added).scalar_one() == 4
        assert read_counters(connection)["diagnostics"] == 4


class Load:
    """A writer whose transactions each add a row to two tables, and their number to a third."""

    def __init__(self, engine: sa.Engine) -> None:
        self.written = 0
        self._engine = engine
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def __enter__(self) -> "Load":
        self._thread.start()
        while self.written < 20:
            self._is_done.wait(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        self._is_done.set()
        self._thread.join()

    def _write(self) -> None:
        while not self._is_done.is_set():
            number = self.written + 1
            with self._engine.begin() as connection:
                feed = {"feed_url": "x", "feed_url_canon": f"load-{number}", "status": "on"}
                connection.execute(sa.insert(FEEDS).values(**feed, changed_seq=1))
                link = {"target_url_hash": f"load-{number}", "row_id": number}
                connection.execute(sa.insert(LINKS).values(**link))
                connection.execute(sa.update(SEQUENCE).values(value=number))
            self.written = number


def _count(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).where(*conditions)).scalar_one())


@pytest.mark.parametrize("kind", KINDS)
def test_a_backup_under_load_holds_one_consistent_moment(
    kind: str, new_ledger: NewLedger, filled: sa.Engine, tmp_path: Path
) -> None:
    ledger = filled if kind == "sqlite" else _fill(new_ledger(kind))
    with Load(ledger) as load:
        first = load.written
        taken = [(load.written, _backup(ledger, tmp_path / f"{n}.zip")) for n in range(2)]
        last = load.written
    assert last > first, "the writer went on"
    for before, path in taken:
        restored = new_ledger("sqlite")
        restore_ledger(restored, path)
        with read_transaction(restored) as connection:
            value = connection.execute(sa.select(SEQUENCE.c.value)).scalar_one()
            feeds = _count(connection, FEEDS.c.feed_url_canon.like("load-%"))
            assert value == feeds == _count(connection, LINKS.c.row_id > 0)
        assert before <= value <= last + 1


def test_an_empty_ledger_is_filled_and_one_with_rows_is_not_overwritten(
    new_ledger: NewLedger, filled: sa.Engine, tmp_path: Path
) -> None:
    backup, taken = _backup(filled, tmp_path / "backup.zip"), new_ledger("sqlite")
    migrate(taken)
    restore_ledger(taken, backup)
    before = _rows(taken)
    assert before == _rows(filled)
    with pytest.raises(InputError, match="is not empty: 'diagnostics' has rows"):
        restore_ledger(taken, backup)
    with pytest.raises(InputError, match="is not empty"):
        move_ledger(filled, taken)
    assert _rows(taken) == before


def test_a_ledger_that_is_written_to_while_it_moves_is_not_moved(
    new_ledger: NewLedger, filled: sa.Engine
) -> None:
    target = new_ledger("sqlite")
    with Load(filled), pytest.raises(InputError, match="of the ledger was written to while"):
        move_ledger(filled, target)
    with read_transaction(target) as connection:
        assert read_tables(connection) == {}


def _changed(path: Path, member: str, change: Callable[[bytes], bytes]) -> Path:
    """Return a copy of a zip in which one file is changed."""
    copy = path.with_name(f"changed-{path.name}")
    with zipfile.ZipFile(path) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            body = source.read(name)
            target.writestr(name, change(body) if name == member else body)
    return copy


@pytest.mark.parametrize(
    ("member", "change", "message"),
    [
        ("ledger.sqlite", lambda body: body.replace(b"a.example", b"b.example", 1), "differs"),
        ("manifest.json", lambda _: b"{", "cannot read manifest.json"),
        ("manifest.json", lambda body: body.replace(b'"format": 1', b'"format": 9'), "update"),
    ],
    ids=["changed", "no-json", "later-format"],
)
def test_a_changed_backup_is_refused_and_leaves_the_ledger_empty(
    member: str,
    change: Callable[[bytes], bytes],
    message: str,
    new_ledger: NewLedger,
    filled: sa.Engine,
    tmp_path: Path,
) -> None:
    path = _backup(filled, tmp_path / "backup.zip")
    target = new_ledger("sqlite")
    with pytest.raises(StorageError, match=message):
        restore_ledger(target, _changed(path, member, change))
    with read_transaction(target) as connection:
        assert read_tables(connection) == {}


def test_a_killed_backup_leaves_nothing(filled_file: Path, tmp_path: Path) -> None:
    script = (
        "import sys, time, pathlib\n"
        "from news_platform.storage.sql import ledger_backup as it\n"
        "it.check_file = lambda *_, **__: (print(flush=True), time.sleep(60))\n"
        "engine = it.open_engine('sqlite:///' + sys.argv[1])\n"
        "it.backup_ledger(engine, pathlib.Path(sys.argv[2]), world='real', made_at='')\n"
    )
    folder = tmp_path / "backups"
    folder.mkdir()
    words = [sys.executable, "-c", script, str(filled_file), str(folder / "x.zip")]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.read(1)
        assert [one.name for one in folder.rglob("*.sqlite")] == ["ledger.sqlite"]
        process.kill()
    until = time.monotonic() + 20
    while any(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.01)
    assert list(folder.iterdir()) == []


def test_a_backup_leaves_only_its_file_a_failed_one_nothing_and_a_cut_one_is_refused(
    new_ledger: NewLedger, filled: sa.Engine, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    _backup(filled, folder / "backup.zip")
    assert [path.name for path in folder.iterdir()] == ["backup.zip"]
    with pytest.raises(InputError, match="there is no ledger"):
        _backup(new_ledger("sqlite"), folder / "none.zip")
    assert [path.name for path in folder.iterdir()] == ["backup.zip"]
    cut = folder / "backup.zip"
    cut.write_bytes(cut.read_bytes()[:-100])
    with pytest.raises(StorageError, match="cannot be opened as a zip"):
        read_manifest(cut)


def test_a_backup_with_any_byte_changed_is_refused_or_whole(
    new_ledger: NewLedger, filled: sa.Engine, tmp_path: Path
) -> None:
    whole = _backup(filled, tmp_path / "backup.zip").read_bytes()
    damaged = tmp_path / "damaged.zip"
    refused = 0
    for seed in range(150):
        chance, body = random.Random(seed), bytearray(whole)
        for _ in range(chance.choice((1, 4, 32))):
            body[chance.randrange(len(body))] ^= 1 << chance.randrange(8)
        damaged.write_bytes(body)
        try:
            with unpacked(damaged):
                pass
        except StorageError:
            refused += 1
    assert refused > 100


@pytest.mark.parametrize("kind", KINDS)
def test_a_whole_ledger_passes_the_check(
    kind: str, new_ledger: NewLedger, filled: sa.Engine
) -> None:
    engine = filled if kind == "sqlite" else _fill(new_ledger(kind))
    found = check_ledger(engine.url.render_as_string(hide_password=False))
    assert (found.problems, found.revision, found.is_outdated) == ((), "initial", False)
    assert found.rows is not None and found.rows["feeds"] == 1_200


def test_a_damaged_page_is_found_and_the_readable_rows_are_counted(
    filled: sa.Engine,
) -> None:
    engine = filled
    engine.dispose()
    file = Path(engine.url.database or "")
    body = bytearray(file.read_bytes())
    with open_engine(str(engine.url)).connect() as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = 'diagnostics'"
        page = int(connection.exec_driver_sql(query).scalar_one())
    body[(page - 1) * 4096 : page * 4096] = b"\xa5" * 4096
    file.write_bytes(body)
    found = check_ledger(engine.url.render_as_string())
    assert any("'diagnostics' can be read up to row 0" in problem for problem in found.problems)
    assert found.rows is not None
    assert (found.rows["feeds"], found.rows["diagnostics"]) == (1_200, 0)
    with pytest.raises(StorageError, match=r"is damaged .*run `news-platform ledger check`"):
        open_engine(engine.url.render_as_string())


def test_a_missing_ledger_is_new_and_one_of_another_version_is_named(
    new_ledger: NewLedger,
) -> None:
    engine = new_ledger("sqlite")
    url = engine.url.render_as_string()
    assert check_ledger(url).is_new
    assert not Path(engine.url.database or "").exists(), "a check writes nothing"
    migrate(engine)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE alembic_version SET version_num = '9999'")
    assert check_ledger(url).problems == (
        "revision '9999' is of another version of news-platform: use that version",
    )
