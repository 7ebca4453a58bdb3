"""Turn one batch of the outbox into a single batchUpdate against the spreadsheet as it is now.

A batchUpdate is applied whole or not at all, and the id of a piece of developer metadata is unique
in its spreadsheet. Each batch starts by creating metadata with its own id, its fence. So Google
rejects a second copy of the batch as a whole, however late it arrives.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from news_platform.rss.sheets.calls import SpreadsheetFull
from news_platform.rss.sheets.edits import as_row, feed_key
from news_platform.rss.sheets.ensure import KnownTabs, LocatedTab, locate_tabs
from news_platform.rss.sheets.google import FENCE_KEY, Spreadsheet, SpreadsheetState
from news_platform.rss.sheets.outbox import Intent, OutboxRow
from news_platform.rss.sheets.tabs import (
    FEEDS_TAB,
    Cell,
    ColumnLayout,
    Request,
    Tab,
    cell_data,
    cells_request,
    column_letter,
    key_text,
    quote_title,
)


@dataclass(frozen=True, slots=True)
class SheetUpdate:
    """The requests of one call, and how many rows they append and update."""

    requests: tuple[Request, ...]
    appended: int
    updated: int
    doubled_keys: int


@dataclass(frozen=True, slots=True)
class RowPositions:
    """The row index of every key of a tab, header 0; of duplicate keys the first row counts."""

    rows: Mapping[str, int]
    duplicates: int = 0


def build_update(
    spreadsheet: Spreadsheet,
    intent: Intent,
    *,
    state: SpreadsheetState,
    known: KnownTabs,
    old_fences: Sequence[int],
    max_cells: int,
) -> SheetUpdate:
    """Look up the position of each row of the intent and build the requests.

    Positions are looked up at every write because people sort and filter tabs.
    """
    wanted = {row.tab for row in intent.rows}
    located = [tab for tab in locate_tabs(spreadsheet, state, known) if tab.tab.name in wanted]
    all_positions = fetch_positions(spreadsheet, located)
    # The fence comes first, so that a second copy is rejected before anything else. Old fences are
    # removed in the same call: cleaning up takes no quota of its own.
    requests = [fence_request(intent.fence, intent.token), *unfence_requests(old_fences)]
    appended = 0
    for item, positions in zip(located, all_positions, strict=True):
        rows = [row for row in intent.rows if row.tab == item.tab.name]
        new = [row for row in rows if row.key not in positions.rows]
        _reject_full_spreadsheet(spreadsheet, state, item, len(new), max_cells=max_cells)
        requests += _updates(item, rows, positions)
        if new:
            requests.append(
                append_request(item.tab, new, sheet_id=item.sheet.sheet_id, layout=item.layout)
            )
        appended += len(new)
    duplicates = sum(positions.duplicates for positions in all_positions)
    return SheetUpdate(tuple(requests), appended, len(intent.rows) - appended, duplicates)


def _updates(item: LocatedTab, rows: Sequence[OutboxRow], positions: RowPositions) -> list[Request]:
    return [
        request
        for row in rows
        if row.key in positions.rows
        for request in update_requests(
            item.tab,
            row,
            sheet_id=item.sheet.sheet_id,
            row_index=positions.rows[row.key],
            layout=item.layout,
        )
    ]


def fetch_positions(spreadsheet: Spreadsheet, located: Sequence[LocatedTab]) -> list[RowPositions]:
    """Return where each key of these tabs is now."""
    keyed = [item for item in located if item.tab.key_column]
    columns = iter(spreadsheet.fetch_values([_key_range(item) for item in keyed]))
    return [
        row_positions(item, next(columns)) if item.tab.key_column else RowPositions({})
        for item in located
    ]


def row_positions(item: LocatedTab, rows: Sequence[Sequence[Cell]]) -> RowPositions:
    """Return the positions of a tab's keys; the first row is the header."""
    found: dict[str, int] = {}
    duplicates = 0
    for row_index, cells in enumerate(rows[1:], 1):
        key = _key_of(item, cells)
        if key and found.setdefault(key, row_index) != row_index:
            duplicates += 1
    return RowPositions(found, duplicates)


def _key_range(item: LocatedTab) -> str:
    """Return the range that holds the keys of a tab.

    Feeds is read whole: a row that an admin adds has a URL but no key yet.
    """
    title = quote_title(item.sheet.title)
    if item.tab is FEEDS_TAB:
        return title
    letter = column_letter(item.layout.positions[item.tab.key_column or ""])
    return f"{title}!{letter}:{letter}"


def _key_of(item: LocatedTab, cells: Sequence[Cell]) -> str | None:
    if item.tab is FEEDS_TAB:
        row = as_row(cells, item.layout)
        return feed_key(row) if any(row.values()) else None
    return key_text(cells[0]) if cells else None


def _reject_full_spreadsheet(
    spreadsheet: Spreadsheet,
    state: SpreadsheetState,
    item: LocatedTab,
    new: int,
    *,
    max_cells: int,
) -> None:
    # Google counts the whole grid, empty cells included.
    cells = sum(sheet.rows * sheet.columns for sheet in state.sheets)
    if cells + new * item.sheet.columns > max_cells:
        raise SpreadsheetFull(
            f"spreadsheet {spreadsheet.id!r} is nearly full: {cells:,} of 10,000,000 cells; "
            "set SPREADSHEET_ID or SPREADSHEET_TITLE to a new spreadsheet, "
            "which starts with the newest rows",
            thing=spreadsheet.id,
        )


def fence_request(fence: int, token: str) -> Request:
    """Return the request that Google accepts only once."""
    metadata = {
        "metadataId": fence,
        "metadataKey": FENCE_KEY,
        "metadataValue": token,
        "location": {"spreadsheet": True},
        # PROJECT would hide the fence from a service account of another Google Cloud project.
        "visibility": "DOCUMENT",
    }
    return {"createDeveloperMetadata": {"developerMetadata": metadata}}


def unfence_requests(fences: Iterable[int]) -> list[Request]:
    """Return the requests that remove old fences."""
    lookups = ({"developerMetadataLookup": {"metadataId": fence}} for fence in fences)
    return [{"deleteDeveloperMetadata": {"dataFilter": lookup}} for lookup in lookups]


def append_request(
    tab: Tab, rows: Sequence[OutboxRow], *, sheet_id: int, layout: ColumnLayout
) -> Request:
    """Return the request that appends rows; columns that people added stay empty."""
    # Google finds the last row, so a row that a person adds at the same time is not overwritten.
    return {
        "appendCells": {
            "sheetId": sheet_id,
            "rows": [{"values": _full_row(tab, row, layout)} for row in rows],
            "fields": "userEnteredValue",
        }
    }


def update_requests(
    tab: Tab, row: OutboxRow, *, sheet_id: int, row_index: int, layout: ColumnLayout
) -> list[Request]:
    """Return the requests that write our columns of one row, one per run of adjacent columns.

    The admins' columns are left out if the ledger's value did not change since the last write.
    """
    cells = dict(zip(tab.columns, row.cells, strict=True))
    changed = {name for name, cell in cells.items() if row.last_written.get(name) != cell}
    names = {
        index: name
        for name, index in layout.positions.items()
        if name in changed or name not in tab.edited
    }
    # A request writes a rectangle, and columns that people put between ours must not be touched.
    return [
        cells_request(sheet_id, row_index, run[0], [cells[names[index]] for index in run])
        for run in _adjacent_runs(sorted(names))
    ]


def _full_row(tab: Tab, row: OutboxRow, layout: ColumnLayout) -> list[Request]:
    cells: Mapping[int, Cell] = {
        layout.positions[name]: cell for name, cell in zip(tab.columns, row.cells, strict=True)
    }
    return [cell_data(cells.get(index, "")) for index in range(max(cells) + 1)]


def _adjacent_runs(indexes: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers into runs of consecutive ones."""
    grouped = groupby(enumerate(indexes), key=lambda item: item[1] - item[0])
    return [[index for _, index in group] for _, group in grouped]
