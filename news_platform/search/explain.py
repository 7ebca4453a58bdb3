"""Explain whether the search finds an article, and which index has it."""

from collections.abc import Collection, Iterator

from news_platform.datasets.evidence import Evidence
from news_platform.search.pipeline import wanted_days
from news_platform.search.query import AllOf, AnyOf, DayRange, Exact
from news_platform.search.reading import IndexCache
from news_platform.search.stored import index_folder, place_of
from news_platform.storage.objects.store import ObjectStore

ROOM = "search"


def explain_index(
    store: ObjectStore, cache: IndexCache, days: Collection[str], hashes: Collection[str]
) -> Iterator[Evidence]:
    """Yield whether the index of each of these days has the article of one of these hashes."""
    markers, wanted = cache.days(), wanted_days(store)
    is_one_of = AnyOf(tuple(Exact("url_hash", one) for one in hashes))
    for day in sorted(days, reverse=True):
        marker = markers.get(day)
        reader = cache.reader(place_of(marker)) if marker is not None else None
        if marker is None or reader is None:
            text = f"{day} has no search index yet: run `news-platform search --build`."
            yield Evidence(ROOM, "absent", text, details={"day": day})
            continue
        place = place_of(marker)
        mine = AllOf((is_one_of, DayRange(day, day)))
        found = reader.search(mine, limit=1, newest_first=False)
        is_stale = marker.inputs != wanted.get(day)
        late = "; the index is older than the day's articles" if is_stale else ""
        state = "indexed" if found.count else "missing"
        verb = "has" if found.count else "lacks"
        yield Evidence(
            ROOM,
            state,
            f"The search index of {place.key} {verb} the article of {day}{late}.",
            source=index_folder(place.key, place.build),
            details={"day": day, "is_stale": str(is_stale).lower()},
        )
