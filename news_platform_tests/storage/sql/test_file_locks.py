"""Nobody who looks at an open SQLite file may take away the locks that his process has on it."""

import fcntl
import multiprocessing
from collections.abc import Callable, Iterator
from multiprocessing.pool import Pool
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import open_engine
from news_platform.storage.sql.sqlite_file import check_file, is_database, read_bytes
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.verify import VerificationReport, verify_objects
from news_platform_tests.takedowns.asked import asked

# Where SQLite locks: readers share the range of a database, and of a log's index its bytes.
_SHARED_FIRST, _SHARED_SIZE = 0x40000002, 510
_INDEX_FIRST, _INDEX_SIZE = 120, 8
TAKEDOWNS = Takedowns.of([asked("domain", "gone.example")])
LOOKS: dict[str, Callable[[Path], object]] = {
    "opened again": lambda file: open_engine(f"sqlite:///{file}").dispose(),
    "checked": lambda file: check_file(file, is_whole=True),
    "read": read_bytes,
    "asked whether it is a database": is_database,
    "verified": lambda file: verify_objects(
        open_store(str(file.parent)), VerificationReport(TAKEDOWNS)
    ),
}


def _is_free(path: str, first: int, size: int) -> bool:
    with Path(path).open("rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, size, first)
        except OSError:
            return False
        return True


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Pool]:
    """Yield a pool of one other process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield pool


def _locks(file: Path, elsewhere: Pool) -> list[bool]:
    """Return whether another process finds the database and the index of its log locked."""
    places = ((str(file), _SHARED_FIRST, _SHARED_SIZE), (f"{file}-shm", _INDEX_FIRST, _INDEX_SIZE))
    return [not elsewhere.apply(_is_free, place) for place in places]


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_an_open_ledger_leaves_its_locks(
    tmp_path: Path, look: str, elsewhere: Pool
) -> None:
    file = tmp_path / "ledger.sqlite"
    engine = open_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE feeds (url TEXT)")
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO feeds VALUES ('https://a.example/feed')"))
        assert _locks(file, elsewhere) == [True, True]
        LOOKS[look](file)
        assert _locks(file, elsewhere) == [True, True]
    engine.dispose()
