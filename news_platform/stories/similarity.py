"""Pairs of articles in, the numbers that say how alike they are out, and the learned score.

All numbers are whole, so that the same two articles get the same score on every machine. They are
symmetric: the order of a pair does not matter. The trees are learned from rated pairs by
`benchmarks/train_stories.py`.
"""

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from news_platform.articles.block_model import SCORE_UNIT, Trees, parse_trees
from news_platform.stories.terms import (
    DATE,
    IN_LEAD,
    IN_TITLE,
    IS_NAME,
    KINDS,
    NOTION,
    NUMBER,
    OFTEN_BITS,
    PLACE,
    WHOLE,
    WORD,
    Terms,
)

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
UNKNOWN = -1
"""The value of a number that a pair does not have."""
# Ratings are from 0 (unrelated) to 3 (the same); scores from 0 to 1,000.
BEST_RATING = 3
BEST_SCORE = 1_000
_KIND = KINDS - 1
_OFTEN = 2 << OFTEN_BITS
_RARE = 50
_MOST_HOURS = 24 * 60
# Few enough for the memory of a small machine: 1,000 pairs have half a million terms.
_PAIRS_AT_ONCE = 1_000
# What a word counts that occurs once, twice, up to four times and more often.
_TIMES = np.array([10, 17, 24, 32], dtype=np.int64)

_SHARES = ("dice", "held", "least", "most")
# Names, numbers, places, notions and dates together: what languages have in common.
_ANCHOR = KINDS
_IS_ANCHOR = np.isin(np.arange(KINDS), (NUMBER, PLACE, NOTION, DATE))
# The kind of terms, the bits of their marks, and which shares are measured: of both articles, of
# the smaller one, and of one part in the whole other article.
_FIELDS: Mapping[str, tuple[int, int, tuple[str, ...]]] = {
    "words": (WORD, 0, ("dice",)),
    "title": (WORD, IN_TITLE, _SHARES),
    "lead": (WORD, IN_LEAD, ("held", "least", "most")),
    "names": (WORD, IS_NAME, _SHARES),
    "often": (WORD, _OFTEN, ("dice", "least", "most")),
    "whole": (WHOLE, 0, ("dice", "held")),
    "whole_lead": (WHOLE, IN_LEAD, ("least", "most")),
    "numbers": (NUMBER, 0, ("dice", "held")),
    "lead_numbers": (NUMBER, IN_LEAD, ("dice",)),
    "anchors": (_ANCHOR, 0, ("dice", "held", "least")),
    "lead_anchors": (_ANCHOR, IN_LEAD, ("dice", "held")),
    "dates": (DATE, 0, ("dice", "held")),
    "places": (PLACE, 0, ("dice", "held")),
    "lead_places": (PLACE, IN_LEAD, ("dice",)),
    "notions": (NOTION, 0, ("dice", "held")),
    "lead_notions": (NOTION, IN_LEAD, ("dice", "held")),
    "title_notions": (NOTION, IN_TITLE, ("held", "least", "most")),
}
FEATURES = (
    *(f"{name}_{share}" for name, (_, _, shares) in _FIELDS.items() for share in shares),
    "words_cosine",
    "often_cosine",
    "names_cosine",
    "shared_anchors",
    "rare",
    "rare_names",
    "hours",
    "same_language",
    "same_host",
    "least_words",
    "size_ratio",
)
"""The numbers of a pair, in the order in which the trees know them."""
RISING = frozenset(FEATURES) - {"hours", *FEATURES[-4:]}
"""The numbers of which more never lowers the score; more `hours` never raise it."""
GROUPS: Mapping[str, tuple[int, ...]] = {
    "words": (WORD, WHOLE),
    "numbers": (NUMBER, DATE),
    "places": (PLACE,),
    "notions": (NOTION,),
}
"""What `explain` takes away from a pair to measure its share in the score."""


@dataclass(frozen=True, slots=True)
class Sketches:
    """The terms of many articles one after the other; the terms of one begin at its `starts`."""

    keys: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.uint8]
    marks: npt.NDArray[np.uint8]
    starts: Ints
    languages: npt.NDArray[np.str_]
    hosts: npt.NDArray[np.str_]
    hours: Ints

    @classmethod
    def of(
        cls,
        terms: Sequence[Terms],
        languages: Sequence[str],
        hosts: Sequence[str],
        hours: Sequence[int],
    ) -> "Sketches":
        """Return the sketches of articles; an hour is UNKNOWN where no time is stated."""
        return cls(
            np.concatenate([np.empty(0, np.uint32), *(one.keys for one in terms)]),
            np.concatenate([np.empty(0, np.uint8), *(one.weights for one in terms)]),
            np.concatenate([np.empty(0, np.uint8), *(one.marks for one in terms)]),
            np.cumsum([0, *(len(one.keys) for one in terms)]).astype(np.int64),
            np.array(languages, dtype=np.str_),
            np.array(hosts, dtype=np.str_),
            np.array(hours, dtype=np.int64),
        )

    def without(self, kinds: Collection[int]) -> "Sketches":
        """Return the same articles without the terms of some kinds."""
        kept = ~np.isin(self.marks & _KIND, list(kinds))
        starts = np.concatenate(([0], np.cumsum(kept)))[self.starts]
        arrays = (self.keys[kept], self.weights[kept], self.marks[kept])
        return Sketches(*arrays, starts, self.languages, self.hosts, self.hours)


def pair_features(left: Sketches, own: Ints, right: Sketches, other: Ints) -> npt.NDArray[np.int64]:
    """Return FEATURES of pairs: articles of `left` by number, each with one of `right`."""
    return np.stack(list(_Pairs(left, own, right, other).features().values()), axis=1)


class _Side:
    """The terms of one article of every pair; `keys` are sorted by pair, then by term."""

    def __init__(self, sketches: Sketches, articles: Ints) -> None:
        starts, sizes = sketches.starts[articles], np.diff(sketches.starts)[articles]
        self._count = len(articles)
        self.pairs = np.repeat(np.arange(self._count), sizes)
        ends = np.cumsum(sizes)
        places = np.arange(sizes.sum()) + np.repeat(starts - ends + sizes, sizes)
        self.keys = (self.pairs.astype(np.uint64) << np.uint64(32)) | sketches.keys[places]
        self.weights = sketches.weights[places].astype(np.int64)
        self.marks = sketches.marks[places]

    def total(self, chosen: Mask, values: Ints) -> Ints:
        """Return the sum of the values of some terms, for each pair."""
        found = np.bincount(self.pairs[chosen], values[chosen], self._count)
        return found.astype(np.int64)


class _Pairs:
    """Pairs of articles with the terms that both have."""

    def __init__(self, left: Sketches, own: Ints, right: Sketches, other: Ints) -> None:
        self._one, self._other = _Side(left, own), _Side(right, other)
        self._hours = _hours_apart(left.hours[own], right.hours[other])
        self._same_language = left.languages[own] == right.languages[other]
        self._same_host = left.hosts[own] == right.hosts[other]
        keys = self._other.keys
        at = np.searchsorted(keys, self._one.keys)
        at[at == len(keys)] = 0
        common = keys[at] == self._one.keys if len(keys) else np.zeros(len(at), bool)
        self._count = len(own)
        self._pairs = self._one.pairs[common]
        self._weights = self._one.weights[common]
        self._marks, self._theirs = self._one.marks[common], self._other.marks[at[common]]

    def features(self) -> Mapping[str, Ints]:
        """Return the numbers by name, in the order of FEATURES."""
        found: dict[str, Ints] = {}
        for name, (kind, part, shares) in _FIELDS.items():
            for share, values in self._shares(kind, part).items():
                if share in shares:
                    found[f"{name}_{share}"] = values
        for name in ("whole_dice", "whole_held", "whole_lead_least", "whole_lead_most"):
            found[name] = np.where(self._same_language, found[name], UNKNOWN)
        is_word, is_name = self._both(WORD, 0), self._both(WORD, IS_NAME)
        found["words_cosine"] = self._cosine(0, weigh=_once)
        found["often_cosine"] = self._cosine(0, weigh=_times)
        found["names_cosine"] = self._cosine(IS_NAME, weigh=_times)
        found["shared_anchors"] = self._total(self._both(_ANCHOR, 0), self._weights)
        rare = (self._weights >= _RARE).astype(np.int64)
        found["rare"] = self._total(is_word, rare)
        found["rare_names"] = self._total(is_name, rare)
        found["hours"] = self._hours
        found["same_language"] = self._same_language.astype(np.int64)
        # An outlet repeats its phrases and templates, also in articles about other events.
        found["same_host"] = self._same_host.astype(np.int64)
        sizes = [
            side.total(_stands(side.marks, WORD, 0), side.weights)
            for side in (self._one, self._other)
        ]
        found["least_words"] = np.minimum(*sizes)
        found["size_ratio"] = _share(np.minimum(*sizes), np.maximum(*sizes))
        return {name: found[name] for name in FEATURES}

    def _both(self, kind: int, part: int) -> Mask:
        return _stands(self._marks, kind, part) & _stands(self._theirs, kind, part)

    def _total(self, chosen: Mask, values: Ints) -> Ints:
        found = np.bincount(self._pairs[chosen], values[chosen], self._count)
        return found.astype(np.int64)

    def _shares(self, kind: int, part: int) -> Mapping[str, Ints]:
        own, their = _stands(self._marks, kind, part), _stands(self._theirs, kind, part)
        one, other = (
            side.total(_stands(side.marks, kind, part), side.weights)
            for side in (self._one, self._other)
        )
        both = self._total(own & their, self._weights)
        in_other = _share(self._total(own, self._weights), one)
        in_one = _share(self._total(their, self._weights), other)
        return {
            "dice": _share(2 * both, one + other),
            "held": _share(both, np.minimum(one, other)),
            "least": np.minimum(in_other, in_one),
            "most": np.maximum(in_other, in_one),
        }

    def _cosine(self, part: int, *, weigh: "_Weigh") -> Ints:
        chosen = self._both(WORD, part)
        product = weigh(self._weights, self._marks) * weigh(self._weights, self._theirs)
        lengths = [
            side.total(_stands(side.marks, WORD, part), weigh(side.weights, side.marks) ** 2)
            for side in (self._one, self._other)
        ]
        # Square roots of IEEE numbers are exact, so they are the same on every machine.
        length = np.sqrt(lengths[0].astype(np.float64)) * np.sqrt(lengths[1].astype(np.float64))
        shared = self._total(chosen, product)
        cosines: Ints = np.floor(BEST_SCORE * shared / np.maximum(length, 1)).astype(np.int64)
        return cosines


def _stands(marks: npt.NDArray[np.uint8], kind: int, part: int) -> Mask:
    """Return which terms are of a kind and have all bits of a part."""
    if kind != _ANCHOR:
        found: Mask = marks & (_KIND | part) == kind | part
        return found
    is_name = marks & (_KIND | IS_NAME) == WORD | IS_NAME
    shared: Mask = (_IS_ANCHOR[marks & _KIND] | is_name) & (marks & part == part)
    return shared


_Weigh = Callable[[Ints, npt.NDArray[np.uint8]], Ints]


def _once(weights: Ints, marks: npt.NDArray[np.uint8]) -> Ints:
    return weights


def _times(weights: Ints, marks: npt.NDArray[np.uint8]) -> Ints:
    found: Ints = weights * _TIMES[marks >> OFTEN_BITS]
    return found


def _share(part: Ints, whole: Ints) -> Ints:
    """Return thousandths; UNKNOWN where there is no whole."""
    return np.where(whole > 0, 1000 * part // np.maximum(whole, 1), UNKNOWN)


def _hours_apart(one: Ints, other: Ints) -> Ints:
    apart = np.minimum(np.abs(one - other), _MOST_HOURS)
    return np.where((one == UNKNOWN) | (other == UNKNOWN), UNKNOWN, apart)


@dataclass(frozen=True, slots=True)
class StoryModel:
    """The learned trees, and the scores that a link needs: to the article, to the story's root."""

    trees: Trees
    least_score: int
    least_root_score: int

    def scores(self, left: Sketches, own: Ints, right: Sketches, other: Ints) -> Ints:
        """Return the score of each pair, from 0 to BEST_SCORE."""
        parts = [
            self.trees.scores(
                pair_features(
                    left, own[at : at + _PAIRS_AT_ONCE], right, other[at : at + _PAIRS_AT_ONCE]
                )
            )
            for at in range(0, len(own), _PAIRS_AT_ONCE)
        ]
        rated = np.concatenate(parts) if parts else np.empty(0, np.int64)
        found: Ints = np.clip(rated * BEST_SCORE // (BEST_RATING * SCORE_UNIT), 0, BEST_SCORE)
        return found


@cache
def load_model() -> StoryModel:
    """Return the model of the package, read once."""
    written = files("news_platform.stories").joinpath("story_weights.json").read_text("utf-8")
    found = json.loads(written)
    if tuple(found["features"]) != FEATURES:
        raise ValueError("story_weights.json was learned with other features: train again")
    trees = parse_trees(found["trees"])
    return StoryModel(trees, found["least_score"], found["least_root_score"])


def score_shares(model: StoryModel, sketches: Sketches) -> tuple[int, Mapping[str, int]]:
    """Return the score of the first two articles, and what each group of terms and time adds.

    A share is what the score loses without the group; shares overlap, so they do not add up.
    """
    zero, one = np.array([0]), np.array([1])

    def score(of: Sketches) -> int:
        return int(model.scores(of, zero, of, one)[0])

    whole = score(sketches)
    shares = {name: whole - score(sketches.without(kinds)) for name, kinds in GROUPS.items()}
    apart = replace(sketches, hours=np.array([0, 2 * _MOST_HOURS]))
    return whole, {**shares, "time": whole - score(apart)}
