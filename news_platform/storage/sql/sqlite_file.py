"""Check the file of a SQLite ledger before it is opened, without writing anything.

SQLite itself starts a new database in an empty file, reads a truncated one as far as it goes, and
reports damage only when a query meets it.
"""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from news_platform.errors import StorageError

_MAGIC = b"SQLite format 3\x00"
_HEADER_BYTES = 100
# Checking takes about 1 s per GB; in a larger file damage is found when a query meets it.
_CHECKED_BYTES = 256 << 20
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
        _check_header(path, size)
    except OSError as error:
        cause = error.strerror or str(error)
        raise StorageError(f"cannot read ledger {str(path)!r}: {cause}", thing=str(path)) from error
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
    return StorageError(f"cannot use ledger {str(path)!r}: {cause}", thing=str(path))


def damaged(path: Path | str, cause: str) -> StorageError:
    """Return the error of a damaged ledger, with the cure."""
    return StorageError(f"ledger {str(path)!r} is damaged ({cause}): {CURE}", thing=str(path))


def _has_log(path: Path) -> bool:
    log = Path(f"{path}-wal")
    return log.exists() and log.stat().st_size > 0


def _check_header(path: Path, size: int) -> None:
    with path.open("rb") as file:
        header = file.read(_HEADER_BYTES)
    if not header.startswith(_MAGIC) or len(header) < _HEADER_BYTES:
        raise damaged(path, "it is not a SQLite database")
    # Page 1 may be newer in the log than in the file.
    if _has_log(path):
        return
    # https://www.sqlite.org/fileformat.html: the stored count is valid if these two agree.
    if header[24:28] == header[92:96]:
        page_bytes = int.from_bytes(header[16:18], "big")
        expected = int.from_bytes(header[28:32], "big") * (
            65_536 if page_bytes == 1 else page_bytes
        )
        if size < expected:
            raise damaged(path, f"it has {size} of {expected} bytes")


def connect_readonly(path: Path) -> sqlite3.Connection:
    """Open a file that must not change, also if it is damaged."""
    mode = "immutable=1" if _is_closed(path) else "mode=ro"
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
        address = f"file:{quote(str(path))}?{mode}"
        with closing(sqlite3.connect(address, uri=True, timeout=60)) as connection:
            found = connection.execute(check).fetchone()
    except sqlite3.Error as error:
        raise sqlite_error(error, path) or damaged(path, str(error)) from error
    if is_small and found != ("ok",):
        raise damaged(path, " ".join(str(found[0]).split()))
