"""An HTML tree in, its visible text blocks in reading order out."""

import re
from dataclasses import dataclass, field

from lxml import html

from news_platform.text.normalize import normalize_spaces

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
LIST_TAGS = frozenset(("li", "td", "th", "tr", "dd", "dt"))
# Elements that never contain prose.
_UNSEEN = frozenset(
    re.findall(
        r"\S+",
        "script style noscript template iframe svg button select nav footer aside figure "
        "figcaption picture img video audio object embed canvas dialog textarea input label head "
        "map menu amp-img amp-ad source link meta",
    )
)
INLINE = frozenset(
    re.findall(
        r"\S+",
        "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark math nobr q s "
        "samp small span strike strong sub sup time tt u var wbr",
    )
)
# The tag of a block is its innermost element of these; a `<div>` inside a heading is a heading.
_KEPT_TAGS = HEADINGS | LIST_TAGS | {"p", "blockquote", "pre"}
_INHERITED_TAGS = HEADINGS | {"li", "td", "blockquote"}
_SENTENCE_END = re.compile(r"[.!?…:;\"”»’'。！？)]\s*$")

Path = tuple[html.HtmlElement, ...]


@dataclass(frozen=True, slots=True)
class TextBlock:
    """One run of text; `path` holds the block elements around it, outermost first."""

    path: Path
    tag: str
    text: str
    link_chars: int

    @property
    def link_density(self) -> float:
        """Return the share of the text that is link text, 0 to 1."""
        return min(self.link_chars / len(self.text), 1.0)

    @property
    def weight(self) -> float:
        """Return the number of characters that count as prose; 0 for menus and labels."""
        size = len(self.text)
        if self.tag in HEADINGS or size < 25 or self.link_density > 0.5:
            return 0.0
        # A short line without the end of a sentence is a label, a button or a teaser's title.
        if size < 80 and not _SENTENCE_END.search(self.text):
            return 0.0
        # List items and table cells are often menus.
        listed = 0.5 if self.tag in LIST_TAGS else 1.0
        return size * (1 - self.link_density) * listed


def text_blocks(root: html.HtmlElement) -> list[TextBlock]:
    """Return the blocks under `root`; the recursion is bounded by libxml2's depth limit of 256."""
    walk = _BlockWalk([root])
    walk.children(root, _tag(root), in_link=False)
    walk.flush(_tag(root))
    return walk.blocks


def visible_text(element: html.HtmlElement) -> str:
    """Return all text of an element on one line, without markup."""
    return normalize_spaces("".join(element.itertext()))


@dataclass(slots=True)
class _BlockWalk:
    path: list[html.HtmlElement]
    blocks: list[TextBlock] = field(default_factory=list)
    parts: list[str] = field(default_factory=list)
    link_chars: int = 0

    def flush(self, tag: str) -> None:
        """End the current block; its text belongs to the innermost element of the path."""
        text = normalize_spaces("".join(self.parts))
        if text:
            self.blocks.append(TextBlock(tuple(self.path), tag, text, self.link_chars))
        self.parts.clear()
        self.link_chars = 0

    def take(self, text: str | None, *, in_link: bool) -> None:
        if text:
            self.parts.append(text)
            self.link_chars += len(text.strip()) if in_link else 0

    def children(self, element: html.HtmlElement, tag: str, *, in_link: bool) -> None:
        self.take(element.text, in_link=in_link)
        for child in element:
            self.child(child, tag, in_link=in_link)
            self.take(child.tail, in_link=in_link)

    def child(self, child: html.HtmlElement, tag: str, *, in_link: bool) -> None:
        name = _tag(child)
        in_link = in_link or name == "a"
        if name == "br":
            self.line_break(child, tag)
        elif name and name not in _UNSEEN:
            if _is_inline(child, name):
                self.children(child, tag, in_link=in_link)
            elif tag == "tr" and name in ("td", "th"):
                self.cell(child, in_link=in_link)
            else:
                self.block(child, name, tag, in_link=in_link)

    def block(self, child: html.HtmlElement, name: str, tag: str, *, in_link: bool) -> None:
        self.flush(tag)
        inner = name if name in _KEPT_TAGS or tag not in _INHERITED_TAGS else tag
        self.path.append(child)
        self.children(child, inner, in_link=in_link)
        self.flush(inner)
        self.path.pop()

    def cell(self, child: html.HtmlElement, *, in_link: bool) -> None:
        """Put the cells of a table row on one line."""
        self.parts.append(" ")
        self.children(child, "tr", in_link=in_link)
        self.parts.append(" ")

    def line_break(self, child: html.HtmlElement, tag: str) -> None:
        """End the paragraph at the first of two line breaks; a single one is only a space."""
        following = child.getnext()
        if following is not None and following.tag == "br" and not (child.tail or "").strip():
            self.flush(tag)
        else:
            self.parts.append(" ")


def _tag(element: html.HtmlElement) -> str:
    # The tag of comments and processing instructions is a function.
    return element.tag if isinstance(element.tag, str) else ""


def _is_inline(element: html.HtmlElement, name: str) -> bool:
    return name in INLINE and all(
        not isinstance(child.tag, str) or child.tag in INLINE or child.tag == "br"
        for child in element
    )
