"""The features of a page in, whether it is an article out.

The odds of words and the trees are learned from labelled pages by `benchmarks/train_pages.py`, over
whole numbers, so that the same page gets the same answer on every machine.
"""

import json
import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
import numpy.typing as npt

from news_platform.articles.block_model import Trees, parse_trees
from news_platform.corpus.page_features import WORD_PLACES, PageFeatures

# Log-odds of a word in hundredths, by where it stands.
PlacedOdds = Mapping[str, Mapping[str, int]]
# The strongest words for and against: one clear sign weighs more than many weak ones.
_STRONGEST = 5


@dataclass(frozen=True, slots=True)
class PageModel:
    """The names of the numbers in the order of the trees, what was learned, the least score."""

    numbers: tuple[str, ...]
    odds: PlacedOdds
    trees: Trees
    least_score: int

    def score(self, features: PageFeatures) -> int:
        """Return the log-odds, in ten-thousandths, that such a page is an article."""
        row = feature_row(features, self.numbers, self.odds)
        return int(self.trees.scores(row[None, :])[0])

    def is_article(self, features: PageFeatures) -> bool:
        """Return whether a page with these features is an article."""
        return self.score(features) >= self.least_score


def feature_row(
    features: PageFeatures, numbers: Collection[str], odds: PlacedOdds
) -> npt.NDArray[np.int64]:
    """Return the numbers of a page, and four numbers for the words of each place."""
    row = [features.numbers[name] for name in numbers]
    for place in WORD_PLACES:
        row += _word_numbers(features.words[place], odds[place])
    return np.array(row, dtype=np.int64)


def _word_numbers(words: Collection[str], odds: Mapping[str, int]) -> list[int]:
    found = sorted(odds[word] for word in words if word in odds)
    total = sum(found)
    # The sum of n chance words grows with the root of n.
    even = total * 10 // math.isqrt(100 * max(len(found), 1))
    return [total, even, sum(found[:_STRONGEST]), sum(found[-_STRONGEST:])]


@cache
def load_page_model() -> PageModel:
    """Return the model of the package, read once."""
    written = files("news_platform.corpus").joinpath("page_weights.json").read_text("utf-8")
    found = json.loads(written)
    return PageModel(
        tuple(found["numbers"]), found["odds"], parse_trees(found["trees"]), found["least_score"]
    )
