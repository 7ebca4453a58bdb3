"""Turn the blocks of a page into a table of integers: one row per block, one column per feature.

All features are integers made of counts, sums and integer divisions, so that the same page gives
the same numbers on every machine. Shares are percentages of the page's prose. Characters of scripts
without spaces count two and a half times, because such a character says as much.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt

from news_platform.articles.blocks import (
    HEADINGS,
    Ints,
    RootPaths,
    TextBlocks,
    count_unspaced,
    is_credit,
    is_date,
    is_pointer,
)
from news_platform.text.normalize import normalize_letters, normalize_lines

_SENTENCE_ENDS = frozenset(".!?…:;\"”»’'。！？)")
# Characters that are counted, as bits of a table by code point; higher ones are counted as none.
_IS_COMMA, _IS_DIGIT, _IS_CAPITAL, _IS_UNSPACED = 1, 2, 4, 8
_HIGHEST_CODE = 0x1FFFF
_COMMAS = ",，、،;；"
_CAPITALS = re.compile(r"[A-ZÀ-ÞА-Я]")
_LINE_BREAK, _SPACE = 10, 32
# From tags that never hold a paragraph to those that do.
_TAG_ORDER = (
    "h1 h2 h3 h4 h5 h6 figcaption caption dt dd th td tr li a span label time address form option "
    "center div section article main header aside footer nav ul ol table figure body blockquote "
    "pre p"
)
_TAG_CODES = {tag: code for code, tag in enumerate(_TAG_ORDER.split())}
_OTHER_TAG = _TAG_CODES["label"]
LAST_HEADING = _TAG_CODES["h6"]
_LISTED = frozenset(("li", "td", "th", "dd", "dt"))
# Elements that are one piece of text: their parent is the container.
_TEXT_TAGS = (
    HEADINGS
    | _LISTED
    | frozenset(("p", "blockquote", "pre", "span", "a", "figcaption", "label", "time"))
)
# Elements that a block lies in, as bits.
_IN_LIST, _IN_TABLE, _IN_FIGURE, _IN_ASIDE, _IN_HEADER, _IN_MAIN = 1, 2, 4, 8, 16, 32
_CONTEXT_BITS = {
    "li": _IN_LIST,
    "table": _IN_TABLE,
    "figure": _IN_FIGURE,
    "figcaption": _IN_FIGURE,
    "aside": _IN_ASIDE,
    "nav": _IN_ASIDE,
    "footer": _IN_ASIDE,
    "header": _IN_HEADER,
    "main": _IN_MAIN,
}
# Of the beginning of a block that is compared with the stated title, summary and body.
_COMPARED_CHARS = 400
_MIN_STATED_BODY = 200


@dataclass(frozen=True, slots=True)
class StatedTexts:
    """What the page states about its article; each may be empty.

    `is_news`, `article_type` and `parts` (ingredients, steps, questions, answers) change which
    blocks are text, not their features.
    """

    title: str = ""
    description: str = ""
    body: str = ""
    is_news: bool = False
    article_type: str = ""
    parts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BlockTable:
    """The features of all blocks by name, and what later steps need of them."""

    columns: dict[str, Ints]
    prose: Ints
    containers: Ints
    headline: int
    stated: StatedTexts
    holders: Ints
    paths: RootPaths

    def matrix(self) -> Ints:
        """Return the features as one row per block."""
        return np.stack(list(self.columns.values()), axis=1)


def block_table(blocks: TextBlocks, stated: StatedTexts) -> BlockTable:
    """Return the features of the blocks; there must be at least one block."""
    page = _Page(blocks)
    headline, stated_columns = _stated_columns(page, stated)
    columns = {
        **_text_columns(page),
        **stated_columns,
        **_neighbour_columns(page),
        **_container_columns(page),
        **_position_columns(page, headline),
    }
    return BlockTable(
        columns, page.prose, page.containers, headline, stated, page.holders, page.paths
    )


class _Page:
    """The counts of blocks and elements that all features are made of."""

    def __init__(self, blocks: TextBlocks) -> None:
        self.blocks = blocks
        texts = blocks.texts
        self.holders = _ints(blocks.holders)
        self.parents = _ints(blocks.parents)
        self.paths = RootPaths(self.parents)
        self.starts, self.ends = _ints(blocks.starts), _ints(blocks.ends)
        self.characters = characters = _CharacterCounts(texts)
        self.raw, self.unspaced = characters.sizes, characters.count(_IS_UNSPACED)
        self.size = self.raw + self.unspaced * 3 // 2
        links = np.minimum(_ints(blocks.link_chars), self.raw)
        self.link_share = links * 100 // np.maximum(self.raw, 1)
        self.commas = characters.count(_IS_COMMA)
        self.ends_sentence = _ints([text[-1] in _SENTENCE_ENDS for text in texts])
        self.holder_tags = [blocks.tags[holder] for holder in blocks.holders]
        self.tag_codes = _ints([_TAG_CODES.get(tag, _OTHER_TAG) for tag in self.holder_tags])
        self.prose = self._prose()
        self.prose_before = _running_sum(self.prose)
        self.total = max(int(self.prose_before[-1]), 1)
        self.element_prose = self.within(self.prose_before)
        self.element_size = self.within(_running_sum(self.size))
        self.element_links = self.within(_running_sum(self.size * self.link_share // 100))
        self.containers = np.where(
            [tag in _TEXT_TAGS for tag in self.holder_tags],
            self.parents[self.holders],
            self.holders,
        )
        self.scores = self._scores()
        self.top = int(np.argmax(self.scores))

    def _prose(self) -> Ints:
        """Return the characters of each block that count as prose; 0 for menus and labels."""
        # A short line without the end of a sentence is a label, a button or a teaser's title.
        label = (self.size < 25) | ((self.size < 80) & (self.ends_sentence == 0))
        no_prose = label | (self.tag_codes <= LAST_HEADING) | (self.link_share > 50)
        prose = np.where(no_prose, 0, self.size * (100 - self.link_share) // 100)
        # List items and table cells are often menus.
        return np.where([tag in _LISTED for tag in self.holder_tags], prose // 2, prose)

    def _scores(self) -> Ints:
        """Return the score of each element as a container of prose.

        Length and commas of a block count for its container, and half for the container's parent;
        links reduce the score. (The method of Readability.)
        """
        counted = (self.size >= 25) & (self.link_share < 50) & (self.tag_codes > LAST_HEADING)
        points = np.where(counted, 10 + 10 * self.commas + np.minimum(self.size // 10, 30), 0)
        scores = np.zeros(len(self.parents), dtype=np.int64)
        np.add.at(scores, self.containers, points)
        np.add.at(scores, self.parents[self.containers], points // 2)
        return scores * (self.element_size - self.element_links) // np.maximum(self.element_size, 1)

    def within(self, running: Ints) -> Ints:
        """Return the sum of each element's blocks, given the running sum over all blocks."""
        return running[self.ends] - running[self.starts]

    def share(self, prose: Ints) -> Ints:
        """Return prose as a percentage of the page's."""
        return prose * 100 // self.total


class _CharacterCounts:
    """Counts of kinds of characters in each of some texts, none of which is empty."""

    def __init__(self, texts: Sequence[str]) -> None:
        joined = "\n".join(texts).encode("utf-32-le")
        self._codes = np.frombuffer(joined, dtype=np.uint32)
        self._kinds = _character_kinds()[np.minimum(self._codes, _HIGHEST_CODE)]
        self.sizes = _ints(list(map(len, texts)))
        self._starts = _running_sum(self.sizes + 1)[:-1]

    def count(self, kind: int) -> Ints:
        """Return the number of characters of this kind in each text."""
        return np.add.reduceat(self._kinds & kind, self._starts, dtype=np.int64) // kind

    def count_opening(self, kind: int) -> Ints:
        """Return the number of words that open with a character of this kind."""
        before = self._codes[:-1]
        opens = (before == _SPACE) | (before == _LINE_BREAK)
        found = self._kinds & kind
        found[1:] *= opens
        return np.add.reduceat(found, self._starts, dtype=np.int64) // kind


@cache
def _character_kinds() -> npt.NDArray[np.uint8]:
    characters = list(map(chr, range(_HIGHEST_CODE + 1)))
    kinds = np.zeros(len(characters), dtype=np.uint8)
    for kind, is_kind in (
        (_IS_COMMA, _COMMAS.__contains__),
        (_IS_DIGIT, str.isdecimal),
        (_IS_CAPITAL, _CAPITALS.match),
        (_IS_UNSPACED, count_unspaced),
    ):
        kinds |= np.where(list(map(bool, map(is_kind, characters))), kind, 0).astype(np.uint8)
    # Above this there are no digits, and no capitals, commas or scripts that are counted.
    kinds[_HIGHEST_CODE] = 0
    return kinds


def _ints(values: Sequence[int]) -> Ints:
    return np.array(values, dtype=np.int64)


def _running_sum(values: Ints) -> Ints:
    """Return the sum of all values before each position, and of all values at the end."""
    return np.concatenate((_ints([0]), np.cumsum(values)))


def _text_columns(page: _Page) -> dict[str, Ints]:
    """Return what the text of each block says by itself."""
    texts, lowered = page.blocks.texts, page.blocks.lowered
    # The marks of pointers open lines of code as well.
    pointers = [
        tag != "pre" and is_pointer(text)
        for tag, text in zip(page.holder_tags, lowered, strict=True)
    ]
    words = _ints([text.count(" ") + 1 for text in texts])
    digits, capitals = page.characters.count(_IS_DIGIT), page.characters.count_opening(_IS_CAPITAL)
    endings = [1 if text[-1] in ".!?。！？…" else 2 if text[-1] == ":" else 0 for text in texts]
    return {
        "size": page.size,
        "words": words,
        "link_share": page.link_share,
        "commas": page.commas,
        "ends_sentence": page.ends_sentence,
        "ending": _ints(endings),
        "digit_share": digits * 100 // np.maximum(page.raw, 1),
        "capital_share": capitals * 100 // words,
        "tag": page.tag_codes,
        "after_br": _ints(page.blocks.is_after_br),
        "pointer_line": _ints(pointers),
        "credit_line": _ints(list(map(is_credit, lowered))),
        "date_line": _ints(list(map(is_date, lowered))),
        "prose": page.prose,
    }


def _stated_columns(page: _Page, stated: StatedTexts) -> tuple[int, dict[str, Ints]]:
    """Return the block of the headline or -1, and how blocks agree with what the page states."""
    # All texts at once, since most of them are short.
    compared = "\n".join([text[:_COMPARED_CHARS] for text in page.blocks.texts])
    letters = normalize_lines(compared).split("\n")
    title, summary = normalize_letters(stated.title), normalize_letters(stated.description)
    body = normalize_letters(stated.body) if len(stated.body) >= _MIN_STATED_BODY else ""
    known = [1 if len(text) > 4 and text[:80] in body else 0 for text in letters]
    copies = Counter(letters)
    return _headline(letters, page.holder_tags, title), {
        "is_title": _ints([bool(title) and len(t) > 8 and t in title for t in letters]),
        "in_description": _ints([len(t) > 30 and t[:40] in summary for t in letters]),
        "in_stated_body": _ints(known if body else [-1] * len(letters)),
        "copies": _ints([copies[text] for text in letters]),
    }


def _headline(letters: Sequence[str], tags: Sequence[str], title: str) -> int:
    """Return the block that shows the title: an `<h1>` first, any block else, or -1."""
    shown = [
        number
        for number, text in enumerate(letters)
        if title
        and len(text) > 8
        and (text in title or (title in text and len(text) < 2 * len(title)))
    ]
    headings = [number for number in shown if tags[number] == "h1"]
    if headings or shown:
        return (headings or shown)[0]
    return next((number for number, tag in enumerate(tags) if tag == "h1"), -1)


def _neighbour_columns(page: _Page) -> dict[str, Ints]:
    """Return what stands beside each block."""
    order = np.arange(len(page.size))

    def around(reach: int) -> Ints:
        last = np.minimum(order + reach + 1, len(order))
        return page.prose_before[last] - page.prose_before[np.maximum(order - reach, 0)]

    return {
        "prose_around_2": around(2),
        "prose_around_5": around(5),
        "share_around_10": page.share(around(10)),
        "prose_previous": _previous(page.prose),
        "prose_next": _next(page.prose),
        "links_previous": _previous(page.link_share),
        "links_next": _next(page.link_share),
        "size_previous": _previous(page.size),
        "size_next": _next(page.size),
    }


def _previous(values: Ints) -> Ints:
    return np.concatenate((_ints([0]), values[:-1]))


def _next(values: Ints) -> Ints:
    return np.concatenate((values[1:], _ints([0])))


def _container_columns(page: _Page) -> dict[str, Ints]:
    """Return what surrounds each block: its container, the elements above, the best container."""
    one = page.containers
    two = page.parents[one]
    three = page.parents[two]
    four = page.parents[three]
    counts = page.ends - page.starts
    best = max(int(page.scores[page.top]), 1)
    size = np.maximum(page.element_size, 1)
    paths = _ElementPaths(page)
    bits = paths.bits[page.holders]
    article = paths.article[page.holders]
    columns = {
        "score_1": page.scores[one] * 100 // best,
        "score_2": page.scores[two] * 100 // best,
        "score_3": page.scores[three] * 100 // best,
        "score_4": page.scores[four] * 100 // best,
        "share_1": page.share(page.element_prose[one]),
        "share_2": page.share(page.element_prose[two]),
        "share_3": page.share(page.element_prose[three]),
        "share_4": page.share(page.element_prose[four]),
        "share_5": page.share(page.element_prose[page.parents[four]]),
        "links_1": page.element_links[one] * 100 // size[one],
        "links_2": page.element_links[two] * 100 // size[two],
        "blocks_1": counts[one],
        "blocks_2": counts[two],
        "prose_share_1": page.element_prose[one] * 100 // size[one],
        "prose_share_2": page.element_prose[two] * 100 // size[two],
        "mean_size_1": size[one] // np.maximum(counts[one], 1),
        "alike_0": paths.alike[page.holders],
        "alike_1": paths.alike[one],
        "alike_2": paths.alike[two],
        "alike_above": paths.alike_above[two],
        "below_top": paths.below_top[page.holders],
        "above_top": paths.above_top[page.holders],
        "depth": paths.depth[page.holders],
        "share_article": np.where(article > 0, page.share(page.element_prose[article]), -1),
        "share_alike": _share_of_alike(page, paths.looks),
    }
    for name, bit in (
        ("in_list", _IN_LIST),
        ("in_table", _IN_TABLE),
        ("in_figure", _IN_FIGURE),
        ("in_aside", _IN_ASIDE),
        ("in_header", _IN_HEADER),
        ("in_main", _IN_MAIN),
    ):
        columns[name] = (bits & bit) // bit
    return columns


class _ElementPaths:
    """What lies on the way from the root to each element."""

    def __init__(self, page: _Page) -> None:
        blocks, numbers = page.blocks, np.arange(len(page.parents))
        tags, parents, paths = blocks.tags, page.parents, page.paths
        looks: dict[tuple[str, str | None], int] = {}
        self.looks = _ints(
            [looks.setdefault(look, len(looks)) for look in zip(tags, blocks.classes, strict=True)]
        )
        _, places, counts = np.unique(
            parents * len(looks) + self.looks, return_inverse=True, return_counts=True
        )
        self.depth = paths.total(np.minimum(numbers, 1))
        self.article = paths.most(np.where([tag == "article" for tag in tags], numbers, 0))
        self.bits = paths.joined(_ints([0, *(_CONTEXT_BITS.get(tag, 0) for tag in tags[1:])]))
        above = _levels_above(page.top, blocks.parents)
        distance = np.full(len(numbers), len(numbers))
        distance[list(above)] = list(above.values())
        self.above_top = paths.least(distance)
        is_below = self.above_top == 0
        self.below_top = np.where(is_below, self.depth - self.depth[page.top], -1)
        self.alike = counts[places]
        self.alike[0] = 1
        # Paragraphs are alike in every article; comments and teasers are alike as boxes.
        self.alike_above = paths.most(np.where([tag == "p" for tag in tags], 1, self.alike))


def _levels_above(element: int, parents: Sequence[int]) -> dict[int, int]:
    """Return the element and those above it, each with its distance."""
    levels = {element: 0}
    while element:
        levels[parents[element]] = levels[element] + 1
        element = parents[element]
    return levels


def _share_of_alike(page: _Page, looks: Ints) -> Ints:
    """Return the share of prose in elements that look like a block's, with parents that do too."""
    kinds = looks[page.holders] * (int(looks.max()) + 1) + looks[page.parents[page.holders]]
    _, places = np.unique(kinds, return_inverse=True)
    prose = np.zeros(len(places), dtype=np.int64)
    np.add.at(prose, places, page.prose)
    return page.share(prose[places])


def _position_columns(page: _Page, headline: int) -> dict[str, Ints]:
    """Return where each block stands on the page, from the headline and in its container."""
    order, before = np.arange(len(page.size)), page.prose_before[:-1]
    same = np.ones(len(order), dtype=np.int64)
    start, end = int(page.starts[page.top]), int(page.ends[page.top])
    first = page.starts[page.containers]
    has_headline = headline >= 0
    return {
        "from_headline": np.clip(order - headline, -50, 200) if has_headline else -99 * same,
        "prose_from_headline": np.clip(before - page.prose_before[headline], -5000, 20000)
        if has_headline
        else -9999 * same,
        "prose_position": before * 100 // page.total,
        "from_top_start": np.clip(order - start, -100, 300),
        "to_top_end": np.clip(end - order, -300, 300),
        "container_position": order - first,
        "prose_in_container_before": before - page.prose_before[first],
        "page_prose": min(page.total, 200_000) * same,
        "page_blocks": len(order) * same,
        "page_share_of_top": int(page.element_prose[page.top]) * 100 // page.total * same,
        "page_unspaced": int(page.unspaced.sum()) * 100 // max(int(page.raw.sum()), 1) * same,
    }
