"""Split an HTML tree into text blocks in reading order, with the elements around them.

Every element that may hold prose is walked, also `<aside>`, `<figure>` and `<footer>`: whether a
block belongs to the article is decided later, from features. A block ends at every block element
and at every `<br>`.
"""

import re
from collections.abc import Set
from dataclasses import dataclass, field
from functools import lru_cache

from lxml import html

from news_platform.text.normalize import UNSPACED, normalize_spaces

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
# Elements that never contain prose.
_UNSEEN_NAMES = """
script style noscript template iframe svg button select picture img video audio object embed canvas
textarea input head map amp-img amp-ad source link meta base title
"""
_UNSEEN = frozenset(_UNSEEN_NAMES.split())
# Parts of camelCase names count as words.
_NAME_WORD = re.compile(r"[A-Z]?[a-z]{2,}|[A-Z]{2,}")
# A longer id is often the slug of a heading and means nothing.
_MAX_ID_LENGTH = 30
_MAX_NAME_LENGTH = 20
_HIDDEN_STYLE = re.compile(r"display:\s*none|visibility:\s*hidden", re.IGNORECASE)
_UNSPACED = re.compile(rf"[{UNSPACED}]")
_INLINE_NAMES = """
a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark math nobr q s samp small
span strike strong sub sup time tt u var wbr
"""
INLINE = frozenset(_INLINE_NAMES.split())


@dataclass(slots=True)
class TextBlocks:
    """The blocks of a page, one entry per block or per element in each list.

    Elements are numbered in document order, the root is 0 and its own parent. The blocks inside
    element `e` are those from `starts[e]` to `ends[e]`.
    """

    texts: list[str] = field(default_factory=list)
    # The innermost block element around the text.
    holders: list[int] = field(default_factory=list)
    link_chars: list[int] = field(default_factory=list)
    is_after_br: list[bool] = field(default_factory=list)
    elements: list[html.HtmlElement] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    # The words of each element's class, id and other names.
    names: list[tuple[str, ...]] = field(default_factory=list)
    parents: list[int] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)


def text_blocks(root: html.HtmlElement, skipped: Set[html.HtmlElement] = frozenset()) -> TextBlocks:
    """Return the blocks under `root`, but not those under `skipped` elements.

    The recursion is bounded by libxml2's depth limit of 256.
    """
    blocks = TextBlocks()
    walk = _BlockWalk(blocks, skipped)
    walk.block(root, root.tag if isinstance(root.tag, str) else "", 0, in_link=False)
    return blocks


def visible_text(element: html.HtmlElement) -> str:
    """Return all text of an element on one line, without markup."""
    return normalize_spaces("".join(element.itertext()))


def count_unspaced(text: str) -> int:
    """Return the number of characters of scripts without spaces."""
    return 0 if text.isascii() else len(_UNSPACED.findall(text))


def text_size(text: str) -> int:
    """Return the length of a text; a character of a script without spaces says as much as 2.5."""
    return len(text) + count_unspaced(text) * 3 // 2


class _BlockWalk:
    """One pass over a tree, with the text of the block that is being read."""

    __slots__ = ("blocks", "is_after_br", "link_chars", "parts", "skipped")

    def __init__(self, blocks: TextBlocks, skipped: Set[html.HtmlElement]) -> None:
        self.blocks = blocks
        self.skipped = skipped
        self.parts: list[str] = []
        self.link_chars = 0
        self.is_after_br = False

    def flush(self, holder: int) -> None:
        """End the current block; its text belongs to the element `holder`."""
        text = normalize_spaces("".join(self.parts))
        if text:
            self.blocks.texts.append(text)
            self.blocks.holders.append(holder)
            self.blocks.link_chars.append(self.link_chars)
            self.blocks.is_after_br.append(self.is_after_br)
        self.parts.clear()
        self.link_chars = 0
        self.is_after_br = False

    def block(self, element: html.HtmlElement, tag: str, parent: int, *, in_link: bool) -> None:
        """Read an element whose text is not part of the text around it."""
        blocks, number = self.blocks, len(self.blocks.tags)
        blocks.elements.append(element)
        blocks.tags.append(tag)
        blocks.names.append(name_words(element, tag))
        blocks.parents.append(parent)
        blocks.starts.append(len(blocks.texts))
        blocks.ends.append(0)
        self.inside(element, number, in_link=in_link)
        if self.parts:
            self.flush(number)
        blocks.ends[number] = len(blocks.texts)

    def inside(self, element: html.HtmlElement, holder: int, *, in_link: bool) -> None:
        """Read the text and the children of an element."""
        self.take(element.text, in_link=in_link)
        for child in element:
            tag = child.tag
            # The tag of comments and processing instructions is a function.
            if isinstance(tag, str) and tag not in _UNSEEN:
                self.child(child, tag, holder, in_link=in_link)
            self.take(child.tail, in_link=in_link)

    def child(self, child: html.HtmlElement, tag: str, holder: int, *, in_link: bool) -> None:
        if tag == "br":
            self.flush(holder)
            self.is_after_br = True
        elif tag in INLINE and _has_only_inline(child):
            self.inside(child, holder, in_link=in_link or tag == "a")
        elif child not in self.skipped:
            if self.parts:
                self.flush(holder)
            self.block(child, tag, holder, in_link=in_link or tag == "a")

    def take(self, text: str | None, *, in_link: bool) -> None:
        if text:
            self.parts.append(text)
            if in_link:
                self.link_chars += len(text.strip())


def _has_only_inline(element: html.HtmlElement) -> bool:
    return all(
        child.tag in INLINE or child.tag == "br" or not isinstance(child.tag, str)
        for child in element
    )


def name_words(element: html.HtmlElement, tag: str) -> tuple[str, ...]:
    """Return the words of an element's class, id and other names, sorted, each once."""
    get = element.get
    return _name_words(
        tag, get("class"), get("id"), get("itemprop"), get("role"), _is_hidden(element)
    )


# Pages share few distinct names, but a crawl of many sites must not grow the cache for ever.
@lru_cache(maxsize=20_000)
def _name_words(
    tag: str,
    class_name: str | None,
    ident: str | None,
    itemprop: str | None,
    role: str | None,
    is_hidden: bool,
) -> tuple[str, ...]:
    ident = ident if ident and len(ident) <= _MAX_ID_LENGTH else ""
    words = {word.lower() for word in _NAME_WORD.findall(f"{class_name or ''} {ident}")}
    words.add(f"tag:{tag}")
    if itemprop:
        words.add(f"itemprop:{itemprop.lower()[:_MAX_NAME_LENGTH]}")
    if role:
        words.add(f"role:{role.lower()[:_MAX_NAME_LENGTH]}")
    if is_hidden:
        words.add("hidden:")
    return tuple(sorted(words))


def _is_hidden(element: html.HtmlElement) -> bool:
    if element.get("hidden") is not None or element.get("aria-hidden") == "true":
        return True
    style = element.get("style")
    return style is not None and _HIDDEN_STYLE.search(style) is not None
