"""Publish the index of a day or a month under the root, and open it from a local cache.

An index lies in `search/day=YYYY-MM-DD/<build>/` or `search/month=YYYY-MM/<build>/`, and the marker
of each day names the build that has its articles. Every build has a folder of its own, so that
readers of the old one are not disturbed; the folder of an older build is deleted later, or at once
if its text must go.
"""

import errno
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from pathlib import Path

from news_platform.datasets.search_index import SEARCH_INDEX
from news_platform.errors import Conflict, StorageError
from news_platform.search.index import IndexAnswer, IndexReader, SearchableArticle, build_index
from news_platform.search.query import AllOf, AnyOf, Condition, DayRange
from news_platform.storage.commit.markers import Marker, fingerprint, read_markers, write_marker
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

DATASET = SEARCH_INDEX.name
ROOT = "search"
_JOINS = "_"
# A reader that has listed a build opens it within this time.
GRACE = timedelta(hours=1)
_CONCURRENT_TRANSFERS = 8
_OPEN_ATTEMPTS = 20
_COPY_BYTES = 4 * 1024 * 1024
# The lock of a writer; nobody writes to a published index.
_LOCK_FILES = (".tantivy-writer.lock", ".tantivy-meta.lock", ".managed.json")


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one build of a day wrote."""

    articles: int
    files: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class IndexPlace:
    """A build of the index of a day, `2025-11-01`, or of a month, `2025-11`."""

    key: str
    build: str

    @property
    def scope(self) -> str:
        """Return what the marker of a day says about it."""
        return f"{self.key}{_JOINS}{self.build}" if is_month(self.key) else self.build


def place_of(marker: Marker) -> IndexPlace:
    """Return the build that the marker of a day names."""
    month, _, build = marker.scope.rpartition(_JOINS)
    return IndexPlace(month or marker.partition, build)


def is_month(key: str) -> bool:
    """Return whether a key names a month, not a day."""
    return len(key) == len("2025-11")


def index_folder(key: str, build: str = "") -> str:
    """Return the folder of all builds of a day or a month, or of one of them."""
    return f"{ROOT}/{'month' if is_month(key) else 'day'}={key}/{build}".rstrip("/")


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
    """
    place, report = upload_index(store, day, articles, inputs=inputs, before_commit=before_commit)
    point_day(store, day, place, inputs=inputs, report=report)
    require_complete(store, place, report)
    delete_old_builds(store, day, keep=place.build, before=now - GRACE if keep_old else None)
    return report


def upload_index(
    store: ObjectStore,
    key: str,
    articles: Iterable[SearchableArticle],
    *,
    inputs: str,
    before_commit: Callable[[], None] = lambda: None,
) -> tuple[IndexPlace, IndexReport]:
    """Build the index of a day or a month and put its files under the root; no reader sees it.

    `before_commit` runs when all files are stored; if it raises Conflict, they are deleted again.
    """
    with tempfile.TemporaryDirectory(prefix="search-") as scratch:
        folder = Path(scratch)
        count = build_index(folder, articles)
        files = [path for path in sorted(folder.iterdir()) if path.name not in _LOCK_FILES]
        # tantivy names its files at random, so every build has a name of its own.
        place = IndexPlace(key, fingerprint([inputs, *(path.name for path in files)]))
        target = index_folder(place.key, place.build)
        with ThreadPoolExecutor(_CONCURRENT_TRANSFERS) as pool:
            for _ in pool.map(lambda path: store.put(f"{target}/{path.name}", path), files):
                pass
        report = IndexReport(count, len(files), sum(path.stat().st_size for path in files))
    try:
        before_commit()
    except Conflict:
        store.delete([f"{target}/{path.name}" for path in files])
        raise
    return place, report


def point_day(
    store: ObjectStore, day: str, place: IndexPlace, *, inputs: str, report: IndexReport
) -> None:
    """Make a build the one in which readers find a day; `report` counts the day's articles."""
    fields = {"articles": report.articles, "files": report.files, "bytes": report.size_bytes}
    write_marker(store, DATASET, day, inputs=inputs, report=fields, scope=place.scope)


def require_complete(store: ObjectStore, place: IndexPlace, report: IndexReport) -> None:
    """Raise Conflict if another builder, which removes old text at once, took this for old."""
    if len(list(store.list(index_folder(place.key, place.build)))) != report.files:
        raise Conflict(f"the index of {place.key} was replaced while it was built: build it again")


def delete_old_builds(
    store: ObjectStore, key: str, *, keep: str | None, before: datetime | None
) -> None:
    """Delete the builds of a day or a month other than `keep`.

    With `before` only those whose files have not changed since.
    """
    _delete(store, index_folder(key), before, keep=lambda place: place.build == keep)


def delete_unused_builds(store: ObjectStore, *, now: datetime) -> int:
    """Delete every build that no marker names and that readers have had time to leave."""
    used = {place_of(marker) for marker in read_markers(store, DATASET).values()}
    return _delete(store, ROOT, now - GRACE, keep=lambda place: place in used)


def _delete(
    store: ObjectStore, folder: str, before: datetime | None, *, keep: Callable[[IndexPlace], bool]
) -> int:
    old: dict[IndexPlace, list[ObjectInfo]] = {}
    for info in store.list(folder):
        place = _place_of_file(info.path)
        if not keep(place):
            old.setdefault(place, []).append(info)
    gone = [
        files
        for files in old.values()
        if before is None or all(info.modified_at < before for info in files)
    ]
    for files in gone:
        store.delete([info.path for info in files])
    return len(gone)


def stored_builds(store: ObjectStore) -> list[IndexPlace]:
    """Return every build that lies under the root, also old ones."""
    found = {_place_of_file(info.path) for info in store.list(ROOT)}
    return sorted(found, key=lambda place: (place.key, place.build))


def _place_of_file(path: str) -> IndexPlace:
    key, _, rest = path.removeprefix(f"{ROOT}/").partition("=")[2].partition("/")
    return IndexPlace(key, rest.partition("/")[0])


def open_build(store: ObjectStore, place: IndexPlace, folder: Path) -> IndexReader | None:
    """Copy one build to a new folder and open it; None if it is gone."""
    return IndexCache(store, folder, max_bytes=0).reader(place)


def cache_folder(store: ObjectStore, place: str | None) -> Path:
    """Return where this machine keeps copies of a root's indexes, by default in the home folder.

    Roots have a folder each: two may have an index of the same day.
    """
    given = Path(place) if place else Path.home() / ".cache" / "news-platform"
    return given / fingerprint([store.url])


def delete_old_copies(store: ObjectStore, folder: Path) -> int:
    """Delete the copies on this machine of builds that are no longer stored; return how many."""
    stored = {f"{place.key}-{place.build}" for place in stored_builds(store)}
    copies = [path for path in folder.iterdir() if path.is_dir()] if folder.is_dir() else []
    gone = [path for path in copies if path.name not in stored]
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    return len(gone)


class IndexCache:
    """Open the indexes of days and months, from copies in a folder of this machine.

    The copy of a local index consists of links: tantivy writes a lock beside the files it opens,
    and a reader writes nothing under the root. The oldest copies are deleted when all of them
    together exceed `max_bytes`.
    """

    def __init__(self, store: ObjectStore, folder: Path, *, max_bytes: int) -> None:
        self._store, self._folder, self._max_bytes = store, folder, max_bytes
        self._readers: dict[str, tuple[str, IndexReader]] = {}
        self._opening = threading.Lock()
        self.fetched_bytes = 0

    def days(self) -> dict[str, Marker]:
        """Return the markers of all days that have an index."""
        return read_markers(self._store, DATASET)

    def reader(self, place: IndexPlace) -> IndexReader | None:
        """Return an open index, or None if that build is no longer stored."""
        reader = self._known(place)
        if reader is not None:
            return reader
        # The threads of a server need the same build at the same moment, and copy it once.
        with self._opening:
            reader = self._known(place)
            if reader is None:  # not `or`: an index of no articles is false
                reader = self._open(place)
            if reader is not None:
                self._readers[place.key] = (place.build, reader)
            return reader

    def _known(self, place: IndexPlace) -> IndexReader | None:
        build, reader = self._readers.get(place.key, ("", None))
        return reader if build == place.build else None

    def _open(self, place: IndexPlace) -> IndexReader | None:
        source = index_folder(place.key, place.build)
        copy = self._folder / f"{place.key}-{place.build}"
        for _ in range(_OPEN_ATTEMPTS):
            if not copy.exists() and not self._fetch(source, copy):
                return None
            # Another thread or process may have trimmed the copy meanwhile.
            with suppress(FileNotFoundError):
                os.utime(copy)
                # Before trimming: an open index survives that its files are deleted.
                reader = _opened(copy)
                self._trim(keep=copy)
                return reader
        raise StorageError(
            f"the copy {str(copy)!r} of a search index is deleted again and again: raise "
            "NEWS_PLATFORM_SEARCH_CACHE_MB",
            thing=str(copy),
        )

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
        """Delete the oldest copies above the limit, and what killed processes left behind."""
        total, left_since = 0, time.time() - GRACE.total_seconds()
        # Another thread or process may delete a copy meanwhile.
        with suppress(FileNotFoundError):
            for copy in sorted(self._folder.iterdir(), key=_modified_at, reverse=True):
                # Names with a dot are copies that somebody makes or deletes.
                if copy.name.startswith("."):
                    if _modified_at(copy) < left_since:
                        shutil.rmtree(copy, ignore_errors=True)
                    continue
                total += sum(path.lstat().st_size for path in copy.iterdir())
                if total > self._max_bytes and copy != keep:
                    _remove_whole(copy)


def _modified_at(path: Path) -> float:
    return path.stat().st_mtime


def _remove_whole(copy: Path) -> None:
    """Delete a copy; nobody sees a part of it under its name."""
    aside = copy.with_name(f".{copy.name}-{uuid.uuid4().hex[:8]}")
    with suppress(OSError):  # somebody else was faster
        copy.rename(aside)
    shutil.rmtree(aside, ignore_errors=True)


@dataclass(frozen=True, slots=True)
class DaysOfIndex:
    """An open index of which only some days count; the others have a newer index of their own."""

    reader: IndexReader
    days: Condition

    def __len__(self) -> int:
        return self.reader.search(self.days, limit=1, newest_first=False).count

    def search(self, condition: Condition, *, limit: int, newest_first: bool) -> IndexAnswer:
        """Return the best or the newest hits of the days that count."""
        wanted = AllOf((condition, self.days))
        return self.reader.search(wanted, limit=limit, newest_first=newest_first)

    def facets(self, condition: Condition, field: str) -> dict[str, int]:
        """Return how many matching articles of these days each value of a field has."""
        return self.reader.facets(AllOf((condition, self.days)), field)


def read_current(
    cache: IndexCache, markers: Mapping[str, Marker]
) -> Iterator[IndexReader | DaysOfIndex]:
    """Yield the open indexes of the days of these markers, newest first.

    A build that was replaced since it was listed is looked up once more.
    """
    for place, days in _places(markers).items():
        if (reader := cache.reader(place)) is not None:
            yield _restricted(place, reader, days)
            continue
        now = cache.days()
        for newer, left in _places({day: now[day] for day in days if day in now}).items():
            if (reader := cache.reader(newer)) is not None:
                yield _restricted(newer, reader, left)


def _places(markers: Mapping[str, Marker]) -> dict[IndexPlace, list[str]]:
    """Return the builds that have these days, each with its days, newest first."""
    found: dict[IndexPlace, list[str]] = {}
    for day in sorted(markers, reverse=True):
        found.setdefault(place_of(markers[day]), []).append(day)
    return found


def _restricted(
    place: IndexPlace, reader: IndexReader, days: Sequence[str]
) -> IndexReader | DaysOfIndex:
    if not is_month(place.key):
        return reader
    return DaysOfIndex(reader, AnyOf(tuple(day_ranges(days))))


def day_ranges(days: Iterable[str]) -> Iterator[DayRange]:
    """Yield the runs of days that follow each other, oldest first."""
    first = last = None
    for day in sorted(map(date.fromisoformat, days)):
        if first is not None and last is not None and day != last + timedelta(days=1):
            yield DayRange(first.isoformat(), last.isoformat())
            first = None
        first, last = first or day, day
    if first is not None and last is not None:
        yield DayRange(first.isoformat(), last.isoformat())


def _opened(folder: Path) -> IndexReader | None:
    """Open a copy; raise FileNotFoundError if it was deleted or replaced meanwhile."""
    number = folder.stat().st_ino
    try:
        return IndexReader(folder)
    except ValueError as error:
        if folder.stat().st_ino != number:
            raise FileNotFoundError(str(folder)) from error
        if not all(path.exists() for path in folder.iterdir()):
            _remove_whole(folder)
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
        try:
            part.rename(folder)
        except OSError as error:
            # Another process has fetched the same build meanwhile.
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
    finally:
        shutil.rmtree(part, ignore_errors=True)
