"""Publish the index of a day or a month under the root.

An index lies in `search/day=YYYY-MM-DD/<build>/` or `search/month=YYYY-MM/<build>/`, and the marker
of each day names the build that has its articles. Every build has a folder of its own, so that
readers of the old one are not disturbed; the folder of an older build is deleted later, or at once
if its text must go.
"""

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.errors import Conflict
from news_platform.search.index import SearchableArticle, build_index
from news_platform.storage.commit.markers import Marker, fingerprint, read_markers, write_marker
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

DATASET = SEARCH_INDEX.name
ROOT = "search"
_JOINS = "_"
# A reader that has listed a build opens it within this time.
GRACE = timedelta(hours=1)
_CONCURRENT_TRANSFERS = 8
# The lock of a writer; nobody writes to a published index.
_LOCK_FILES = (".tantivy-writer.lock", ".tantivy-meta.lock", ".managed.json")


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What one build of a day wrote."""

    articles: int
    files: int
    size_bytes: int

    def as_fields(self) -> dict[str, object]:
        """Return the report of a marker."""
        return {"articles": self.articles, "files": self.files, "bytes": self.size_bytes}


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
    write_marker(store, DATASET, day, inputs=inputs, report=report.as_fields(), scope=place.scope)


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
