"""Write to a local folder: build in `.incoming`, sync, rename; nobody ever sees half a file.

Durability: the bytes are synced before the rename, so a name never shows a torn file, not even
after a power cut. The folder is synced only at commit points (put-if-absent and compare-and-set):
on journaling file systems that also makes every earlier rename durable.
"""

import fcntl
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from io import BytesIO
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

from news_platform.storage.objects.folder_lock import locked_folder, make_folder, removed_if_empty
from news_platform.storage.objects.info import ObjectInfo
from news_platform.storage.objects.interfaces import Body
from news_platform.storage.objects.keys import INCOMING

_COPY_BYTES = 1024 * 1024


class LocalWriter:
    """Writing under one folder, which the first put makes."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._swept: set[Path] = set()

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Replace the file in one rename."""
        target = self._folder / key
        with self._built(target, body) as part:
            info = ObjectInfo.of_file(key, part.stat())
            _rename(part, target)
            return info

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Create the file and return its tag; None when the name is taken."""
        return self._put_if(self._folder / key, body, etag=None)

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Replace the file if it still has this tag and return the new one; None when not."""
        return self._put_if(self._folder / key, body, etag=etag)

    def delete(self, keys: Iterable[str]) -> None:
        """Remove the files, and the folders they leave empty."""
        for key in keys:
            target = self._folder / key
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                target.unlink()
                self._prune(target.parent)

    def _put_if(self, target: Path, body: bytes, *, etag: str | None) -> str | None:
        if _etag(target) != etag:
            return None
        with self._built(target, body) as part, locked_folder(target.parent) as folder:
            if _etag(target) != etag:
                return None
            part.rename(target)
            os.fsync(folder)
            return _etag(target)

    def _prune(self, folder: Path) -> None:
        while folder != self._folder and removed_if_empty(folder):
            folder = folder.parent

    @contextmanager
    def _built(self, target: Path, body: Body) -> Iterator[Path]:
        with _new_part(self._incoming_for(target)) as file:
            part = Path(file.name)
            try:
                _fill(file, body)
                yield part
            finally:
                part.unlink(missing_ok=True)

    def _incoming_for(self, target: Path) -> Path:
        # A rename cannot cross file systems: under a linked or mounted folder, build there.
        make_folder(self._folder)
        near, disk = _nearest_existing(target.parent)
        incoming = (self._folder if disk == self._folder.stat().st_dev else near) / INCOMING
        if incoming not in self._swept:
            sweep(incoming)
            self._swept.add(incoming)
        return incoming


def sweep(incoming: Path) -> int:
    """Remove what killed writers left behind, and return how many; a living writer holds a lock."""
    removed = 0
    with suppress(FileNotFoundError):
        for part in sorted(incoming.iterdir()):
            with suppress(FileNotFoundError, BlockingIOError), part.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                part.unlink()
                removed += 1
    return removed


@contextmanager
def _new_part(incoming: Path) -> Iterator[BinaryIO]:
    while True:
        make_folder(incoming)
        with (incoming / f"{uuid4().hex}.part").open("xb") as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            if os.fstat(part.fileno()).st_nlink:  # else swept between open and lock
                yield part
                return


def _fill(part: BinaryIO, body: Body) -> None:
    if isinstance(body, Path):
        with body.open("rb") as source:
            shutil.copyfileobj(source, part, _COPY_BYTES)
    else:
        shutil.copyfileobj(BytesIO(body) if isinstance(body, bytes) else body, part, _COPY_BYTES)
    part.flush()
    # The kernel's own stamp moves every 4 ms, too coarse for a tag that must differ every time.
    now_ns = time.time_ns()
    os.utime(part.fileno(), ns=(now_ns, now_ns))
    os.fsync(part.fileno())


def _rename(part: Path, target: Path) -> None:
    while True:
        make_folder(target.parent)
        try:
            part.rename(target)
            return
        except FileNotFoundError:
            # A delete removed the empty folder under our hands; unless it is the part that is gone.
            part.stat()


def _nearest_existing(folder: Path) -> tuple[Path, int]:
    while True:
        with suppress(FileNotFoundError, NotADirectoryError):
            return folder, folder.stat().st_dev
        folder = folder.parent


def _etag(path: Path) -> str | None:
    try:
        return ObjectInfo.of_file("", path.stat()).etag
    except (FileNotFoundError, NotADirectoryError):
        return None
