"""Lists and tables while a walk is inside them: what marks an item, what names a column."""

import re
from collections.abc import Sequence

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import normalised
from news_platform.source_records.events import BREAK, End, Event, Start

BULLET = re.compile(r"^([-*•·▪◦‣–—]|\d{1,3}[.)])\s+(?=\S)")
_BLANK_LINE = re.compile(r"\n\s*\n")
_LONG_CODE_CHARS = 1_000
# A table that holds any of these, or so many paragraphs side by side, lays a page out; its cells
# are containers like any other.
_LAYOUT = frozenset(("table", "h1", "h2", "h3", "ul", "ol", "form"))
_LAYOUT_PARAGRAPHS = 3


class ListReading:
    """A list being read: what marks its items, and how many there were."""

    __slots__ = ("_is_ordered", "_number")

    def __init__(self, tag: str, start: str) -> None:
        self._is_ordered = tag == "ol"
        self._number = int(start) - 1 if start.isdecimal() and len(start) < 9 else 0

    def open_item(self) -> None:
        """Count one item more."""
        self._number += 1

    def hints(self, depth: int) -> dict[str, str]:
        """Return the marker of the item in hand, and how deep its list is nested, if it is."""
        marker = f"{self._number}." if self._is_ordered else "-"
        return {"marker": marker} if depth == 1 else {"marker": marker, "depth": str(depth)}


class TableReading:
    """A data table being read: its column names and the row in hand."""

    __slots__ = ("_cells", "_hints", "_names", "_rows", "is_in_row", "link_chars")

    def __init__(self, number: int) -> None:
        self._hints = {"table": str(number)}
        self._rows = 0
        self.open_row()

    def open_row(self) -> None:
        """Begin a row."""
        self._cells: list[str] = []
        self._names = 0
        self.link_chars = 0
        self.is_in_row = True

    def add_cell(self, text: str, *, is_name: bool, link_chars: int) -> None:
        """Take the text of one cell."""
        self._cells.append(normalised(text.replace(BREAK, " ")))
        self._names += is_name
        self.link_chars += link_chars

    def close_row(self) -> tuple[str, str, dict[str, str]]:
        """Return the row as text, its kind and its hints; the text of an empty row is empty."""
        self.is_in_row = False
        text = " | ".join(cell for cell in self._cells if cell)
        if text and self._names == len(self._cells) and not self._rows:
            hints = self._hints
            self._hints = {**hints, "columns": " | ".join(self._cells)}
            return text, kinds.COLUMNS, hints
        self._rows += 1
        return text, kinds.ROW, dict(self._hints)


def is_data_table(events: Sequence[Event], start: int) -> bool:
    """Tell a table of data, which begins at `start`, from one that lays out a page."""
    # How many paragraphs each of the elements has that are open inside the table.
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


def lines_of(text: str) -> list[str]:
    """Return what <br> separates: blank lines and bullets begin a block, other lines go on."""
    found: list[list[str]] = []
    is_fresh = True
    for line in map(normalised, text.split(BREAK)):
        if line and (is_fresh or BULLET.match(line)):
            found.append([line])
        elif line:
            found[-1].append(line)
        is_fresh = not line
    return [" ".join(lines) for lines in found]


def parts_of_code(text: str) -> list[str]:
    """Return a listing whole, or, where it is long, what its blank lines separate."""
    text = text.replace(BREAK, "\n")
    parts = _BLANK_LINE.split(text) if len(text) > _LONG_CODE_CHARS else [text]
    return [line for line in map(normalised, parts) if line]
