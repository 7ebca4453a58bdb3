"""Answer a search over the indexes of many days: one order, facets, counts over time.

Every index scores by BM25 with the statistics of its own day or month, so a rare word of one may
weigh more than in another. Hits of equal score keep the order of the indexes, newest first, and of
the articles in them, so that the order is the same in every answer.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from news_platform.errors import InputError
from news_platform.search.index import OTHER, Hit, IndexReader, RankedHit
from news_platform.search.query import AllOf, AnyOf, Condition, DayRange, Exact, parse_query
from news_platform.web.urls import plain_host

FACETS = ("domain", "language", "day")
MAX_LIMIT = 10_000
# Hits of the same cluster are left out and must be replaced: fetch this many times the wanted hits
# first, and as many times more as long as they do not suffice.
_CLUSTER_FACTOR = 4


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """What to return of the articles that match a query."""

    first_day: str = ""
    last_day: str = ""
    languages: tuple[str, ...] = ()
    domains: tuple[str, ...] = ()
    newest_first: bool = False
    limit: int = 10
    offset: int = 0
    facets: tuple[str, ...] = ()
    one_per_cluster: bool = False


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The requested hits, how many match in all, and the facets of all that match."""

    hits: tuple[Hit, ...]
    count: int
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


ClustersOf = Callable[[Sequence[Hit]], Sequence[str | None]]
"""From hits to their clusters, None for an article without one."""


def condition_of(query: str, options: SearchOptions) -> Condition:
    """Return the conditions of a query and its filters."""
    parts: list[Condition] = [parse_query(query)]
    if options.first_day or options.last_day:
        parts.append(DayRange(options.first_day or "0001-01-01", options.last_day or "9999-12-31"))
    for name, values in (("language", options.languages), ("domain", options.domains)):
        if values:
            parts.append(AnyOf(tuple(Exact(name, plain_host(value)) for value in values)))
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def search(
    readers: Iterable[IndexReader],
    condition: Condition,
    options: SearchOptions,
    *,
    clusters_of: ClustersOf | None = None,
) -> SearchAnswer:
    """Search all indexes; with `clusters_of`, return only the first hit of each cluster.

    The count and the facets are those of all articles that match, whatever their clusters.
    """
    needed = options.offset + options.limit
    if options.limit < 1 or options.offset < 0 or needed > MAX_LIMIT:
        raise InputError(
            f"invalid limit {options.limit} or offset {options.offset}: expected at "
            f"least 1 and 0, and at most {MAX_LIMIT} together"
        )
    opened = list(readers)
    if clusters_of is None:
        hits, count = _best(opened, condition, options, needed)
    else:
        hits, count = _best_clusters(opened, condition, options, clusters_of)
    facets = {name: _facet(opened, condition, name) for name in options.facets}
    return SearchAnswer(tuple(hits[options.offset : needed]), count, facets)


def _best(
    readers: Sequence[IndexReader], condition: Condition, options: SearchOptions, limit: int
) -> tuple[list[Hit], int]:
    """Return the first hits of all indexes together, and how many articles match."""
    ranked: list[RankedHit] = []
    count = 0
    for reader in readers:
        answer = reader.search(condition, limit=limit, newest_first=options.newest_first)
        ranked += answer.ranked
        count += answer.count
    # Stable: each index has cut its hits of equal score in this order, too. Only those that remain
    # are read.
    ranked.sort(key=lambda one: -one.order)
    return [one.read() for one in ranked[:limit]], count


def _best_clusters(
    readers: Sequence[IndexReader],
    condition: Condition,
    options: SearchOptions,
    clusters_of: ClustersOf,
) -> tuple[list[Hit], int]:
    """Return the first hit of each cluster, from as many hits as that takes."""
    needed = options.offset + options.limit
    fetched = needed
    while True:
        fetched = min(fetched * _CLUSTER_FACTOR, MAX_LIMIT)
        hits, count = _best(readers, condition, options, fetched)
        first = _one_per_cluster(hits, clusters_of)
        if len(first) >= needed or len(hits) >= count or fetched == MAX_LIMIT:
            return first, count


def _facet(readers: Iterable[IndexReader], condition: Condition, name: str) -> dict[str, int]:
    values = Counter[str]()
    for reader in readers:
        values.update(reader.facets(condition, name))
    return cut_facet(values, len(values))


def cut_facet(values: Mapping[str, int], most: int) -> dict[str, int]:
    """Return so many of the most frequent values, and how many articles have others, last."""
    named = sorted((one for one in values.items() if one[0] != OTHER), key=lambda one: -one[1])
    other = values.get(OTHER, 0) + sum(count for _, count in named[most:])
    return dict(named[:most]) | ({OTHER: other} if other else {})


def _one_per_cluster(hits: Sequence[Hit], clusters_of: ClustersOf) -> list[Hit]:
    first: dict[str, Hit] = {}
    for hit, cluster in zip(hits, clusters_of(hits), strict=True):
        first.setdefault(cluster or hit.url_hash, hit)
    return list(first.values())
