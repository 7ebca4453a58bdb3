"""The requests of one atomic batchUpdate: a fence, new rows at the end, changed ones in place.

A batchUpdate is applied whole or not at all, and the id of a piece of developer metadata is unique
in its book. So a batch that begins by creating the metadata with its own id can be applied once: a
second copy, however late, is refused as a whole.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from news_platform.rss.sheets.layout import Layout
from news_platform.rss.sheets.outbox import OutRow
from news_platform.rss.sheets.tabs import Cell, Tab

Request = dict[str, Any]

FENCE_KEY = "news_platform_batch"
# Pixels.
_WIDTHS = {
    **dict.fromkeys(("title", "clean_text"), 360),
    **dict.fromkeys(("feed_url", "article_url", "subtitle", "notes", "key"), 240),
}
_DEFAULT_WIDTH = 120
_FIRST_ROWS = 100


def fence_request(fence: int, token: str) -> Request:
    """Return the request that can succeed once."""
    metadata = {
        "metadataId": fence,
        "metadataKey": FENCE_KEY,
        "metadataValue": token,
        "location": {"spreadsheet": True},
        "visibility": "DOCUMENT",
    }
    return {"createDeveloperMetadata": {"developerMetadata": metadata}}


def unfence_requests(fences: Iterable[int]) -> list[Request]:
    """Return the requests that remove old fences."""
    lookups = ({"developerMetadataLookup": {"metadataId": fence}} for fence in fences)
    return [{"deleteDeveloperMetadata": {"dataFilter": lookup}} for lookup in lookups]


def append_request(tab: Tab, rows: Sequence[OutRow], *, sheet_id: int, layout: Layout) -> Request:
    """Return the request that adds rows after the last one; foreign columns stay empty."""
    return {
        "appendCells": {
            "sheetId": sheet_id,
            "rows": [{"values": _full_row(tab, row, layout)} for row in rows],
            "fields": "userEnteredValue",
        }
    }


def update_requests(
    tab: Tab, row: OutRow, *, sheet_id: int, row_index: int, layout: Layout
) -> list[Request]:
    """Return the requests that write our columns of one row, each run of columns by itself.

    The admin's columns are left out where the ledger has nothing new to say.
    """
    cells = dict(zip(tab.columns, row.cells, strict=True))
    told = {name: cell for name, cell in cells.items() if row.shown.get(name) != cell}
    names = {
        place: name
        for name, place in layout.places.items()
        if name in told or name not in tab.edited
    }
    return [
        cells_request(sheet_id, row_index, run[0], [cells[names[place]] for place in run])
        for run in _runs(sorted(names))
    ]


def cells_request(sheet_id: int, row_index: int, place: int, cells: Sequence[Cell]) -> Request:
    """Return the request that writes cells side by side."""
    start = {"sheetId": sheet_id, "rowIndex": row_index, "columnIndex": place}
    rows = [{"values": [cell_data(cell) for cell in cells]}]
    return {"updateCells": {"start": start, "rows": rows, "fields": "userEnteredValue"}}


def cell_data(cell: Cell) -> Request:
    """Return a cell as the value it is: a text is never read as a formula, a date or a number."""
    if isinstance(cell, bool):
        return {"userEnteredValue": {"boolValue": cell}}
    if isinstance(cell, str):
        return {"userEnteredValue": {"stringValue": cell}} if cell else {}
    return {"userEnteredValue": {"numberValue": cell}}


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


def _full_row(tab: Tab, row: OutRow, layout: Layout) -> list[Request]:
    cells: Mapping[int, Cell] = {
        layout.places[name]: cell for name, cell in zip(tab.columns, row.cells, strict=True)
    }
    return [cell_data(cells.get(place, "")) for place in range(max(cells) + 1)]


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers where one is left out."""
    grouped = groupby(enumerate(places), key=lambda item: item[1] - item[0])
    return [[place for _, place in group] for _, group in grouped]
