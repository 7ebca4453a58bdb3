"""Make a book's tabs what they should be: missing ones and columns added, all else left alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import sqlalchemy as sa

from news_platform.errors import NewsPlatformError
from news_platform.rss.sheets.calls import Doubt, Refused
from news_platform.rss.sheets.google import Book, BookState, Sheet
from news_platform.rss.sheets.outbox import note_tab, read_tabs, refill_tab
from news_platform.rss.sheets.tabs import (
    TABS,
    Cell,
    Layout,
    Request,
    Tab,
    cells_request,
    layout_of,
    quoted,
)

Known = Mapping[str, tuple[int, tuple[str, ...]]]

_TRIES = 6
# A new book has one tab, named in the language of its owner; its id is always this.
_FIRST_SHEET_ID = 0
# Pixels.
_WIDTHS = {
    **dict.fromkeys(("title", "clean_text"), 360),
    **dict.fromkeys(("feed_url", "article_url", "subtitle", "notes", "key"), 240),
}
_DEFAULT_WIDTH = 120
_FIRST_ROWS = 100


@dataclass(frozen=True, slots=True)
class PlacedTab:
    """A tab of ours, its sheet as it is now, and where its columns stand."""

    tab: Tab
    sheet: Sheet
    layout: Layout


def ensure_tabs(engine: sa.Engine, book: Book) -> None:
    """Bring the book to where every tab has all its columns; remember what was found."""
    last = NewsPlatformError(f"book {book.id!r} changes faster than its tabs can be made")
    for tries in range(1, _TRIES + 1):
        try:
            if not _changed_something(engine, book):
                return
        except (Doubt, Refused) as error:
            # Applied or not, or made by somebody else: the next look tells.
            last = error
            book.wait(tries)
    raise last


def _changed_something(engine: sa.Engine, book: Book) -> bool:
    known = read_tabs(engine, book.id)
    state = book.look()
    placed = read_placed(book, state, known)
    changes = [*_missing_tabs(state, placed), *_missing_columns(placed)]
    if not placed and not known:
        changes += _unused_tab(book, state)
    _refill(engine, book.id, placed, known=known)
    if not changes:
        _remember(engine, book.id, placed, known=known)
        return False
    book.change(changes)
    return True


def read_placed(book: Book, state: BookState, known: Known) -> list[PlacedTab]:
    """Find our tabs by the id they had, else by their title, and read their headers."""
    found = [(tab, sheet) for tab in TABS if (sheet := sheet_of(tab, state, known)) is not None]
    headers = book.read([f"{quoted(sheet.title)}!1:1" for _, sheet in found])
    return [
        PlacedTab(tab, sheet, _layout(tab, rows, known))
        for (tab, sheet), rows in zip(found, headers, strict=True)
    ]


def sheet_of(tab: Tab, state: BookState, known: Known) -> Sheet | None:
    """Return the tab's sheet: a renamed one is still the same."""
    wanted_id = known[tab.name][0] if tab.name in known else None
    by_id = [sheet for sheet in state.sheets if sheet.sheet_id == wanted_id]
    by_title = [sheet for sheet in state.sheets if sheet.title == tab.name]
    return next(iter([*by_id, *by_title]), None)


def _layout(tab: Tab, rows: Sequence[Sequence[Cell]], known: Known) -> Layout:
    before = known[tab.name][1] if tab.name in known else ()
    return layout_of(tab, rows[0] if rows else (), before=before)


def _missing_tabs(state: BookState, placed: Sequence[PlacedTab]) -> list[Request]:
    there = {item.tab.name for item in placed}
    taken = {sheet.sheet_id for sheet in state.sheets}
    return [
        request
        for tab in TABS
        if tab.name not in there
        for request in new_tab_requests(tab, sheet_id=_free_id(tab.name, taken))
    ]


def _unused_tab(book: Book, state: BookState) -> list[Request]:
    """Return the request that removes the tab a new book comes with, if nobody wrote there."""
    first = [sheet for sheet in state.sheets if sheet.sheet_id == _FIRST_SHEET_ID]
    cells = book.read([quoted(sheet.title) for sheet in first])
    return [
        {"deleteSheet": {"sheetId": sheet.sheet_id}}
        for sheet, found in zip(first, cells, strict=True)
        if not found
    ]


def _free_id(name: str, taken: set[int]) -> int:
    """Return an id that is the tab's own on every try, so that a second copy is refused."""
    wanted = crc32(name.encode()) & 0x3FFFFFFF
    while wanted in taken:
        wanted += 1
    return wanted


def _missing_columns(placed: Sequence[PlacedTab]) -> list[Request]:
    return [
        request
        for item in placed
        for request in add_column_requests(
            item.layout, sheet_id=item.sheet.sheet_id, grid_columns=item.sheet.columns
        )
    ]


def _refill(engine: sa.Engine, book: str, placed: Sequence[PlacedTab], *, known: Known) -> None:
    """Have all rows sent again to tabs that lost a column or were deleted since the last sync."""
    whole = {item.tab.name: item.sheet.sheet_id for item in placed if not item.layout.missing}
    for name, (sheet_id, _) in known.items():
        if whole.get(name) != sheet_id:
            refill_tab(engine, book, name)


def _remember(engine: sa.Engine, book: str, placed: Sequence[PlacedTab], *, known: Known) -> None:
    for item in placed:
        found = (item.sheet.sheet_id, item.layout.header)
        if known.get(item.tab.name) != found:
            note_tab(engine, book, item.tab.name, sheet_id=found[0], header=found[1])


def new_tab_requests(tab: Tab, *, sheet_id: int) -> list[Request]:
    """Return the requests that make a tab with its header frozen, its widths and its filter."""
    grid = {"rowCount": _FIRST_ROWS, "columnCount": len(tab.columns), "frozenRowCount": 1}
    properties = {"sheetId": sheet_id, "title": tab.name, "gridProperties": grid}
    whole = {"sheetId": sheet_id, "startRowIndex": 0, "endColumnIndex": len(tab.columns)}
    return [
        {"addSheet": {"properties": properties}},
        cells_request(sheet_id, 0, 0, tab.columns),
        *(_width_request(sheet_id, place, name) for place, name in enumerate(tab.columns)),
        {"setBasicFilter": {"filter": {"range": {"startColumnIndex": 0, **whole}}}},
    ]


def add_column_requests(layout: Layout, *, sheet_id: int, grid_columns: int) -> list[Request]:
    """Return the requests that add the missing columns right of all others."""
    if not layout.missing:
        return []
    short = layout.width + len(layout.missing) - grid_columns
    wider = {"sheetId": sheet_id, "dimension": "COLUMNS", "length": short}
    return [
        *([{"appendDimension": wider}] if short > 0 else []),
        cells_request(sheet_id, 0, layout.width, layout.missing),
    ]


def _width_request(sheet_id: int, place: int, name: str) -> Request:
    span = {
        "sheetId": sheet_id,
        "dimension": "COLUMNS",
        "startIndex": place,
        "endIndex": place + 1,
    }
    size = {"pixelSize": _WIDTHS.get(name, _DEFAULT_WIDTH)}
    return {"updateDimensionProperties": {"range": span, "properties": size, "fields": "pixelSize"}}
