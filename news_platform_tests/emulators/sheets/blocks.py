"""Blocks of cells: sort, copy and move them, and find the table that a range touches."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from news_platform_tests.emulators.sheets.cells import Value
from news_platform_tests.emulators.sheets.grid import Invalid, Sheet


@dataclass(frozen=True, slots=True)
class Area:
    """A closed block of cells by index, ends excluded."""

    top: int
    left: int
    bottom: int
    right: int

    def grid_range(self, sheet_id: int) -> dict[str, int]:
        """Return the area as a GridRange."""
        return {
            "sheetId": sheet_id,
            "startRowIndex": self.top,
            "endRowIndex": self.bottom,
            "startColumnIndex": self.left,
            "endColumnIndex": self.right,
        }


def area_of(sheet: Sheet, grid_range: dict[str, int]) -> Area:
    """Close a GridRange at the ends of the grid; raise Invalid if it lies outside."""
    area = Area(
        grid_range.get("startRowIndex", 0),
        grid_range.get("startColumnIndex", 0),
        grid_range.get("endRowIndex", sheet.row_count),
        grid_range.get("endColumnIndex", sheet.column_count),
    )
    is_inside = area.bottom <= sheet.row_count and area.right <= sheet.column_count
    if not is_inside or not (0 <= area.top < area.bottom and 0 <= area.left < area.right):
        raise Invalid(f"the range {grid_range} does not lie within the grid")
    return area


def sort(sheet: Sheet, area: Area, specs: Sequence[dict[str, Any]]) -> None:
    """Sort the rows of an area."""
    rows = list(range(area.top, min(area.bottom, len(sheet.rows))))
    # Python's sort is stable: sorting by the last key first orders by all of them.
    for spec in reversed(specs):
        column = spec.get("dimensionIndex", 0)
        if not area.left <= column < area.right:
            raise Invalid("a sort spec lies outside the range")
        rows = _sorted(
            {row: sheet.cell(row, column) for row in rows},
            is_descending=spec.get("sortOrder") == "DESCENDING",
        )
    sheet.put(area.top, area.left, [_cells(sheet, row, area) for row in rows])


def _sorted(values: dict[int, Value], *, is_descending: bool) -> list[int]:
    """Return the keys of the values in order; empty values come last in both orders."""
    full = [key for key, value in values.items() if value not in (None, "")]
    full.sort(key=lambda key: _order(values[key]), reverse=is_descending)
    return [*full, *(key for key, value in values.items() if value in (None, ""))]


def _order(value: Value) -> tuple[int, float, str]:
    """Return a key that sorts as Sheets does: numbers, texts in any case, booleans."""
    if isinstance(value, bool):
        return 2, float(value), ""
    if isinstance(value, int | float):
        return 0, float(value), ""
    return 1, 0.0, str(value).casefold()


def copy(source: Sheet, area: Area, target: Sheet, into: Area) -> None:
    """Copy an area over another, repeatedly if that is larger."""
    height, width = area.bottom - area.top, area.right - area.left
    rows = max(height, (into.bottom - into.top) // height * height)
    columns = max(width, (into.right - into.left) // width * width)

    def content(row: int, column: int) -> Value:
        return source.cell(area.top + row % height, area.left + column % width)

    block = [[content(row, column) for column in range(columns)] for row in range(rows)]
    target.put(into.top, into.left, block)


def move(source: Sheet, area: Area, target: Sheet, corner: tuple[int, int]) -> None:
    """Move an area."""
    block = [_cells(source, row, area) for row in range(area.top, area.bottom)]
    source.put(area.top, area.left, [[None] * (area.right - area.left)] * len(block))
    target.put(*corner, block)


def _cells(sheet: Sheet, row: int, area: Area) -> list[Value]:
    return [sheet.cell(row, column) for column in range(area.left, area.right)]
