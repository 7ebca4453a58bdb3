"""Read and write a local folder: files are built in `.incoming`, synced and renamed into place.

Reading uses plain file calls for bytes and obstore for listings: through obstore a local range
costs 200 µs and a stream runs at 180 MB/s; plain calls are ten times faster.

Durability: the bytes are synced before the rename, so a name never shows a torn file, not even
after a power cut. The folder is synced only at commit points (put-if-absent and compare-and-set);
on journaling file systems that also makes every earlier rename durable.

Locking: `flock` on the open folder itself, so that there is no lock file in the data. The lock
holds between threads and processes of one machine and ends with its holder. Folders that a delete
has emptied are removed under the same lock.
"""

import errno
import fcntl
import logging
import os
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from operator import attrgetter, itemgetter
from pathlib import Path
from typing import BinaryIO
from uuid import uuid4

import obstore
from obstore.exceptions import InvalidPathError, PreconditionError
from obstore.store import LocalStore

from news_platform.storage.objects.interfaces import (
    INCOMING,
    Body,
    ObjectInfo,
    is_listable,
    is_unfinished,
)

_log = logging.getLogger(__name__)
_LIST_CHUNK = 10_000
_COPY_BYTES = 1024 * 1024
# Other processes remove an empty folder a few times at most; /proc refuses new folders for ever.
_MKDIR_TRIES = 1_000


class LocalDownload:
    """An open file, positioned at the requested offset."""

    def __init__(self, path: Path, key: str, *, offset: int) -> None:
        self._handle = _open(path)
        # From the open file, not its path: another writer may have replaced the file meanwhile.
        self.info = ObjectInfo.of_file(key, os.fstat(self._handle))
        # Object stores refuse such a range too.
        if offset and offset >= self.info.size_bytes:
            self.close()
            raise ValueError(f"offset {offset} is beyond the end at {self.info.size_bytes} bytes")
        os.lseek(self._handle, offset, os.SEEK_SET)

    def read(self) -> bytes:
        """Return all bytes from the offset to the end."""
        return b"".join(self.chunks(max(self.info.size_bytes, 1)))

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """Yield the bytes in pieces of this size."""
        while chunk := os.read(self._handle, size_bytes):
            yield chunk

    def close(self) -> None:
        """Close the file."""
        handle, self._handle = self._handle, -1
        if handle >= 0:
            os.close(handle)

    def __del__(self) -> None:
        # A stream that its user abandons must not leak the file handle.
        with suppress(AttributeError):  # the file could not be opened
            self.close()


class LocalReader:
    """Read the files under one folder, which need not exist yet."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def open(self, key: str, *, offset: int = 0, etag: str | None = None) -> LocalDownload:
        """Open the file from `offset` on if it still has this tag."""
        download = LocalDownload(self._folder / key, key, offset=offset)
        if etag is not None and download.info.etag != etag:
            download.close()
            raise PreconditionError(f"{key!r} has a different tag")
        return download

    def head(self, key: str) -> ObjectInfo:
        """Return the info of a file; raise FileNotFoundError for a folder."""
        facts = (self._folder / key).stat()
        if not stat.S_ISREG(facts.st_mode):
            raise FileNotFoundError(key)
        return ObjectInfo.of_file(key, facts)

    def ranges(self, key: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return these ranges, truncated at the end of the file."""
        handle = _open(self._folder / key)
        try:
            pairs = zip(lengths, starts, strict=True)
            return [os.pread(handle, length, start) for length, start in pairs]
        finally:
            os.close(handle)

    def iter_objects(self, folder: str, *, start: str = "") -> Iterator[ObjectInfo]:
        """Yield the files under `folder`, sorted; the whole folder is listed before the first."""
        pages = obstore.list(self._client, folder or None, chunk_size=_LIST_CHUNK)
        try:
            found = [m for page in pages for m in page if m["path"].startswith(start)]
        except InvalidPathError:
            # macOS leaves files named "Icon\r", at which obstore ends the whole listing.
            return self._iter_valid(folder, start=start)
        # obstore does not sort local listings.
        found.sort(key=itemgetter("path"))
        return (ObjectInfo.of_meta(meta) for meta in found if not is_unfinished(meta["path"]))

    def _iter_valid(self, folder: str, *, start: str) -> Iterator[ObjectInfo]:
        """Yield the files whose names can be paths, sorted; log how many were skipped."""
        skipped: list[str] = []
        prefix = f"{folder}/" if folder else ""
        found = [
            ObjectInfo.of_file(prefix + path, facts)
            for path, facts in _walk(self._folder / folder, skipped)
            if (prefix + path).startswith(start)
        ]
        if skipped:
            place = str(self._folder / folder)
            text = (
                "skipped %d files in %r, first %r: a name has a control character or is not UTF-8"
            )
            _log.warning(text, len(skipped), place, skipped[0])
        return iter(sorted(found, key=attrgetter("path")))

    def folders(self, folder: str) -> list[str]:
        """Return the folders directly under `folder`, sorted."""
        prefix = f"{folder}/" if folder else ""
        with os.scandir(self._folder / folder) as entries:
            named = (entry for entry in entries if is_listable(entry.name))
            found = [prefix + entry.name for entry in named if entry.is_dir()]
        return sorted(path for path in found if not is_unfinished(path))

    @cached_property
    def _client(self) -> LocalStore:
        self._folder.stat()  # obstore raises an untyped error for a missing folder
        return LocalStore(self._folder)


def _walk(
    folder: Path, skipped: list[str], above: frozenset[tuple[int, int]] = frozenset()
) -> Iterator[tuple[str, os.stat_result]]:
    """Yield every file below a folder with its relative path; links are followed, but no loops."""
    with os.scandir(folder) as entries:
        for entry in entries:
            # A file may be deleted while the folder is read, and a link may lead nowhere.
            with suppress(OSError):
                facts = entry.stat()
                place = (facts.st_dev, facts.st_ino)
                if not is_listable(entry.name):
                    skipped.append(entry.name)
                elif stat.S_ISREG(facts.st_mode):
                    yield entry.name, facts
                elif stat.S_ISDIR(facts.st_mode) and entry.name != INCOMING and place not in above:
                    below = _walk(Path(entry.path), skipped, above | {place})
                    yield from ((f"{entry.name}/{path}", info) for path, info in below)


def _open(path: Path) -> int:
    # Without O_NONBLOCK, opening a named pipe would block forever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    if stat.S_ISREG(os.fstat(handle).st_mode):
        return handle
    os.close(handle)
    raise FileNotFoundError(path)


class LocalWriter:
    """Write files under one folder; the first put creates it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._cleaned: set[Path] = set()

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Replace the file by one rename."""
        target = self._folder / key
        with self._built(target, body) as part:
            info = ObjectInfo.of_file(key, part.stat())
            _rename(part, target)
            return info

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Create the file and return its tag, or None if the file exists."""
        return self._put_if(self._folder / key, body, etag=None)

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Replace the file if it still has this tag; return the new tag, or None."""
        return self._put_if(self._folder / key, body, etag=etag)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the files and the folders they leave empty."""
        for key in keys:
            target = self._folder / key
            with suppress(FileNotFoundError, NotADirectoryError, IsADirectoryError):
                target.unlink()
                self._prune(target.parent)

    def _put_if(self, target: Path, body: bytes, *, etag: str | None) -> str | None:
        # This check only saves building a file in vain; the one under the lock decides.
        if _etag(target) != etag:
            return None
        with self._built(target, body) as part, locked_folder(target.parent) as folder:
            if _etag(target) != etag:
                return None
            part.rename(target)
            os.fsync(folder)
            return _etag(target)

    def _prune(self, folder: Path) -> None:
        while folder != self._folder and remove_if_empty(folder):
            folder = folder.parent

    @contextmanager
    def _built(self, target: Path, body: Body) -> Iterator[Path]:
        with _new_part(self._incoming_for(target)) as file:
            part = Path(file.name)
            try:
                _fill(file, body)
                yield part
            finally:
                # Missing after a successful rename.
                part.unlink(missing_ok=True)

    def _incoming_for(self, target: Path) -> Path:
        # A rename cannot cross file systems: below a linked or mounted folder, build there.
        create_folder(self._folder)
        near, disk = _nearest_existing(target.parent)
        incoming = (self._folder if disk == self._folder.stat().st_dev else near) / INCOMING
        # Only killed writers leave files, so one look per writer is enough.
        if incoming not in self._cleaned:
            gc_incoming(incoming)
            self._cleaned.add(incoming)
        return incoming


def gc_incoming(incoming: Path) -> int:
    """Remove the unfinished files of killed writers and return how many.

    A running writer holds a lock on its file.
    """
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
        create_folder(incoming)
        with (incoming / f"{uuid4().hex}.part").open("xb") as part:
            fcntl.flock(part, fcntl.LOCK_EX)
            if os.fstat(part.fileno()).st_nlink:  # else removed by gc between open and lock
                yield part
                return


def _fill(part: BinaryIO, body: Body) -> None:
    if isinstance(body, bytes):
        part.write(body)
    elif isinstance(body, Path):
        with body.open("rb") as source:
            shutil.copyfileobj(source, part, _COPY_BYTES)
    else:
        shutil.copyfileobj(body, part, _COPY_BYTES)
    part.flush()
    # The kernel's own timestamp advances every 4 ms: too coarse for a tag that must be unique.
    now_ns = time.time_ns()
    os.utime(part.fileno(), ns=(now_ns, now_ns))
    # An empty file, such as a success marker, has no bytes that a power cut could tear.
    if part.tell():
        os.fsync(part.fileno())


def _rename(part: Path, target: Path) -> None:
    while True:
        create_folder(target.parent)
        try:
            part.rename(target)
            return
        except FileNotFoundError:
            # A delete removed the empty folder meanwhile. If the part itself is gone, this raises.
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


@contextmanager
def locked_folder(folder: Path) -> Iterator[int]:
    """Create the folder if needed, hold its lock, and yield its open handle."""
    while (handle := _lock(folder)) is None:
        create_folder(folder)
    try:
        yield handle
    finally:
        os.close(handle)


def create_folder(folder: Path) -> None:
    """Create the folder with its parents, even while others remove empty folders."""
    for _ in range(_MKDIR_TRIES):
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return
        except FileNotFoundError:
            continue  # a parent was removed after it was created
        except FileExistsError:
            # A file or a dangling link; else the folder was removed meanwhile: try again.
            if folder.is_file() or folder.is_symlink():
                raise
    raise OSError(errno.ENOTSUP, f"{str(folder)!r} cannot be created; choose another root")


def remove_if_empty(folder: Path) -> bool:
    """Remove the folder if it is empty and unlocked; return whether it was removed."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError:
        return False
    try:
        # A writer that holds the lock is about to rename a file into the folder.
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.rmdir()
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _lock(folder: Path) -> int | None:
    # None if the folder was removed (and perhaps created again) before we got its lock.
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return None
    is_current = False
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        # While we waited, the folder may have been removed and created again as another inode.
        is_current = _is_same(folder, handle)
    finally:
        # Also after an error: an open handle would keep the lock until the process ends.
        if not is_current:
            os.close(handle)
    return handle if is_current else None


def _is_same(folder: Path, handle: int) -> bool:
    try:
        return os.path.samestat(folder.stat(), os.fstat(handle))
    except FileNotFoundError:
        return False
