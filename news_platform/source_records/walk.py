"""Turn the events of a page into blocks in reading order, each with its container.

The walk keeps all visible text. Which blocks are boilerplate is decided later, from the zones and
widgets recorded here and from the amounts of text and link text in every container.
"""

import re
from collections.abc import Sequence

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import (
    Container,
    PageBlock,
    WalkedPage,
    collapse_whitespace,
)
from news_platform.source_records.html_events import (
    BREAK,
    LANDMARKS,
    End,
    Event,
    LinkEdge,
    Start,
    zone_of,
)

BULLET = re.compile(r"^([-*•·▪◦‣–—]|\d{1,3}[.)])\s+(?=\S)")
_BLANK_LINE = re.compile(r"\n\s*\n")
# A much longer listing would exceed `max_chars` and be dropped if it stayed one block.
_LONG_CODE_CHARS = 1_000
# A table that contains one of these, or this many sibling paragraphs, is used for layout; its cells
# are treated like any other container.
_LAYOUT = frozenset(("table", "h1", "h2", "h3", "ul", "ol", "form"))
_LAYOUT_PARAGRAPHS = 3
_LEVELS = {f"h{level}": level for level in range(1, 7)}
_KINDS = {
    "li": kinds.ITEM,
    "dt": kinds.TERM,
    "dd": kinds.DEFINITION,
    "pre": kinds.CODE,
    **dict.fromkeys(_LEVELS, kinds.HEADING),
}
_LISTS = frozenset(("ul", "ol", "menu", "dir"))
# Zones that are hardly ever content. Forms are not among them: a form may contain a whole page.
_SKIMMED = frozenset(("navigation", "header", "footer", "aside", "dialog"))
_STRUCTURES = frozenset((*_KINDS, *_LISTS, "table", "tr", "td", "th"))


def walk(events: Sequence[Event], *, zone_share: float) -> WalkedPage:
    """Return the blocks of a page in reading order.

    In navigation and similar zones only the text is read, not lists and tables. If such a zone
    holds more than `zone_share` of the page's plain text, it is content: the page is walked again
    without skimming.
    """
    walker = _Walker(events, skims=_SKIMMED)
    walker.run()
    if walker.has_skimmed(zone_share):
        walker = _Walker(events, skims=frozenset())
        walker.run()
    return WalkedPage(walker.blocks, walker.containers, _declared_language(events))


def _declared_language(events: Sequence[Event]) -> str | None:
    """Return the `lang` attribute of the outermost element."""
    first = events[0] if events else None
    return first.attributes.get("lang") if type(first) is Start else None


class ListState:
    """An open list: its kind and the number of its current item."""

    __slots__ = ("_is_ordered", "_number")

    def __init__(self, tag: str, start: str) -> None:
        self._is_ordered = tag == "ol"
        # `start` is untrusted: int() raises for very long numbers.
        self._number = int(start) - 1 if start.isdecimal() and len(start) < 9 else 0

    def open_item(self) -> None:
        """Count one more item."""
        self._number += 1

    def hints(self, depth: int) -> dict[str, str]:
        """Return the marker of the current item, and its depth if the list is nested."""
        marker = f"{self._number}." if self._is_ordered else "-"
        return {"marker": marker} if depth == 1 else {"marker": marker, "depth": str(depth)}


class TableState:
    """An open data table: its column names and the current row."""

    __slots__ = ("_cells", "_hints", "_names", "_rows", "is_in_row", "link_chars")

    def __init__(self, number: int) -> None:
        self._hints = {"table": str(number)}
        self._rows = 0
        self.open_row()

    def open_row(self) -> None:
        """Start a row."""
        self._cells: list[str] = []
        self._names = 0
        self.link_chars = 0
        self.is_in_row = True

    def add_cell(self, text: str, *, is_name: bool, link_chars: int) -> None:
        """Add the text of one cell."""
        self._cells.append(collapse_whitespace(text.replace(BREAK, " ")))
        self._names += is_name
        self.link_chars += link_chars

    def close_row(self) -> tuple[str, str, dict[str, str]]:
        """Return the row's text, kind and hints; the text of an empty row is empty."""
        self.is_in_row = False
        text = " | ".join(cell for cell in self._cells if cell)
        # Only the first row can hold the column names, and only if all its cells are <th>.
        if text and self._names == len(self._cells) and not self._rows:
            hints = self._hints
            self._hints = {**hints, "columns": " | ".join(self._cells)}
            return text, kinds.COLUMNS, hints
        self._rows += 1
        return text, kinds.ROW, dict(self._hints)


class _Walker:
    """The state of one walk. It is a loop because pages nest deeper than Python can recurse."""

    def __init__(self, events: Sequence[Event], *, skims: frozenset[str]) -> None:
        self.events = events
        self.skims = skims
        self.blocks: list[PageBlock] = []
        self.path: list[str] = []
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
        self.term = ""

    def run(self) -> None:
        """Process all events."""
        # This loop runs for every event of every page, hence the type() tests and local names.
        parts, path = self.parts, self.path
        for index, event in enumerate(self.events):
            if type(event) is str:
                if parts or not event.isspace():
                    parts.append(event)
            elif type(event) is LinkEdge:
                self.cross_link_edge(event.opens)
            else:
                if parts:
                    self.flush()
                if type(event) is Start:
                    if not self.is_skimming:
                        self.start(index, event)
                    path.append(event.tag)
                elif type(event) is End:
                    path.pop()
                    # While skimming, only the end of the zone itself matters.
                    if not self.is_skimming or self.opened[-1] == len(path):
                        self.end(event.tag)

    def start(self, index: int, event: Start) -> None:
        """Process the start of a block element."""
        tag = event.tag
        if event.widget or tag in LANDMARKS or "role" in event.attributes:
            self.enter(event)
        if tag in _STRUCTURES:
            self.open_structure(index, event)

    def end(self, tag: str) -> None:
        """Process the end of a block element."""
        if tag in _STRUCTURES:
            self.close_structure(tag)
        if self.opened[-1] == len(self.path):
            self.leave()

    def enter(self, event: Start) -> None:
        """Open a container for a landmark, an element with a role, or a possible widget."""
        role = event.attributes.get("role")
        zone = zone_of(event.tag, role, self.path)
        is_main = event.tag == "main" or role == "main"
        self.container = Container(self.container, zone, event.widget, is_main)
        self.containers.append(self.container)
        self.opened.append(len(self.path))
        self.is_skimming = zone in self.skims

    def leave(self) -> None:
        """Close the current container and add its text to the one around it."""
        self.opened.pop()
        self.is_skimming = False
        inner, self.container = self.container, self.container.parent or self.container
        self.container.add(inner)

    def has_skimmed(self, share: float) -> bool:
        """Return whether a skimmed zone holds more than this share of the plain text."""
        most = share * self.containers[0].plain_chars
        return any(c.plain_chars > most for c in self.containers if c.zone in self.skims)

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
        elif tag == "tr" and (table := self.table):
            table.open_row()

    def close_structure(self, tag: str) -> None:
        if tag in _KINDS:
            self.kinds.pop()
        elif tag in _LISTS:
            self.lists.pop()
        elif tag == "table":
            self.tables.pop()
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
        table.add_cell(text, is_name=is_name, link_chars=link_chars)

    def close_row(self, table: TableState) -> None:
        text, kind, hints = table.close_row()
        if text:
            self.emit(text, kind, table.link_chars, hints)

    def cross_link_edge(self, opens: int) -> None:
        """Enter or leave a link."""
        if self.links:
            self.count_links()
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
        self.parts.clear()
        self.links_from = self.link_chars = 0
        return text, link_chars

    def flush(self) -> None:
        """Turn the collected text into blocks; in a table row, add a blank instead."""
        if self.tables and (table := self.table) and table.is_in_row:
            self.parts.append(" ")
            return
        text, links = self.take()
        is_code = self.kinds[-1] == kinds.CODE
        if BREAK not in text and not is_code:
            self.emit_line(collapse_whitespace(text), links)
            return
        lines = split_code(text) if is_code else split_lines(text)
        # Each line gets its proportional share of the link text.
        size = sum(map(len, lines)) or 1
        for line in lines:
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
        self.blocks.append(PageBlock(text, kind, container, links, level, hints))
        container.chars += size
        container.link_chars += links


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


def split_lines(text: str) -> list[str]:
    """Split a text at <br>: blank lines and bullets start a block, other lines continue one."""
    found: list[list[str]] = []
    is_fresh = True
    for line in map(collapse_whitespace, text.split(BREAK)):
        if line and (is_fresh or BULLET.match(line)):
            found.append([line])
        elif line:
            found[-1].append(line)
        is_fresh = not line
    return [" ".join(lines) for lines in found]


def split_code(text: str) -> list[str]:
    """Return a short code listing as one part, and split a long one at its blank lines."""
    text = text.replace(BREAK, "\n")
    parts = _BLANK_LINE.split(text) if len(text) > _LONG_CODE_CHARS else [text]
    return [line for line in map(collapse_whitespace, parts) if line]
