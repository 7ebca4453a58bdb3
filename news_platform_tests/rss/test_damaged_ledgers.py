"""A damaged, lost or newer ledger is one line with its cure, and nothing is written."""

import hashlib
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
import sqlalchemy as sa
from click.testing import CliRunner, Result

from news_platform.cli.main import main
from news_platform.errors import StorageError
from news_platform.rss.export import export_days
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import ledger_url, migrate, open_engine
from news_platform_tests.rss.ledger_rows import NOW, add_articles

# Reads, writes the workbook, writes the ledger.
COMMANDS = (["rss", "status"], ["rss", "sync"], ["rss", "poll"])
PAGE = 4096

Damage = Callable[[bytearray, random.Random], bytes]


def _overwrite(start: int, length: int) -> Damage:
    """Return a damage that writes random bytes at a place; a negative one counts from the end."""

    def damage(body: bytearray, chance: random.Random) -> bytes:
        at = start % len(body)
        body[at : at + length] = chance.randbytes(min(length, len(body) - at))
        return bytes(body)

    return damage


def _cut(share: float, more: int = 0) -> Damage:
    return lambda body, _: bytes(body[: int(len(body) * share) + more])


def _replace(text: bytes) -> Damage:
    return lambda _body, _chance: text


def _pages(share: float) -> Damage:
    """Return a damage that overwrites this share of all pages after the first."""

    def damage(body: bytearray, chance: random.Random) -> bytes:
        count = len(body) // PAGE
        for page in chance.sample(range(1, count), max(1, int((count - 1) * share))):
            body[page * PAGE : (page + 1) * PAGE] = chance.randbytes(PAGE)
        return bytes(body)

    return damage


DAMAGES: dict[str, Damage] = {
    "empty": _replace(b""),
    "html": _replace(b"<!doctype html><title>Sign in</title>" + b" " * 5000),
    "zeros": lambda body, _: bytes(len(body)),
    "magic and noise": lambda body, chance: bytes(body[:16]) + chance.randbytes(len(body) - 16),
    "header overwritten": _overwrite(0, 100),
    "schema overwritten": _overwrite(100, PAGE - 100),
    "cut in the header": _cut(0, 50),
    "cut to a half": _cut(0.5),
    "cut by a byte": _cut(1, -1),
    "one page": _pages(0.0),
    "half of the pages": _pages(0.5),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root with a ledger of articles and their daily file."""
    folder = tmp_path_factory.mktemp("original")
    assert _run(["rss", "ensure"], folder).exit_code == 0
    engine = open_engine(ledger_url(str(folder), None))
    add_articles(engine, [{"stored_at": NOW, "clean_text": "word " * 500} for _ in range(50)])
    assert export_days(engine, open_store(str(folder)), now=NOW).rows == 50
    engine.dispose()
    with closing(sqlite3.connect(folder / "ledger.sqlite")) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return folder


@pytest.fixture
def root(original: Path, tmp_path: Path) -> Path:
    without_log = shutil.ignore_patterns("*-wal", "*-shm")
    return Path(shutil.copytree(original, tmp_path / "root", ignore=without_log))


def _hashes(root: Path) -> dict[str, str]:
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }


def _run(words: list[str], root: Path) -> Result:
    return CliRunner().invoke(main, [*words, "--root", str(root)])


def _assert_refused(root: Path, match: str) -> None:
    before = _hashes(root)
    for words in COMMANDS:
        result = _run(words, root)
        assert isinstance(result.exception, StorageError), (words, result.exception)
        message = str(result.exception)
        assert match in message, message
        assert "ledger" in message
        assert "ledger check" in message or "use that version" in message
        assert _hashes(root) == before, words


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_ledger_is_refused_and_nothing_is_written(name: str, root: Path) -> None:
    file = root / "ledger.sqlite"
    file.write_bytes(DAMAGES[name](bytearray(file.read_bytes()), random.Random(name)))
    _assert_refused(root, "holds no articles" if name == "empty" else "is damaged (")


def test_a_ledger_that_is_gone_or_new_is_not_the_truth(root: Path) -> None:
    (root / "ledger.sqlite").unlink()
    _assert_refused(root, "holds no articles, but the root does")
    engine = open_engine(ledger_url(str(root), None))
    migrate(engine)
    engine.dispose()
    _assert_refused(root, "holds no articles, but the root does")


def test_an_empty_file_with_a_log_of_changes_keeps_its_log(root: Path) -> None:
    (root / "ledger.sqlite").write_bytes(b"")
    (root / "ledger.sqlite-wal").write_bytes(b"\x37\x7f\x06\x82" + bytes(60))
    _assert_refused(root, "is damaged (the file is empty, but its write-ahead log is not)")


def test_a_new_root_gets_a_new_ledger(tmp_path: Path) -> None:
    (tmp_path / "ledger.sqlite").write_bytes(b"")
    assert _run(["rss", "ensure"], tmp_path).exit_code == 0


def test_the_articles_moved_away_allow_a_new_ledger(root: Path, tmp_path: Path) -> None:
    (root / "ledger.sqlite").unlink()
    (root / "articles").rename(tmp_path / "articles")
    assert _run(["rss", "status"], root).exit_code == 0


def test_a_ledger_of_a_newer_version_is_refused(root: Path) -> None:
    with closing(sqlite3.connect(root / "ledger.sqlite")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    _assert_refused(
        root, "its revision '9999' is of another version of news-platform; use that version"
    )


def test_an_empty_postgres_database_is_not_the_ledger_of_a_root_with_articles(
    root: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWS_PLATFORM_LEDGER_URL", postgres_url)
    _assert_refused(root, "holds no articles, but the root does")
    assert sa.inspect(sa.create_engine(postgres_url)).get_table_names() == []
