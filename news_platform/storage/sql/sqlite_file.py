"""Check the file of a SQLite ledger before it is opened, without writing anything.

SQLite itself starts a new database in an empty file, and reports damage only when a query meets it.
Only SQLite or another process may open the file: closing any other handle drops every lock that
this process holds on it (https://www.sqlite.org/howtocorrupt.html), and another process could then
delete the log while this one writes to it.
"""

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from news_platform.errors import StorageError, StoreUnavailable
from news_platform.storage.objects.error_mapping import NotFound

# Checking takes about 1 s per GB; in a larger file damage is found when a query meets it.
_CHECKED_BYTES = 256 << 20
_HEADER_BYTES, _SMALLEST_PAGE = 100, 512
_MAX_PROBLEMS = 20
_PRINT = "import sys; sys.stdout.buffer.write(open(sys.argv[1], 'rb').read(int(sys.argv[2])))"
CURE = "run `news-platform ledger check`, then see 'A damaged ledger' in docs/runbook.md"
"""What to do with a damaged ledger."""
# By SQLite's primary result code, https://www.sqlite.org/rescode.html; None: it is damaged.
_CAUSES = {
    sqlite3.SQLITE_CORRUPT: None,
    sqlite3.SQLITE_NOTADB: None,
    sqlite3.SQLITE_FULL: "the disk is full; free some space",
    sqlite3.SQLITE_READONLY: "it is read-only; make the file and its folder writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened; check its folder and permissions",
    sqlite3.SQLITE_PERM: "permission denied; make the file and its folder readable",
    sqlite3.SQLITE_BUSY: "another process has locked it for over a minute; end that process",
    sqlite3.SQLITE_IOERR: "the disk failed to read or write; check the disk and its space",
}

# What passes without anybody touching the data: a retry may help.
_PASSING = (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN)
# The byte of the file `-shm` that the writer of a write-ahead log locks.
_WRITE_LOCK = 120


def lock_holders(path: Path) -> list[int]:
    """Return the processes that hold the write lock of a database, as far as the system says."""
    try:
        inode = Path(f"{path}-shm").stat().st_ino
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    found = []
    for line in lines:
        # `1: POSIX  ADVISORY  WRITE 4711 fe:00:1234 120 120`; a waiting one has an arrow.
        _, _, _, kind, pid, place, first, last, *_ = [*line.split(), *[""] * 8]
        if kind == "WRITE" and place.rpartition(":")[2] == str(inode):
            end = _WRITE_LOCK if last == "EOF" else int(last)
            if int(first) <= _WRITE_LOCK <= end:
                found.append(int(pid))
    return found


def check_file(path: Path, *, is_whole: bool = False) -> None:
    """Raise StorageError if the file is not a whole database; one that is missing or empty is new.

    A log of changes beside an empty file is damage: SQLite would delete it. With `is_whole` every
    page is read, however large the file is.
    """
    try:
        size = path.stat().st_size if path.exists() else 0
        if size == 0:
            if _has_log(path):
                raise damaged(path, "the file is empty, but its write-ahead log is not")
            return
        if size < _SMALLEST_PAGE:  # SQLite would begin anew
            raise damaged(path, "it is not a SQLite database")
    except OSError as error:
        cause = error.strerror or str(error)
        message = f"cannot read ledger {str(path)!r}: {cause}"
        raise StoreUnavailable(message, thing=str(path)) from error
    _check_pages(path, is_small=is_whole or size <= _CHECKED_BYTES)


def is_new(path: Path) -> bool:
    """Return whether the file is missing or empty."""
    return not path.exists() or path.stat().st_size == 0


def sqlite_error(error: sqlite3.Error, path: Path | str) -> StorageError | None:
    """Return our error for a failure of the file or its disk; None for any other error."""
    # An error that the driver raises itself has no code.
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
    if code not in _CAUSES:
        return None
    cause = _CAUSES[code]
    if cause is None:
        return damaged(path, str(error))
    kind = StoreUnavailable if code in _PASSING else StorageError
    return kind(f"cannot use ledger {str(path)!r}: {cause}", thing=str(path))


def damaged(path: Path | str, cause: str) -> StorageError:
    """Return the error of a damaged ledger, with the cure."""
    return StorageError(f"ledger {str(path)!r} is damaged ({cause}): {CURE}", thing=str(path))


def _has_log(path: Path) -> bool:
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def read_bytes(path: Path, size: int = -1) -> bytes:
    """Return the bytes of a database or of a file beside it that may be open in this process."""
    command = (sys.executable, "-I", "-S", "-c", _PRINT, str(path), str(size))
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode == 0:
        return done.stdout
    if not path.exists():
        raise NotFound(f"{str(path)!r} does not exist", thing=str(path))
    raise StorageError(f"cannot read {str(path)!r}: {done.stderr[-200:]!r}", thing=str(path))


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a file that must not change, also if it is damaged."""
    return _connect(path, "immutable=1" if _is_closed(path) else "mode=ro")


def iter_page_problems(connection: sqlite3.Connection) -> Iterator[str]:
    """Read every page, and yield what is wrong with the tables and their indexes."""
    try:
        for (text,) in connection.execute(f"PRAGMA integrity_check({_MAX_PROBLEMS})"):
            if text != "ok":
                yield " ".join(str(text).split())
    except sqlite3.DatabaseError as error:
        yield f"the check ended early: {error}"


def count_readable_rows(connection: sqlite3.Connection, problems: list[str]) -> dict[str, int]:
    """Return how many rows of each table can be read; add a problem where reading ends early."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'"
    # Text that is not UTF-8 would end the reading.
    connection.text_factory = lambda body: body.decode(errors="replace")
    counts = {}
    for (table,) in connection.execute(f"{query} ORDER BY name").fetchall():
        count = 0
        try:
            for _ in connection.execute(f'SELECT * FROM "{table}"'):
                count += 1
        except sqlite3.DatabaseError as error:
            problems.append(f"{table!r} can be read up to row {count}: {error}")
        counts[table] = count
    return counts


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, timeout=60)


def _is_closed(path: Path) -> bool:
    return not Path(f"{path}-wal").exists() and not Path(f"{path}-journal").exists()


def _check_pages(path: Path, *, is_small: bool) -> None:
    before = path.stat()
    # Immutable: no lock and no side file is made, which is safe while nobody has the file open.
    is_closed = _is_closed(path)
    try:
        _read_pages(path, "immutable=1" if is_closed else "mode=ro", is_small=is_small)
    except StorageError:
        after = path.stat()
        if not is_closed or (before.st_mtime_ns, before.st_size) == (
            after.st_mtime_ns,
            after.st_size,
        ):
            raise
        # Another process opened the file and wrote to it: check again with locks.
        _read_pages(path, "mode=ro", is_small=is_small)


def _read_pages(path: Path, mode: str, *, is_small: bool) -> None:
    check = "PRAGMA quick_check(1)" if is_small else "SELECT count(*) FROM sqlite_master"
    try:
        with closing(_connect(path, mode)) as connection:
            found = connection.execute(check).fetchone()
            pages, page_bytes = (
                connection.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "page_size")
            )
    except sqlite3.Error as error:
        if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_CORRUPT:
            header = read_bytes(path, _HEADER_BYTES)
            pages, page_bytes = (
                int.from_bytes(header[first:last], "big") for first, last in ((28, 32), (16, 18))
            )
            _check_size(path, pages, page_bytes)
        raise sqlite_error(error, path) or damaged(path, str(error)) from error
    if is_small and found != ("ok",):
        raise damaged(path, " ".join(str(found[0]).split()))
    _check_size(path, pages, page_bytes)


def _check_size(path: Path, pages: int, page_bytes: int) -> None:
    """Raise if the file is shorter than its pages; the newest may be in the log alone."""
    size, expected = path.stat().st_size, pages * page_bytes
    if size < expected and not _has_log(path):
        raise damaged(path, f"it has {size} of {expected} bytes")
