"""Sketches of a day and of the days before it in, links between articles out.

Each article is linked to at most one earlier article: the one with the best score above a learned
threshold, if it is also similar enough to the first article of that story within the window. A
score depends on the two articles alone, so the links are the same in whatever order days arrive.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from news_platform.stories.similarity import Ints, Sketches, StoryModel
from news_platform.stories.terms import (
    IN_LEAD,
    IN_TITLE,
    KINDS,
    NUMBER,
    OFTEN_BITS,
    PLACE,
    WORD,
)

MOST_CANDIDATES = 10
# Terms by which an article is found, rare ones by the shipped table.
_SEARCHED_TERMS = 32
_LEAST_WEIGHT = 35
# Articles of one day that are found by one term: the newest. What more share is a template.
_MOST_BY_TERM = 48
# Two rare terms in common.
_LEAST_SHARED = 100
_ARTICLES_AT_ONCE = 2_000
_KIND = KINDS - 1

Place = tuple[int, int]
"""An article: the number of its day in the window, and its place in the sketches of that day."""


@dataclass(frozen=True, slots=True)
class Postings:
    """The terms that the articles of a day are found by, sorted; `places` beside the terms."""

    codes: npt.NDArray[np.uint64]
    weights: Ints

    @classmethod
    def of(cls, sketches: Sketches) -> "Postings":
        """Return the heaviest rare terms of each article."""
        kinds = sketches.marks & _KIND
        rare = np.isin(kinds, (WORD, NUMBER, PLACE)) & (sketches.weights >= _LEAST_WEIGHT)
        owners = np.repeat(np.arange(len(sketches.hours)), np.diff(sketches.starts))[rare]
        marks, keys = sketches.marks[rare], sketches.keys[rare]
        weights = sketches.weights[rare].astype(np.int64)
        # Words of the title and lead, and those that are repeated, say what an article is about.
        value = weights * (2 + (marks >> OFTEN_BITS).astype(np.int64))
        value += weights * 2 * ((marks & IN_LEAD > 0) + 2 * (marks & IN_TITLE > 0))
        order = np.lexsort((keys, -value, owners))
        owners, keys, weights = owners[order], keys[order], weights[order]
        firsts = np.searchsorted(owners, owners)
        kept = np.arange(len(owners)) - firsts < _SEARCHED_TERMS
        codes = (keys[kept].astype(np.uint64) << np.uint64(32)) | owners[kept].astype(np.uint64)
        order = np.argsort(codes)
        return cls(codes[order], weights[kept][order])


@dataclass(frozen=True, slots=True)
class Candidates:
    """Pairs of an article of the day and an earlier one, with the weight of their rare terms."""

    own: Ints
    days: Ints
    others: Ints
    shared: Ints

    def best(self) -> "Candidates":
        """Return at most MOST_CANDIDATES of each article: most shared, then the newest."""
        order = np.lexsort((-self.others, -self.days, -self.shared, self.own))
        own = self.own[order]
        kept = order[np.arange(len(own)) - np.searchsorted(own, own) < MOST_CANDIDATES]
        return self.chosen(kept)

    def chosen(self, places: Ints) -> "Candidates":
        """Return some of the pairs."""
        return Candidates(
            self.own[places], self.days[places], self.others[places], self.shared[places]
        )

    @classmethod
    def joined(cls, parts: Sequence["Candidates"]) -> "Candidates":
        """Return the pairs of several days."""
        return cls(
            *(
                np.concatenate([np.empty(0, np.int64), *(getattr(one, name) for one in parts)])
                for name in ("own", "days", "others", "shared")
            )
        )


def find_candidates(
    today: Postings, other: Postings, *, day: int, is_same_day: bool = False
) -> Candidates:
    """Return the best candidates that a day has for the articles of the last day.

    On the same day, only earlier articles are candidates.
    """
    owners = (today.codes & np.uint64(0xFFFFFFFF)).astype(np.int64)
    parts = []
    count = int(owners.max()) + 1 if len(owners) else 0
    for first in range(0, count, _ARTICLES_AT_ONCE):
        chosen = (owners >= first) & (owners < first + _ARTICLES_AT_ONCE)
        parts.append(
            _part_candidates(today.codes[chosen], today.weights[chosen], other, day, is_same_day)
        )
    return Candidates.joined(parts)


def _part_candidates(
    codes: npt.NDArray[np.uint64],
    weights: Ints,
    other: Postings,
    day: int,
    is_same_day: bool,
) -> Candidates:
    terms = codes & ~np.uint64(0xFFFFFFFF)
    begins = np.searchsorted(other.codes, terms)
    ends = np.searchsorted(other.codes, codes if is_same_day else terms | np.uint64(0xFFFFFFFF))
    begins = np.maximum(begins, ends - _MOST_BY_TERM)
    sizes = np.maximum(ends - begins, 0)
    owners = np.repeat((codes & np.uint64(0xFFFFFFFF)).astype(np.int64), sizes)
    places = np.arange(sizes.sum()) + np.repeat(begins - np.cumsum(sizes) + sizes, sizes)
    others = (other.codes[places] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    pairs, at = np.unique(owners << 32 | others, return_inverse=True)
    shared = np.bincount(at, np.repeat(weights, sizes), len(pairs)).astype(np.int64)
    found = Candidates(pairs >> 32, np.full(len(pairs), day), pairs & 0xFFFFFFFF, shared)
    return found.chosen(np.flatnonzero(shared >= _LEAST_SHARED)).best()


@dataclass(frozen=True, slots=True)
class Link:
    """The earlier article that an article continues, and their score."""

    to: Place
    score: int


ReadSketches = Callable[[], Sketches]
"""Reads the sketches of a day when they are needed: a window does not fit into memory."""


class Scorer:
    """Scores articles of the last day with earlier ones, each pair once, many at a time."""

    def __init__(self, model: StoryModel, days: Sequence[ReadSketches]) -> None:
        self._model, self._days = model, days
        self._known: dict[tuple[int, Place], int] = {}

    def score(self, pairs: Iterable[tuple[int, Place]]) -> None:
        """Score pairs, day by day, so that the terms of two days are in memory."""
        missing = sorted({pair for pair in pairs if pair not in self._known})
        today = self._days[-1]() if missing else None
        by_day: dict[int, list[tuple[int, Place]]] = {}
        for pair in missing:
            by_day.setdefault(pair[1][0], []).append(pair)
        for day, found in by_day.items():
            assert today is not None
            other = today if day == len(self._days) - 1 else self._days[day]()
            own = np.array([one for one, _ in found])
            theirs = np.array([place for _, (_, place) in found])
            scores = self._model.scores(today, own, other, theirs).tolist()
            self._known.update(zip(found, scores, strict=True))

    def get(self, own: int, other: Place) -> int | None:
        """Return the score of a pair; None if it was not scored yet."""
        return self._known.get((own, other))


def find_links(
    model: StoryModel,
    days: Sequence[ReadSketches],
    root_of: Callable[[Place], Place],
) -> Mapping[int, Link]:
    """Return the links of the articles of the last day, by their places.

    `root_of` returns the first article within the window of the story of an earlier article.
    """
    last = len(days) - 1
    today = Postings.of(days[last]())
    parts = [
        find_candidates(today, today, day=last, is_same_day=True)
        if day == last
        else find_candidates(today, Postings.of(days[day]()), day=day)
        for day in range(len(days))
    ]
    best = Candidates.joined(parts).best()
    scorer = Scorer(model, days)
    places = zip(best.days.tolist(), best.others.tolist(), strict=True)
    pairs = list(zip(best.own.tolist(), places, strict=True))
    scorer.score(pairs)
    ranked = _ranked(pairs, scorer, model.least_score)
    while True:
        links, missing = _resolve(ranked, scorer, root_of, last, model.least_root_score)
        if not missing:
            return links
        scorer.score(missing)


def _ranked(
    pairs: Iterable[tuple[int, Place]], scorer: Scorer, least: int
) -> Mapping[int, list[tuple[int, Place]]]:
    """Return the candidates of each article that reach the least score, best and newest first."""
    found: dict[int, list[tuple[int, Place]]] = {}
    for own, other in pairs:
        score = scorer.get(own, other)
        if score is not None and score >= least:
            found.setdefault(own, []).append((score, other))
    return {own: sorted(some, reverse=True) for own, some in sorted(found.items())}


def _resolve(
    ranked: Mapping[int, list[tuple[int, Place]]],
    scorer: Scorer,
    root_of: Callable[[Place], Place],
    last: int,
    least_root: int,
) -> tuple[Mapping[int, Link], list[tuple[int, Place]]]:
    """Return the links, or the pairs that must be scored before they are known.

    Articles are in order, so the roots of earlier ones are known, unless they wait for a score.
    """
    own_roots: dict[int, Place] = {}
    waiting: set[int] = set()
    links: dict[int, Link] = {}
    missing: list[tuple[int, Place]] = []
    for own, candidates in ranked.items():
        for score, other in candidates:
            if other[0] == last and other[1] in waiting:
                waiting.add(own)
                break
            root = own_roots.get(other[1], other) if other[0] == last else root_of(other)
            root_score = score if root == other else scorer.get(own, root)
            if root_score is None:
                missing.append((own, root))
                waiting.add(own)
                break
            if root_score >= least_root:
                links[own] = Link(other, score)
                own_roots[own] = root
                break
    return links, missing
