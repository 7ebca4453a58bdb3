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
from news_platform.search.index import Hit, IndexReader
from news_platform.search.pipeline import build_day
from news_platform.search.stored import DATASET, index_folder, open_build, stored_builds
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.evidence import StoredTraces
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import is_covered, may_be_covered


def takedown_parts(store: ObjectStore, *, now: datetime) -> list[TakedownPart]:
    """Return the part of the indexes, by day."""
    return [SimplePart(DATASET, partial(find_days, store), partial(clean_day, store, now))]


def find_days(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered articles by day, as the tables have them that indexes are built from."""
    found: Counter[str] = Counter()
    days = {day for day, _ in stored_builds(store)}
    for table in DELTA_TABLES:
        rows = DeltaDataset(store, table, STATISTICS_COLUMNS).scan()
        likely = rows.filter(may_be_covered("canonical_url", takedowns))
        chosen: pl.DataFrame = likely.select("day", "canonical_url").collect()
        gone = chosen.filter(is_covered(chosen["canonical_url"], takedowns))
        found.update(day for day in gone["day"] if day in days)
    return found


def clean_day(store: ObjectStore, now: datetime, day: str, takedowns: Takedowns) -> RemovedData:
    """Build the index of a day again without covered articles, and delete all older builds."""
    before = _size(store, day)
    lost = _articles(store, day)
    report = build_day(store, day, now=now, takedowns=takedowns, keep_old=False)
    left = report.articles if report is not None else 0
    after = _size(store, day)
    return RemovedData(max(0, lost - left), max(0, before - after), after)


def verify_indexes(store: ObjectStore, evidence: StoredTraces) -> None:
    """Look at every article of every stored build."""
    for day, build in stored_builds(store):
        place = index_folder(day, build)
        for hit in _hits(store, day, build):
            evidence.rows += 1
            for name in ("url", "canonical_url", "url_hash", "domain"):
                known_as = "url" if name == "canonical_url" else name
                evidence.check_field(place, known_as, getattr(hit, name))


def _hits(store: ObjectStore, day: str, build: str) -> Iterator[Hit]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reader = open_build(store, day, build, Path(folder) / "index")
        yield from reader.iter_articles() if reader is not None else ()


def _articles(store: ObjectStore, day: str) -> int:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        readers: list[IndexReader | None] = [
            open_build(store, day, build, Path(folder) / build)
            for one, build in stored_builds(store)
            if one == day
        ]
        return max((len(reader) for reader in readers if reader is not None), default=0)


def _size(store: ObjectStore, day: str) -> int:
    return sum(info.size_bytes for info in store.list(index_folder(day)))
