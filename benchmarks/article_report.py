"""Block scores of labelled pages in, the scores of the texts that they select out, by set.

A text is what `extract_article` would return with these block scores, the fallbacks for pages with
little text included.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from pathlib import Path

import numpy as np

from benchmarks.article_labels import LabelledBlocks
from benchmarks.article_pages import (
    NEWS_SETS,
    Extracted,
    harmonic_mean,
    in_sample,
    mean_scores,
    page_html,
    page_scores,
)
from news_platform.articles.block_model import SCORE_UNIT
from news_platform.articles.blocks import Ints
from news_platform.articles.body import THRESHOLDS, confidence_of, expected_f1, kept_blocks
from news_platform.articles.extract import clean_text_of
from news_platform.html.decode import html_text

_TEXT_SCORES = ("precision", "recall", "kept", "dropped")
# Sets of thresholds in quarters of the unit of log-odds, from the strictest to the mildest.
_CANDIDATES = ((-1, 0, 1, 2), (-2, -1, 0, 1), (-3, -2, -1, 0), (-4, -3, -2, -1), (-5, -4, -3, -2))
PageScores = Mapping[str, Mapping[str, float]]


def text_scores(
    articles: Path,
    pages: Sequence[LabelledBlocks],
    scores: Mapping[str, Ints],
    thresholds: tuple[int, ...] = THRESHOLDS,
) -> PageScores:
    """Return the scores of each page's text, given the log-odds of its blocks."""
    found = {}
    for page in pages:
        kept = kept_blocks(page.blocks, page.table, scores[page.page.key], thresholds)
        own = "\n".join(page.blocks.texts[number] for number in kept)
        text = _with_fallback(articles, page, own)
        known = page_scores(page.page, Extracted(text))
        found[page.page.key] = {k: v for k, v in known.items() if k in _TEXT_SCORES}
    return found


def _with_fallback(articles: Path, page: LabelledBlocks, own: str) -> str:
    if len(own) >= _ENOUGH:
        return own
    html = html_text(page_html(articles, page.page.key))
    return clean_text_of(html, own, page.table.stated.body)[0]


# No text of this length is replaced; pages are read again only for shorter ones.
_ENOUGH = 250


def report(
    name: str, pages: Sequence[LabelledBlocks], scores: PageScores
) -> dict[str, dict[str, float]]:
    """Print and return the means of the scores by set."""
    groups: dict[str, list[Mapping[str, float]]] = {"corpus": [], "every_5": []}
    for page in pages:
        own = scores[page.page.key]
        groups.setdefault(page.page.set_name, []).append(own)
        if page.page.set_name not in NEWS_SETS:
            groups["corpus"].append(own)
        if in_sample(page.page.key, 5):
            groups["every_5"].append(own)
    means_by_set: dict[str, dict[str, float]] = {}
    for group, values in groups.items():
        means = mean_scores(values)
        shown = " ".join(f"{k} {v:.4f}" for k, v in means.items())
        print(f"{name:<7}{group:<16}{len(values):>5} {shown}", flush=True)
        means_by_set[group] = {key: round(value, 4) for key, value in means.items()}
    return means_by_set


def chosen_thresholds(
    articles: Path,
    pages: Sequence[LabelledBlocks],
    scores: Mapping[str, Ints],
    folds: Mapping[str, int],
) -> dict[str, object]:
    """Choose the thresholds for each fold on the other folds; return the choices and the scores.

    The sum of the corpus's F1, kept and dropped decides. What is chosen this way is what unseen
    pages would get if thresholds were chosen on the labelled ones.
    """
    tried = {
        numbers: text_scores(articles, pages, scores, tuple(n * SCORE_UNIT // 4 for n in numbers))
        for numbers in _CANDIDATES
    }
    choices: dict[str, Sequence[int]] = {}
    unseen: dict[str, Mapping[str, float]] = {}
    for fold in sorted(set(folds.values())):
        others = [key for key, own in folds.items() if own != fold]
        best = max(_CANDIDATES, key=lambda numbers: _worth(tried[numbers], others))
        choices[str(fold)] = best
        unseen |= {key: tried[best][key] for key, own in folds.items() if own == fold}
    for numbers in _CANDIDATES:
        print(f"thresholds {numbers}: {_worth(tried[numbers], list(folds)):.4f}")
    print("thresholds by fold:", choices)
    return {"choices": choices, "scores": report("nested", pages, unseen)}


def _worth(scores: PageScores, keys: Sequence[str]) -> float:
    means = mean_scores(scores[key] for key in keys if key.partition("/")[0] not in NEWS_SETS)
    return means["f1"] + means["kept"] + means["dropped"]


def confidence_steps(
    pages: Sequence[LabelledBlocks], scores: dict[str, Ints]
) -> list[tuple[int, int]]:
    """Return expected F1 and the mean measured F1 of twelve groups of unseen pages, rising."""
    groups = np.array_split(np.array(sorted(_expected_and_measured(pages, scores))), 12)
    steps, least = [(0, 0)], 0
    for group in groups:
        least = max(least, round(1000 * float(group[:, 1].mean())))
        steps.append((round(float(group[:, 0].mean())), least))
    return [*steps, (1000, max(least, 990))]


def _expected_and_measured(
    pages: Sequence[LabelledBlocks], scores: dict[str, Ints]
) -> list[tuple[int, float]]:
    """Return the F1 that the model expects of each page with a labelled body, and the real one."""
    pairs = []
    for page in pages:
        if page.page.body:
            own = scores[page.page.key]
            kept = kept_blocks(page.blocks, page.table, own)
            expected = expected_f1(page.table.columns["size"], own, kept) if kept else 0
            text = "\n".join(page.blocks.texts[number] for number in kept)
            found = page_scores(page.page, Extracted(text))
            pairs.append((expected, harmonic_mean(found["precision"], found["recall"])))
    return pairs


def confidence_tenths(
    pages: Sequence[LabelledBlocks], scores: dict[str, Ints], steps: Sequence[tuple[int, int]]
) -> list[tuple[float, float]]:
    """Print and return the mean confidence and the mean F1 of each tenth of unseen pages."""
    found = sorted(_expected_and_measured(pages, scores), key=itemgetter(0))
    # Many pages share a confidence: their order is that of what the model expects.
    pairs = [(confidence_of(expected, steps), measured) for expected, measured in found]
    tenths = [group.mean(axis=0) for group in np.array_split(np.array(pairs), 10)]
    shown = [(round(float(one[0]), 3), round(float(one[1]), 3)) for one in tenths]
    print("confidence/F1 by tenth:", ", ".join(f"{a:.2f}/{b:.2f}" for a, b in shown))
    return shown
