"""Score how likely each block of a page belongs to the article, as log-odds.

The weights are learned from labelled pages by `benchmarks/train_articles.py`: the odds of words in
names and texts, and decision trees over whole numbers. Scores are sums of whole numbers, so that
the same page gives the same article on every machine.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np

from news_platform.articles.block_features import BlockTable, Ints
from news_platform.articles.blocks import HEADINGS, TextBlocks

# Leaf values and scores are log-odds in units of a ten-thousandth.
SCORE_UNIT = 10_000
# Of a short block, whose words are looked up.
_LOOKED_UP_WORDS = 12
_SHORT_TEXT = 200
# Bounds the memory for pages with very many blocks.
_ROWS_AT_ONCE = 2_000


@dataclass(frozen=True, slots=True)
class WordOdds:
    """Log-odds of words in hundredths: names within two elements, names farther up, short texts."""

    near: Mapping[str, int]
    far: Mapping[str, int]
    text: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Trees:
    """All trees as one list of nodes; a leaf leads to itself, and has a value."""

    features: Ints
    thresholds: Ints
    left: Ints
    right: Ints
    values: Ints
    roots: Ints
    depth: int

    def scores(self, rows: Ints) -> Ints:
        """Return the sum of the leaf values of each row."""
        parts = [rows[at : at + _ROWS_AT_ONCE] for at in range(0, len(rows), _ROWS_AT_ONCE)]
        return np.concatenate([self._part_scores(part) for part in parts])

    def _part_scores(self, rows: Ints) -> Ints:
        starts = (np.arange(len(rows)) * rows.shape[1])[:, None]
        cells = rows.ravel()
        nodes = np.repeat(self.roots[None, :], len(rows), axis=0)
        for _ in range(self.depth):
            goes_left = cells[starts + self.features[nodes]] <= self.thresholds[nodes]
            nodes = np.where(goes_left, self.left[nodes], self.right[nodes])
        total: Ints = self.values[nodes].sum(axis=1)
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
        rows = np.concatenate((table.matrix(), word_matrix(blocks, self.odds)), axis=1)
        return self.trees.scores(rows) + self.bias


@cache
def load_model() -> BlockModel:
    """Return the model of the package, read once."""
    written = files("news_platform.articles").joinpath("weights.json").read_text("utf-8")
    found = json.loads(written)
    odds = WordOdds(**{name: found["odds"][name] for name in ("near", "far", "text")})
    steps = tuple((before, after) for before, after in found["confidence"])
    return BlockModel(odds, parse_trees(found["trees"]), found["bias"], steps)


def parse_trees(written: Sequence[Sequence[Sequence[int]]]) -> Trees:
    """Return trees written as lists of nodes: [value] or [feature, threshold, left, right]."""
    nodes: list[tuple[int, ...]] = []
    roots: list[int] = []
    for tree in written:
        root = len(nodes)
        roots.append(root)
        for own, node in enumerate(tree, start=root):
            if len(node) == 1:
                nodes.append((0, 0, own, own, node[0]))
            else:
                nodes.append((node[0], node[1], root + node[2], root + node[3], 0))
    features, thresholds, left, right, values = np.array(nodes, dtype=np.int64).T.copy()
    depth = max(_depth(tree, 0) for tree in written)
    return Trees(features, thresholds, left, right, values, _ints(roots), depth)


def _depth(tree: Sequence[Sequence[int]], node: int) -> int:
    if len(tree[node]) == 1:
        return 0
    return 1 + max(_depth(tree, tree[node][2]), _depth(tree, tree[node][3]))


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


def word_matrix(blocks: TextBlocks, odds: WordOdds) -> Ints:
    """Return the odds of the names around each block and of its words, by WORD_COLUMNS."""
    near, near_least, near_most = _own_odds(blocks.names, odds.near)
    far, far_least, far_most = _odds_from_root(blocks.names, blocks.parents, odds.far)
    parents = np.array(blocks.parents, dtype=np.intp)
    own = np.array(blocks.holders, dtype=np.intp)
    one = parents[own]
    two = parents[one]
    three = parents[two]
    columns = (
        near[own],
        near[own] + near[one] + near[two],
        np.minimum(np.minimum(near_least[own], near_least[one]), near_least[two]),
        np.maximum(np.maximum(near_most[own], near_most[one]), near_most[two]),
        far[three],
        far_least[three],
        far_most[three],
        *_text_odds(blocks, odds.text),
    )
    return np.stack(columns, axis=1)


def _own_odds(names: Sequence[Sequence[str]], odds: Mapping[str, int]) -> tuple[Ints, Ints, Ints]:
    """Return sum, least and most of the odds of each element's words."""
    found = [[odds.get(word, 0) for word in words] or [0] for words in names]
    sums, least, most = map(sum, found), map(min, found), map(max, found)
    return _ints(list(sums)), _ints(list(least)), _ints(list(most))


def _odds_from_root(
    names: Sequence[Sequence[str]], parents: Sequence[int], odds: Mapping[str, int]
) -> tuple[Ints, Ints, Ints]:
    """Return sum, least and most of the odds of all words from the root to each element."""
    sums, least, most = [0] * len(names), [0] * len(names), [0] * len(names)
    for number, words in enumerate(names):
        # The root is its own parent, and still 0 when it is read.
        parent = parents[number]
        found = [odds.get(word, 0) for word in words] or [0]
        sums[number] = sums[parent] + sum(found)
        least[number] = min(least[parent], *found)
        most[number] = max(most[parent], *found)
    return _ints(sums), _ints(least), _ints(most)


def _text_odds(blocks: TextBlocks, odds: Mapping[str, int]) -> tuple[Ints, Ints]:
    """Return the odds of each short block's words, and those of the heading before it."""
    own, above, heading = [], [], 0
    for text, holder in zip(blocks.texts, blocks.holders, strict=True):
        words = text.lower().split()[:_LOOKED_UP_WORDS] if len(text) <= _SHORT_TEXT else ()
        own.append(sum(odds.get(word, 0) for word in words))
        above.append(heading)
        if blocks.tags[holder] in HEADINGS:
            heading = own[-1]
    return _ints(own), _ints(above)


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)
