"""Learn whether a page is an article, from labelled pages of seven kinds; write the weights file.

`python -m benchmarks.train_pages` writes `news_platform/articles/page_weights.json` and prints, for
five folds split by site, the recall of articles and the false positives of each other kind.
"""

import argparse
import json
import math
import os
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt

import news_platform.articles
from benchmarks.page_kinds import ARTICLE, OTHER_KINDS, PageRow, iter_kind_pages, page_row
from benchmarks.train_articles import tree_nodes
from news_platform.articles.block_model import SCORE_UNIT, parse_trees
from news_platform.articles.page_model import (
    ADDRESS_NUMBERS,
    WORD_PLACES,
    PageModel,
    PlacedOdds,
    feature_row,
)
from news_platform.settings import load_settings

WEIGHTS = Path(news_platform.articles.__file__).parent / "page_weights.json"
FOLDS = 5
# The odds of a page's words come from pages of other sites, also within the pages learned from.
_ODDS_FOLDS = 6
# The recall on unseen sites at which the least score is set; 0.95 is asked.
RECALL = 0.953
_MIN_SITES = 8
_MIN_ODDS = 20
# Other kinds are a fifth of the pages and count as half of them. Lists and front pages are what the
# crawl of news has most of, and the hardest to tell from articles.
_OTHER_WEIGHT = 2.5
_LIST_WEIGHT = 8.0
FRONT_KINDS = ("listing", "collection")
_TREES = 300
_PARAMETERS: dict[str, Any] = {
    "objective": "binary",
    "num_leaves": 8,
    "max_depth": 4,
    "learning_rate": 0.05,
    "min_data_in_leaf": 15,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    "verbose": -1,
    # One: on a busy machine two threads spend their time waiting for each other.
    "num_threads": 1,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
}
Rows = Sequence[PageRow]
Matrix = npt.NDArray[np.int64]
Tree = list[list[int]]
Scores = Mapping[str, int]


def main() -> None:
    """Score the folds, learn from all pages, and write the weights."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    data = load_settings(os.environ).bench_data
    if not data:
        print("train_pages: set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    found = map(page_row, iter_kind_pages(Path(data)))
    rows = [row for row in found if row is not None]
    scores = unseen_scores(rows)
    least = least_score(rows, scores)
    own, others = decided(scores, least), decided_by_other_folds(rows, scores)
    print(f"{'least score set on':<20}{'all folds':>12}{'the others':>12}{'seen pages':>12}")
    by_others = kept_shares(rows, others)
    numbers, odds, trees = learn(rows)
    seen = kept_shares(rows, decided(_scores(rows, numbers, odds, trees), least))
    for kind, share in kept_shares(rows, own).items():
        print(f"{kind:<20}{share:>12.3f}{by_others[kind]:>12.3f}{seen[kind]:>12.3f}")
    for fold in range(FOLDS):
        shares = kept_shares([row for row in rows if _fold(row, FOLDS, "fold") == fold], others)
        shown = " ".join(f"{kind} {share:.3f}" for kind, share in shares.items())
        print(f"fold {fold + 1}: {shown}")
    write_weights(numbers, odds, trees, least)


def decided(scores: Scores, least: int) -> dict[str, bool]:
    """Return for each page whether its score is enough for an article."""
    return {key: score >= least for key, score in scores.items()}


def decided_by_other_folds(rows: Rows, scores: Scores) -> dict[str, bool]:
    """Return whether each page's score is enough, the least score being set on other sites only."""
    found: dict[str, bool] = {}
    for fold in range(FOLDS):
        own = {row.key for row in rows if _fold(row, FOLDS, "fold") == fold}
        least = least_score([row for row in rows if row.key not in own], scores)
        found |= decided({key: scores[key] for key in own}, least)
    return found


def unseen_scores(rows: Rows) -> Scores:
    """Return the score of every page by a model that saw no page of its site."""
    scores: dict[str, int] = {}
    for fold in range(FOLDS):
        numbers, odds, trees = learn([row for row in rows if _fold(row, FOLDS, "fold") != fold])
        unseen = [row for row in rows if _fold(row, FOLDS, "fold") == fold]
        scores |= _scores(unseen, numbers, odds, trees)
    return scores


def _scores(rows: Rows, numbers: Sequence[str], odds: PlacedOdds, trees: list[Tree]) -> Scores:
    model = PageModel(tuple(numbers), odds, parse_trees(trees), 0)
    return {row.key: model.score(row.features) for row in rows}


def least_score(rows: Rows, scores: Scores) -> int:
    """Return the score that the wanted share of articles reaches."""
    articles = [scores[row.key] for row in rows if row.kind == ARTICLE and row.is_counted]
    return int(np.quantile(articles, 1 - RECALL))


def kept_shares(rows: Rows, is_article: Mapping[str, bool]) -> dict[str, float]:
    """Return the share of pages of each kind that count as articles."""
    kept: dict[str, list[bool]] = {kind: [] for kind in (ARTICLE, *OTHER_KINDS)}
    for row in rows:
        if row.is_counted:
            kept[row.kind].append(is_article[row.key])
    fronts = [is_article[row.key] for row in rows if is_front(row)]
    return {kind: sum(found) / max(len(found), 1) for kind, found in kept.items()} | {
        "lists and roots": sum(fronts) / max(len(fronts), 1)
    }


def learn(rows: Rows) -> tuple[tuple[str, ...], PlacedOdds, list[Tree]]:
    """Return the names of the numbers, the odds of words and the trees learned from the pages."""
    rows = [*rows, *(_at_root(row) for row in rows if row.kind == "listing")]
    numbers = tuple(rows[0].features.numbers)
    folds = [_fold(row, _ODDS_FOLDS, "odds") for row in rows]
    matrix = np.zeros((len(rows), len(numbers) + 4 * len(WORD_PLACES)), dtype=np.int64)
    for fold in range(_ODDS_FOLDS):
        odds = word_odds([row for row, own in zip(rows, folds, strict=True) if own != fold])
        for at, own in enumerate(folds):
            if own == fold:
                matrix[at] = feature_row(rows[at].features, numbers, odds)
    return numbers, word_odds(rows), _fit(rows, matrix)


def _fit(rows: Rows, matrix: Matrix) -> list[Tree]:
    labels = np.array([row.kind == ARTICLE for row in rows], dtype=np.int64)
    weights = np.array([_weight(row) for row in rows])
    data = lightgbm.Dataset(matrix, labels, weight=weights)
    booster = lightgbm.train(_PARAMETERS, data, _TREES)
    return [tree_nodes(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]


def _weight(row: PageRow) -> float:
    if row.kind == ARTICLE:
        return 1.0
    return _LIST_WEIGHT if is_front(row) else _OTHER_WEIGHT


def is_front(row: PageRow) -> bool:
    """Return whether a page is a list, a collection or at the root of its site."""
    return row.kind in FRONT_KINDS or (
        row.kind != ARTICLE and row.features.numbers["path_depth"] == 0
    )


def _at_root(row: PageRow) -> PageRow:
    """Return a list as the front page of its site: few labelled pages are at a root."""
    numbers = {**row.features.numbers, **dict.fromkeys(ADDRESS_NUMBERS, 0)}
    words = {**row.features.words, "path": frozenset[str]()}
    return replace(row, features=replace(row.features, numbers=numbers, words=words))


def word_odds(rows: Rows) -> PlacedOdds:
    """Return the log-odds of words in hundredths; a word counts once for each site."""
    return {place: _place_odds(rows, place) for place in WORD_PLACES}


def _place_odds(rows: Rows, place: str) -> Mapping[str, int]:
    sites: dict[str, tuple[set[str], set[str]]] = {}
    for row in rows:
        for word in row.features.words[place]:
            sites.setdefault(word, (set(), set()))[row.kind != ARTICLE].add(row.site)
    articles = len({row.site for row in rows if row.kind == ARTICLE}) + 2
    others = len({row.site for row in rows if row.kind != ARTICLE}) + 2
    odds = {
        word: round(100 * math.log((len(ours) + 1) / articles / ((len(theirs) + 1) / others)))
        for word, (ours, theirs) in sorted(sites.items())
        if len(ours) + len(theirs) >= _MIN_SITES
    }
    return {word: value for word, value in odds.items() if abs(value) >= _MIN_ODDS}


def write_weights(numbers: Sequence[str], odds: PlacedOdds, trees: list[Tree], least: int) -> None:
    """Write the weights file."""
    written = {"numbers": numbers, "odds": odds, "least_score": least, "trees": trees}
    text = json.dumps(written, ensure_ascii=False, separators=(",", ":"))
    WEIGHTS.write_text(text + "\n", encoding="utf-8")
    print(f"{WEIGHTS.name}: {len(text) // 1024} KB, least score {least / SCORE_UNIT:.2f}")


def _fold(row: PageRow, count: int, salt: str) -> int:
    return zlib.crc32(f"{salt} {row.site}".encode()) % count


if __name__ == "__main__":
    main()
