"""Find our tabs, columns and rows in a spreadsheet as people left it, and say what to change.

Missing tabs and columns are created; an intent becomes a single batchUpdate. A batchUpdate is
applied whole or not at all, and the id of a piece of developer metadata is unique in its
spreadsheet. Each batch starts by creating metadata with its own id, its fence. So Google rejects a
second copy of the batch as a whole, however late it arrives.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from zlib import crc32

import sqlalchemy as sa
from gspread.utils import absolute_range_name, rowcol_to_a1

from news_platform.errors import ConfigError, InputError, NewsPlatformError
from news_platform.rss.sheets.books import (
    FEEDS_TAB,
    TABS,
    Cell,
    KnownTabs,
    Tab,
    column_width,
    feed_key,
    key_text,
    read_known_tabs,
    write_known_tabs,
)
from news_platform.rss.sheets.google import (
    FENCE_KEY,
    ChangeRejected,
    OutcomeUnknown,
    Request,
    Spreadsheet,
    SpreadsheetState,
    Worksheet,
)
from news_platform.rss.sheets.outbox import GONE, Intent, SheetRow, resend_tab

# With the backoff between them, the tries take about a minute.
_TRIES = 6
# A new spreadsheet has one tab. Its title depends on the owner's language, its id is always 0.
_FIRST_SHEET_ID = 0
# Rows of a new tab; appending adds more, and empty rows count against the cell limit.
_INITIAL_ROWS = 100
_PIXELS_PER_CHARACTER = 6

RowNumbers = Mapping[str, Sequence[int]]
"""The indexes of the rows with a key, header 0; a key that people copied has several."""


@dataclass(frozen=True, slots=True)
class LocatedTab:
    """One of our tabs with its worksheet as it is now, and the positions of our columns."""

    tab: Tab
    sheet: Worksheet
    header: tuple[str, ...]
    positions: Mapping[str, int]

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the columns that are to be added to the right of all others."""
        return tuple(name for name in self.tab.columns if name not in self.positions)

    @property
    def range(self) -> str:
        """Return the range of the whole tab."""
        return absolute_range_name(self.sheet.title)

    def row(self, cells: Sequence[Cell]) -> dict[str, Cell]:
        """Return a row's cells by column name; the API omits empty cells at the end of a row."""
        return {
            name: cells[index] if index < len(cells) else ""
            for name, index in self.positions.items()
        }


@dataclass(frozen=True, slots=True)
class SheetView:
    """A spreadsheet as it is now, and those of our tabs that it has."""

    state: SpreadsheetState
    tabs: Mapping[str, LocatedTab]

    @property
    def cells(self) -> int:
        """Return the size of the spreadsheet; Google counts the whole grid, empty cells too."""
        return sum(sheet.rows * sheet.columns for sheet in self.state.sheets)


def fetch_view(spreadsheet: Spreadsheet, known: KnownTabs) -> SheetView:
    """Find our tabs by their known id, else by their title, and read their headers."""
    state = spreadsheet.fetch_state()
    found = [(tab, sheet) for tab in TABS if (sheet := _find_sheet(tab, state, known)) is not None]
    headers = spreadsheet.fetch_values([absolute_range_name(s.title, "1:1") for _, s in found])
    tabs = {}
    for (tab, sheet), rows in zip(found, headers, strict=True):
        before = known[tab.name][1] if tab.name in known else ()
        header = parse_header(tab, rows[0] if rows else (), before=before)
        positions = {name: header.index(name) for name in tab.columns if name in header}
        tabs[tab.name] = LocatedTab(tab, sheet, header, positions)
    return SheetView(state, tabs)


def _find_sheet(tab: Tab, state: SpreadsheetState, known: KnownTabs) -> Worksheet | None:
    """Return the tab's worksheet, also if it was renamed."""
    wanted_id = known[tab.name][0] if tab.name in known else None
    by_id = [sheet for sheet in state.sheets if sheet.sheet_id == wanted_id]
    by_title = [sheet for sheet in state.sheets if sheet.title == tab.name]
    return next(iter([*by_id, *by_title]), None)


def parse_header(
    tab: Tab, header: Sequence[Cell], *, before: Sequence[str] = ()
) -> tuple[str, ...]:
    """Return the names in a header row; `before` is the header after the last sync.

    If one of our columns is gone and an unknown name is there, the column was renamed. Writing on
    would fill a second column next to it, so this is an error, as is a duplicate column.
    """
    names = tuple(str(cell).strip() for cell in header)
    for name in tab.columns:
        if names.count(name) > 1:
            raise InputError(
                f"tab {tab.name!r} has {names.count(name)} columns {name!r}: rename all but one",
                thing=tab.name,
            )
    lost = [name for name in tab.columns if name in before and name not in names]
    new = [name for name in names if name and name not in before and name not in tab.columns]
    if lost and new:
        raise InputError(
            f"tab {tab.name!r}: column {lost[0]!r} is gone and {new[0]!r} is new: "
            f"if it was renamed, rename it back to {lost[0]!r}",
            thing=tab.name,
        )
    if any(names) and tab.is_keyed and tab.key not in names:
        raise InputError(
            f"tab {tab.name!r} has no column {tab.key!r}, which identifies its rows: "
            "undo the change, or delete the tab so that it is created again",
            thing=tab.name,
        )
    return names


def ensure_tabs(engine: sa.Engine, spreadsheet: Spreadsheet) -> SheetView:
    """Create missing tabs and columns until all are there, then record and return what is there."""
    last = NewsPlatformError(
        f"spreadsheet {spreadsheet.id!r}: its tabs were changed during each of {_TRIES} attempts "
        "to create missing ones; run the sync again"
    )
    for tries in range(1, _TRIES + 1):
        known = read_known_tabs(engine, spreadsheet.id)
        view = fetch_view(spreadsheet, known)
        changes = _missing(spreadsheet, view, is_new=not view.tabs and not known)
        # Before the change is sent, so that the rows are sent again even if the process dies.
        _resend_changed_tabs(engine, spreadsheet.id, view, known=known)
        if not changes:
            found = {name: (one.sheet.sheet_id, one.header) for name, one in view.tabs.items()}
            if found != known:
                write_known_tabs(engine, spreadsheet.id, found)
            return view
        try:
            spreadsheet.batch_update(changes)
        except (OutcomeUnknown, ChangeRejected) as error:
            # The change may have been applied, or another writer made it: fetch the state again.
            last = error
            spreadsheet.client.back_off(tries)
    raise last


def _resend_changed_tabs(
    engine: sa.Engine, spreadsheet_id: str, view: SheetView, *, known: KnownTabs
) -> None:
    """Send all rows again to tabs that lost a column or were deleted since the last sync.

    Rows without a key are not found again: those that are there stay as they are.
    """
    for name, (sheet_id, _) in known.items():
        found = view.tabs.get(name)
        is_there = found is not None and found.sheet.sheet_id == sheet_id and found.positions
        if found is None or not is_there or (found.missing and found.tab.is_keyed):
            resend_tab(engine, spreadsheet_id, name)


def _missing(spreadsheet: Spreadsheet, view: SheetView, *, is_new: bool) -> list[Request]:
    """Return the requests that create the missing tabs and columns."""
    used_ids = {sheet.sheet_id for sheet in view.state.sheets}
    requests = [request for one in view.tabs.values() for request in _add_columns(one)]
    for tab in TABS:
        if tab.name not in view.tabs:
            requests += _add_tab(tab, _free_id(tab.name, used_ids))
    # Only in a spreadsheet that was never ours: later, an empty first tab belongs to a person.
    return [*requests, *_delete_unused_tab(spreadsheet, view.state)] if is_new else requests


def _delete_unused_tab(spreadsheet: Spreadsheet, state: SpreadsheetState) -> list[Request]:
    """Return the request that deletes the tab a new spreadsheet comes with, if it is empty."""
    first = [sheet for sheet in state.sheets if sheet.sheet_id == _FIRST_SHEET_ID]
    cells = spreadsheet.fetch_values([absolute_range_name(sheet.title) for sheet in first])
    return [
        {"deleteSheet": {"sheetId": sheet.sheet_id}}
        for sheet, found in zip(first, cells, strict=True)
        if not found
    ]


def _free_id(name: str, used_ids: set[int]) -> int:
    """Return an id derived from the tab's name, so that Google rejects a second copy of the tab."""
    # Sheet ids are positive 32-bit numbers; 30 bits leave room to count up.
    wanted = crc32(name.encode()) & 0x3FFFFFFF
    while wanted in used_ids:
        wanted += 1
    return wanted


def _add_tab(tab: Tab, sheet_id: int) -> list[Request]:
    """Return the requests that create a tab with a frozen header, column widths and a filter."""
    grid = {"rowCount": _INITIAL_ROWS, "columnCount": len(tab.columns), "frozenRowCount": 1}
    # What editors read comes first, also in a spreadsheet that has other tabs.
    place = {"index": 0} if tab is TABS[0] else {}
    properties = {"sheetId": sheet_id, "title": tab.name, "gridProperties": grid, **place}
    area = {"sheetId": sheet_id, "startRowIndex": 0, "endColumnIndex": len(tab.columns)}
    return [
        {"addSheet": {"properties": properties}},
        cells_request(sheet_id, 0, 0, tab.columns),
        *(_width_request(sheet_id, index, name) for index, name in enumerate(tab.columns)),
        {"setBasicFilter": {"filter": {"range": {"startColumnIndex": 0, **area}}}},
    ]


def _add_columns(one: LocatedTab) -> list[Request]:
    if not one.missing:
        return []
    sheet_id, width = one.sheet.sheet_id, len(one.header)
    lacking = width + len(one.missing) - one.sheet.columns
    wider = {"sheetId": sheet_id, "dimension": "COLUMNS", "length": lacking}
    return [
        *([{"appendDimension": wider}] if lacking > 0 else []),
        cells_request(sheet_id, 0, width, one.missing),
    ]


def _width_request(sheet_id: int, index: int, name: str) -> Request:
    columns = {
        "sheetId": sheet_id,
        "dimension": "COLUMNS",
        "startIndex": index,
        "endIndex": index + 1,
    }
    size = {"pixelSize": column_width(name) * _PIXELS_PER_CHARACTER}
    return {
        "updateDimensionProperties": {"range": columns, "properties": size, "fields": "pixelSize"}
    }


def fetch_row_numbers(
    spreadsheet: Spreadsheet, tabs: Iterable[LocatedTab]
) -> dict[str, RowNumbers]:
    """Return where each key of these tabs is now, by the tab's name."""
    keyed = [one for one in tabs if one.tab.is_keyed]
    columns = spreadsheet.fetch_values([_key_range(one) for one in keyed])
    return {one.tab.name: row_numbers(one, rows) for one, rows in zip(keyed, columns, strict=True)}


def row_numbers(one: LocatedTab, rows: Sequence[Sequence[Cell]]) -> RowNumbers:
    """Return the row indexes of a tab's keys; the first row is the header."""
    found: dict[str, list[int]] = {}
    for row_index, cells in enumerate(rows[1:], 1):
        is_feed = one.tab is FEEDS_TAB
        key = feed_key(one.row(cells)) if is_feed else key_text(cells[0]) if cells else None
        if key:
            found.setdefault(key, []).append(row_index)
    return found


def _key_range(one: LocatedTab) -> str:
    """Return the range that holds the keys of a tab.

    Feeds is read whole: a row that an admin adds has a URL but no key yet.
    """
    if one.tab is FEEDS_TAB:
        return one.range
    # gspread counts columns from 1.
    letters = rowcol_to_a1(1, one.positions[one.tab.key] + 1).rstrip("1")
    return f"{one.range}!{letters}:{letters}"


def cells_request(
    sheet_id: int, row_index: int, column_index: int, cells: Sequence[Cell]
) -> Request:
    """Return the request that writes adjacent cells of one row."""
    start = {"sheetId": sheet_id, "rowIndex": row_index, "columnIndex": column_index}
    # Only the values are written: formats that people set stay.
    rows = [{"values": [cell_data(cell) for cell in cells]}]
    return {"updateCells": {"start": start, "rows": rows, "fields": "userEnteredValue"}}


def cell_data(cell: Cell) -> Request:
    """Return a typed cell value, so that a text is never read as a formula, date or number."""
    if isinstance(cell, bool):
        return {"userEnteredValue": {"boolValue": cell}}
    if isinstance(cell, str):
        # Without a value the cell is blank, which an empty text is not.
        return {"userEnteredValue": {"stringValue": cell}} if cell else {}
    return {"userEnteredValue": {"numberValue": cell}}


class SpreadsheetFull(ConfigError):
    """The spreadsheet has no room for the next batch, of which nothing was sent."""


def build_update(
    intent: Intent,
    view: SheetView,
    numbers: Mapping[str, RowNumbers],
    *,
    tokens: Collection[str],
    max_cells: int,
) -> list[Request]:
    """Return the requests that write the rows of an intent where they are, or append them.

    `tokens` are those of the batches whose fences stay. Raise SpreadsheetFull if the new rows
    would make the spreadsheet larger than `max_cells`.
    """
    requests = []
    cells = view.cells
    for tab in view.tabs.values():
        rows = [row for row in intent.rows if row.tab == tab.tab.name]
        found = numbers.get(tab.tab.name, {})
        new = [row for row in rows if row.key not in found and row.seq != GONE]
        cells += len(new) * tab.sheet.columns
        requests += [one for row in rows if row.key in found for one in _change(tab, row, found)]
        if new:
            requests.append(_append(tab, new))
    if cells > max_cells and cells > view.cells:
        raise SpreadsheetFull(
            f"the spreadsheet is nearly full: {view.cells:,} of 10,000,000 cells leave no space "
            "for another batch: delete columns that editors added, or name a new spreadsheet"
        )
    # The fence comes first, so that a second copy is rejected before anything else. Old fences are
    # removed in the same call: cleaning up takes no quota of its own.
    old = [fence for fence, token in view.state.fences.items() if token not in tokens]
    return [_add_fence(intent), *map(_remove_fence, old), *requests]


def _add_fence(intent: Intent) -> Request:
    """Return the request that Google accepts only once."""
    metadata = {
        "metadataId": intent.fence,
        "metadataKey": FENCE_KEY,
        "metadataValue": intent.token,
        "location": {"spreadsheet": True},
        # PROJECT would hide the fence from a service account of another Google Cloud project.
        "visibility": "DOCUMENT",
    }
    return {"createDeveloperMetadata": {"developerMetadata": metadata}}


def _remove_fence(fence: int) -> Request:
    lookup = {"developerMetadataLookup": {"metadataId": fence}}
    return {"deleteDeveloperMetadata": {"dataFilter": lookup}}


def _append(tab: LocatedTab, rows: Sequence[SheetRow]) -> Request:
    """Return the request that appends rows; columns that people added stay empty."""
    # Google finds the last row, so a row that a person adds at the same time is not overwritten.
    return {
        "appendCells": {
            "sheetId": tab.sheet.sheet_id,
            "rows": [{"values": _full_row(tab, row)} for row in rows],
            "fields": "userEnteredValue",
        }
    }


def _full_row(tab: LocatedTab, row: SheetRow) -> list[Request]:
    cells: Mapping[int, Cell] = {
        tab.positions[name]: cell for name, cell in zip(tab.tab.columns, row.cells, strict=True)
    }
    return [cell_data(cells.get(index, "")) for index in range(max(cells) + 1)]


def _change(tab: LocatedTab, row: SheetRow, found: RowNumbers) -> list[Request]:
    """Return the requests that write our columns of a row, or blank every copy of one that is gone.

    Of a key that people copied, the first row is updated. The admins' columns are left out if the
    ledger's value did not change since the last write.
    """
    if row.seq == GONE:
        blank = dict.fromkeys(tab.tab.columns, "")
        return [one for index in found[row.key] for one in _write(tab, index, blank)]
    cells = {
        name: cell
        for name, cell in zip(tab.tab.columns, row.cells, strict=True)
        if name not in tab.tab.edited or row.last_written.get(name) != cell
    }
    return _write(tab, found[row.key][0], cells)


def _write(tab: LocatedTab, row_index: int, cells: Mapping[str, Cell]) -> list[Request]:
    """Return the requests that write cells of one row, one per run of adjacent columns."""
    # A request writes a rectangle, and columns that people put between ours must not be touched.
    names = sorted((tab.positions[name], name) for name in cells)
    runs = groupby(enumerate(names), key=lambda item: item[1][0] - item[0])
    requests = []
    for _, grouped in runs:
        run = [place for _, place in grouped]
        values = [cells[name] for _, name in run]
        requests.append(cells_request(tab.sheet.sheet_id, row_index, run[0][0], values))
    return requests
