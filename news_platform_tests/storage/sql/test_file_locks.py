"""Nobody who looks at an open SQLite file may take away the locks that his process has on it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import open_engine
from news_platform.storage.sql.sqlite_file import check_file, read_bytes
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
    "verified": lambda file: verify_objects(
        open_store(str(file.parent)), VerificationReport(TAKEDOWNS)
    ),
}


# Prints which of the places on its command line another process has locked.
ASK = """
import fcntl, sys
for path, first, size in zip(*[iter(sys.argv[1:])] * 3):
    with open(path, "rb+") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, int(size), int(first))
        except OSError:
            print("locked")
        else:
            print("free")
"""


def _locks(file: Path) -> list[str]:
    """Return what another process finds of the database and the index of its log."""
    places = (file, _SHARED_FIRST, _SHARED_SIZE, f"{file}-shm", _INDEX_FIRST, _INDEX_SIZE)
    command = [sys.executable, "-S", "-c", ASK, *map(str, places)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_an_open_ledger_leaves_its_locks(tmp_path: Path, look: str) -> None:
    file = tmp_path / "ledger.sqlite"
    engine = open_engine(f"sqlite:///{file}")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE feeds (url TEXT)")
    with engine.begin() as connection:
        connection.execute(sa.text("INSERT INTO feeds VALUES ('https://a.example/feed')"))
        assert _locks(file) == ["locked", "locked"]
        LOOKS[look](file)
        assert _locks(file) == ["locked", "locked"]
    engine.dispose()
