"""Keep the references of formulas right when rows or columns are inserted, deleted or copied."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from news_platform_tests.emulators.sheets import a1
from news_platform_tests.emulators.sheets.cells import Formula, Value
from news_platform_tests.emulators.sheets.formulas import rewritten
from news_platform_tests.emulators.sheets.grid import Sheet

_BROKEN = "#REF!"
_CORNER = re.compile(r"(\$?)([A-Za-z]*)(\$?)(\d*)")
Shift = Callable[[int], int]


@dataclass(frozen=True, slots=True)
class _Corner:
    """One cell of a reference; without a row it is a column of `A:B`. A `$` fixes its index."""

    column: int
    row: int | None
    fixes_column: str
    fixes_row: str

    @classmethod
    def parse(cls, text: str) -> "_Corner":
        found = _CORNER.fullmatch(text)
        assert found is not None, text  # the tokenizer accepts nothing else
        area = a1.parse(f"x!{found[2]}{found[4]}")
        return cls(area.left, area.top if found[4] else None, found[1], found[3])

    def moved(self, *, is_rows: bool, shift: Shift) -> "_Corner":
        if not is_rows:
            return replace(self, column=shift(self.column))
        return self if self.row is None else replace(self, row=shift(self.row))

    def __str__(self) -> str:
        digits = "" if self.row is None else str(self.row + 1)
        return f"{self.fixes_column}{a1.letters(self.column)}{self.fixes_row}{digits}"


def after_insertion(
    sheets: Iterable[Sheet], changed: Sheet, *, is_rows: bool, start: int, count: int
) -> None:
    """Let all formulas follow the cells that moved."""

    def shift(index: int) -> int:
        return index + count if index >= start else index

    _rewrite(sheets, changed, lambda cells: _moved(cells, is_rows, shift, shift))


def after_deletion(
    sheets: Iterable[Sheet], changed: Sheet, *, is_rows: bool, start: int, end: int
) -> None:
    """Let all formulas follow the cells that moved; a reference to deleted cells is `#REF!`."""

    def first(index: int) -> int:
        return min(index, start) if index < end else index - (end - start)

    def last(index: int) -> int:
        return min(index, start - 1) if index < end else index - (end - start)

    _rewrite(sheets, changed, lambda cells: _moved(cells, is_rows, first, last))


def copied(value: Value, *, rows: int, columns: int) -> Value:
    """Return a cell's content for a place that lies this far away."""
    if not isinstance(value, Formula):
        return value

    def change(tab: str, cells: str) -> str:
        corners = [_Corner.parse(text) for text in cells.split(":")]
        moved = [
            replace(
                corner,
                column=corner.column + (0 if corner.fixes_column else columns),
                row=None if corner.row is None else corner.row + (0 if corner.fixes_row else rows),
            )
            for corner in corners
        ]
        is_outside = any(corner.column < 0 or (corner.row or 0) < 0 for corner in moved)
        return _BROKEN if is_outside else f"{tab}{':'.join(map(str, moved))}"

    return rewritten(value, change)


def _moved(cells: str, is_rows: bool, first: Shift, last: Shift) -> str:
    start, mark, end = cells.partition(":")
    new_start = _Corner.parse(start).moved(is_rows=is_rows, shift=first)
    new_end = _Corner.parse(end or start).moved(is_rows=is_rows, shift=last)
    if new_end.column < new_start.column or (new_end.row or 0) < (new_start.row or 0):
        return _BROKEN
    return f"{new_start}:{new_end}" if mark else str(new_start)


def _rewrite(sheets: Iterable[Sheet], changed: Sheet, move: Callable[[str], str]) -> None:
    """Move the cells of each reference to the changed tab, in all tabs with formulas."""
    for sheet in sheets:
        if not sheet.has_formulas:
            continue
        own = sheet.title

        def change(tab: str, cells: str, own: str = own) -> str:
            named = a1.parse(f"{tab}A1").title or own
            if named.casefold() != changed.title.casefold():
                return f"{tab}{cells}"
            moved = move(cells)
            return moved if moved == _BROKEN else f"{tab}{moved}"

        sheet.rows = [
            tuple(rewritten(cell, change) if isinstance(cell, Formula) else cell for cell in row)
            for row in sheet.rows
        ]
