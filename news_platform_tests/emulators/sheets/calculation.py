"""Compute the formulas of a spreadsheet, each at most once per call."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from news_platform_tests.emulators.sheets.a1 import Range
from news_platform_tests.emulators.sheets.cells import Formula, Value
from news_platform_tests.emulators.sheets.formulas import Block, FormulaError, compute
from news_platform_tests.emulators.sheets.grid import Sheet


@dataclass(slots=True)
class Calculation:
    """The computed values of the tabs as they are now."""

    sheets: Sequence[Sheet]
    _known: dict[tuple[int, int, int], Value] = field(default_factory=dict)
    _started: set[tuple[int, int, int]] = field(default_factory=set)

    def value(self, sheet: Sheet, row: int, column: int) -> Value:
        """Return the value of one cell; a formula that needs its own result is `#REF!`."""
        held = sheet.cell(row, column)
        if not isinstance(held, Formula):
            return held
        place = (sheet.sheet_id, row, column)
        if place not in self._known:
            if place in self._started:
                raise FormulaError("#REF!")
            self._started.add(place)
            self._known[place] = compute(held, lambda area: self._block(sheet, area))
        return self._known[place]

    def _block(self, own: Sheet, area: Range) -> Block:
        sheet = own if area.title is None else self._titled(area.title)
        # A range ends with the last row that holds anything, a single cell is always one.
        bottom = max(area.top + 1, min(area.bottom or len(sheet.rows), len(sheet.rows)))
        right = sheet.column_count if area.right is None else area.right
        if area.top >= sheet.row_count or right > sheet.column_count:
            raise FormulaError("#REF!")
        return [
            [self.value(sheet, row, column) for column in range(area.left, right)]
            for row in range(area.top, bottom)
        ]

    def _titled(self, title: str) -> Sheet:
        for sheet in self.sheets:
            # Sheets ignores the case of a tab's name in a formula.
            if sheet.title.casefold() == title.casefold():
                return sheet
        raise FormulaError("#REF!")
