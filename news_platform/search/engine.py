"""Answer a search over the indexes of many days: one order, facets, counts over time.

Every index scores by BM25 with the statistics of its own day or month, so a rare word of one may
weigh more than in another. Hits of equal score keep the order of the indexes, newest first, and of
the articles in them, so that the order is the same in every answer.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from news_platform.errors import InputError
from news_platform.search.index import Hit, IndexAnswer
from news_platform.search.query import AllOf, AnyOf, Condition, DayRange, Exact, parse_query

FACETS = ("domain", "language", "day")
MAX_LIMIT = 10_000
# The articles of one cluster that are left out must be replaced by others.
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


@dataclass(frozen=True, slots=True)
class SearchAnswer:
    """The hits that were asked for, how many match in all, and the facets of all that match."""

    hits: tuple[Hit, ...]
    count: int
    facets: Mapping[str, Mapping[str, int]] = field(default_factory=dict)


class SearchableIndex(Protocol):
    """One open index, or some days of it."""

    def search(self, condition: Condition, *, limit: int, newest_first: bool) -> IndexAnswer:
        """Return the best or the newest hits."""
        ...

    def facets(self, condition: Condition, field: str) -> Mapping[str, int]:
        """Return how many matching articles each value of a field has."""
        ...


ClustersOf = Callable[[Sequence[str]], Mapping[str, str]]
"""From URL hashes to cluster ids; an article without a cluster is missing."""


def condition_of(query: str, options: SearchOptions) -> Condition:
    """Return the conditions of a query and its filters."""
    parts: list[Condition] = [parse_query(query)]
    if options.first_day or options.last_day:
        parts.append(DayRange(options.first_day or "0001-01-01", options.last_day or "9999-12-31"))
    for name, values in (("language", options.languages), ("domain", options.domains)):
        if values:
            parts.append(AnyOf(tuple(Exact(name, value.lower()) for value in values)))
    return parts[0] if len(parts) == 1 else AllOf(tuple(parts))


def search(
    readers: Iterable[SearchableIndex],
    condition: Condition,
    options: SearchOptions,
    *,
    clusters_of: ClustersOf | None = None,
) -> SearchAnswer:
    """Search all indexes; with `clusters_of`, return only the first hit of each cluster."""
    needed = options.offset + options.limit
    if options.limit < 1 or options.offset < 0 or needed > MAX_LIMIT:
        raise InputError(
            f"invalid limit {options.limit} or offset {options.offset}: expected at "
            f"least 1 and 0, and at most {MAX_LIMIT} together"
        )
    fetched = needed * (_CLUSTER_FACTOR if clusters_of else 1)
    hits: list[Hit] = []
    count, facets = 0, {name: Counter[str]() for name in options.facets}
    for reader in readers:
        answer = reader.search(condition, limit=fetched, newest_first=options.newest_first)
        hits += answer.hits
        count += answer.count
        for name, values in facets.items():
            values.update(reader.facets(condition, name))
    # Stable: each index has cut its hits of equal score in this order, too.
    hits.sort(key=lambda hit: _order(hit, options.newest_first))
    if clusters_of is not None:
        hits = _one_per_cluster(hits[:fetched], clusters_of)
    shown = {name: dict(values.most_common()) for name, values in facets.items()}
    return SearchAnswer(tuple(hits[options.offset : needed]), count, shown)


def _order(hit: Hit, newest_first: bool) -> float:
    return -hit.at.timestamp() if newest_first else -hit.score


def _one_per_cluster(hits: Sequence[Hit], clusters_of: ClustersOf) -> list[Hit]:
    clusters = clusters_of([hit.url_hash for hit in hits])
    first: dict[str, Hit] = {}
    for hit in hits:
        first.setdefault(clusters.get(hit.url_hash, hit.url_hash), hit)
    return list(first.values())
