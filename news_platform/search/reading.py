"""Open the indexes of days and months from copies on this machine, and read them as one."""

import errno
import os
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Self

from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.datasets.evidence import Evidence
from news_platform.errors import StorageError
from news_platform.isolation.boundary import panics_as
from news_platform.search.index import IndexReader, damaged_index
from news_platform.search.publish import (
    DATASET,
    GRACE,
    IndexPlace,
    index_folder,
    is_month,
    place_of,
    stored_builds,
)
from news_platform.search.query import AllOf, AnyOf, DayRange, Exact
from news_platform.storage.commit.markers import Marker, fingerprint, read_markers
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.storage.units import wanted_inputs

_CONCURRENT_TRANSFERS = 8
_OPEN_ATTEMPTS = 20
_COPY_BYTES = 4 * 1024 * 1024


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

    Indexes of a local root are copied, too: a process that has mapped a file is killed (SIGBUS)
    when somebody cuts it, tantivy writes a lock beside the files it opens, and a reader writes
    nothing under the root. The oldest copies are deleted when all of them together exceed
    `max_bytes`.
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
        for attempt in range(_OPEN_ATTEMPTS):
            is_kept = copy.exists()
            if not is_kept and not self._fetch(source, copy):
                return None
            # Another thread or process may have trimmed the copy meanwhile.
            with suppress(FileNotFoundError):
                os.utime(copy)
                try:
                    # Before trimming: an open index survives that its files are deleted.
                    reader = _opened(copy)
                except StorageError:
                    _remove_whole(copy)
                    if is_kept and not attempt:
                        continue  # only the copy may be damaged
                    raise
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
        try:
            with _new_folder(copy) as part, ThreadPoolExecutor(_CONCURRENT_TRANSFERS) as pool:
                fetched = pool.map(lambda info: _download(self._store, info, part), files)
                self.fetched_bytes += sum(fetched)
        except NotFound:
            return False  # the build was deleted meanwhile
        return True

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


def read_current(cache: IndexCache, markers: Mapping[str, Marker]) -> Iterator[IndexReader]:
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


def _restricted(place: IndexPlace, reader: IndexReader, days: Sequence[str]) -> IndexReader:
    return reader.within(AnyOf(tuple(day_ranges(days)))) if is_month(place.key) else reader


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


def _opened(folder: Path) -> IndexReader:
    """Open a copy; raise FileNotFoundError if it was deleted or replaced meanwhile."""
    number = folder.stat().st_ino
    try:
        with panics_as(ValueError):
            return IndexReader(folder)
    except ValueError as error:
        if folder.stat().st_ino != number:
            raise FileNotFoundError(str(folder)) from error
        raise damaged_index(folder.name, str(error)) from error


def _download(store: ObjectStore, info: ObjectInfo, folder: Path) -> int:
    with (
        store.stream(info.path, expected_size=info.size_bytes) as source,
        (folder / info.path.rpartition("/")[2]).open("wb") as file,
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


@dataclass(frozen=True, slots=True)
class IndexedDays:
    """The markers of the indexes by day, and what each should be built from."""

    markers: Mapping[str, Marker]
    wanted: Mapping[str, str]

    @classmethod
    def read(cls, store: ObjectStore, cache: IndexCache) -> Self:
        """Read what a root has at this moment."""
        return cls(cache.days(), wanted_inputs(store, SEARCH_INDEX))


def explain_indexes(
    known: IndexedDays, cache: IndexCache, days: Collection[str], hashes: Collection[str]
) -> Iterator[Evidence]:
    """Yield whether the index of each of these days has the article of one of these hashes."""
    is_one_of = AnyOf(tuple(Exact("url_hash", one) for one in hashes))
    for day in sorted(days, reverse=True):
        marker = known.markers.get(day)
        reader = cache.reader(place_of(marker)) if marker is not None else None
        if marker is None or reader is None:
            text = f"{day} has no search index yet: run `news-platform search --build`."
            yield Evidence(SEARCH_INDEX.name, "absent", text, details={"day": day})
            continue
        mine = AllOf((is_one_of, DayRange(day, day)))
        found = reader.search(mine, limit=1, newest_first=False)
        place, is_stale = place_of(marker), marker.inputs != known.wanted.get(day)
        late = "; the index is older than the day's articles" if is_stale else ""
        yield Evidence(
            SEARCH_INDEX.name,
            "indexed" if found.count else "missing",
            f"The search index of {place.key} {'has' if found.count else 'lacks'} the article of "
            f"{day}{late}.",
            source=index_folder(place.key, place.build),
            details={"day": day, "is_stale": str(is_stale).lower()},
        )
