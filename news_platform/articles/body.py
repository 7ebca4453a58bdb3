"""Extract the text of the article from the tree of a page, with a confidence.

The learned model scores every block; blocks that are more likely than not part of the article are
its text. Few rules remain, for what the labels of the training pages disagree on: titles, dates,
credits and pointers to other pages are not part of the text, headings at its end introduce
something else, and of several whole articles on one page the first is meant.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

import numpy as np
from lxml import html

from news_platform.articles.block_features import (
    LAST_HEADING,
    BlockTable,
    StatedTexts,
    block_table,
)
from news_platform.articles.block_model import SCORE_UNIT, load_model
from news_platform.articles.blocks import HEADINGS, Ints, TextBlocks, is_notice, text_blocks
from news_platform.text.normalize import normalize_letters

# Blocks are kept from the log-odds of these that promises the best text; of equal promises, the
# longer text. Pages of newsrooms have promotions amid their text: there less risk is taken.
THRESHOLDS = (-SCORE_UNIT // 2, -SCORE_UNIT // 4, 0, SCORE_UNIT // 4)
# What the page states to be a step, an ingredient, a question or an answer is text of an article
# that has such parts (12 of 15 labelled pages).
_STATED_PART = SCORE_UNIT
_UNLIKELY = -3 * SCORE_UNIT
_NEVER = -1_000 * SCORE_UNIT
# On a page where no block is likely, the most likely ones are: a fixed share of the best.
_LEAST_KEPT = -SCORE_UNIT
# The log-odds of the probabilities 0.05, 0.1 and so on; written down, because the logarithm may
# differ in its last digit from machine to machine.
_LOG_ODDS_UP = (2007, 4055, 6190, 8473, 10986, 13863, 17346, 21972, 29444)
_LOG_ODDS = np.array((*(-odds for odds in reversed(_LOG_ODDS_UP)), 0, *_LOG_ODDS_UP))
# Names of the elements around comments; sites also say on their article whether it has comments.
_COMMENT_WORDS = frozenset(("comment", "comments", "commentlist", "disqus", "kommentare"))
_ARTICLE_TAGS = frozenset(("body", "article", "main", "p", "a", "span"))
_LONG = 80
_ENOUGH_TEXT = 500
# Some pages mark every paragraph as a heading.
_PARAGRAPH = 120
# An `<article>` with this percentage of the text is a whole article.
_ARTICLE_SHARE = 15
# Names of the elements around the description of a picture.
_CAPTION_WORDS = frozenset(("tag:figcaption", "caption", "figcaption", "bildunterschrift"))
_MIN_CAPTION = 40
# Letters by which a long stated part is known.
_OPENING = 40
_CELLS = frozenset(("td", "th"))


@dataclass(frozen=True, slots=True)
class BodyPlace:
    """Where the article stands among the blocks: the headline's number or -1, and its own."""

    blocks: TextBlocks
    headline: int
    kept: Sequence[int]


@dataclass(frozen=True, slots=True)
class ArticleBody:
    """The texts of an article: `clean` is its own text, `full` all visible text of the column.

    `links` are the targets of the links in the clean text, as written in the page. `confidence` is
    the F1 to expect of `clean`, 0 to 1.
    """

    clean: str
    full: str
    place: BodyPlace
    links: tuple[str, ...] = ()
    confidence: float = 0.0


def extract_body(root: html.HtmlElement, stated: StatedTexts) -> ArticleBody:
    """Return the article text under `root`; `stated` is what the page says about it."""
    blocks = page_blocks(root)
    if not blocks.texts:
        return ArticleBody("", "", BodyPlace(blocks, -1, ()))
    table, model = block_table(blocks, stated), load_model()
    scores = model.scores(blocks, table)
    kept = kept_blocks(blocks, table, scores)
    place = BodyPlace(blocks, table.headline, kept)
    if not kept:
        return ArticleBody("", "\n".join(blocks.texts), place)
    return ArticleBody(
        clean="\n".join(_lines(blocks, kept)),
        full="\n".join(_column(blocks, kept)),
        place=place,
        links=tuple(_links(blocks, kept)),
        confidence=confidence_of(
            expected_f1(table.columns["size"], scores, kept), model.confidence
        ),
    )


def page_blocks(root: html.HtmlElement) -> TextBlocks:
    """Return the blocks of a page, without its comments if there is enough other text."""
    body = root.find(".//body")
    area = root if body is None else body
    blocks = text_blocks(area)
    comments = [
        number
        for number, (words, tag) in enumerate(zip(blocks.names, blocks.tags, strict=True))
        if number and tag not in _ARTICLE_TAGS and not _COMMENT_WORDS.isdisjoint(words)
    ]
    if not comments:
        return blocks
    sizes = [len(text) if len(text) >= _LONG else 0 for text in blocks.texts]
    total = sum(sizes)
    for number in comments:
        sizes[blocks.starts[number] : blocks.ends[number]] = [0] * (
            blocks.ends[number] - blocks.starts[number]
        )
    # Comments often outweigh the article, so their share says nothing.
    if sum(sizes) == total or sum(sizes) < _ENOUGH_TEXT:
        return blocks
    return text_blocks(area, frozenset(blocks.elements[number] for number in comments))


def kept_blocks(
    blocks: TextBlocks,
    table: BlockTable,
    scores: Ints,
    thresholds: Sequence[int] = THRESHOLDS,
) -> list[int]:
    """Return the numbers of the blocks that are the article's text, in reading order.

    The entries of a live blog all belong to it; the captions of a gallery are its text.
    """
    columns, stated = table.columns, table.stated
    # Lines that only point elsewhere, credit a picture or show the date, and notices of the site,
    # are no text of the article.
    is_line = columns["pointer_line"] | columns["credit_line"] | columns["date_line"]
    # Searching costs time, and unlikely blocks are not kept anyway.
    likely = (scores >= _UNLIKELY).tolist()
    is_line = is_line | [
        ask and is_notice(text) for ask, text in zip(likely, blocks.lowered, strict=True)
    ]
    is_part = _is_stated_part(blocks.texts, stated.parts)
    scores = np.where(is_part, np.maximum(scores, _STATED_PART), scores)
    if stated.is_news and stated.article_type != "gallery":
        is_line[_captions(blocks, is_line)] = 1
    scores = np.where(is_line == 0, scores, _NEVER)
    unsure = _unsure_threshold(columns["size"], scores)
    kept: list[int] = []
    most = -1
    least = thresholds[1:] if stated.is_news else thresholds
    for threshold in dict.fromkeys(min(one, unsure) for one in least):
        chosen = _chosen(blocks, table, scores, threshold)
        expected = expected_f1(columns["size"], scores, chosen)
        if expected > most:
            kept, most = chosen, expected
    return _with_cells(blocks, scores, kept)


def _is_stated_part(texts: Sequence[str], parts: Iterable[str]) -> list[bool]:
    """Return which blocks are one of the stated parts, or open like a long one."""
    known = {normalize_letters(part) for part in parts} - {""}
    openings = {part[:_OPENING] for part in known if len(part) > _OPENING}
    letters = (normalize_letters(text) if known else "" for text in texts)
    return [text in known or text[:_OPENING] in openings for text in letters]


def _with_cells(blocks: TextBlocks, scores: Ints, kept: list[int]) -> list[int]:
    """Return the kept blocks with the cells of tables amid them that are not clearly unlikely.

    A short cell says little by itself; a table beside paragraphs of the article belongs to it.
    """
    beside = {blocks.holders[number] for number in kept}
    beside |= {blocks.parents[holder] for holder in beside}
    cells = [
        number
        for number in (range(kept[0], kept[-1]) if kept else ())
        if blocks.tags[blocks.holders[number]] in _CELLS
        and scores[number] >= THRESHOLDS[0]
        and blocks.parents[_table(blocks, number)] in beside
    ]
    return sorted({*kept, *cells})


def _table(blocks: TextBlocks, number: int) -> int:
    """Return the table around a block, or the root."""
    return next((e for e in _path(blocks, number) if blocks.tags[e] == "table"), 0)


def _chosen(blocks: TextBlocks, table: BlockTable, scores: Ints, least: int) -> list[int]:
    """Return the blocks with at least this score that are the text."""
    columns, article_type = table.columns, table.stated.article_type
    likely = np.flatnonzero(scores >= least)
    untitled = likely[columns["is_title"][likely] == 0]
    # A text of one line may be its own title; the heading above it is not text.
    text = likely[columns["tag"][likely] > LAST_HEADING]
    chosen = next((found for found in (untitled, text, likely) if len(found)), likely)
    kept = [int(number) for number in chosen]
    if article_type == "gallery":
        kept = sorted({*kept, *_gallery_captions(blocks, columns)})
    elif article_type != "live":
        kept = _first_article(blocks, columns["size"], kept)
    while kept and _introduces(blocks, kept[-1]):
        kept.pop()
    return kept


def _gallery_captions(blocks: TextBlocks, columns: dict[str, Ints]) -> Iterator[int]:
    """Yield the blocks that describe a picture at some length, each text once."""
    seen: set[str] = set()
    for number in _captions(blocks, columns["credit_line"]):
        if columns["size"][number] >= _MIN_CAPTION and blocks.texts[number] not in seen:
            seen.add(blocks.texts[number])
            yield number


def _captions(blocks: TextBlocks, is_credit: Ints) -> list[int]:
    """Return the blocks that describe a picture, but not those that only credit it."""
    return [
        number
        for number, holder in enumerate(blocks.holders)
        if not is_credit[number]
        and not (
            _CAPTION_WORDS.isdisjoint(blocks.names[holder])
            and _CAPTION_WORDS.isdisjoint(blocks.names[blocks.parents[holder]])
        )
    ]


def _introduces(blocks: TextBlocks, number: int) -> bool:
    """Return True for a heading that is not itself a paragraph of text."""
    is_heading = blocks.tags[blocks.holders[number]] in HEADINGS
    return is_heading and len(blocks.texts[number]) < _PARAGRAPH


def _unsure_threshold(size: Ints, scores: Ints) -> int:
    """Return the score from which blocks are kept where even the best blocks are unsure."""
    long = np.sort(scores[size >= 80])
    best = int(long[-(len(long) // 10) - 1]) if len(long) else int(scores.max())
    return max(best - SCORE_UNIT // 2, _LEAST_KEPT)


def _first_article(blocks: TextBlocks, size: Ints, kept: list[int]) -> list[int]:
    """Return the blocks of the first of several whole articles (endless scrolling), else all."""
    if blocks.tags.count("article") < 2:
        return kept
    groups: dict[int, list[int]] = {}
    for number in kept:
        around = [e for e in _path(blocks, number) if blocks.tags[e] == "article"]
        groups.setdefault(around[-1] if around else 0, []).append(number)
    # Teasers of other articles are `<article>` elements as well, but with little text.
    least = int(size[kept].sum()) * _ARTICLE_SHARE // 100
    whole = [e for e, numbers in groups.items() if e and int(size[numbers].sum()) >= least]
    if len(whole) < 2 or len({blocks.parents[e] for e in whole}) > 1:
        return kept
    return groups[whole[0]] if _has_h1(blocks, whole[0]) and _has_h1(blocks, whole[1]) else kept


def _has_h1(blocks: TextBlocks, element: int) -> bool:
    inside = takewhile(
        lambda number: blocks.parents[number] >= element, range(element + 1, len(blocks.tags))
    )
    return any(blocks.tags[number] == "h1" for number in inside)


def confidence_of(expected: int, steps: Sequence[tuple[int, int]]) -> float:
    """Return the F1 that pages of an expected F1 have, measured on pages not learned from.

    Both are in thousandths; `steps` are pairs of expected and measured F1, rising.
    """
    before, after = zip(*steps, strict=True)
    place = next((n for n, step in enumerate(before) if step >= expected), len(before) - 1)
    if place == 0 or before[place] <= expected:
        return float(after[place]) / 1000
    low, high = before[place - 1], before[place]
    part = (after[place] - after[place - 1]) * (expected - low) // (high - low)
    return float(after[place - 1] + part) / 1000


def expected_f1(size: Ints, scores: Ints, kept: Sequence[int]) -> int:
    """Return the F1 in thousandths if every block's probability is right."""
    likely = size * _probabilities(scores)
    hits = int(likely[list(kept)].sum())
    found, wanted = int(size[list(kept)].sum()) * 1000, int(likely.sum())
    return 2 * hits * 1000 // max(found + wanted, 1)


def _probabilities(scores: Ints) -> Ints:
    """Return probabilities in thousandths, in steps of 50."""
    return 25 + 50 * np.searchsorted(_LOG_ODDS, scores).astype(np.int64)


def _lines(blocks: TextBlocks, kept: Iterable[int]) -> Iterator[str]:
    """Yield the text of the blocks, with the cells of a table row on one line."""
    row, cells = -1, list[str]()
    for number in kept:
        holder = blocks.holders[number]
        own = blocks.parents[holder] if blocks.tags[holder] in _CELLS else -1
        if cells and own != row:
            yield " ".join(cells)
            cells.clear()
        row = own
        if row < 0:
            yield blocks.texts[number]
        else:
            cells.append(blocks.texts[number])
    if cells:
        yield " ".join(cells)


def _column(blocks: TextBlocks, kept: Sequence[int]) -> Iterator[str]:
    """Yield all text of the smallest `<article>`, `<main>` or other element around the article."""
    shared = set(_path(blocks, kept[0]))
    for number in (kept[len(kept) // 2], kept[-1]):
        shared.intersection_update(_path(blocks, number))
    around = sorted(shared, reverse=True)
    marked = (number for number in around if blocks.tags[number] in ("article", "main"))
    column = next(marked, around[0])
    yield from blocks.texts[blocks.starts[column] : blocks.ends[column]]


def _path(blocks: TextBlocks, number: int) -> Iterator[int]:
    holder = blocks.holders[number]
    while holder:
        yield holder
        holder = blocks.parents[holder]
    yield 0


def _links(blocks: TextBlocks, kept: Iterable[int]) -> Iterator[str]:
    holders = dict.fromkeys(blocks.holders[number] for number in kept if blocks.link_chars[number])
    for holder in holders:
        for link in blocks.elements[holder].iter("a"):
            if target := link.get("href"):
                yield target
