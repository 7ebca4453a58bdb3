"""The tree of a page in, the text of its article out.

Every text block has a weight: its characters of prose. Elements whose class names mark them as
boilerplate are left out, unless such a class covers a large part of the page's prose (then the site
uses the word for something else). From `<body>` the search then goes down to the element that
contains most of the prose, and stops where the prose is spread over several similar children.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

from lxml import html

from news_platform.articles import boilerplate
from news_platform.articles.blocks import HEADINGS, Path, TextBlock, text_blocks
from news_platform.text.normalize import normalize_letters

# All shares and sizes here are empirical: after a change, the F1 on both page sets must stay above
# the floors of `test_the_text_of_real_pages_stays_above_its_floor`.
# A class word that covers this share of the page's prose does not mark boilerplate.
_SPARED_SHARE = 0.35
_SPARED_SHARE_STRONG = 0.6
# A child with this share of the prose contains the article.
_CLEAR_SHARE = 0.75
# This share is enough for an element that is marked as article or body.
_SEMANTIC_SHARE = 0.3
# Similar children with this share are parts of one article.
_CHUNK_SHARE = 0.03
_MAX_ID_LENGTH = 30
_LEAD_SIZES = range(40, 701)

Element: TypeAlias = html.HtmlElement


@dataclass(frozen=True, slots=True)
class ArticleBody:
    """The texts of an article: `clean` is its own text, `full` all visible text of the column.

    `links` are the targets of the links in the clean text, as written in the page.
    """

    clean: str
    full: str
    links: tuple[str, ...] = ()


def extract_body(root: Element, *, description: str) -> ArticleBody:
    """Return the article text under `root`; `description` is the page's own summary."""
    body = root.find(".//body")
    blocks = text_blocks(root if body is None else body)
    prose = _ProseMap(_without_boilerplate(blocks))
    if not prose.blocks:
        return ArticleBody("", _joined(blocks))
    container = prose.container()
    inside = [block for block in prose.blocks if container in block.path]
    lead = _lead_blocks(blocks, inside, description=description)
    column = _column(inside[0].path, container)
    full = [block for block in blocks if column in block.path]
    clean = [*lead, *_without_trailing_headings([b for b in inside if _is_article_line(b)])]
    return ArticleBody(_joined(clean), _joined(full), _links(clean))


def _joined(blocks: Iterable[TextBlock]) -> str:
    return "\n".join(block.text for block in blocks)


def _links(blocks: Iterable[TextBlock]) -> tuple[str, ...]:
    holders = dict.fromkeys(block.path[-1] for block in blocks if block.link_chars)
    return tuple(
        target for holder in holders for link in holder.iter("a") if (target := link.get("href"))
    )


class _ProseMap:
    """The amount of prose in every element of a page."""

    def __init__(self, blocks: Sequence[TextBlock]) -> None:
        self.blocks = blocks
        self.mass: defaultdict[Element, float] = defaultdict(float)
        self.children: defaultdict[Element, dict[Element, None]] = defaultdict(dict)
        self.leaves: set[Element] = set()
        for block in blocks:
            self._add(block.path, block.weight)

    def _add(self, path: Path, weight: float) -> None:
        if not weight:
            return
        self.leaves.add(path[-1])
        for element in path:
            self.mass[element] += weight
        for parent, child in pairwise(path):
            self.children[parent][child] = None

    def container(self) -> Element:
        """Return the smallest element that contains the whole article."""
        here = self.blocks[0].path[0]
        while (child := self._way_down(here)) is not None:
            here = child
        return here

    def _way_down(self, here: Element) -> Element | None:
        children = list(self.children[here])
        best = max(children, key=self.mass.__getitem__, default=None)
        if best is None or best.tag == "p":
            return None
        if (first := self._first_article(here, children)) is not None:
            return first
        if self._spread(here, best) > _CHUNK_SHARE * self.mass[here]:
            return None
        share = self.mass[best] / self.mass[here]
        clear = share >= _CLEAR_SHARE or (share > _SEMANTIC_SHARE and self._holds_body(best))
        return best if clear else None

    def _first_article(self, here: Element, children: list[Element]) -> Element | None:
        """Return the first of several whole articles on one page (endless scrolling)."""
        # Teasers of other articles are `<article>` elements as well, but with little prose.
        floor = 0.15 * self.mass[here]
        articles = [c for c in children if c.tag == "article" and self.mass[c] > floor]
        if len(articles) < 2 or next(articles[0].iter("h1"), None) is None:
            return None
        return articles[0]

    def _spread(self, here: Element, best: Element) -> float:
        """Return the prose in siblings of `best` that look like further parts of the article."""
        chunks = (
            other
            for other in self.children[here]
            if other is not best
            and other.tag != "article"
            and (_looks(other) == _looks(best) or (other in self.leaves and here.tag != "body"))
        )
        return sum(self.mass[chunk] for chunk in chunks)

    def _holds_body(self, element: Element) -> bool:
        """Return True if the element, or the child with its prose, is marked as the article."""
        floor = 0.8 * self.mass[element]
        inner: Element | None = element
        while inner is not None and not _is_semantic(inner):
            inner = next((c for c in self.children[inner] if self.mass[c] > floor), None)
        return inner is not None


def _looks(element: Element) -> tuple[str, str | None]:
    return element.tag, element.get("class")


def _is_semantic(element: Element) -> bool:
    names = (element.get("class") or "", element.get("id") or "")
    return (
        element.tag in ("article", "main")
        or element.get("itemprop") == "articleBody"
        or any(boilerplate.BODY_CLASS.search(name) for name in names)
    )


def _without_boilerplate(blocks: Sequence[TextBlock]) -> list[TextBlock]:
    everything = _ProseMap(blocks)
    total = sum(block.weight for block in blocks)
    by_word: defaultdict[str, set[Element]] = defaultdict(set)
    for element in dict.fromkeys(e for block in blocks for e in block.path[1:]):
        word = _negative_word(element)
        if word and everything.mass[element] < _limit(word) * total:
            by_word[word].add(element)
    dropped: set[Element] = set()
    for word, elements in by_word.items():
        covered = sum(b.weight for b in blocks if not elements.isdisjoint(b.path))
        if covered < _limit(word) * total or not total:
            dropped |= elements
    return [block for block in blocks if dropped.isdisjoint(block.path)]


def _limit(word: str) -> float:
    return _SPARED_SHARE_STRONG if word in boilerplate.STRONG_WORDS else _SPARED_SHARE


def _negative_word(element: Element) -> str | None:
    """Return the word that marks an element as boilerplate, or None."""
    name, ident = element.get("class") or "", element.get("id") or ""
    # A long id is often the slug of a heading and means nothing.
    found = boilerplate.NEGATIVE_CLASS.search(
        f"{name} {ident if len(ident) <= _MAX_ID_LENGTH else ''}"
    )
    if found:
        return found[1].lower()
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return "hidden"
    if boilerplate.HIDDEN_STYLE.search(element.get("style") or ""):
        return "hidden"
    return "role" if element.get("role") in boilerplate.NEGATIVE_ROLES else None


def _is_article_line(block: TextBlock) -> bool:
    size = len(block.text)
    if block.tag in HEADINGS:
        return block.tag != "h1" and block.link_density < 0.5
    # Short blocks that are mostly links are menus or links to other articles.
    if size < 3 or (block.link_density > 0.66 and size < 300):
        return False
    if size < 200 and boilerplate.POINTER_LINE.match(block.text):
        return False
    if size < 250 and boilerplate.CREDIT_LINE.search(block.text):
        return False
    return not (size < 60 and boilerplate.DATE_LINE.match(block.text))


def _without_trailing_headings(blocks: list[TextBlock]) -> list[TextBlock]:
    end = len(blocks)
    while end and blocks[end - 1].tag in HEADINGS:
        end -= 1
    return blocks[:end]


def _lead_blocks(
    blocks: Sequence[TextBlock], inside: Sequence[TextBlock], *, description: str
) -> list[TextBlock]:
    """Return the blocks between headline and body that introduce the article."""
    start = blocks.index(next((block for block in inside if block.weight), inside[0]))
    headline = max((i for i in range(start) if blocks[i].tag == "h1"), default=start)
    known, summary = set(inside), normalize_letters(description)
    return [b for b in blocks[headline + 1 : start] if b not in known and _is_lead(b, summary)]


def _is_lead(block: TextBlock, summary: str) -> bool:
    if len(block.text) not in _LEAD_SIZES or block.link_density > 0.3:
        return False
    names = " ".join(element.get("class") or "" for element in block.path[-2:])
    return normalize_letters(block.text)[:40] in summary or bool(
        boilerplate.LEAD_CLASS.search(names)
    )


def _column(path: Path, container: Element) -> Element:
    """Return the `<article>` or `<main>` element around the container, else the container."""
    above: Iterable[Element] = path[: path.index(container) + 1]
    return next((e for e in reversed(list(above)) if e.tag in ("article", "main")), container)
