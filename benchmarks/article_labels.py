"""Labelled pages in, the blocks of each page with the share that is article text out."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.article_pages import LabelledPage, fold
from news_platform.articles.block_features import BlockTable, block_table
from news_platform.articles.blocks import TextBlocks
from news_platform.articles.body import page_blocks
from news_platform.articles.extract import parse_article_metadata, stated_texts
from news_platform.html.decode import parse_document
from news_platform.text.normalize import UNSPACED

_TOKEN = re.compile(rf"[{UNSPACED}]|[^\W{UNSPACED}]+")
_GRAM = 3
_UNKNOWN = -1.0
# Pages with snippets only count less than pages with a whole body.
_SNIPPET_WEIGHT = 0.7
# One long block must not outweigh the rest of its page.
_MAX_WEIGHT = 0.6

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class LabelledBlocks:
    """The blocks of a page; `labels` is the share of article text, -1 where nobody knows."""

    page: LabelledPage
    blocks: TextBlocks
    table: BlockTable
    labels: Floats
    weights: Floats


def label_blocks(page: LabelledPage) -> LabelledBlocks | None:
    """Return the labelled blocks of a page; None for a page without text."""
    root = parse_document(page.html)
    if root is None:
        return None
    blocks = page_blocks(root)
    if not blocks.texts:
        return None
    table = block_table(blocks, stated_texts(parse_article_metadata(root, url=page.url)))
    tokens = np.array([len(_tokens(text)) for text in blocks.texts])
    if page.body:
        labels = body_labels(blocks.texts, page.body)
        # Blocks count by their share of the article: a menu of the same size hurts as much.
        weights = np.minimum((tokens + 1) / max((labels * tokens).sum(), 20), _MAX_WEIGHT)
    else:
        labels = _snippet_labels(blocks.texts, page)
        known = labels >= 0
        weights = np.where(known, (tokens + 2) / (tokens[known].sum() + 10) * _SNIPPET_WEIGHT, 0)
    return LabelledBlocks(page, blocks, table, labels, weights)


def _tokens(text: str) -> list[str]:
    """Return the words in lower case; in scripts without spaces, the characters."""
    return _TOKEN.findall(text.lower())


def body_labels(texts: Sequence[str], body: str) -> Floats:
    """Return the share of each block's words that the body has in the same order."""
    words = _tokens(body)
    grams = {tuple(words[i : i + _GRAM]) for i in range(len(words) - _GRAM + 1)}
    lines = {tuple(_tokens(line)) for line in body.split("\n")}
    joined = f" {' '.join(words)} "
    split = [tuple(_tokens(text)) for text in texts]
    labels = np.array([_share(block, grams, lines, joined) for block in split])
    sizes = np.array([len(block) for block in split])
    _unlabel_copies(labels, sizes, split, joined)
    return labels


def _share(
    block: tuple[str, ...],
    grams: set[tuple[str, ...]],
    lines: set[tuple[str, ...]],
    joined: str,
) -> float:
    if len(block) > _GRAM:
        covered = [False] * len(block)
        for start in range(len(block) - _GRAM + 1):
            if block[start : start + _GRAM] in grams:
                covered[start : start + _GRAM] = [True] * _GRAM
        return sum(covered) / len(block)
    inside = bool(block) and f" {' '.join(block)} " in joined
    if block in lines or (inside and len(block) == _GRAM):
        return 1.0
    return 0.5 if inside and len("".join(block)) > 3 else 0.0


def _unlabel_copies(
    labels: Floats, sizes: npt.NDArray[np.int64], split: Sequence[tuple[str, ...]], joined: str
) -> None:
    """Keep the labels of repeated blocks only as often as the body has them.

    The copies amid other article text come first.
    """
    places: dict[tuple[str, ...], list[int]] = {}
    for place, block in enumerate(split):
        places.setdefault(block, []).append(place)
    density = np.convolve(labels * sizes, np.ones(11), "same")
    for block, copies in places.items():
        if len(copies) > 1 and max(labels[copies]) > 0.5:
            most = max(1, joined.count(f" {' '.join(block)} "))
            labels[sorted(copies, key=lambda place: -density[place])[most:]] = 0.0


def _snippet_labels(texts: Sequence[str], page: LabelledPage) -> Floats:
    folded = [fold(text) for text in texts]
    labels = np.full(len(texts), _UNKNOWN)
    for snippets, label in ((page.must_not_have, 0.0), (page.must_have, 1.0)):
        for snippet in filter(None, map(fold, snippets)):
            labels[[snippet in text for text in folded]] = label
    return labels
