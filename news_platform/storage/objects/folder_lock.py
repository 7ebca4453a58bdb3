"""Locks on local folders themselves, so that no lock file lies among the data.

The lock is `flock` on the open folder: it holds between threads and processes of one machine and
goes away with its holder. Folders that a delete has emptied are removed under the same lock.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked_folder(folder: Path) -> Iterator[int]:
    """Make the folder if needed, hold its lock, and give its open handle."""
    while (handle := _lock(folder)) is None:
        make_folder(folder)
    try:
        yield handle
    finally:
        os.close(handle)


def make_folder(folder: Path) -> None:
    """Make the folder with its parents, also while others remove empty ones."""
    while True:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return
        except FileNotFoundError:
            continue  # a parent was removed between its making and ours
        except FileExistsError:
            if folder.is_file():
                raise
            # it was there, and was removed before it could be looked at


def removed_if_empty(folder: Path) -> bool:
    """Remove the folder unless something lies in it or somebody holds its lock."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.rmdir()
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _lock(folder: Path) -> int | None:
    # None when the folder was removed, perhaps made anew, before we had its lock.
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    fcntl.flock(handle, fcntl.LOCK_EX)
    if _is_still(folder, handle):
        return handle
    os.close(handle)
    return None


def _is_still(folder: Path, handle: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
