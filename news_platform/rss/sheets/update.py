"""One batch of the outbox against the book as it is now: where rows stand, what to change."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from news_platform.errors import ConfigError
from news_platform.rss.sheets.edits import as_row, feed_key
from news_platform.rss.sheets.ensure import Known, PlacedTab, read_placed
from news_platform.rss.sheets.google import FENCE_KEY, Book, BookState
from news_platform.rss.sheets.outbox import Intent, OutRow
from news_platform.rss.sheets.tabs import (
    FEEDS_TAB,
    Cell,
    Layout,
    Request,
    Tab,
    cell_data,
    cells_request,
    column_letter,
    key_text,
    quoted,
)


@dataclass(frozen=True, slots=True)
class Batch:
    """The requests of one call, and what they will have done."""

    requests: tuple[Request, ...]
    appended: int
    updated: int
    doubled_keys: int


@dataclass(frozen=True, slots=True)
class Positions:
    """The row of every key of a tab, counted from 0; of two rows with one key the first counts."""

    rows: Mapping[str, int]
    doubled: int = 0


def build_batch(
    book: Book,
    intent: Intent,
    *,
    state: BookState,
    known: Known,
    old_fences: Sequence[int],
    max_cells: int,
) -> Batch:
    """Resolve each row of the intent to its place and build the requests."""
    wanted = {row.tab for row in intent.rows}
    placed = [item for item in read_placed(book, state, known) if item.tab.name in wanted]
    positions = _read_positions(book, placed)
    requests = [fence_request(intent.fence, intent.token), *unfence_requests(old_fences)]
    appended = 0
    for item, places in zip(placed, positions, strict=True):
        rows = [row for row in intent.rows if row.tab == item.tab.name]
        new = [row for row in rows if row.key not in places.rows]
        _refuse_full_book(book, state, item, len(new), max_cells=max_cells)
        requests += _updates(item, rows, places)
        if new:
            requests.append(
                append_request(item.tab, new, sheet_id=item.sheet.sheet_id, layout=item.layout)
            )
        appended += len(new)
    doubled = sum(places.doubled for places in positions)
    return Batch(tuple(requests), appended, len(intent.rows) - appended, doubled)


def _updates(item: PlacedTab, rows: Sequence[OutRow], places: Positions) -> list[Request]:
    return [
        request
        for row in rows
        if row.key in places.rows
        for request in update_requests(
            item.tab,
            row,
            sheet_id=item.sheet.sheet_id,
            row_index=places.rows[row.key],
            layout=item.layout,
        )
    ]


def _read_positions(book: Book, placed: Sequence[PlacedTab]) -> list[Positions]:
    keyed = [item for item in placed if item.tab.key_column]
    columns = iter(book.read([_key_range(item) for item in keyed]))
    return [
        positions_of(item, next(columns)) if item.tab.key_column else Positions({})
        for item in placed
    ]


def positions_of(item: PlacedTab, rows: Sequence[Sequence[Cell]]) -> Positions:
    """Read the keys of a tab, header first."""
    found: dict[str, int] = {}
    doubled = 0
    for row_index, cells in enumerate(rows[1:], 1):
        key = _key_of(item, cells)
        if key and found.setdefault(key, row_index) != row_index:
            doubled += 1
    return Positions(found, doubled)


def _key_range(item: PlacedTab) -> str:
    """Return the range that tells the keys; an admin's new feed has none yet, but an address."""
    title = quoted(item.sheet.title)
    if item.tab is FEEDS_TAB:
        return title
    letter = column_letter(item.layout.places[item.tab.key_column or ""])
    return f"{title}!{letter}:{letter}"


def _key_of(item: PlacedTab, cells: Sequence[Cell]) -> str | None:
    if item.tab is FEEDS_TAB:
        row = as_row(cells, item.layout)
        return feed_key(row) if any(row.values()) else None
    return key_text(cells[0]) if cells else None


def _refuse_full_book(
    book: Book, state: BookState, item: PlacedTab, new: int, *, max_cells: int
) -> None:
    cells = sum(sheet.rows * sheet.columns for sheet in state.sheets)
    if cells + new * item.sheet.columns > max_cells:
        raise ConfigError(
            f"book {book.id!r} is nearly full: {cells:,} of 10,000,000 cells; "
            "set SPREADSHEET_ID or SPREADSHEET_TITLE to a new book, which begins with the newest",
            thing=book.id,
        )


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


def _full_row(tab: Tab, row: OutRow, layout: Layout) -> list[Request]:
    cells: Mapping[int, Cell] = {
        layout.places[name]: cell for name, cell in zip(tab.columns, row.cells, strict=True)
    }
    return [cell_data(cells.get(place, "")) for place in range(max(cells) + 1)]


def _runs(places: Sequence[int]) -> list[list[int]]:
    """Split ascending numbers where one is left out."""
    grouped = groupby(enumerate(places), key=lambda item: item[1] - item[0])
    return [[place for _, place in group] for _, group in grouped]
