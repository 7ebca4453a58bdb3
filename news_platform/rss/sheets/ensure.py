"""Create the missing tabs and columns of a spreadsheet, and locate the existing ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import sqlalchemy as sa

from news_platform.errors import NewsPlatformError
from news_platform.rss.sheets.calls import ChangeRejected, OutcomeUnknown
from news_platform.rss.sheets.google import Spreadsheet, SpreadsheetState, Worksheet
from news_platform.rss.sheets.tabs import (
    TABS,
    Cell,
    ColumnLayout,
    Request,
    Tab,
    cells_request,
    parse_header,
    quote_title,
)
from news_platform.rss.sheets.tracking import read_known_tabs, resend_tab, write_known_tab

KnownTabs = Mapping[str, tuple[int, tuple[str, ...]]]
"""The sheet id and the header of each tab after the last sync, by the tab's name."""

# With the backoff between them, the tries take about a minute.
_TRIES = 6
# A new spreadsheet has one tab. Its title depends on the owner's language, its id is always 0.
_FIRST_SHEET_ID = 0
# Pixels; texts get wide columns, URLs medium ones.
_WIDTHS = {
    **dict.fromkeys(("title", "clean_text"), 360),
    **dict.fromkeys(("feed_url", "article_url", "subtitle", "notes", "key"), 240),
}
_DEFAULT_WIDTH = 120
# Rows of a new tab; appending adds more, and empty rows count against the cell limit.
_INITIAL_ROWS = 100


@dataclass(frozen=True, slots=True)
class LocatedTab:
    """One of our tabs with its worksheet as it is now and the positions of its columns."""

    tab: Tab
    sheet: Worksheet
    layout: ColumnLayout


def ensure_tabs(engine: sa.Engine, spreadsheet: Spreadsheet) -> None:
    """Create missing tabs and columns until all are there, then record what was found."""
    last = NewsPlatformError(
        f"spreadsheet {spreadsheet.id!r}: its tabs were changed during each of {_TRIES} attempts "
        "to create missing ones; run the sync again"
    )
    for tries in range(1, _TRIES + 1):
        try:
            if not _make_changes(engine, spreadsheet):
                return
        except (OutcomeUnknown, ChangeRejected) as error:
            # The change may have been applied, or another writer made it: fetch the state again.
            last = error
            spreadsheet.wait(tries)
    raise last


def _make_changes(engine: sa.Engine, spreadsheet: Spreadsheet) -> bool:
    """Send the changes that are needed; return False if there were none."""
    known = read_known_tabs(engine, spreadsheet.id)
    state = spreadsheet.fetch_state()
    located = locate_tabs(spreadsheet, state, known)
    changes = [*_missing_tabs(state, located), *_missing_columns(located)]
    # Only in a spreadsheet that was never ours: later, an empty first tab belongs to a person.
    if not located and not known:
        changes += _unused_tab(spreadsheet, state)
    # Before the change is sent, so that the rows are sent again even if the process dies after it.
    _resend_changed_tabs(engine, spreadsheet.id, located, known=known)
    if not changes:
        _write_known_tabs(engine, spreadsheet.id, located, known=known)
        return False
    spreadsheet.batch_update(changes)
    return True


def locate_tabs(
    spreadsheet: Spreadsheet, state: SpreadsheetState, known: KnownTabs
) -> list[LocatedTab]:
    """Find our tabs by their known id, else by their title, and read their headers."""
    found = [(tab, sheet) for tab in TABS if (sheet := find_sheet(tab, state, known)) is not None]
    headers = spreadsheet.fetch_values([f"{quote_title(sheet.title)}!1:1" for _, sheet in found])
    return [
        LocatedTab(tab, sheet, _layout(tab, rows, known))
        for (tab, sheet), rows in zip(found, headers, strict=True)
    ]


def find_sheet(tab: Tab, state: SpreadsheetState, known: KnownTabs) -> Worksheet | None:
    """Return the tab's worksheet, also if it was renamed."""
    wanted_id = known[tab.name][0] if tab.name in known else None
    by_id = [sheet for sheet in state.sheets if sheet.sheet_id == wanted_id]
    by_title = [sheet for sheet in state.sheets if sheet.title == tab.name]
    return next(iter([*by_id, *by_title]), None)


def _layout(tab: Tab, rows: Sequence[Sequence[Cell]], known: KnownTabs) -> ColumnLayout:
    before = known[tab.name][1] if tab.name in known else ()
    return parse_header(tab, rows[0] if rows else (), before=before)


def _missing_tabs(state: SpreadsheetState, located: Sequence[LocatedTab]) -> list[Request]:
    existing = {item.tab.name for item in located}
    used_ids = {sheet.sheet_id for sheet in state.sheets}
    return [
        request
        for tab in TABS
        if tab.name not in existing
        for request in new_tab_requests(tab, sheet_id=_free_id(tab.name, used_ids))
    ]


def _unused_tab(spreadsheet: Spreadsheet, state: SpreadsheetState) -> list[Request]:
    """Return the request that deletes the tab a new spreadsheet comes with, if it is empty."""
    first = [sheet for sheet in state.sheets if sheet.sheet_id == _FIRST_SHEET_ID]
    cells = spreadsheet.fetch_values([quote_title(sheet.title) for sheet in first])
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


def _missing_columns(located: Sequence[LocatedTab]) -> list[Request]:
    return [
        request
        for item in located
        for request in add_column_requests(
            item.layout, sheet_id=item.sheet.sheet_id, grid_columns=item.sheet.columns
        )
    ]


def _resend_changed_tabs(
    engine: sa.Engine, spreadsheet_id: str, located: Sequence[LocatedTab], *, known: KnownTabs
) -> None:
    """Send all rows again to tabs that lost a column or were deleted since the last sync."""
    complete = {item.tab.name: item.sheet.sheet_id for item in located if not item.layout.missing}
    for name, (sheet_id, _) in known.items():
        if complete.get(name) != sheet_id:
            resend_tab(engine, spreadsheet_id, name)


def _write_known_tabs(
    engine: sa.Engine, spreadsheet_id: str, located: Sequence[LocatedTab], *, known: KnownTabs
) -> None:
    for item in located:
        found = (item.sheet.sheet_id, item.layout.header)
        if known.get(item.tab.name) != found:
            write_known_tab(
                engine, spreadsheet_id, item.tab.name, sheet_id=found[0], header=found[1]
            )


def new_tab_requests(tab: Tab, *, sheet_id: int) -> list[Request]:
    """Return the requests that create a tab with a frozen header, column widths and a filter."""
    grid = {"rowCount": _INITIAL_ROWS, "columnCount": len(tab.columns), "frozenRowCount": 1}
    properties = {"sheetId": sheet_id, "title": tab.name, "gridProperties": grid}
    area = {"sheetId": sheet_id, "startRowIndex": 0, "endColumnIndex": len(tab.columns)}
    return [
        {"addSheet": {"properties": properties}},
        cells_request(sheet_id, 0, 0, tab.columns),
        *(_width_request(sheet_id, index, name) for index, name in enumerate(tab.columns)),
        {"setBasicFilter": {"filter": {"range": {"startColumnIndex": 0, **area}}}},
    ]


def add_column_requests(layout: ColumnLayout, *, sheet_id: int, grid_columns: int) -> list[Request]:
    """Return the requests that add the missing columns to the right of all others."""
    if not layout.missing:
        return []
    lacking = layout.width + len(layout.missing) - grid_columns
    wider = {"sheetId": sheet_id, "dimension": "COLUMNS", "length": lacking}
    return [
        *([{"appendDimension": wider}] if lacking > 0 else []),
        cells_request(sheet_id, 0, layout.width, layout.missing),
    ]


def _width_request(sheet_id: int, index: int, name: str) -> Request:
    columns = {
        "sheetId": sheet_id,
        "dimension": "COLUMNS",
        "startIndex": index,
        "endIndex": index + 1,
    }
    size = {"pixelSize": _WIDTHS.get(name, _DEFAULT_WIDTH)}
    return {
        "updateDimensionProperties": {"range": columns, "properties": size, "fields": "pixelSize"}
    }
