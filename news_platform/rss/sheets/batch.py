"""Turn an intent into a single batchUpdate against the spreadsheet as it is now.

A batchUpdate is applied whole or not at all, and the id of a piece of developer metadata is unique
in its spreadsheet. Each batch starts by creating metadata with its own id, its fence. So Google
rejects a second copy of the batch as a whole, however late it arrives.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import groupby

from news_platform.errors import ConfigError
from news_platform.rss.sheets.google import FENCE_KEY, Request
from news_platform.rss.sheets.layout import (
    LocatedTab,
    RowNumbers,
    SheetView,
    cell_data,
    cells_request,
)
from news_platform.rss.sheets.outbox import GONE, Intent, SheetRow
from news_platform.rss.sheets.tabs import Cell


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
