"""Build the indexes again that hold taken-down articles, and look into all stored indexes.

Deleting from an index leaves its words and facts in the files, so a new one takes its place and
the old files are deleted at once.
"""

import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import partial
from pathlib import Path

import polars as pl

from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.errors import StorageError
from news_platform.search.index import Hit
from news_platform.search.months import MONTHS_DATASET, build_month, month_of
from news_platform.search.pipeline import build_day
from news_platform.search.publish import (
    DATASET,
    IndexPlace,
    IndexReport,
    delete_old_builds,
    index_folder,
    is_month,
    place_of,
    stored_builds,
)
from news_platform.search.reading import open_build
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.evidence import StoredTraces
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import is_covered, may_be_covered


def takedown_parts(store: ObjectStore, *, now: datetime) -> list[TakedownPart]:
    """Return the part of the indexes, by day or month."""
    return [SimplePart(DATASET, partial(find_days, store), partial(clean_index, store, now))]


def find_days(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered articles by the days and months whose indexes may hold them."""
    found: Counter[str] = Counter()
    keys = {place.key for place in stored_builds(store)}
    for table in DELTA_TABLES:
        rows = DeltaDataset(store, table, STATISTICS_COLUMNS).scan()
        likely = rows.filter(may_be_covered("canonical_url", takedowns))
        chosen: pl.DataFrame = likely.select("day", "canonical_url").collect()
        gone = chosen.filter(is_covered(chosen["canonical_url"], takedowns))
        for day in gone["day"]:
            found.update(key for key in (day, month_of(day)) if key in keys)
    # An older build, or one whose builder died, may hold anything of its day or month.
    current = {place_of(marker) for marker in read_markers(store, DATASET).values()}
    for place in stored_builds(store):
        if takedowns and place not in current:
            found.setdefault(place.key, 0)
    return found


def clean_index(store: ObjectStore, now: datetime, key: str, takedowns: Takedowns) -> RemovedData:
    """Build the index of a day or a month again without covered articles; delete older builds."""
    before = _size(store, key)
    lost = _articles(store, key)
    report = _rebuilt(store, now, key, takedowns)
    left = report.articles if report is not None else 0
    after = _size(store, key)
    return RemovedData(max(0, lost - left), max(0, before - after), after)


def _rebuilt(
    store: ObjectStore, now: datetime, key: str, takedowns: Takedowns
) -> IndexReport | None:
    if is_month(key):
        return build_month(store, key, now=now, takedowns=takedowns, keep_old=False)
    marker = read_markers(store, DATASET).get(key)
    if marker is not None and place_of(marker).key != key:
        # The month has the day; what is left of the day's own index is not read any more.
        delete_old_builds(store, key, keep=None, before=None)
        return None
    return build_day(store, key, now=now, takedowns=takedowns, keep_old=False)


def verify_indexes(store: ObjectStore, evidence: StoredTraces) -> None:
    """Look at every article of every stored build; one that cannot be read may hold anything."""
    for place in stored_builds(store):
        try:
            _verify_build(store, place, evidence)
        except StorageError:
            folder = index_folder(place.key, place.build)
            evidence.find(folder, "an unfinished index, which cannot be read")


def _verify_build(store: ObjectStore, place: IndexPlace, evidence: StoredTraces) -> None:
    folder = index_folder(place.key, place.build)
    for hit in _hits(store, place):
        evidence.rows += 1
        for name in ("url", "canonical_url", "url_hash", "domain"):
            known_as = "url" if name == "canonical_url" else name
            evidence.check_field(folder, known_as, getattr(hit, name))


def _hits(store: ObjectStore, place: IndexPlace) -> Iterator[Hit]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reader = open_build(store, place, Path(folder) / "index")
        yield from reader.iter_articles() if reader is not None else ()


def _articles(store: ObjectStore, key: str) -> int:
    """Return how many articles the index of a day or a month has, by its marker."""
    marker = read_markers(store, MONTHS_DATASET if is_month(key) else DATASET).get(key)
    if marker is None or (not is_month(key) and place_of(marker).key != key):
        return 0
    return int(str(read_report(store, marker)["articles"]))


def _size(store: ObjectStore, key: str) -> int:
    return sum(info.size_bytes for info in store.list(index_folder(key)))
