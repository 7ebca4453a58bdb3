"""The cells of one sheet. Rows are never changed in place, so copying a sheet copies one list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from news_platform_tests.emulators.sheets.a1 import Range
from news_platform_tests.emulators.sheets.cells import Value

CELL_CHARACTERS = 50_000


class Invalid(ValueError):
    """Google would answer 400."""


@dataclass(slots=True)
class Sheet:
    """A grid and the properties of its tab."""

    sheet_id: int
    title: str
    row_count: int = 1000
    column_count: int = 26
    frozen_rows: int = 0
    filter: dict[str, Any] | None = None
    rows: list[tuple[Value, ...]] = field(default_factory=list)
    # Widths in pixels, by column, where they were set.
    widths: dict[int, int] = field(default_factory=dict)
    is_hidden: bool = False
    frozen_columns: int = 0
    hides_gridlines: bool = False
    tab_color: dict[str, Any] | None = None

    def copy(self) -> "Sheet":
        """Return an independent copy."""
        return replace(self, rows=list(self.rows))

    def properties(self, index: int) -> dict[str, Any]:
        """Return the tab as SheetProperties."""
        grid = {"rowCount": self.row_count, "columnCount": self.column_count}
        # Google leaves out fields that have their default value.
        optional = {
            "frozenRowCount": self.frozen_rows,
            "frozenColumnCount": self.frozen_columns,
            "hideGridlines": self.hides_gridlines,
        }
        shown = {
            "sheetId": self.sheet_id,
            "title": self.title,
            "index": index,
            "sheetType": "GRID",
            "gridProperties": {**grid, **{key: value for key, value in optional.items() if value}},
        }
        if self.tab_color is not None:
            shown |= {"tabColor": self.tab_color, "tabColorStyle": {"rgbColor": self.tab_color}}
        return {**shown, **({"hidden": True} if self.is_hidden else {})}

    def cell(self, row: int, column: int) -> Value:
        """Return what one cell holds."""
        cells = self.rows[row] if row < len(self.rows) else ()
        return cells[column] if column < len(cells) else None

    def get(self, found: Range, shown: Callable[[Value], Any]) -> list[list[Any]]:
        """Return cells as `shown`, without the empty ends of rows and of the block."""
        block = [
            _without_end([shown(value) for value in row[found.left : found.right]])
            for row in self.rows[found.top : found.bottom]
        ]
        while block and not block[-1]:
            block.pop()
        return block

    def resize(self, *, rows: int, columns: int) -> None:
        """Set the size of the grid; what lies beyond is lost."""
        if columns < self.column_count:
            self.rows = [row[:columns] for row in self.rows]
        del self.rows[rows:]
        self.row_count, self.column_count = rows, columns

    def put(self, top: int, left: int, values: Sequence[Sequence[Value]]) -> None:
        """Write a block; the grid must be large enough."""
        height, width = len(values), max((len(row) for row in values), default=0)
        if top + height > self.row_count or left + width > self.column_count:
            raise Invalid("the range exceeds the grid limits")
        while len(self.rows) < top + height:
            self.rows.append(())
        for offset, new in enumerate(values):
            self.rows[top + offset] = _overwritten(self.rows[top + offset], left, new)

    def append(self, values: Sequence[Sequence[Value]]) -> int:
        """Write rows after the last one with data, growing the grid, and return the first index."""
        top = self.last_row()
        self.row_count = max(self.row_count, top + len(values))
        self.put(top, 0, values)
        return top

    def last_row(self) -> int:
        """Return the number of rows up to the last one with data."""
        last = len(self.rows)
        while last and not any(value not in (None, "") for value in self.rows[last - 1]):
            last -= 1
        return last


def _overwritten(row: tuple[Value, ...], left: int, new: Sequence[Value]) -> tuple[Value, ...]:
    for value in new:
        if isinstance(value, str) and len(value.encode("utf-16-le")) > CELL_CHARACTERS * 2:
            raise Invalid("Your input contains more than the maximum of 50000 characters")
    padded = row + (None,) * (left - len(row))
    return (*padded[:left], *new, *padded[left + len(new) :])


def _without_end(row: list[Any]) -> list[Any]:
    while row and row[-1] == "":
        row.pop()
    return row
