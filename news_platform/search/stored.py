"""Publish the index of a day under the root, and open it from a local cache.

An index lies in `search/day=YYYY-MM-DD/<build>/`, and the marker of the day names the build. Every
build has a folder of its own, so that readers of the old one are not disturbed; the folder of an
older build is deleted later, or at once if its text must go.
"""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from news_platform.datasets.search_index import SEARCH_INDEX
from news_platform.errors import Conflict, StorageError
from news_platform.search.index import IndexReader, SearchableArticle, build_index
from news_platform.storage.commit.markers import Marker, fingerprint, read_markers, write_marker
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

DATASET = SEARCH_INDEX.name
# A reader that has listed a build opens it within this time.
_GRACE = timedelta(hours=1)
_CONCURRENT_TRANSFERS = 8
_COPY_BYTES = 4 * 1024 * 1024
# The lock of a writer; nobody writes to a published index.
_LOCK_FILES = (".tantivy-writer.lock", ".tantivy-meta.lock", ".managed.json")


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one build of a day wrote."""

    articles: int
    files: int
    size_bytes: int


def index_folder(day: str, build: str = "") -> str:
    """Return the folder of a day's builds, or of one of them."""
    return f"search/day={day}/{build}".rstrip("/")


def publish_index(
    store: ObjectStore,
    day: str,
    articles: Iterable[SearchableArticle],
    *,
    inputs: str,
    now: datetime,
    keep_old: bool = True,
    before_commit: Callable[[], None] = lambda: None,
) -> IndexReport:
    """Build the index of a day and make it the one that readers open.

    Without `keep_old` all older builds are deleted at once, under readers that still have them.
    `before_commit` runs when all files are stored; if it raises, they are deleted again.
    """
    with tempfile.TemporaryDirectory(prefix="search-") as scratch:
        folder = Path(scratch)
        count = build_index(folder, articles)
        files = [path for path in sorted(folder.iterdir()) if path.name not in _LOCK_FILES]
        # tantivy names its files at random, so every build has a name of its own.
        build = fingerprint([inputs, *(path.name for path in files)])
        target = index_folder(day, build)
        with ThreadPoolExecutor(_CONCURRENT_TRANSFERS) as pool:
            for _ in pool.map(lambda path: store.put(f"{target}/{path.name}", path), files):
                pass
        report = IndexReport(count, len(files), sum(path.stat().st_size for path in files))
    try:
        before_commit()
    except Conflict:
        store.delete([f"{target}/{path.name}" for path in files])
        raise
    _commit(store, day, build, inputs=inputs, report=report)
    delete_old_builds(store, day, keep=build, before=now - _GRACE if keep_old else None)
    return report


def _commit(store: ObjectStore, day: str, build: str, *, inputs: str, report: IndexReport) -> None:
    fields = {"articles": report.articles, "files": report.files, "bytes": report.size_bytes}
    write_marker(store, DATASET, day, inputs=inputs, report=fields, scope=build)
    if len(list(store.list(index_folder(day, build)))) != report.files:
        # Another builder of this day, which removes old text at once, took this one for old.
        raise Conflict(f"the index of {day} was replaced while it was built: build it again")


def delete_old_builds(
    store: ObjectStore, day: str, *, keep: str | None, before: datetime | None
) -> None:
    """Delete the builds of a day other than `keep`; with `before` only those not changed since."""
    old: dict[str, list[ObjectInfo]] = {}
    for info in store.list(index_folder(day)):
        build = info.path.removeprefix(f"{index_folder(day)}/").partition("/")[0]
        if build != keep:
            old.setdefault(build, []).append(info)
    for files in old.values():
        if before is None or all(info.modified_at < before for info in files):
            store.delete([info.path for info in files])


def stored_builds(store: ObjectStore) -> list[tuple[str, str]]:
    """Return the day and the name of every build that lies under the root, also of old ones."""
    found = set()
    for info in store.list("search"):
        day, _, rest = info.path.removeprefix("search/day=").partition("/")
        found.add((day, rest.partition("/")[0]))
    return sorted(found)


def open_build(store: ObjectStore, day: str, build: str, folder: Path) -> IndexReader | None:
    """Copy one build to a new folder and open it; None if it is gone."""
    cache = IndexCache(store, folder, max_bytes=0)
    return cache.reader(Marker(day, "", "", "", 0, scope=build))


def cache_folder(store: ObjectStore, place: str | None) -> Path:
    """Return where this machine keeps copies of a root's indexes, by default in the home folder.

    Roots have a folder each: two may have an index of the same day.
    """
    given = Path(place) if place else Path.home() / ".cache" / "news-platform"
    return given / fingerprint([store.url])


def delete_old_copies(store: ObjectStore, folder: Path) -> int:
    """Delete the copies on this machine of builds that are no longer stored; return how many."""
    stored = {f"{day}-{build}" for day, build in stored_builds(store)}
    copies = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    gone = [path for path in copies if path.name not in stored]
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    return len(gone)


class IndexCache:
    """Open indexes by day, from copies in a folder of this machine.

    The copy of a local index consists of links: tantivy writes a lock beside the files it opens,
    and a reader writes nothing under the root. The oldest copies are deleted when all of them
    together exceed `max_bytes`.
    """

    def __init__(self, store: ObjectStore, folder: Path, *, max_bytes: int) -> None:
        self._store, self._folder, self._max_bytes = store, folder, max_bytes
        self._readers: dict[str, tuple[str, IndexReader]] = {}
        self.fetched_bytes = 0

    def days(self) -> dict[str, Marker]:
        """Return the markers of all days that have an index."""
        return read_markers(self._store, DATASET)

    def reader(self, marker: Marker) -> IndexReader | None:
        """Return the open index of a day, or None if that build is no longer stored."""
        build, reader = self._readers.get(marker.partition, ("", None))
        if reader is None or build != marker.scope:
            reader = self._open(marker)
            if reader is None:
                return None
            self._readers[marker.partition] = (marker.scope, reader)
        return reader

    def _open(self, marker: Marker) -> IndexReader | None:
        source = index_folder(marker.partition, marker.scope)
        copy = self._folder / f"{marker.partition}-{marker.scope}"
        if not copy.exists() and not self._fetch(source, copy):
            return None
        os.utime(copy)
        self._trim(keep=copy)
        return _opened(copy)

    def _fetch(self, source: str, copy: Path) -> bool:
        files = list(self._store.list(source))
        if not files:
            return False
        with _new_folder(copy) as part, ThreadPoolExecutor(_CONCURRENT_TRANSFERS) as pool:
            self.fetched_bytes += sum(pool.map(lambda info: self._copy(info, part), files))
        return True

    def _copy(self, info: ObjectInfo, folder: Path) -> int:
        """Link a local file, or download a remote one; return the bytes that were fetched."""
        local, target = self._store.local_folder, folder / info.path.rpartition("/")[2]
        if local is not None:
            target.symlink_to((local / info.path).absolute())
            return 0
        return _download(self._store, info, target)

    def _trim(self, *, keep: Path) -> None:
        # Names with a dot are copies that another process is making.
        copies = [path for path in self._folder.iterdir() if not path.name.startswith(".")]
        total = 0
        # Another process may delete a copy meanwhile.
        with suppress(FileNotFoundError):
            for copy in sorted(copies, key=lambda path: path.stat().st_mtime, reverse=True):
                total += sum(path.lstat().st_size for path in copy.iterdir())
                if total > self._max_bytes and copy != keep:
                    shutil.rmtree(copy, ignore_errors=True)


def read_current(cache: IndexCache, days: Callable[[str], bool]) -> Iterator[IndexReader]:
    """Yield the open indexes of the chosen days, newest first.

    A build that was replaced since it was listed is looked up once more.
    """
    markers = cache.days()
    for day in sorted(filter(days, markers), reverse=True):
        reader = cache.reader(markers[day])
        if reader is None:
            marker = cache.days().get(day)
            reader = cache.reader(marker) if marker is not None else None
        if reader is not None:
            yield reader


def _opened(folder: Path) -> IndexReader | None:
    try:
        return IndexReader(folder)
    except ValueError as error:
        if not all(path.exists() for path in folder.iterdir()):
            shutil.rmtree(folder, ignore_errors=True)
            return None  # links to a build that was deleted meanwhile
        message = (
            f"cannot open the search index {str(folder)!r}: delete its marker to build it again"
        )
        raise StorageError(message, thing=str(folder)) from error


def _download(store: ObjectStore, info: ObjectInfo, target: Path) -> int:
    with (
        store.stream(info.path, expected_size=info.size_bytes) as source,
        target.open("wb") as file,
    ):
        while piece := source.read(_COPY_BYTES):
            file.write(piece)
    return info.size_bytes


@contextmanager
def _new_folder(folder: Path) -> Iterator[Path]:
    """Yield a folder that gets its name when the block has succeeded."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    part = Path(tempfile.mkdtemp(dir=folder.parent, prefix="."))
    try:
        yield part
        # Another process may have fetched the same build meanwhile.
        if not folder.exists():
            part.rename(folder)
    finally:
        shutil.rmtree(part, ignore_errors=True)
