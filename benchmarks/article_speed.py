"""Measure the speed of `extract_article` beside trafilatura, per set of labelled pages.

Both read the same decoded pages in turns, in CPU time; a set's result is the median of the ratios
of five rounds, so that a busy machine weighs on both.
"""

import json
import logging
import os
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from benchmarks import RESULTS_FOLDER
from benchmarks.article_pages import NEWS_SETS, in_sample, iter_labelled_pages
from news_platform.articles.extract import extract_article
from news_platform.html.decode import html_text
from news_platform.settings import load_settings

RESULTS = RESULTS_FOLDER / "article_speed.json"

_ROUNDS = 5
# One page in eight of the corpus takes as long as the publishers.
_CORPUS_SHARE = 8
_AIM = 2.5

Page = tuple[str, str]


def main() -> None:
    """Print and store, per set, how many times as many pages we read per CPU second."""
    data = load_settings(os.environ).bench_data
    if not data:
        print("article_speed: skipped, set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    ratios = {}
    for name, pages in _sets(Path(data) / "articles").items():
        rounds = [_round(pages) for _ in range(_ROUNDS)]
        ratios[name] = round(median(theirs / ours for ours, theirs in rounds), 2)
        ours = median(own for own, _ in rounds)
        print(
            f"{name:<12}{len(pages):>5} pages, {ratios[name]:.2f} times as fast as trafilatura "
            f"(at least {_AIM}), {len(pages) / ours:.1f} pages per CPU second",
            flush=True,
        )
    RESULTS.write_text(json.dumps(ratios, indent=1) + "\n")


def _sets(articles: Path) -> dict[str, list[Page]]:
    sets: dict[str, list[Page]] = {"corpus": [], "publishers": [], "benchmark": []}
    for page in iter_labelled_pages(articles):
        name = page.set_name if page.set_name in NEWS_SETS else "corpus"
        if name in NEWS_SETS or in_sample(page.key, _CORPUS_SHARE):
            sets[name].append((html_text(page.html), page.url))
    return sets


def _round(pages: Sequence[Page]) -> tuple[float, float]:
    """Return the CPU seconds of both; the first call of each imports and loads models."""
    from trafilatura import bare_extraction

    def theirs(html: str, url: str) -> object:
        return bare_extraction(html, url=url or None, with_metadata=True)

    return _seconds(extract_article, pages), _seconds(theirs, pages)


def _seconds(extract: Callable[[str, str], object], pages: Sequence[Page]) -> float:
    extract(*pages[0])
    started = time.process_time()
    for page in pages:
        extract(*page)
    return time.process_time() - started


if __name__ == "__main__":
    main()
