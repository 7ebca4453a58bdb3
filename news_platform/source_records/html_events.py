"""Parse a page into a flat list of events: texts, starts and ends of block elements, and links.

No tree is built. Invisible elements are left out and inline elements merge into the text around
them, so a page of 1,700 elements gives about 600 block elements and its links.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from lxml import etree

from news_platform.errors import InputError
from news_platform.source_records.words import name_table, word_list

# Represents <br> until the text around it is complete. U+001E never occurs in valid HTML.
BREAK = "\x1e"
# Stands between two <span> elements without text between them, which styles may set apart.
GAP = "\x1f"
MAX_PAGE_BYTES = 16_000_000
# Deeper markup is broken or hostile: libxml2 scans all open elements at every end tag.
MAX_DEPTH = 2_048
# Twenty times the largest of 364 real pages; larger pages take too long to parse.
MAX_EVENTS = 500_000

_ZONE_TAGS = name_table("html", "zone_tags")
_ZONE_ROLES = name_table("html", "zone_roles")
_WIDGETS = {
    word: widget
    for widget, listed in name_table("html", "widgets").items()
    for word in listed.split()
}
_WIDGET_NAMES = frozenset(_WIDGETS)
_PHRASES = tuple(word for word in _WIDGETS if "-" in word)
_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_BETWEEN_WORDS = {code: " " for code in range(128) if not chr(code).isalpha()}
# Widgets that may be certain, see `Start`.
_CERTAIN = frozenset(("consent", "footer"))
_SITE_FOOTERS = frozenset(word_list("html", "site_footers"))
_WHOLE_PAGE = frozenset(("html", "body", "main"))
# Tags that classify the content below them.
LANDMARKS = frozenset((*_ZONE_TAGS, "main"))

# Inside these the tag has another meaning: the title of an article, the heading of an accordion.
_HEADS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6", "dt"))
_EXEMPT = {
    "header": frozenset(("main", "article", "section")),
    # The author of a quotation.
    "footer": frozenset(("blockquote",)),
    "button": _HEADS,
    "label": _HEADS,
}


@dataclass(frozen=True, slots=True, eq=False)
class Start:
    """The start of a block element.

    `widget` is the kind of widget that its class or id suggests; if `is_certain`, the name is that
    of a consent dialog or a site's footer, which are never content. `attributes` is filled only
    for elements whose attributes are read later.
    """

    tag: str
    widget: str | None = None
    attributes: Mapping[str, str] = field(default_factory=dict)
    is_certain: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class End:
    """The end of a block element."""

    tag: str


@dataclass(frozen=True, slots=True, eq=False)
class LinkEdge:
    """The start (1) or the end (-1) of a link; the start may have a target."""

    opens: int
    target: str | None = None


Event = str | Start | End | LinkEdge

_HIDDEN = frozenset(word_list("html", "invisible"))
_BLOCK_TAGS = frozenset(word_list("html", "block"))
# Their attributes give the language of the page, the number of a list's first item, spans, and
# whether a button shows a panel.
_READ_ATTRIBUTES = frozenset(("html", "ol", "td", "th", "button"))
_LINK_START, _LINK_END = LinkEdge(1), LinkEdge(-1)
_STARTS = {tag: Start(tag) for tag in _BLOCK_TAGS}
_ENDS: Mapping[str, End | LinkEdge] = {"a": _LINK_END} | {tag: End(tag) for tag in _BLOCK_TAGS}


def parse_html(html: str | bytes) -> list[Event]:
    """Return the events of a page; bytes must be UTF-8.

    Raise InputError for a page that is empty, too large, too deep or cannot be parsed.
    """
    body = html.encode("utf-8", errors="replace") if isinstance(html, str) else html
    body = body.replace(b"\0", b" ")  # libxml2 stops at a NUL byte
    _check_bounds(body)
    listed = EventList()
    parser = etree.HTMLParser(
        target=listed,  # type: ignore[arg-type]  # the stubs require methods that lxml does not
        encoding="utf-8",
        huge_tree=True,  # our own bounds apply: EventList._check_bounds
    )
    try:
        etree.fromstring(body, parser)
    except etree.XMLSyntaxError as error:
        raise InputError(f"cannot parse the page: {error}") from error
    return listed.events


def _check_bounds(body: bytes) -> None:
    if not body or body.isspace():
        raise InputError("the page is empty")
    if len(body) > MAX_PAGE_BYTES:
        raise InputError(f"the page has {len(body)} bytes, at most {MAX_PAGE_BYTES} are read")


class EventList:
    """Collect the events of a page: the target of an lxml parser.

    lxml calls `start` and `end` for every element and `data` for every text.
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        # lxml calls this directly: half of all events are texts, and a method would cost a call.
        self.data = self.events.append
        self._depth = 0
        self._hidden = 0
        self._hidden_from = 0
        # The number of events at the last end of a <span>.
        self._span_end = -1

    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """Add the start of an element."""
        self._depth += 1
        if tag in _BLOCK_TAGS:
            self.data(_start_event(tag, attributes) if attributes else _STARTS[tag])
        elif tag == "span":
            if self._span_end == len(self.events):
                self.events.append(GAP)
        elif tag == "a":
            target = attributes.get("href")
            self.data(LinkEdge(1, target) if target else _LINK_START)
        elif tag in _HIDDEN:
            # Nested invisible elements count, so that only the outermost one ends the gap.
            if not self._hidden:
                self._hidden_from = len(self.events)
            self._hidden += 1
        elif tag == "br":
            self.events.append(BREAK)
        elif "-" in tag and widget_of(tag):
            # A custom element such as <usercentrics-root>; any other one is inline.
            self.events.append(_start_event("div", {**attributes, "id": tag}))
        if self._depth > MAX_DEPTH or len(self.events) > MAX_EVENTS:
            self._check_bounds()

    def end(self, tag: str) -> None:
        """Add the end of an element; the events inside an invisible element are dropped."""
        self._depth -= 1
        if tag in _ENDS:
            self.data(_ENDS[tag])
        elif tag == "span":
            self._span_end = len(self.events)
        elif tag in _HIDDEN:
            self._hidden -= 1
            if not self._hidden:
                del self.events[self._hidden_from :]
        elif "-" in tag and widget_of(tag):
            self.events.append(_ENDS["div"])

    def close(self) -> None:
        """Finish the page."""
        self._check_bounds()

    def _check_bounds(self) -> None:
        if self._depth > MAX_DEPTH:
            raise InputError(f"nested deeper than {MAX_DEPTH} elements")
        if len(self.events) > MAX_EVENTS:
            raise InputError(f"the page has more than {MAX_EVENTS} tags and texts")


def _start_event(tag: str, attributes: Mapping[str, str]) -> Start:
    """Return the start of an element; those without relevant attributes share one event per tag."""
    if "role" not in attributes and "aria-label" not in attributes and tag not in _READ_ATTRIBUTES:
        return _named_start(tag, attributes.get("class"), attributes.get("id"))
    if is_consent_label(attributes.get("aria-label", "")) and tag not in _WHOLE_PAGE:
        return Start(tag, "consent", attributes, is_certain=True)
    named = _named_start(tag, attributes.get("class"), attributes.get("id"))
    return Start(tag, named.widget, attributes, named.is_certain)


@lru_cache(maxsize=65_536)
def _named_start(tag: str, classes: str | None, name: str | None) -> Start:
    """Return the start of an element of which only the names count."""
    widget = (widget_of(classes) if classes else None) or (widget_of(name) if name else None)
    # Scripts mark the whole page: <body class="didomi-popup-open">.
    if widget is None or tag in _WHOLE_PAGE:
        return _STARTS[tag]
    return Start(tag, widget, is_certain=widget in _CERTAIN and _is_certain(classes, name))


def _is_certain(*names: str | None) -> bool:
    return any(name is not None and is_certain_name(name) for name in names)


def zone_of(tag: str, role: str | None, path: Sequence[str]) -> str | None:
    """Return the boilerplate zone of an element with these ancestors, or None."""
    if tag in _EXEMPT and not _EXEMPT[tag].isdisjoint(path):
        return None
    return _ZONE_TAGS.get(tag) or _ZONE_ROLES.get(role or "")


@lru_cache(maxsize=4_096)
def is_certain_name(name: str) -> bool:
    """Return whether a class or id is that of a consent dialog or a site's footer."""
    lower = _CAMEL.sub("-", name).lower().replace("_", "-")
    return is_consent_name(name) or any(word in _SITE_FOOTERS for word in lower.split())


# Pages of one site repeat the same classes.
@lru_cache(maxsize=65_536)
def widget_of(names: str) -> str | None:
    """Return the kind of widget that a class or id suggests, or None."""
    if is_consent_name(names):
        return "consent"
    # `navBar` and `nav-bar` have the same words.
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


# Consent dialogs are recognised by the names that their products give to elements.
_CONSENT_SUBJECTS = "cookies?|gdpr|consent"
_CONSENT_PRODUCTS = "|".join(word_list("html", "consent_products"))
_CONSENT_FORMS = "|".join(word_list("html", "consent_forms"))
_CONSENT_NAME = re.compile(
    rf"(?:^|[\s-])(?:(?:{_CONSENT_PRODUCTS})"
    rf"|(?:{_CONSENT_SUBJECTS})-?(?:{_CONSENT_SUBJECTS})?-?(?:{_CONSENT_FORMS})(?:$|[\s-])"
    r"|privacy-?(?:banner|center|centre|manager|modal|pop-?up|preferences|settings|wall)(?:$|[\s-])"
    rf"|(?:banner|notice|modal|popup|dialog|bar)-(?:cookies?|gdpr|consent)(?:$|[\s-]))"
)
_CONSENT_LABEL = re.compile(
    r"\bcookies?\b|\bgdpr\b|\bconsent (?:banner|dialog|manage|prefer)"
    r"|\bprivacy (?:banner|center|centre|choices|manager|notice|options|preferences|settings)",
    re.IGNORECASE,
)


def is_consent_name(names: str) -> bool:
    """Return whether a class or id is that of a consent dialog."""
    plain = names.lower().replace("_", "-")
    if _CONSENT_NAME.search(plain):
        return True
    # `cookieBar` has two words; most names are in lower case.
    split = names if names.islower() else _CAMEL.sub("-", names)
    return split != names and bool(_CONSENT_NAME.search(split.lower().replace("_", "-")))


def is_consent_label(label: str) -> bool:
    """Return whether an `aria-label` is that of a consent dialog."""
    return _CONSENT_LABEL.search(label) is not None
