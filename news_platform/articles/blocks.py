"""Split an HTML tree into text blocks in reading order, with the elements around them.

Every element that may hold prose is walked, also `<aside>`, `<figure>` and `<footer>`: whether a
block belongs to the article is decided later, from features. A block ends at every block element
and at every `<br>`.
"""

import re
from collections.abc import Set
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from lxml import etree, html

from news_platform.text.normalize import UNSPACED, normalize_spaces

Ints = npt.NDArray[np.int64]

HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
# Elements that never contain prose.
_UNSEEN_NAMES = """
script style noscript template iframe svg button select picture img video audio object embed canvas
textarea input head map amp-img amp-ad source link meta base title
"""
# The tag of comments and the like is the function that makes one.
_NO_ELEMENTS = (etree.Comment, etree.ProcessingInstruction, etree.Entity)
_UNSEEN: frozenset[object] = frozenset((*_UNSEEN_NAMES.split(), *_NO_ELEMENTS))
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
_INSIDE_LINES: frozenset[object] = INLINE | {"br", *_NO_ELEMENTS}


class RootPaths:
    """Sums, least and most of numbers along the way from the root to each element.

    Each step doubles how many of the elements above are included.
    """

    def __init__(self, parents: Ints) -> None:
        self.parents = parents
        self._steps = [parents]
        while self._steps[-1].any():
            self._steps.append(self._steps[-1][self._steps[-1]])

    def total(self, values: Ints) -> Ints:
        """Return the sums."""
        sums = values.copy()
        sums[0] = 0  # the root is its own parent, and counts once
        for parents in self._steps:
            sums += sums[parents]
        sums += values[0]
        return sums

    def joined(self, bits: Ints) -> Ints:
        """Return the bits of all."""
        for parents in self._steps:
            bits = bits | bits[parents]
        return bits

    def most(self, values: Ints) -> Ints:
        """Return the largest numbers."""
        for parents in self._steps:
            values = np.maximum(values, values[parents])
        return values

    def least(self, values: Ints) -> Ints:
        """Return the smallest numbers."""
        for parents in self._steps:
            values = np.minimum(values, values[parents])
        return values


@dataclass(slots=True)
class TextBlocks:
    """The blocks of a page, one entry per block or per element in each list.

    Elements are numbered in document order, the root is 0 and its own parent. The blocks inside
    element `e` are those from `starts[e]` to `ends[e]`.
    """

    texts: list[str] = field(default_factory=list)
    # The same in lower case, for looking up words and phrases.
    lowered: list[str] = field(default_factory=list)
    # The innermost block element around the text.
    holders: list[int] = field(default_factory=list)
    link_chars: list[int] = field(default_factory=list)
    is_after_br: list[bool] = field(default_factory=list)
    elements: list[html.HtmlElement] = field(default_factory=list)
    tags: list[str] = field(default_factory=list)
    classes: list[str | None] = field(default_factory=list)
    # The words of the class, id and other names of each element that has text.
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
    walk.block(root, root.tag if isinstance(root.tag, str) else "", 0, False)
    blocks.names = [
        name_words(element, tag) if start < end else ()
        for element, tag, start, end in zip(
            blocks.elements, blocks.tags, blocks.starts, blocks.ends, strict=True
        )
    ]
    # No text contains a line break.
    blocks.lowered = "\n".join(blocks.texts).lower().split("\n") if blocks.texts else []
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
    """One pass over a tree, with the text of the block that is being read.

    Half of the extractor's calls would be made here, so they are few: reading an element, and
    ending a block. `is_blank` says that only spaces were read since the last block.
    """

    __slots__ = ("blocks", "is_after_br", "is_blank", "link_chars", "parts", "skipped")

    def __init__(self, blocks: TextBlocks, skipped: Set[html.HtmlElement]) -> None:
        self.blocks = blocks
        self.skipped = skipped
        self.parts: list[str] = []
        self.link_chars = 0
        self.is_after_br = False
        self.is_blank = False

    def flush(self, holder: int) -> None:
        """End the current block; its text belongs to the element `holder`."""
        text = normalize_spaces("".join(self.parts)) if self.parts else ""
        if text:
            self.blocks.texts.append(text)
            self.blocks.holders.append(holder)
            self.blocks.link_chars.append(self.link_chars)
            self.blocks.is_after_br.append(self.is_after_br)
        self.parts.clear()
        self.link_chars = 0
        self.is_after_br = False
        self.is_blank = False

    def block(self, element: html.HtmlElement, tag: str, parent: int, in_link: bool) -> None:
        """Read an element whose text is not part of the text around it."""
        blocks, number = self.blocks, len(self.blocks.tags)
        blocks.elements.append(element)
        blocks.tags.append(tag)
        blocks.classes.append(element.get("class"))
        blocks.parents.append(parent)
        blocks.starts.append(len(blocks.texts))
        blocks.ends.append(0)
        self.inside(element, number, in_link)
        if self.parts or self.is_blank:
            self.flush(number)
        blocks.ends[number] = len(blocks.texts)

    def inside(self, element: html.HtmlElement, holder: int, in_link: bool) -> None:
        """Read the text and the children of an element."""
        if text := element.text:
            self.take(text, in_link)
        for child in element:
            tag = child.tag
            if tag in _UNSEEN:
                pass
            elif tag == "br":
                self.flush(holder)
                self.is_after_br = True
            elif tag not in INLINE:
                self.child_block(child, tag, holder, in_link)
            elif not len(child):
                if text := child.text:
                    self.take(text, in_link or tag == "a")
            elif all(inner.tag in _INSIDE_LINES for inner in child):
                self.inside(child, holder, in_link or tag == "a")
            else:
                self.child_block(child, tag, holder, in_link or tag == "a")
            if text := child.tail:
                self.take(text, in_link)

    def child_block(self, child: html.HtmlElement, tag: str, holder: int, in_link: bool) -> None:
        """End the block that is being read, and read the child as another."""
        if child not in self.skipped:
            if self.parts or self.is_blank:
                self.flush(holder)
            self.block(child, tag, holder, in_link)

    def take(self, text: str, in_link: bool) -> None:
        """Add a piece of text; spaces before all text do not count."""
        if self.parts or not text.isspace():
            self.parts.append(text)
            if in_link:
                self.link_chars += len(text.strip())
        else:
            self.is_blank = True


def name_words(element: html.HtmlElement, tag: str) -> tuple[str, ...]:
    """Return the words of an element's class, id and other names, sorted, each once."""
    get = dict(element.items()).get
    style = get("style")
    is_hidden = (
        get("hidden") is not None
        or get("aria-hidden") == "true"
        or (style is not None and _HIDDEN_STYLE.search(style) is not None)
    )
    return _name_words(tag, get("class"), get("id"), get("itemprop"), get("role"), is_hidden)


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


# Phrases that mark boilerplate; newsrooms share them, none is of one site. All patterns are for
# texts in lower case: Python searches those several times as fast as it ignores case. Where a cheap
# sign must be present, it is looked for first, since nearly all lines lack it.

# The start of a line that points to other content, by language.
_POINTERS = (
    r"read (?:more|also|next)|(?:see|learn) more|see also|also (?:on|see|read)|more\s*:|more from"
    r"|don.t miss|related|advertisement|click here|follow |sign up|subscribe|share|keep reading"
    r"|you (?:might|may) (?:also )?(?:like|enjoy|be interested)|further reading|watch(?: now)?:"
    r"|recommended (?:for you|reading|articles|stories|by)|copyright|©",
    r"lesen sie|lies auch|auch (?:lesen|interessant|auf)\b|lesetipp|siehe auch|passend dazu"
    r"|mehr (?:zu|themen|dazu|lesen|aus|infos|informationen)|hier (?:finden|lesen) sie"
    r"|weitere (?:artikel|themen|beiträge|meldungen|nachrichten|informationen|infos)"
    r"|(?:zum )?weiterlesen|weiter zu|das\b.{0,20} könnte (?:sie|dich|euch)",
    r"le[ae] (?:también|además|más)|(?:te|le|les) (?:puede|podría) interesar|puedes? (?:ver|leer)\b"
    r"|(?:vea|mira|ver) también|más información|sigue leyendo|no te pierdas",
    r"leia (?:também|mais|ainda)|veja (?:também|mais)|saiba mais|confira também",
    r"lire (?:aussi|également)|à lire|voir aussi|pour aller plus loin|sur le même (?:sujet|thème)",
    r"leggi (?:anche|pure)|vedi anche|potrebbe interessarti|ti potrebbe interessare",
    r"czytaj (?:też|także|również|więcej)|dowiedz się więcej|zobacz (?:też|także|również|więcej)"
    r"|(?:przeczytaj|sprawdź) (?:też|także|również)",
    r"lees (?:ook|meer|verder)|bekijk ook|läs (?:även|också|mer)|l[eæ]s også|lue myös",
    r"читайте (?:также|ещё|еще)|смотрите также|подробнее|čtěte (?:také|více)|přečtěte si",
    r"相关(?:阅读|新闻|链接|报道)|相關(?:閱讀|新聞|報導)|延伸(?:阅读|閱讀)|推荐阅读|関連記事|あわせて読みたい",
)
_POINTER_LINE = re.compile(
    rf"^(?:(?:>>|»|→|►|▶|➡|[-–•…]|\.\.\.)\s*)?(?:{'|'.join(_POINTERS)})|^(?:>>|→|►|▶|➡)",
)
# The end of a line that credits a picture.
_CREDIT_LINE = re.compile(
    r"\((?:image|photo|picture|pic|foto|bild|credit)s?\b[^)]*\)$"
    r"|(?:^|[\s|.(])(?:foto|bild|photo|image|credit|picture)s?\s*(?:credit)?:\s*\S.{0,60}$"
    r"|©\s?\S.{0,50}$|\| getty images$",
)
# A line that contains only a date.
_DATE_LINE = re.compile(
    r"^(?:(?:stand|published|publiziert|publicado|updated|aktualisiert|veröffentlicht|datum"
    r"|last updated|posted)\b\W*)?(?:(?:mon|tue|wed|thu|fri|sat|sun)\w*,?\s+)?"
    r"\d{1,4}[\s./-]*(?:\d{1,2}|[^\W\d]{3,9})[\s./,-]*\d{2,4}[\s,|–-]*(?:um|at)?\s*"
    r"(?:\d{1,2}[:.h]\d{2})?\s*(?:uhr|am|pm|gmt|utc)?$",
)
# Numbered or named figures: "Abbildung 4: ...", "Fig. 2: ...".
_FIGURE_LINE = re.compile(r"^(?:abb(?:ildung|\.)|fig(?:ure|\.)?|bild|foto)\s*\d*\s*:")
# A site says that it earns by its links. Both must be there: articles are about commissions too.
_COMMISSION = re.compile(r"affiliate|commission|compensat|provision\b")
_OUR_LINKS = re.compile(
    r"(?=.*\b(?:we|us|our|wir|uns|may|bei den)\b)"
    r".*(?:\blinks?\b|purchas|click|\bbuy\b|our editors|partner|verlinkung|kauf)",
    re.DOTALL,
)
_JOIN = (
    r"\b(?:sign(?:ing)? up|subscri\w+|join|register|melde dich|melden sie sich|abonnier\w*"
    r"|suscr[ií]b\w*|inscri\w+|abonne\w*|iscriviti|zapisz|inscreva)\b"
)
_NEWSLETTER = re.compile(
    rf"{_JOIN}.{{0,80}}(?:newsletters?\b|mailing list|inbox|posteingang|boletín)"
    r"|(?:newsletters?|mailing list)\b.{0,60}"
    r"\b(?:sign up|subscribe|abonnier\w*|anmelden|suscr[ií]b\w*)",
)
_COOKIES = re.compile(
    r"(?:we|this (?:web)?site) uses? cookies|(?:verwende[nt]|nutz(?:en|t)) cookies"
    r"|cookies anfordern|korzystamy z (?:plików )?cookies|utiliza(?:mos)? cookies"
    r"|utilis(?:ons|e) des cookies|utilizziamo (?:i )?cookie",
)
_RIGHTS = re.compile(
    r"all rights reserved|alle rechte vorbehalten|todos los derechos reservados"
    r"|tous droits réservés|(?:may|must) not be (?:published, broadcast|reproduced)",
)
_NOTICES = ((_NEWSLETTER, 400), (_COOKIES, 600), (_RIGHTS, 300), (_FIGURE_LINE, 300))
_NOTICE_SIGNS = (
    "newsletter", "mailing list", "inbox", "posteingang", "boletín", "cookie", "rights", "rechte",
    "derechos", "droits", "not be ", "affiliate", "commission", "compensat", "provision",
)  # fmt: skip
_FIGURES = ("abb", "fig", "bild", "foto")
_MAX_NOTICE = max(most for _, most in _NOTICES)
_MAX_DISCLOSURE = 450
_MAX_POINTER = 200
_MAX_CREDIT = 250
_MAX_DATE = 60


def is_pointer(lowered: str) -> bool:
    """Return True for a short line that points to other content."""
    return len(lowered) < _MAX_POINTER and _POINTER_LINE.match(lowered) is not None


def is_credit(lowered: str) -> bool:
    """Return True for a line that ends with the credit of a picture."""
    return (
        len(lowered) < _MAX_CREDIT
        and (":" in lowered or "©" in lowered or lowered.endswith((")", "| getty images")))
        and _CREDIT_LINE.search(lowered) is not None
    )


def is_date(lowered: str) -> bool:
    """Return True for a line that contains only a date."""
    return len(lowered) < _MAX_DATE and _DATE_LINE.match(lowered) is not None


def is_notice(lowered: str) -> bool:
    """Return True for what a site says in its own cause: links it earns by, newsletter, cookies."""
    if len(lowered) >= _MAX_NOTICE:
        return False
    if not (lowered.startswith(_FIGURES) or any(map(lowered.__contains__, _NOTICE_SIGNS))):
        return False
    if any(len(lowered) < most and pattern.search(lowered) for pattern, most in _NOTICES):
        return True
    is_short = len(lowered) < _MAX_DISCLOSURE
    return is_short and bool(_COMMISSION.search(lowered) and _OUR_LINKS.search(lowered))
