"""Score how likely each block of a page belongs to the article, as log-odds.

The weights are learned from labelled pages by `benchmarks/train_articles.py`: the odds of words in
names and texts, and decision trees over whole numbers. Scores are sums of whole numbers, so that
the same page gives the same article on every machine.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from news_platform.articles.block_features import BlockTable
from news_platform.articles.blocks import HEADINGS, Ints, TextBlocks

# Leaf values and scores are log-odds in units of a ten-thousandth.
SCORE_UNIT = 10_000
# Of a short block, whose words are looked up.
_LOOKED_UP_WORDS = 12
_SHORT_TEXT = 200
# Few enough for the processor's cache.
_ROWS_AT_ONCE = 256
_ALL_LEAVES = (1 << 16) - 1
# The place of the lowest bit that each number lacks.
_FIRST_LEFT = np.array(
    [(~number & -~number).bit_length() - 1 for number in range(_ALL_LEAVES + 1)],
    dtype=np.uint8,
)


@dataclass(frozen=True, slots=True)
class WordOdds:
    """Log-odds of words in hundredths: names within two elements, names farther up, short texts."""

    near: Mapping[str, int]
    far: Mapping[str, int]
    text: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees, as the splits that a row may fail: its leaf is the first that none excludes.

    A row fails a split if its feature is above the threshold; then the leaves on the left are out.
    Thresholds are ranks in `cuts`, the sorted thresholds of each feature. `drops` has a bit for
    each leaf that is out, and `values` the leaves of each tree from left to right. Comparing all
    splits of all rows at once takes a third of the time of walking down the trees.
    """

    features: Ints
    ranks: npt.NDArray[np.uint8]
    drops: npt.NDArray[np.uint16]
    cuts: tuple[Ints, ...]
    values: Ints

    def scores(self, rows: Ints) -> Ints:
        """Return the sum of the leaf values of each row."""
        ranks = np.empty((len(self.cuts), len(rows)), dtype=np.uint8)
        for own, cuts, column in zip(ranks, self.cuts, np.ascontiguousarray(rows.T), strict=False):
            own[:] = np.searchsorted(cuts, column)
        parts = [ranks[:, at : at + _ROWS_AT_ONCE] for at in range(0, len(rows), _ROWS_AT_ONCE)]
        return np.concatenate([self._part_scores(part) for part in parts])

    def _part_scores(self, ranks: npt.NDArray[np.uint8]) -> Ints:
        fails = ranks[self.features] > self.ranks
        # The leaves that are out where a row fails a split.
        out = np.multiply(fails, self.drops, dtype=np.uint16)
        trees, leaves = self.values.shape
        excluded = np.bitwise_or.reduce(out.reshape(trees, -1, out.shape[1]), axis=1)
        first = np.arange(trees)[:, None] * leaves + _FIRST_LEFT[excluded]
        total: Ints = self.values.ravel()[first].sum(axis=0)
        return total


@dataclass(frozen=True, slots=True)
class BlockModel:
    """The learned weights; `confidence` maps an expected F1 in thousandths to a measured one."""

    odds: WordOdds
    trees: Trees
    bias: int
    confidence: tuple[tuple[int, int], ...]

    def scores(self, blocks: TextBlocks, table: BlockTable) -> Ints:
        """Return the log-odds of each block."""
        return self.trees.scores(feature_rows(blocks, table, self.odds)) + self.bias


@cache
def load_model() -> BlockModel:
    """Return the model of the package, read once."""
    written = files("news_platform.articles").joinpath("weights.json").read_text("utf-8")
    found = json.loads(written)
    odds = WordOdds(**{name: found["odds"][name] for name in ("near", "far", "text")})
    steps = tuple((before, after) for before, after in found["confidence"])
    return BlockModel(odds, parse_trees(found["trees"]), found["bias"], steps)


def parse_trees(written: Sequence[Sequence[Sequence[int]]]) -> Trees:
    """Return trees of at most 16 leaves, written as lists of nodes.

    A node is [value] or [feature, threshold, left, right].
    """
    most = max(len(tree) for tree in written) // 2 + 1
    splits: list[tuple[int, int, int]] = []
    values: list[list[int]] = []
    for tree in written:
        values.append([tree[leaf][0] for leaf in _leaves(tree, 0)])
        bits = {leaf: 1 << place for place, leaf in enumerate(_leaves(tree, 0))}
        for node in tree:
            if len(node) > 1:
                excluded = sum(bits[leaf] for leaf in _leaves(tree, node[2]))
                splits.append((node[0], node[1], excluded))
        # Trees are rows of one array: to a smaller one belong splits that exclude no leaf.
        lacking = most - len(values[-1])
        splits += [(0, 0, 0)] * lacking
        values[-1] += [0] * lacking
    features, thresholds, drops = np.array(splits, dtype=np.int64).T.copy()
    cuts = tuple(np.unique(thresholds[features == one]) for one in range(features.max() + 1))
    ranks = [np.searchsorted(cuts[one], at) for one, at in zip(features, thresholds, strict=True)]
    return Trees(
        features,
        np.array(ranks, dtype=np.uint8)[:, None],
        drops.astype(np.uint16)[:, None],
        cuts,
        _ints(values),
    )


def _leaves(tree: Sequence[Sequence[int]], node: int) -> list[int]:
    """Return the leaves below a node, from left to right."""
    if len(tree[node]) == 1:
        return [node]
    return [*_leaves(tree, tree[node][2]), *_leaves(tree, tree[node][3])]


WORD_COLUMNS = (
    "odds_own",
    "odds_near",
    "odds_near_least",
    "odds_near_most",
    "odds_far",
    "odds_far_least",
    "odds_far_most",
    "odds_text",
    "odds_heading",
)


def feature_rows(blocks: TextBlocks, table: BlockTable, odds: WordOdds) -> Ints:
    """Return what the trees decide by: the table, then WORD_COLUMNS, one row per block."""
    return np.concatenate((table.matrix(), word_matrix(blocks, table, odds)), axis=1)


def word_matrix(blocks: TextBlocks, table: BlockTable, odds: WordOdds) -> Ints:
    """Return the odds of the names around each block and of its words, by WORD_COLUMNS."""
    # Most elements of a page share their names with others.
    kinds: dict[tuple[str, ...], int] = {}
    codes = _ints([kinds.setdefault(words, len(kinds)) for words in blocks.names])
    near, near_least, near_most = _odds_of(kinds, odds.near)[:, codes]
    far, far_least, far_most = _odds_of(kinds, odds.far)[:, codes]
    own, paths = table.holders, table.paths
    parents = paths.parents
    one = parents[own]
    two = parents[one]
    three = parents[two]
    columns = (
        near[own],
        near[own] + near[one] + near[two],
        np.minimum(np.minimum(near_least[own], near_least[one]), near_least[two]),
        np.maximum(np.maximum(near_most[own], near_most[one]), near_most[two]),
        paths.total(far)[three],
        np.minimum(paths.least(far_least)[three], 0),
        np.maximum(paths.most(far_most)[three], 0),
        *_text_odds(blocks, odds.text),
    )
    return np.stack(columns, axis=1)


def _odds_of(kinds: Iterable[Sequence[str]], odds: Mapping[str, int]) -> Ints:
    """Return sum, least and most of the odds of each element's words, in three rows."""
    found = [[odds.get(word, 0) for word in words] or [0] for words in kinds]
    return _ints([list(map(sum, found)), list(map(min, found)), list(map(max, found))])


def _text_odds(blocks: TextBlocks, odds: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Return the odds of each short block's words, and those of the heading before it."""
    own, above, heading, get = [], [], 0, odds.get
    for text, holder in zip(blocks.lowered, blocks.holders, strict=True):
        words = text.split(" ", _LOOKED_UP_WORDS) if len(text) <= _SHORT_TEXT else []
        own.append(sum(filter(None, map(get, words[:_LOOKED_UP_WORDS]))))
        above.append(heading)
        if blocks.tags[holder] in HEADINGS:
            heading = own[-1]
    return _ints(own), _ints(above)


def _ints(values: Sequence[int] | Sequence[Sequence[int]]) -> Ints:
    return np.array(values, dtype=np.int64)
