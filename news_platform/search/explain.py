"""Explain whether the search finds an article, and which index has it."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Self

from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.datasets.evidence import Evidence
from news_platform.search.publish import index_folder, place_of
from news_platform.search.query import AllOf, AnyOf, DayRange, Exact
from news_platform.search.reading import IndexCache
from news_platform.storage.commit.markers import Marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs


def explain_index(
    store: ObjectStore, cache: IndexCache, days: Collection[str], hashes: Collection[str]
) -> Iterator[Evidence]:
    """Yield whether the index of each of these days has the article of one of these hashes."""
    yield from explain_known_indexes(IndexedDays.read(store, cache), cache, days, hashes)


@dataclass(frozen=True, slots=True)
class IndexedDays:
    """The markers of the indexes by day, and what each should be built from."""

    markers: Mapping[str, Marker]
    wanted: Mapping[str, str]

    @classmethod
    def read(cls, store: ObjectStore, cache: IndexCache) -> Self:
        """Read what a root has at this moment."""
        return cls(cache.days(), wanted_inputs(store, SEARCH_INDEX))


def explain_known_indexes(
    known: IndexedDays, cache: IndexCache, days: Collection[str], hashes: Collection[str]
) -> Iterator[Evidence]:
    """Yield the same from markers that were read before."""
    markers, wanted = known.markers, known.wanted
    is_one_of = AnyOf(tuple(Exact("url_hash", one) for one in hashes))
    for day in sorted(days, reverse=True):
        marker = markers.get(day)
        reader = cache.reader(place_of(marker)) if marker is not None else None
        if marker is None or reader is None:
            text = f"{day} has no search index yet: run `news-platform search --build`."
            yield Evidence(SEARCH_INDEX.name, "absent", text, details={"day": day})
            continue
        mine = AllOf((is_one_of, DayRange(day, day)))
        found = reader.search(mine, limit=1, newest_first=False)
        yield _indexed(
            marker, day, is_there=found.count > 0, is_stale=marker.inputs != wanted.get(day)
        )


def _indexed(marker: Marker, day: str, *, is_there: bool, is_stale: bool) -> Evidence:
    place = place_of(marker)
    late = "; the index is older than the day's articles" if is_stale else ""
    return Evidence(
        SEARCH_INDEX.name,
        "indexed" if is_there else "missing",
        f"The search index of {place.key} {'has' if is_there else 'lacks'} the article of "
        f"{day}{late}.",
        source=index_folder(place.key, place.build),
        details={"day": day, "is_stale": str(is_stale).lower()},
    )
