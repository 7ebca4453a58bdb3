"""The engine of the search index: an index that holds removed articles is built again.

Deleting from an index leaves its words and facts in the files, so a new one takes its place and
the old files are deleted at once.
"""

import tempfile
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

import polars as pl

from news_platform.datasets.corpus import DELTA_TABLES, SEARCH_INDEX
from news_platform.datasets.dataset import Dataset
from news_platform.search.index import Hit
from news_platform.search.pipeline import MONTHS_DATASET, build_day, build_month, month_of
from news_platform.search.publish import (
    DATASET,
    IndexPlace,
    delete_old_builds,
    index_folder,
    is_month,
    place_of,
    stored_builds,
)
from news_platform.search.reading import open_build
from news_platform.storage.commit.markers import delete_marker, read_markers, read_report
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.engines import RemovedRows, Target
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs


@dataclass(frozen=True, slots=True)
class IndexEngine:
    """The indexes of days and months; a unit is one of them."""

    store: ObjectStore
    now: datetime
    dataset: Dataset = SEARCH_INDEX

    def units(self) -> Mapping[str, str]:
        """Return the fingerprint that each day was indexed from."""
        return built_inputs(self.store, SEARCH_INDEX)

    def scan(self, units: Collection[str] | None = None) -> pl.LazyFrame:
        """Return the articles in the stored indexes of some days and months, or of all."""
        places = (one for one in stored_builds(self.store) if units is None or one.key in units)
        return pl.LazyFrame(
            [asdict(hit) for place in places for hit in iter_hits(self.store, place)]
        )

    def find(self, target: Target) -> Mapping[str, int]:
        """Return the articles by the days and months whose indexes may hold them, by the tables."""
        found: Counter[str] = Counter()
        builds = stored_builds(self.store)
        keys = {place.key for place in builds}
        for table in DELTA_TABLES:
            for day, rows in DeltaEngine(self.store, table).find(target).items():
                found.update({key: rows for key in (day, month_of(day)) if key in keys})
        # An older build, or one whose builder died, may hold anything of its day or month.
        current = {place_of(marker) for marker in read_markers(self.store, DATASET).values()}
        return {**{place.key: 0 for place in builds if place not in current}, **found}

    def remove_rows(self, unit: str, target: Target) -> RemovedRows:
        """Build the index again without what is taken down, and delete all its older builds."""
        before, held = self._size(unit), self._articles(unit)
        marker = read_markers(self.store, DATASET).get(unit)
        if not is_month(unit) and marker is not None and place_of(marker).key != unit:
            # The month has the day; what is left of the day's own index is not read any more.
            delete_old_builds(self.store, unit, keep=None, before=None)
        else:
            build = build_month if is_month(unit) else build_day
            if build(self.store, unit, now=self.now, keep_old=False) is None:
                self.delete([unit])
        return RemovedRows(max(0, held - self._articles(unit)), before, self._size(unit))

    def delete(self, units: Collection[str]) -> None:
        """Delete the indexes of days and months, and of the months of which no day is left."""
        for unit in units:
            self._delete(unit)
        left = set(map(month_of, read_markers(self.store, DATASET)))
        for month in sorted(set(map(month_of, units)) - left):
            self._delete(month)

    def _delete(self, unit: str) -> None:
        delete_marker(self.store, MONTHS_DATASET if is_month(unit) else DATASET, unit)
        delete_old_builds(self.store, unit, keep=None, before=None)

    def _articles(self, unit: str) -> int:
        """Return how many articles the index has, by its marker."""
        name = MONTHS_DATASET if is_month(unit) else DATASET
        marker = read_markers(self.store, name).get(unit)
        return int(str(read_report(self.store, marker)["articles"])) if marker is not None else 0

    def _size(self, unit: str) -> int:
        return sum(info.size_bytes for info in self.store.list(index_folder(unit)))


def iter_hits(store: ObjectStore, place: IndexPlace) -> Iterator[Hit]:
    """Yield every article of a stored build; raise StorageError if it cannot be read."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        reader = open_build(store, place, Path(folder) / "index")
        yield from reader.iter_articles() if reader is not None else ()
