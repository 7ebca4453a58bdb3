"""The cells of one sheet. Rows are never changed in place, so copying a sheet copies one list."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from news_platform_tests.emulators.sheets.a1 import Range

Value = str | int | float | bool | None
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

    def copy(self) -> "Sheet":
        """Return an independent copy."""
        return Sheet(
            self.sheet_id,
            self.title,
            self.row_count,
            self.column_count,
            self.frozen_rows,
            self.filter,
            list(self.rows),
            self.widths,
        )

    def properties(self, index: int) -> dict[str, Any]:
        """Return the tab as SheetProperties."""
        grid = {"rowCount": self.row_count, "columnCount": self.column_count}
        if self.frozen_rows:
            grid["frozenRowCount"] = self.frozen_rows
        return {
            "sheetId": self.sheet_id,
            "title": self.title,
            "index": index,
            "sheetType": "GRID",
            "gridProperties": grid,
        }

    def get(self, found: Range) -> list[list[Any]]:
        """Return values without the empty ends of rows and of the block."""
        block = [
            _without_end([self._shown(value) for value in row[found.left : found.right]])
            for row in self.rows[found.top : found.bottom]
        ]
        while block and not block[-1]:
            block.pop()
        return block

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

    def sort(self, start: int, end: int | None, key: Callable[[tuple[Value, ...]], Any]) -> None:
        """Sort some rows, empty ones last."""
        block = self.rows[start:end]
        full = [row for row in block if any(value not in (None, "") for value in row)]
        empty = [row for row in block if not any(value not in (None, "") for value in row)]
        self.rows[start:end] = sorted(full, key=key) + empty

    @staticmethod
    def _shown(value: Value) -> Any:
        return "" if value is None else value


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
