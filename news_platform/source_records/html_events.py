"""A page as a parser meets it: a flat list of texts and of where elements begin and end.

No tree is built. What nobody sees is left out, and what only styles a text melts into it, so a
page of 1,700 elements comes to some 600 that part texts from each other, and its links.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lxml import etree

from news_platform.errors import InputError

_ZONE_TAGS = {
    "nav": "navigation",
    "header": "header",
    "footer": "footer",
    "aside": "aside",
    "dialog": "dialog",
    "button": "control",
    "label": "control",
    "fieldset": "control",
    "form": "control",
}
_ZONE_ROLES = {
    "navigation": "navigation",
    "menu": "navigation",
    "menubar": "navigation",
    "menuitem": "navigation",
    "banner": "header",
    "contentinfo": "footer",
    "complementary": "aside",
    "dialog": "dialog",
    "alertdialog": "dialog",
    "search": "control",
}
# Words that page builders everywhere put into class and id; no proof by themselves.
_WIDGET_WORDS = {
    "navigation": "nav navbar navigation menu menus submenu megamenu breadcrumb breadcrumbs crumbs "
    "pager toolbar skip offcanvas drawer dropdown toc",
    "footer": "footer copyright legal colophon",
    "consent": "cookie cookies consent gdpr onetrust",
    "dialog": "modal popup dialog overlay lightbox",
    "account": "login signin signup account cart minicart basket",
    "subscribe": "newsletter mailinglist",
    "share": "share sharing social",
    "related": "related recommended recommendations",
    "control": "filter filters facet facets sort",
    "feedback": "feedback comment comments",
    "advertisement": "ads advert advertisement sponsor sponsored sponsors",
    "screen_reader": "sr-only visually-hidden visuallyhidden screen-reader-text",
    "aside": "sidebar",
    "tags": "tags",
}
_WIDGETS = {word: widget for widget, words in _WIDGET_WORDS.items() for word in words.split()}
_WIDGET_NAMES = frozenset(_WIDGETS)
_PHRASES = tuple(word for word in _WIDGETS if "-" in word)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BETWEEN_WORDS = {code: " " for code in range(128) if not chr(code).isalpha()}
# Tags that say something about what is below them.
LANDMARKS = frozenset((*_ZONE_TAGS, "main"))

# Inside these the same tag means something else: the title of an article, an accordion's heading.
_HEADS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt"))
_EXEMPT = {
    "header": frozenset(("main", "article", "section")),
    "footer": frozenset(("article", "section", "blockquote")),
    "button": _HEADS,
    "label": _HEADS,
}


def zone_of(tag: str, role: str | None, path: Sequence[str]) -> str | None:
    """Return the boilerplate zone that an element below this path opens, if any."""
    if tag in _EXEMPT and not _EXEMPT[tag].isdisjoint(path):
        return None
    return _ZONE_TAGS.get(tag) or _ZONE_ROLES.get(role or "")


@lru_cache(maxsize=65_536)
def widget_of(names: str) -> str | None:
    """Return the kind of widget that a class or id speaks of, if any."""
    if not names.islower():
        names = _CAMEL.sub("-", names).lower()
    found = names.translate(_BETWEEN_WORDS).split()
    if not _WIDGET_NAMES.isdisjoint(found):
        return next(_WIDGETS[word] for word in found if word in _WIDGETS)
    names = names.replace("_", "-")
    for phrase in _PHRASES:
        if phrase in names:
            return _WIDGETS[phrase]
    return None


# Stands for <br> until the text around it is complete.
BREAK = "\x1e"
# Deeper markup is broken or built to hurt: libxml2 looks through all that is open at every end tag.
MAX_DEPTH = 2_048
# Twenty times the largest of 364 real pages; more takes longer than a page is worth.
MAX_EVENTS = 500_000

_INVISIBLE_TAGS = """
script style noscript template svg iframe select option datalist input textarea head object canvas
video audio map math link meta title
"""
_PARTING_TAGS = """
address article aside blockquote body button caption center dd details dialog dir div dl dt fieldset
figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr html label legend li main menu nav
ol p pre section summary table tbody td tfoot th thead tr ul
"""


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The beginning of an element that parts texts.

    `widget` is what its class or id speaks of. Attributes are those of elements that say something
    of themselves; of all others nobody asks for them.
    """

    tag: str
    widget: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """The end of an element that parts texts."""

    tag: str


@dataclass(frozen=True, slots=True, eq=False)
class LinkEdge:
    """The beginning of a link (1) or its end (-1)."""

    opens: int


Event = str | Start | End | LinkEdge

_INVISIBLE = frozenset(_INVISIBLE_TAGS.split())
_PARTING = frozenset(_PARTING_TAGS.split())
# Their own attributes tell the language of the page and the number of an item.
_READ_ATTRIBUTES = frozenset(("html", "ol"))
_LINK_START, _LINK_END = LinkEdge(1), LinkEdge(-1)
_STARTS = {tag: Start(tag) for tag in _PARTING}
_ENDS: Mapping[str, End | LinkEdge] = {"a": _LINK_END} | {tag: End(tag) for tag in _PARTING}


def _start(tag: str, attributes: Mapping[str, str]) -> Start:
    """Return one and the same event for all elements of a kind that say nothing of themselves."""
    classes, name = attributes.get("class"), attributes.get("id")
    widget = (widget_of(classes) if classes else None) or (widget_of(name) if name else None)
    if widget or "role" in attributes or tag in _READ_ATTRIBUTES:
        return Start(tag, widget, attributes)
    return _STARTS[tag]


class EventList:
    """What lxml tells of a page while it parses it; every method is called for every element."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        # Straight to the list: half of all that is told are texts.
        self.data = self.events.append
        self._depth = 0
        self._hidden = 0
        self._hidden_from = 0

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Take the beginning of an element."""
        self._depth += 1
        if tag in _PARTING:
            self.data(_start(tag, attributes) if attributes else _STARTS[tag])
        elif tag == "a":
            self.events.append(_LINK_START)
        elif tag in _INVISIBLE:
            if not self._hidden:
                self._hidden_from = len(self.events)
            self._hidden += 1
        elif tag == "br":
            self.events.append(BREAK)
        if self._depth > MAX_DEPTH or len(self.events) > MAX_EVENTS:
            self._check_bounds()

    def end(self, tag: str) -> None:
        """Take the end of an element; what was told inside an invisible one is forgotten."""
        self._depth -= 1
        if tag in _ENDS:
            self.events.append(_ENDS[tag])
        elif tag in _INVISIBLE:
            self._hidden -= 1
            if not self._hidden:
                del self.events[self._hidden_from :]

    def close(self) -> None:
        """Take the end of the page."""
        self._check_bounds()

    def _check_bounds(self) -> None:
        if self._depth > MAX_DEPTH:
            raise InputError(f"nested deeper than {MAX_DEPTH} elements")
        if len(self.events) > MAX_EVENTS:
            raise InputError(f"the page has more than {MAX_EVENTS} tags and texts")


MAX_PAGE_BYTES = 16_000_000


def parse_html(html: str | bytes) -> list[Event]:
    """Return what a page consists of; raises InputError for one that cannot be read.

    Bytes are UTF-8.
    """
    body = html.encode("utf-8", errors="replace") if isinstance(html, str) else html
    body = body.replace(b"\0", b" ")
    _check_bounds(body)
    told = EventList()
    parser = etree.HTMLParser(
        target=told,  # type: ignore[arg-type]  # the stubs ask for methods that lxml does not
        encoding="utf-8",
        huge_tree=True,
    )
    try:
        etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise InputError(f"cannot parse the page: {error}") from error
    return told.events


def _check_bounds(body: bytes) -> None:
    if not body or body.isspace():
        raise InputError("the page is empty")
    if len(body) > MAX_PAGE_BYTES:
        raise InputError(f"the page has {len(body)} bytes, at most {MAX_PAGE_BYTES} are read")
