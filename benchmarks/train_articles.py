"""Learn which blocks of a page are its article, from the labelled pages; write the weights file.

`python -m benchmarks.train_articles` writes `news_platform/articles/weights.json` and prints the
scores of five folds split by site beside the scores on the pages learned from. LightGBM is needed
here only: the package evaluates the trees by itself.
"""

import argparse
import json
import os
import pickle
import zlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np

import news_platform.articles
from benchmarks import RESULTS_FOLDER
from benchmarks.article_cache import read_labelled_blocks
from benchmarks.article_labels import LabelledBlocks
from benchmarks.article_pages import NEWS_SETS
from benchmarks.article_report import (
    chosen_thresholds,
    confidence_steps,
    confidence_tenths,
    report,
    text_scores,
)
from news_platform.articles.block_model import (
    SCORE_UNIT,
    WordOdds,
    feature_rows,
    parse_trees,
)
from news_platform.articles.blocks import Ints
from news_platform.settings import load_settings

RESULTS = RESULTS_FOLDER / "articles_folds.json"
_PROCESSES = 2
WEIGHTS = Path(news_platform.articles.__file__).parent / "weights.json"
FOLDS = 5
# The odds of a page's words come from pages of other sites, also within the pages learned from.
_ODDS_FOLDS = 6
# A word needs this many sites; texts have many words, and the file has a limit.
_MIN_SITES = (4, 4, 10)
# Odds closer to even than this, in hundredths, say nothing.
_MIN_ODDS = 12
# Pseudo-counts of a word, in sites.
_PRIOR = 2.0
# Lighter blocks are sampled and weigh more in turn.
_FULL_WEIGHT = 0.004
# Few pages come from newsrooms, which are what the platform reads.
_NEWS_WEIGHT = 3
_NEWSROOMS = (*NEWS_SETS, "fundus_eval")
_TREES = 230
_PARAMETERS: dict[str, Any] = {
    "objective": "cross_entropy",
    "num_leaves": 16,
    "max_depth": 7,
    "learning_rate": 0.07,
    # Large leaves, few features and half of the rows per tree keep seen and unseen pages close.
    "min_data_in_leaf": 400,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.5,
    "bagging_freq": 1,
    "lambda_l2": 30,
    "verbose": -1,
    # Folds run side by side; threads that wait for each other waste a busy machine.
    "num_threads": 1,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
}


@dataclass(frozen=True, slots=True)
class Weights:
    """A model as the weights file holds it."""

    odds: WordOdds
    trees: list[list[list[int]]]

    def scores(self, page: LabelledBlocks) -> Ints:
        """Return the log-odds of a page's blocks."""
        return parse_trees(self.trees).scores(feature_rows(page.blocks, page.table, self.odds))


def main() -> None:
    """Score the folds, learn from all pages, and write the weights."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--no-folds", action="store_true", help="do not score the folds")
    arguments.add_argument("--cache", type=Path, help="folder for the blocks of the pages")
    options = arguments.parse_args()
    data = load_settings(os.environ).bench_data
    if not data:
        print("train_articles: set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    articles = Path(data) / "articles"
    pages = read_labelled_blocks(articles, options.cache)
    weights, unseen = learn_all(pages, 0 if options.no_folds else FOLDS)
    if options.cache and unseen:
        (options.cache / "unseen_scores.pickle").write_bytes(pickle.dumps(unseen))
    steps = confidence_steps(pages, unseen) if unseen else [(0, 0), (1000, 1000)]
    write_weights(weights, steps)
    if unseen:
        write_report(articles, pages, weights, unseen, steps)


def write_report(
    articles: Path,
    pages: Sequence[LabelledBlocks],
    weights: Weights,
    unseen: dict[str, Ints],
    steps: Sequence[tuple[int, int]],
) -> None:
    """Print and write the scores of unseen and seen pages."""
    folds = {page.page.key: _fold(page, FOLDS, "fold") for page in pages}
    seen = {page.page.key: weights.scores(page) for page in pages}
    unseen_texts = text_scores(articles, pages, unseen)
    results = {
        "unseen": report("unseen", pages, unseen_texts),
        "seen": report("seen", pages, text_scores(articles, pages, seen)),
        "unseen_by_fold": {
            str(fold): report(
                f"fold {fold}",
                [page for page in pages if folds[page.page.key] == fold],
                unseen_texts,
            )
            for fold in range(FOLDS)
        },
        "nested_thresholds": chosen_thresholds(articles, pages, unseen, folds),
        "confidence": confidence_tenths(pages, unseen, steps),
    }
    RESULTS.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n")


def learn_all(pages: Sequence[LabelledBlocks], folds: int) -> tuple[Weights, dict[str, Ints]]:
    """Return the weights learned from all pages, and every page's scores by a model of other sites.

    Two processes learn at a time; they share the pages, which are in memory already.
    """
    _PAGES[:] = pages
    for page in pages:
        _word_counts(page)  # once, before the processes part
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("fork")) as pool:
        whole = pool.submit(_learn_whole)
        unseen: dict[str, Ints] = {}
        for number, scores in enumerate(pool.map(_scores_of_fold, range(folds))):
            unseen |= scores
            print(f"fold {number + 1} of {folds}", flush=True)
        return whole.result(), unseen


_PAGES: list[LabelledBlocks] = []


def _learn_whole() -> Weights:
    return learn(_PAGES)


def _scores_of_fold(fold: int) -> dict[str, Ints]:
    """Return the scores of one fold's pages by a model that saw no page of their sites."""
    weights = learn([page for page in _PAGES if _fold(page, FOLDS, "fold") != fold])
    return {
        page.page.key: weights.scores(page) for page in _PAGES if _fold(page, FOLDS, "fold") == fold
    }


def _fold(page: LabelledBlocks, count: int, salt: str) -> int:
    return zlib.crc32(f"{salt} {page.page.site}".encode()) % count


def learn(pages: Sequence[LabelledBlocks]) -> Weights:
    """Return the weights learned from the pages."""
    rows = []
    counted = [(page.page.site, _word_counts(page)) for page in pages]
    by_fold = [_fold(page, _ODDS_FOLDS, "odds") for page in pages]
    for fold in range(_ODDS_FOLDS):
        others = [one for one, own in zip(counted, by_fold, strict=True) if own != fold]
        odds = word_odds(others)
        rows += [
            (page, feature_rows(page.blocks, page.table, odds))
            for page, own in zip(pages, by_fold, strict=True)
            if own == fold
        ]
    return Weights(word_odds(counted), _fit(rows))


def _fit(pages: Sequence[tuple[LabelledBlocks, Ints]]) -> list[list[list[int]]]:
    rows = np.concatenate([matrix for _, matrix in pages])
    labels = np.concatenate([page.labels for page, _ in pages])
    weights = np.concatenate([page.weights * _page_weight(page) for page, _ in pages])
    chance = np.minimum(weights / _FULL_WEIGHT, 1)
    taken = (np.random.default_rng(7).random(len(weights)) < chance) & (weights > 0)
    weight = weights[taken] / chance[taken]
    data = lightgbm.Dataset(rows[taken], labels[taken], weight=weight * len(weight) / weight.sum())
    booster = lightgbm.train(_PARAMETERS, data, _TREES)
    return [tree_nodes(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]


def _page_weight(page: LabelledBlocks) -> int:
    return _NEWS_WEIGHT if page.page.set_name in _NEWSROOMS else 1


def tree_nodes(root: dict[str, Any]) -> list[list[int]]:
    """Return a tree as a list of nodes, children after their parent."""
    nodes: list[list[int]] = []

    def add(node: dict[str, Any]) -> int:
        number = len(nodes)
        nodes.append([])
        if "leaf_value" in node:
            nodes[number] = [round(node["leaf_value"] * SCORE_UNIT)]
        else:
            # Features are whole numbers: `x <= 3.5` is `x <= 3`.
            threshold = int(np.floor(node["threshold"]))
            left, right = add(node["left_child"]), add(node["right_child"])
            nodes[number] = [node["split_feature"], threshold, left, right]
        return number

    add(root)
    return nodes


_COUNTED: dict[str, "_Counts"] = {}
# For near names, far names and words of texts: word to weight inside and outside of articles.
_Counts = tuple[dict[str, list[float]], ...]


def _word_counts(page: LabelledBlocks) -> _Counts:
    """Return the counts of a page, once for all folds."""
    if page.page.key not in _COUNTED:
        _COUNTED[page.page.key] = _count_words(page)
    return _COUNTED[page.page.key]


def _count_words(page: LabelledBlocks) -> _Counts:
    near: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    far: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    texts: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    blocks = page.blocks
    for number, holder in enumerate(blocks.holders):
        label, weight = float(page.labels[number]), float(page.weights[number])
        if label < 0:
            continue
        close, distant = _names_around(holder, blocks.parents, blocks.names)
        short = (
            blocks.texts[number].lower().split()[:12] if len(blocks.texts[number]) <= 100 else ()
        )
        for table, words, amount in (
            (near, close, weight),
            (far, distant, weight),
            (texts, set(short), 1),
        ):
            for word in words:
                table[word][0] += amount * label
                table[word][1] += amount * (1 - label)
    return near, far, texts


def _names_around(
    holder: int, parents: Sequence[int], names: Sequence[Sequence[str]]
) -> tuple[set[str], set[str]]:
    near: set[str] = set()
    far: set[str] = set()
    distance = 0
    while True:
        (near if distance < 3 else far).update(names[holder])
        if holder == 0:
            return near, far
        holder, distance = parents[holder], distance + 1


def word_odds(counted: Iterable[tuple[str, _Counts]]) -> WordOdds:
    """Return the log-odds of words; every site counts at most once."""
    by_site: dict[str, list[_Counts]] = defaultdict(list)
    for site, counts in counted:
        by_site[site].append(counts)
    tables = []
    for kind in range(3):
        inside: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0])
        for pages in by_site.values():
            for word, (yes, no) in _summed(counts[kind] for counts in pages).items():
                share = min(yes + no, 1.0) / (yes + no) if yes + no else 0.0
                found = inside[word]
                found[0], found[1], found[2] = (
                    found[0] + yes * share,
                    found[1] + no * share,
                    found[2] + 1,
                )
        tables.append(_log_odds({w: f for w, f in inside.items() if f[2] >= _MIN_SITES[kind]}))
    return WordOdds(*tables)


def _summed(counts: Iterable[dict[str, list[float]]]) -> dict[str, list[float]]:
    total: dict[str, list[float]] = {}
    for one in counts:
        for word, (yes, no) in one.items():
            known = total.setdefault(word, [0.0, 0.0])
            known[0] += yes
            known[1] += no
    return total


def _log_odds(found: dict[str, list[float]]) -> dict[str, int]:
    yes, no = (sum(one[side] for one in found.values()) for side in (0, 1))
    base = yes / (yes + no)
    odds = {
        word: round(
            100
            * np.log((one[0] + _PRIOR * base) / (one[1] + _PRIOR * (1 - base)) * (1 - base) / base)
        )
        for word, one in found.items()
    }
    return {word: int(value) for word, value in sorted(odds.items()) if abs(value) >= _MIN_ODDS}


def write_weights(weights: Weights, steps: Sequence[tuple[int, int]]) -> None:
    """Write the weights file of the package."""
    odds = {"near": weights.odds.near, "far": weights.odds.far, "text": weights.odds.text}
    held = {"bias": 0, "confidence": steps, "odds": odds, "trees": weights.trees}
    written = json.dumps(held, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    WEIGHTS.write_text(written + "\n", encoding="utf-8")
    print(f"{WEIGHTS.name}: {WEIGHTS.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
