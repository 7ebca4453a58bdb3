"""Measure the guessed category on unseen sites: `python -m benchmarks category`.

Labels are the sections that pages state and the folders of their addresses, which the model does
not see. `python -m benchmarks.category --write` learns from all of them and writes the weights.
`package` is what the weights of the package reach: with other data than they were learned from, it
is the figure to believe.
"""

import argparse
import gzip
import json
import os
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import minimize

import news_platform.articles
from benchmarks import RESULTS_FOLDER
from benchmarks.article_pages import iter_labelled_pages, page_url
from news_platform.articles.article import (
    Category,
    CategoryModel,
    category_words,
    load_category_model,
    stated_category,
)
from news_platform.articles.extract import inspect_page
from news_platform.settings import load_settings
from news_platform.web.urls import registrable_domain, url_host

WEIGHTS = Path(news_platform.articles.__file__).parent / "category_weights.json"
RESULTS = RESULTS_FOLDER / "category.json"
CLASSES: tuple[Category, ...] = ("other", "politics", "sports")
FOLDS = 5
# Languages with fewer labels of a class are reported, not promised.
ENOUGH = 50
_MIN_SITES = 3
_MOST_WORDS = 4_000
_MIN_CHARS = 200
_LAMBDA = 0.03
# The count of known words says more than any one word.
_COUNT_WEIGHT = 2
# Rare classes count more, though not as much as all others together.
_BALANCE = 0.7
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledArticle:
    """The features of an article, its stated category, its site and its language."""

    site: str
    language: str
    label: Category
    words: frozenset[str]


def read_articles(data: Path) -> list[LabelledArticle]:
    """Return the articles whose section or address names a category, each address once."""
    found: dict[str, LabelledArticle] = {}
    for url, language, section, title, text in (*_stories(data), *_pages(data)):
        label = stated_category(url=url, section=section)
        if label is not None and len(text) > _MIN_CHARS:
            site = registrable_domain(url_host(url))
            words = category_words(title, text)
            found.setdefault(url, LabelledArticle(site, language, label, words))
    return list(found.values())


def _stories(data: Path) -> Iterator[tuple[str, str, str, str, str]]:
    with gzip.open(data / "stories" / "articles.jsonl.gz", "rt", encoding="utf-8") as lines:
        for one in map(json.loads, lines):
            yield one["url"], one["lang"], "", one["title"] or "", one["text"] or ""


def _pages(data: Path) -> Iterator[tuple[str, str, str, str, str]]:
    for page in iter_labelled_pages(data / "articles"):
        url = page_url(page.html, page.url)
        found = inspect_page(page.html, url) if url else None
        if found is not None:
            article = found.article
            yield url, article.language, article.section, article.title, article.clean_text


def learn(articles: Sequence[LabelledArticle]) -> CategoryModel:
    """Return a model of the words that say most, learned once more from these alone."""
    sites: dict[str, set[str]] = defaultdict(set)
    for one in articles:
        for word in one.words:
            sites[word].add(one.site)
    vocabulary = sorted(word for word, known in sites.items() if len(known) >= _MIN_SITES)
    weights, _ = _fit(articles, vocabulary)
    told = np.abs(weights[:, 1:] - weights[:, :1]).max(axis=1)
    vocabulary = sorted(vocabulary[at] for at in np.argsort(-told)[:_MOST_WORDS])
    weights, bias = _fit(articles, vocabulary)
    # Only differences matter: what speaks for other is 0.
    own = np.rint(1000 * (weights[:, 1:] - weights[:, :1])).astype(int)
    base = np.rint(1000 * (bias[1:] - bias[0])).astype(int).tolist()
    rows = {
        word: (feature_weight(word) * int(row[0]), feature_weight(word) * int(row[1]))
        for word, row in zip(vocabulary, own, strict=True)
    }
    return CategoryModel((base[0], base[1]), rows)


def feature_weight(word: str) -> int:
    """Return how much a feature counts beside the others."""
    return _COUNT_WEIGHT if " " in word else 1


def _fit(articles: Sequence[LabelledArticle], vocabulary: list[str]) -> tuple[Floats, Floats]:
    """Return the weights and biases of a multinomial logistic regression."""
    matrix = _matrix(articles, vocabulary)
    labels = np.array([CLASSES.index(one.label) for one in articles])
    counts, of_site = Counter(labels.tolist()), Counter((it.site, it.label) for it in articles)
    sizes = [
        (len(articles) / counts[label]) ** _BALANCE / of_site[one.site, one.label] ** 0.5
        for one, label in zip(articles, labels.tolist(), strict=True)
    ]
    size = np.array(sizes) / np.mean(sizes)
    width, wanted = len(vocabulary) * len(CLASSES), np.eye(len(CLASSES))[labels]

    def loss(flat: Floats) -> tuple[float, Floats]:
        weights, bias = flat[:width].reshape(-1, len(CLASSES)), flat[width:]
        scores = matrix @ weights + bias
        odds = np.exp(scores - scores.max(axis=1, keepdims=True))
        odds /= odds.sum(axis=1, keepdims=True)
        told = np.log(odds[np.arange(len(labels)), labels] + 1e-12)
        error = (odds - wanted) * size[:, None]
        slope = matrix.T @ error + _LAMBDA * weights
        value = -(size * told).sum() + _LAMBDA / 2 * (weights**2).sum()
        return float(value), np.concatenate([slope.ravel(), error.sum(axis=0)])

    start = np.zeros(width + len(CLASSES))
    done = minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": 60})
    return done.x[:width].reshape(-1, len(CLASSES)), done.x[width:]


def _matrix(articles: Sequence[LabelledArticle], vocabulary: list[str]) -> sp.csr_matrix:
    place = {word: at for at, word in enumerate(vocabulary)}
    values, columns, starts = [], [], [0]
    for one in articles:
        known = sorted(place[word] for word in one.words if word in place)
        values += [feature_weight(vocabulary[at]) / max(len(known), 1) ** 0.5 for at in known]
        columns += known
        starts.append(len(columns))
    return sp.csr_matrix((values, columns, starts), shape=(len(articles), len(vocabulary)))


def _fold(article: LabelledArticle) -> int:
    return zlib.crc32(f"fold {article.site}".encode()) % FOLDS


Pairs = Sequence[tuple[str, str]]


def figures(articles: Sequence[LabelledArticle]) -> dict[str, dict[str, object]]:
    """Return macro F1 by language: on sites that the model has seen, and on others."""
    seen, package = learn(articles), load_category_model()
    unseen: dict[int, CategoryModel] = {
        fold: learn([one for one in articles if _fold(one) != fold]) for fold in range(FOLDS)
    }
    by_language: dict[str, list[LabelledArticle]] = defaultdict(list)
    for one in articles:
        by_language[one.language].append(one)
    rows: dict[str, dict[str, object]] = {}
    for language, own in sorted(by_language.items(), key=lambda item: -len(item[1])):
        labels = Counter(one.label for one in own)
        rows[language] = {
            "articles": len(own),
            **{name: labels[name] for name in CLASSES},
            "seen": macro_f1([(one.label, seen.category(one.words)) for one in own]),
            "unseen": macro_f1([(it.label, unseen[_fold(it)].category(it.words)) for it in own]),
            "package": macro_f1([(one.label, package.category(one.words)) for one in own]),
            "is_promised": min(labels[name] for name in CLASSES) >= ENOUGH,
        }
    return rows


def macro_f1(pairs: Pairs) -> float:
    """Return the mean of the F1 of the classes; a class that never occurs counts as 0."""
    scores = []
    for name in CLASSES:
        right = sum(label == name == guess for label, guess in pairs)
        either = sum((label == name) + (guess == name) for label, guess in pairs)
        scores.append(2 * right / either if either else 0.0)
    return round(sum(scores) / len(scores), 3)


def write_weights(model: CategoryModel) -> None:
    """Write the weights file of the package."""
    kept = {word: own for word, own in sorted(model.weights.items()) if any(own)}
    text = json.dumps(
        {"bias": model.bias, "weights": kept}, ensure_ascii=False, separators=(",", ":")
    )
    WEIGHTS.write_text(text + "\n", encoding="utf-8")


def main(*, write: bool = False) -> None:
    """Print one table and store its numbers; write the weights of the package if asked to."""
    bench_data = load_settings(os.environ).bench_data
    if not bench_data:
        print("category: skipped, NEWS_PLATFORM_BENCH_DATA is not set")
        return
    articles = read_articles(Path(bench_data))
    if write:
        write_weights(learn(articles))
        load_category_model.cache_clear()
    rows = figures(articles)
    RESULTS.write_text(json.dumps(rows, indent=1) + "\n")
    for language, row in rows.items():
        print(f"{language:<4}" + "".join(f"  {name} {value}" for name, value in row.items()))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write the weights of the package")
    main(write=parser.parse_args().write)
