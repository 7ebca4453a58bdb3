"""Learn how alike two articles are, from pairs rated by people; write the files of the package.

`python -m benchmarks.train_stories` writes `term_weights.txt` and `story_weights.json` of
`news_platform/stories` and prints what models reach on pairs of hosts that they did not see.
"""

import argparse
import csv
import gzip
import json
import math
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import numpy.typing as npt

import news_platform.stories
from benchmarks.train_articles import tree_nodes
from news_platform.articles.block_model import parse_trees
from news_platform.settings import load_settings
from news_platform.stories.meanings import number_text, tokens, word_prefix
from news_platform.stories.similarity import (
    FEATURES,
    RISING,
    UNKNOWN,
    Ints,
    Sketches,
    StoryModel,
    pair_features,
)
from news_platform.stories.terms import (
    MAX_CHARS,
    MOST_WEIGHT,
    NOTION,
    PLACE,
    iter_terms,
    pack,
)
from news_platform.web.urls import registrable_domain, url_host

FOLDER = Path(news_platform.stories.__file__).parent
FOLDS = 12
# Terms in fewer articles weigh the same as unknown ones.
_LEAST_SHARE = 0.0025
_LEAST_ARTICLES = 30
_LISTED_WORDS = 400
# jusText's stop words of languages of which there are no articles to count.
_LISTS = (
    "Italian",
    "Russian",
    "Portuguese",
    "Dutch",
    "Ukrainian",
    "Czech",
    "Swedish",
    "Romanian",
    "Hungarian",
    "Greek",
    "Persian",
    "Hebrew",
    "Indonesian",
)
# Pairs of two languages are an eighth of all.
_CROSS_WEIGHT = 2.0
TREES = 260
_LEAVES = 8
_PARAMETERS: dict[str, Any] = {
    "objective": "regression",
    "num_leaves": _LEAVES,
    "learning_rate": 0.045,
    "min_data_in_leaf": 30,
    "feature_fraction": 0.3,
    "bagging_fraction": 0.7,
    "bagging_freq": 1,
    "lambda_l2": 5,
    # More of what both have never makes them less alike: it keeps to what languages share.
    "monotone_constraints": [
        1 if name in RISING else -1 if name == "hours" else 0 for name in FEATURES
    ],
    "verbose": -1,
    "num_threads": 1,
    "seed": 1,
    "deterministic": True,
    "force_row_wise": True,
}
Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class RatedArticle:
    """An article of the rated pairs."""

    id: str
    url: str
    lang: str
    title: str
    text: str
    published_at: str

    @property
    def host(self) -> str:
        """Return the registrable domain."""
        return registrable_domain(url_host(self.url)) or url_host(self.url)

    @property
    def hour(self) -> int:
        """Return when it was published, in hours; UNKNOWN if no time is stated."""
        try:
            at = datetime.fromisoformat(self.published_at)
        except ValueError:
            return UNKNOWN
        return int((at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() // 3600)


class RatedPairs:
    """Articles, and pairs of them by their places with how alike people found them, 0 to 3."""

    def __init__(self, folder: Path) -> None:
        with gzip.open(folder / "articles.jsonl.gz", "rt", encoding="utf-8") as lines:
            found = [json.loads(line) for line in lines]
        names = RatedArticle.__dataclass_fields__
        # A page may state no title, language or date.
        self.articles = [
            RatedArticle(**{name: str(one.get(name) or "") for name in names}) for one in found
        ]
        places = {one.id: place for place, one in enumerate(self.articles)}
        with (folder / "pairs.csv").open(encoding="utf-8") as file:
            rows = [
                row for row in csv.DictReader(file) if {row["id1"], row["id2"]} <= places.keys()
            ]
        self.left = np.array([places[row["id1"]] for row in rows])
        self.right = np.array([places[row["id2"]] for row in rows])
        self.ratings = np.array([4 - float(row["overall"]) for row in rows])

    @cached_property
    def languages(self) -> npt.NDArray[np.str_]:
        """Return the languages of each pair, such as `en` and `de-en`."""
        pairs = zip(self.left, self.right, strict=True)
        return np.array(
            [
                "-".join(sorted({self.articles[one].lang, self.articles[two].lang}))
                for one, two in pairs
            ]
        )

    @cached_property
    def is_cross(self) -> Mask:
        """Return which pairs are of two languages."""
        return np.char.find(self.languages, "-") >= 0

    @cached_property
    def hours_apart(self) -> Floats:
        """Return the hours between the two; infinite where one is not dated."""
        hours = np.array([one.hour for one in self.articles])
        one, other = hours[self.left], hours[self.right]
        known = (one != UNKNOWN) & (other != UNKNOWN)
        return np.where(known, np.abs(one - other).astype(float), np.inf)

    @cached_property
    def hosts(self) -> list[str]:
        """Return the host of each article."""
        return [one.host for one in self.articles]

    def sketches(self) -> Sketches:
        """Return the sketches of all articles."""
        return Sketches.of(
            [pack(iter_terms(one.title, one.text, one.lang)) for one in self.articles],
            [one.lang for one in self.articles],
            self.hosts,
            [one.hour for one in self.articles],
        )

    def features(self, sketches: Sketches) -> Ints:
        """Return the numbers of all pairs."""
        parts = np.array_split(np.arange(len(self.left)), max(len(self.left) // 1000, 1))
        return np.concatenate(
            [pair_features(sketches, self.left[one], sketches, self.right[one]) for one in parts]
        )


def fit(features: Ints, ratings: Floats, weights: Floats) -> list[list[list[int]]]:
    """Return trees learned from the numbers of pairs."""
    data = lightgbm.Dataset(features, ratings, weight=weights)
    booster = lightgbm.train(_PARAMETERS, data, TREES)
    found = [tree_nodes(tree["tree_structure"]) for tree in booster.dump_model()["tree_info"]]
    return [_padded(tree) for tree in found]


def _padded(tree: list[list[int]]) -> list[list[int]]:
    """Return a tree with all leaves: those that it lacks follow a split that no pair fails."""
    while sum(len(node) == 1 for node in tree) < _LEAVES:
        at = next(place for place, node in enumerate(tree) if len(node) == 1)
        value = tree[at]
        tree[at] = [0, 1 << 20, len(tree), len(tree) + 1]
        tree += [value, value]
    return tree


class Folds:
    """Scores pairs by models that saw neither host; pairs between folds are not learned from."""

    def __init__(self, pairs: RatedPairs, features: Ints) -> None:
        self._pairs, self._features = pairs, features
        self.folds = np.array([zlib.crc32(host.encode()) % FOLDS for host in pairs.hosts])
        self._models: dict[tuple[int, int, bool], list[list[list[int]]]] = {}

    def model(self, one: int, other: int, *, cross: bool = True) -> StoryModel:
        """Return a model that saw no host of two folds, or no pair of two languages either."""
        key = (min(one, other), max(one, other), cross)
        if key not in self._models:
            kept = ~np.isin(self.folds, key[:2])
            chosen = kept[self._pairs.left] & kept[self._pairs.right]
            self._models[key] = self._fit(chosen & (cross | ~self._pairs.is_cross))
        return StoryModel(parse_trees(self._models[key]), 0, 0)

    def _fit(self, chosen: Mask) -> list[list[list[int]]]:
        weights = np.where(self._pairs.is_cross, _CROSS_WEIGHT, 1.0)
        return fit(self._features[chosen], self._pairs.ratings[chosen], weights[chosen])

    def scores(self, *, cross: bool = True) -> Ints:
        """Return the score of every pair; without `cross`, only pairs of two languages count."""
        one, other = self.folds[self._pairs.left], self.folds[self._pairs.right]
        low, high = np.minimum(one, other), np.maximum(one, other)
        wanted = np.ones(len(low), bool) if cross else self._pairs.is_cross
        found = np.zeros(len(low), dtype=np.int64)
        for a, b in sorted(set(zip(low[wanted].tolist(), high[wanted].tolist(), strict=True))):
            mine = wanted & (low == a) & (high == b)
            found[mine] = self.model(a, b, cross=cross).trees.scores(self._features[mine])
        return found

    def held_out(self) -> Mapping[str, float]:
        """Return the correlation on each language by a model that saw no pair of it."""
        found = {}
        for language in sorted({one for one in self._pairs.languages if "-" not in one}):
            parts = [language in names.split("-") for names in self._pairs.languages]
            mine = self._pairs.languages == language
            trees = parse_trees(self._fit(~np.array(parts)))
            scores = trees.scores(self._features[mine])
            found[language] = pearson(scores, self._pairs.ratings[mine])
        return found


def pearson(scores: npt.ArrayLike, ratings: npt.ArrayLike) -> float:
    """Return the correlation of scores and ratings."""
    return float(np.corrcoef(np.asarray(scores, float), np.asarray(ratings, float))[0, 1])


def main() -> None:
    """Score the folds, learn from all pairs, and write the files."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    data = load_settings(os.environ).bench_data
    if not data:
        print("train_stories: set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    pairs = RatedPairs(Path(data, "stories"))
    write_weights(pairs, Path(data))
    features = pairs.features(pairs.sketches())
    weights = np.where(pairs.is_cross, _CROSS_WEIGHT, 1.0)
    write_model(fit(features, pairs.ratings, weights))


def write_model(trees: Sequence[Sequence[Sequence[int]]]) -> None:
    """Write the trees; the scores that a link needs are chosen by `benchmarks.stories`."""
    path = FOLDER / "story_weights.json"
    least = json.loads(path.read_text("utf-8")) if path.exists() else {}
    written = {
        "features": FEATURES,
        "least_score": least.get("least_score", 650),
        "least_root_score": least.get("least_root_score", 500),
        "trees": trees,
    }
    text = json.dumps(written, separators=(",", ":"))
    path.write_text(text + "\n", encoding="utf-8")
    print(f"{path.name}: {len(text) // 1024} KB")


def write_weights(pairs: RatedPairs, data: Path) -> None:
    """Write what words, numbers, places and notions weigh, by the articles that have them."""
    shares: dict[str, float] = {}
    for found in (*_article_shares(pairs, data), *_list_shares()):
        for term, share in found.items():
            shares[term] = max(share, shares.get(term, 0.0))
    shares.update(_notion_shares(pairs))
    by_weight: dict[int, list[str]] = {}
    for term, share in shares.items():
        if share >= _LEAST_SHARE or term[0] in "@=":
            weight = min(round(-10 * math.log(share)), MOST_WEIGHT)
            by_weight.setdefault(weight, []).append(term)
    lines = [f"{weight} {' '.join(sorted(terms))}\n" for weight, terms in sorted(by_weight.items())]
    (FOLDER / "term_weights.txt").write_text("".join(lines), encoding="utf-8")
    print(f"term_weights.txt: {sum(map(len, by_weight.values()))} terms")


def _article_shares(pairs: RatedPairs, data: Path) -> Iterator[Mapping[str, float]]:
    """Yield the share of articles with each term, language by language."""
    texts: dict[str, list[str]] = {}
    for one in pairs.articles:
        texts.setdefault(one.lang, []).append(f"{one.title}\n{one.text[:MAX_CHARS]}")
    # The pairs have no Chinese and Russian articles; pages of the extractor's benchmark are some.
    for file in sorted(data.glob("articles/corpus/*/truth/*.json")):
        page = json.loads(file.read_text("utf-8"))
        if page["lang"] in ("zh", "ru") and page["body"]:
            body = page["body"][:MAX_CHARS]
            texts.setdefault(page["lang"], []).append(f"{page['title'] or ''}\n{body}")
    for found in texts.values():
        if len(found) >= _LEAST_ARTICLES:
            counts = Counter(term for text in found for term in _term_texts(text))
            yield {term: count / len(found) for term, count in counts.items() if count > 1}


def _term_texts(text: str) -> Iterable[str]:
    words = set(tokens(text))
    return {f"#{number_text(one)}" if one[0].isdigit() else word_prefix(one) for one in words}


def _list_shares() -> Iterator[Mapping[str, float]]:
    """Yield what the ranks of stop words suggest, by Zipf's law."""
    for name in _LISTS:
        words = files("justext").joinpath(f"stoplists/{name}.txt").read_text("utf-8").split()
        ranks = enumerate(words[:_LISTED_WORDS])
        yield {word_prefix(word): min(0.6, 3 / (rank + 3)) for rank, word in reversed(list(ranks))}


def _notion_shares(pairs: RatedPairs, most: int = 500) -> Mapping[str, float]:
    """Return the share of articles with each place and notion: the mean of languages."""
    by_language: dict[str, list[RatedArticle]] = {}
    for one in pairs.articles:
        by_language.setdefault(one.lang, []).append(one)
    total: dict[str, float] = {}
    for language, articles in by_language.items():
        some = articles[:most]
        for one in some:
            for term in iter_terms(one.title, one.text, language):
                if term.kind in (PLACE, NOTION):
                    share = 1 / len(some) / len(by_language)
                    total[term.text] = total.get(term.text, 0.0) + share
    return {name: max(share, 1e-4) for name, share in total.items()}


if __name__ == "__main__":
    main()
