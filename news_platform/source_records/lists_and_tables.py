"""The lists and data tables that are open during a walk: markers of items, cells of rows."""

from collections.abc import Sequence

from news_platform.source_records import blocks as kinds
from news_platform.source_records.blocks import collapse_whitespace
from news_platform.source_records.html_events import BREAK, Start

_MAX_SPAN = 50


class ListState:
    """An open list: its kind and the number of its current item."""

    __slots__ = ("_hints", "_is_ordered", "_number")

    def __init__(self, tag: str, start: str) -> None:
        self._is_ordered = tag == "ol"
        # `start` is untrusted: int() raises for very long numbers.
        self._number = int(start) - 1 if start.isdecimal() and len(start) < 9 else 0
        self._hints: dict[str, str] = {}

    def open_item(self) -> None:
        """Count one more item."""
        self._number += 1
        self._hints = {}

    def hints(self, depth: int) -> dict[str, str]:
        """Return the marker of the current item, and its depth if the list is nested.

        All blocks of one item share this dictionary, by which they are known to belong together.
        """
        if not self._hints:
            self._hints["marker"] = f"{self._number}." if self._is_ordered else "-"
            if depth > 1:
                self._hints["depth"] = str(depth)
        return self._hints


class TableState:
    """An open data table: its column names and the current row."""

    __slots__ = (
        "_above",
        "_cells",
        "_given",
        "_hints",
        "_names",
        "_rows",
        "is_in_row",
        "link_chars",
    )

    def __init__(self, number: int) -> None:
        self._hints = {"table": str(number)}
        self._rows = 0
        # Cells that reach down into the next rows, by column: their text and the rows left.
        self._above: dict[int, tuple[str, int]] = {}
        self.open_row()
        self.is_in_row = False

    def open_row(self) -> None:
        """Start a row."""
        self._cells: list[str] = []
        self._names = 0
        # How many cells the row itself has, however many columns they fill.
        self._given = 0
        self.link_chars = 0
        self.is_in_row = True

    def add_cell(self, text: str, event: Start | None, *, is_name: bool, link_chars: int) -> None:
        """Add the text of one cell; a cell over several columns or rows fills all of them."""
        self._fill_from_above()
        self._given += 1
        attributes = event.attributes if event else {}
        found = collapse_whitespace(text.replace(BREAK, " "))
        rows = _span(attributes.get("rowspan"))
        for column in range(_span(attributes.get("colspan"))):
            if rows > 1:
                self._above[len(self._cells)] = found if not column else "", rows - 1
            self._cells.append("" if column else found)
            self._names += is_name
        self.link_chars += link_chars

    def _fill_from_above(self) -> None:
        while left := self._above.pop(len(self._cells), None):
            text, rows = left
            if rows > 1:
                self._above[len(self._cells)] = text, rows - 1
            self._cells.append(text)

    def close_row(self) -> tuple[str, str, dict[str, str]]:
        """Return the row's text, kind and hints; the text of an empty row is empty."""
        self.is_in_row = False
        own = len(self._cells)
        self._fill_from_above()
        # A title over the whole width has no columns.
        text = join_cells(self._cells) if self._given > 1 else "".join(self._cells)
        # Only the first row can hold the column names, and only if all its cells are <th>.
        if text and self._names == own and not self._rows:
            hints = self._hints
            self._hints = {**hints, "columns": " | ".join(self._cells)}
            return text, kinds.COLUMNS, hints
        self._rows += 1
        return text, kinds.ROW, dict(self._hints)


def join_cells(cells: Sequence[str]) -> str:
    """Return the text of a row: an empty cell keeps its place, a row without text is empty."""
    return collapse_whitespace(" | ".join(cells)) if any(cells) else ""


def _span(given: str | None) -> int:
    # Untrusted: a table of a thousand columns is not one.
    return min(int(given), _MAX_SPAN) or 1 if given and given.isdecimal() and len(given) < 5 else 1
