"""Turn the events of a page into blocks in reading order, each with its container.

The walk keeps all visible text. Which blocks are boilerplate is decided later, from the zones and
widgets recorded here and from the amounts of text and link text in every container.
"""

import re
from collections.abc import Mapping, Sequence
from itertools import islice

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import (
    PROSE_CHARS,
    Container,
    ListState,
    PageBlock,
    TableState,
    WalkedPage,
    collapse_whitespace,
    content_chars,
)
from news_platform.source_records.consent_dialogs import ACTIONS, mark_consent_dialogs
from news_platform.source_records.html_events import (
    BREAK,
    GAP,
    LANDMARKS,
    End,
    Event,
    LinkEdge,
    Start,
    zone_of,
)

BULLET = re.compile(r"^([-*•·▪◦‣–—]|\d{1,3}[.)])\s+(?=\S)")
# Two styled texts are set apart if the second begins a name, a price or a number: "Nalgene",
# "Silo", "$20", "(555) 0199".
_SET_APART = re.compile(
    rf"(?<=[a-z\d)]){GAP}(?=[A-Z$€£])|(?<=[a-z)]){GAP}(?=\d)|(?<=\w){GAP}(?=\()"
)
_BLANK_LINE = re.compile(r"\n\s*\n")
# A much longer listing would exceed `max_chars` and be dropped if it stayed one block.
_LONG_CODE_CHARS = 1_000
# A table that contains one of these, or this many sibling paragraphs, is used for layout; its cells
# are treated like any other container.
_LAYOUT = frozenset(("table", "h1", "h2", "h3", "ul", "ol", "form"))
_LAYOUT_PARAGRAPHS = 3
# The longest label of a button that is looked up among those of consent dialogs.
_BUTTON_CHARS = 32
# The share of link text from which lines are entries of a list.
_ALL_LINKS = 0.8
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    "li": kinds.ITEM,
    "dt": kinds.TERM,
    "dd": kinds.DEFINITION,
    "pre": kinds.CODE,
    **dict.fromkeys(_LEVELS, kinds.HEADING),
}
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
# Zones that are hardly ever content. Forms and dialogs are not among them: a form may contain a
# whole page, and a dialog the details of a card.
_SKIMMED = frozenset(("navigation", "header", "footer", "aside"))
# The attributes of a button that shows or hides the panel after it.
_TOGGLES = ("aria-expanded", "aria-controls", "data-toggle", "data-bs-toggle")
# What stands after such a button is a panel if it has this much text outside links.
_PANEL_CHARS = 40
_PANEL_BLOCKS = 6
# Lines of at most this length may be entries of a list, if there are enough of them. An address is
# one block: it has a number, an e-mail address or a colon.
_ENTRY_CHARS = 100
_LIST_LINES = 3
_CONTACT = re.compile(r"[@\d:]")
_STRUCTURES = frozenset((*_KINDS, *_LISTS, "table", "tr", "td", "th"))
# Tags that mean something to the walk whatever their attributes are.
_TELLING = _STRUCTURES | LANDMARKS | {"summary"}


def walk(events: list[Event], *, zone_share: float) -> WalkedPage:
    """Return the blocks of a page in reading order.

    In navigation and similar zones only the text is read, not lists and tables. If such a zone
    holds more than `zone_share` of the page's text, it is content: the page is walked again
    without skimming. It is also walked again if buttons reveal a consent dialog.
    """
    walker = _Walker(events, skims=_SKIMMED)
    walker.run()
    if walker.buttons and mark_consent_dialogs(events, walker.buttons):
        walker = _Walker(events, skims=_SKIMMED)
        walker.run()
    if walker.has_skimmed(zone_share):
        walker = _Walker(events, skims=frozenset())
        walker.run()
    _name_panels(walker.blocks, walker.parents)
    language = _declared_language(events)
    return WalkedPage(walker.blocks, walker.containers, language, walker.parents, walker.tags)


def _name_panels(blocks: Sequence[PageBlock], parents: Sequence[int]) -> None:
    """Make the buttons of an accordion the headings of their panels."""
    level = 1
    for at, block in enumerate(blocks):
        if block.level:
            level = block.level
        elif block.container.is_toggle and _has_panel(blocks, at + 1, parents):
            block.kind, block.level = kinds.HEADING, min(level + 1, max(_LEVELS.values()))
            block.container.zone = block.container.widget = None


def _has_panel(blocks: Sequence[PageBlock], start: int, parents: Sequence[int]) -> bool:
    """Return whether the block at `start` and its siblings have enough text for a panel."""
    size = 0
    for block in islice(blocks, start, start + _PANEL_BLOCKS):
        is_beside = parents[block.element] == parents[blocks[start].element]
        if block.level or block.container.is_toggle or not is_beside:
            return False
        size += len(block.text) - block.link_chars
        if size >= _PANEL_CHARS:
            return True
    return False


def _declared_language(events: Sequence[Event]) -> str | None:
    """Return the `lang` attribute of the outermost element."""
    first = events[0] if events else None
    return first.attributes.get("lang") if type(first) is Start else None


class _Walker:
    """The state of one walk. It is a loop because pages nest deeper than Python can recurse."""

    def __init__(self, events: Sequence[Event], *, skims: frozenset[str]) -> None:
        self.events = events
        self.skims = skims
        self.blocks: list[PageBlock] = []
        self.path: list[str] = []
        # The parents and tags of all elements, and the numbers of the open ones.
        self.parents = [0]
        self.tags = ["html"]
        self.open = [0]
        self.targets: list[str] = []
        self.container = Container()
        self.containers = [self.container]
        # The depths of the elements that opened the current containers.
        self.opened = [-1]
        self.is_skimming = False
        self.parts: list[str] = []
        # The number of open links, and the first part whose link text is not counted yet.
        self.links = 0
        self.links_from = 0
        self.link_chars = 0
        self.kinds = [kinds.PARAGRAPH]
        self.level = 0
        self.lists: list[ListState] = []
        self.tables: list[TableState | None] = []
        self.tables_seen = 0
        # The attributes of the open cell, for its spans.
        self.cell: Mapping[str, str] = {}
        self.term = ""
        # The positions of texts that are buttons of consent dialogs.
        self.buttons: list[int] = []

    def run(self) -> None:
        """Process all events."""
        # This loop runs for every event of every page, hence the type() tests and local names.
        parts, path, opened = self.parts, self.path, self.opened
        parents, tags, open_elements = self.parents, self.tags, self.open
        for index, event in enumerate(self.events):
            if type(event) is str:
                # U+001E and U+001F are blanks: without a text before them they do nothing.
                if parts or not event.isspace():
                    parts.append(event)
            elif type(event) is LinkEdge:
                self.cross_link_edge(event)
            else:
                if parts:
                    self.flush(index)
                if type(event) is Start:
                    tag = event.tag
                    # Most elements are plain <div>, <p> and the like, which only end a text.
                    if tag in _TELLING or event.widget or event.attributes:
                        self.start(index, event)
                    path.append(tag)
                    parents.append(open_elements[-1])
                    open_elements.append(len(tags))
                    tags.append(tag)
                elif type(event) is End:
                    path.pop()
                    open_elements.pop()
                    tag = event.tag
                    is_edge = opened[-1] == len(path)
                    if is_edge or tag in _STRUCTURES:
                        self.end(tag, is_edge=is_edge)

    def start(self, index: int, event: Start) -> None:
        """Process the start of a block element; while skimming, only that of a title matters."""
        tag = event.tag
        if self.is_skimming:
            if tag == "h1":
                self.open_structure(index, event)
            return
        if event.widget or tag in LANDMARKS or tag == "summary" or "role" in event.attributes:
            self.enter(event)
        if tag in _STRUCTURES:
            self.open_structure(index, event)

    def end(self, tag: str, *, is_edge: bool) -> None:
        """Process the end of a block element; while skimming, that of the zone or a title."""
        if tag in _STRUCTURES and (is_edge or not self.is_skimming or tag == "h1"):
            self.close_structure(tag)
        if is_edge:
            self.leave()

    def enter(self, event: Start) -> None:
        """Open a container for a landmark, an element with a role, or a possible widget."""
        role = event.attributes.get("role")
        zone = zone_of(event.tag, role, self.path)
        is_main = event.tag == "main" or role == "main"
        is_never = event.is_certain or (zone == "footer" and not is_main)
        self.container = Container(self.container, zone, event.widget, is_main, is_never)
        self.container.is_toggle = event.tag == "summary" or any(
            name in event.attributes for name in _TOGGLES
        )
        if is_main:
            self.allow_content()
        self.containers.append(self.container)
        self.opened.append(len(self.path))
        self.is_skimming = zone in self.skims

    def allow_content(self) -> None:
        """Note that whatever surrounds <main> holds content."""
        outer = self.container.parent
        while outer is not None:
            outer.is_never_content = False
            outer = outer.parent

    def leave(self) -> None:
        """Close the current container and add its text to the one around it."""
        self.opened.pop()
        self.is_skimming = False
        inner, self.container = self.container, self.container.parent or self.container
        self.container.add(inner)

    def has_skimmed(self, share: float) -> bool:
        """Return whether a skimmed zone holds more than this share of the text."""
        most = share * content_chars(self.containers)
        return any(
            c.plain_chars > most
            for c in self.containers
            if c.zone in self.skims and not c.is_never_content
        )

    def open_structure(self, index: int, event: Start) -> None:
        tag = event.tag
        if tag in _KINDS:
            self.kinds.append(_KINDS[tag])
            if tag in _LEVELS:
                self.level = _LEVELS[tag]
            elif tag == "li" and self.lists:
                self.lists[-1].open_item()
        elif tag in _LISTS:
            self.lists.append(ListState(tag, event.attributes.get("start", "")))
        elif tag == "table":
            self.tables_seen += 1
            is_data = is_data_table(self.events, index)
            self.tables.append(TableState(self.tables_seen) if is_data else None)
        elif table := self.table:
            if tag == "tr" or not table.is_in_row:
                table.open_row()
            if tag != "tr":
                self.cell = event.attributes

    def close_structure(self, tag: str) -> None:
        if tag in _KINDS:
            self.kinds.pop()
        elif tag in _LISTS:
            self.lists.pop()
        elif tag == "table":
            table = self.tables.pop()
            if table and table.is_in_row:
                self.close_row(table)
        elif table := self.table:
            if tag == "tr":
                self.close_row(table)
            else:
                self.close_cell(table, is_name=tag == "th")

    @property
    def table(self) -> TableState | None:
        return self.tables[-1] if self.tables else None

    def close_cell(self, table: TableState, *, is_name: bool) -> None:
        text, link_chars = self.take()
        table.add_cell(text, self.cell, is_name=is_name, link_chars=link_chars)

    def close_row(self, table: TableState) -> None:
        text, kind, hints = table.close_row()
        if text:
            self.emit(text, kind, table.link_chars, hints)

    def cross_link_edge(self, edge: LinkEdge) -> None:
        """Enter or leave a link."""
        opens = edge.opens
        if edge.target:
            self.targets.append(edge.target)
        if self.links:
            self.count_links()
        elif opens > 0 and self.parts and self.links_from == len(self.parts):
            # Two links without text between them are two entries, except in code.
            self.parts.append("" if self.kinds[-1] == kinds.CODE else BREAK)
        self.links += opens
        self.links_from = len(self.parts)

    def count_links(self) -> None:
        """Count the text since the last link edge."""
        self.link_chars += len("".join(self.parts[self.links_from :]).strip())

    def take(self) -> tuple[str, int]:
        """Return the collected text and how much of it is in links, and reset both."""
        if self.links:
            self.count_links()
        text, link_chars = "".join(self.parts), self.link_chars
        if GAP in text:
            is_code = self.kinds[-1] == kinds.CODE
            text = (text if is_code else _SET_APART.sub(" ", text)).replace(GAP, "")
        self.parts.clear()
        self.links_from = self.link_chars = 0
        return text, link_chars

    def flush(self, index: int) -> None:
        """Turn the collected text into blocks; in a table row, add a blank instead."""
        if self.tables and (table := self.table) and table.is_in_row:
            self.parts.append(" ")
            return
        text, links = self.take()
        kind = self.kinds[-1]
        is_code = kind == kinds.CODE
        if BREAK not in text and not is_code:
            line = " ".join(text.split())
            size = len(line)
            if size < _BUTTON_CHARS and line.lower() in ACTIONS:
                self.buttons.append(index - 1)
            # Half of all blocks: paragraphs in the order of the events, without hints.
            if kind == kinds.PARAGRAPH and size and line[0].isalpha():
                self.emit(line, kind, links, {})
            else:
                self.emit_line(line, links)
            return
        lines = split_code(text) if is_code else split_lines(text, is_list=_is_all(links, text))
        # Each line gets its proportional share of the link text; whose targets are whose is lost.
        size = sum(map(len, lines)) or 1
        if len(lines) > 1:
            self.targets.clear()
        for line in lines:
            entries = line.split("\n") if kind == kinds.PARAGRAPH and not is_code else ()
            if len(entries) >= _LIST_LINES and not _CONTACT.search(line):
                # One dictionary for all, by which short neighbours are joined.
                hints = {"marker": "-"}
                for entry in entries:
                    self.emit(entry, kinds.ITEM, links * len(entry) // size, hints)
            else:
                self.emit_line(line, links * len(line) // size)

    def emit_line(self, text: str, link_chars: int) -> None:
        """Add a block of the kind that its elements imply."""
        kind, hints = self.kinds[-1], {}
        if not text:
            return
        if kind == kinds.PARAGRAPH:
            # Many pages write lists as paragraphs with typed bullets. Most paragraphs start with a
            # letter and need no regular expression.
            if not text[0].isalpha() and (bullet := BULLET.match(text)):
                kind, hints, text = kinds.ITEM, {"marker": bullet.group(1)}, text[bullet.end() :]
        elif kind == kinds.ITEM and self.lists:
            hints = self.lists[-1].hints(len(self.lists))
        elif kind == kinds.TERM:
            self.term = text
        elif kind == kinds.DEFINITION and self.term:
            hints = {"term": self.term}
        self.emit(text, kind, link_chars, hints)

    def emit(self, text: str, kind: str, link_chars: int, hints: dict[str, str]) -> None:
        size = len(text)
        # Whitespace in links counts before it is collapsed, so the sum can exceed the text.
        links = link_chars if link_chars < size else size
        level = self.level if kind == kinds.HEADING else 0
        container = self.container
        block = PageBlock(text, kind, container, links, level, hints, self.open[-1])
        self.blocks.append(block)
        if self.targets:
            block.links = tuple(self.targets)
            self.targets.clear()
        container.chars += size
        container.link_chars += links
        if level:
            container.has_heading = True
        elif size >= PROSE_CHARS and links * 2 < size:
            container.prose_chars += size - links


def is_data_table(events: Sequence[Event], start: int) -> bool:
    """Return whether the table that starts at `start` holds data rather than a page's layout."""
    # The number of child paragraphs of every open element inside the table.
    paragraphs = [0]
    for index in range(start + 1, len(events)):
        event = events[index]
        if type(event) is Start:
            paragraphs[-1] += event.tag == "p"
            if event.tag in _LAYOUT or paragraphs[-1] == _LAYOUT_PARAGRAPHS:
                return False
            paragraphs.append(0)
        elif type(event) is End:
            paragraphs.pop()
            if not paragraphs:
                break
    return True


def _is_all(links: int, text: str) -> bool:
    """Return whether nearly all of a text is in links: each of its lines is an entry."""
    return links >= _ALL_LINKS * len(text.strip())


def split_lines(text: str, *, is_list: bool = False) -> list[str]:
    """Split a text at <br>: blank lines and bullets start a block, other lines continue one.

    In a list written with <br> every line starts a block; the lines of an address stay lines.
    """
    found: list[list[str]] = []
    is_fresh = True
    for line in map(collapse_whitespace, text.split(BREAK)):
        if line and (is_fresh or is_list or BULLET.match(line)):
            found.append([line])
        elif line:
            found[-1].append(line)
        is_fresh = not line
    return [("\n" if _are_lines(lines) else " ").join(lines) for lines in found]


def _are_lines(lines: Sequence[str]) -> bool:
    """Return whether lines are entries, as those of an address, and not parts of sentences."""
    if max(map(len, lines)) > _ENTRY_CHARS or any(line[0].islower() for line in lines[1:]):
        return False
    return sum(line[-1] in ".!?" for line in lines) * 3 <= len(lines)


def split_code(text: str) -> list[str]:
    """Return a short code listing as one part, and split a long one at its blank lines."""
    text = text.replace(BREAK, "\n")
    parts = _BLANK_LINE.split(text) if len(text) > _LONG_CODE_CHARS else [text]
    return [line for line in map(collapse_whitespace, parts) if line]
