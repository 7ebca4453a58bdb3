"""A page as a parser meets it: a flat list of texts and of where elements begin and end.

No tree is built. What nobody sees is left out, and what only styles a text melts into it, so a
page of 1,700 elements comes to some 600 that part texts from each other, and its links.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from news_platform.errors import InputError
from news_platform.source_records.marks import mark_of

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

    `mark` is what its class or id speaks of. Attributes are those of elements that say something
    of themselves; of all others nobody asks for them.
    """

    tag: str
    mark: str | None = None
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
_ASKED = frozenset(("html", "ol"))
_LINK_START, _LINK_END = LinkEdge(1), LinkEdge(-1)
_STARTS = {tag: Start(tag) for tag in _PARTING}
_ENDS: Mapping[str, End | LinkEdge] = {"a": _LINK_END} | {tag: End(tag) for tag in _PARTING}


def _start(tag: str, attributes: Mapping[str, str]) -> Start:
    """Return one and the same event for all elements of a kind that say nothing of themselves."""
    classes, name = attributes.get("class"), attributes.get("id")
    mark = (mark_of(classes) if classes else None) or (mark_of(name) if name else None)
    if mark or "role" in attributes or tag in _ASKED:
        return Start(tag, mark, attributes)
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
