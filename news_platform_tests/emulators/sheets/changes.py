"""The requests of batchUpdate: each function applies one to a spreadsheet and returns its reply."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from news_platform_tests.emulators.sheets.grid import Invalid, Sheet, Value

Body = dict[str, Any]
MAX_CELLS = 10_000_000
# Google's limit for the keys and values of the metadata of one spreadsheet.
MAX_METADATA_CHARACTERS = 30_000


@dataclass(slots=True)
class Book:
    """One spreadsheet: its tabs in order, its developer metadata and its permissions by id."""

    id: str
    title: str
    sheets: list[Sheet] = field(default_factory=lambda: [Sheet(0, "Sheet1")])
    metadata: dict[int, Body] = field(default_factory=dict)
    permissions: dict[str, Body] = field(default_factory=dict)

    def copy(self) -> "Book":
        """Return an independent copy."""
        sheets = [sheet.copy() for sheet in self.sheets]
        return Book(self.id, self.title, sheets, dict(self.metadata), self.permissions)

    def sheet(self, sheet_id: int) -> Sheet:
        """Return a tab by its id."""
        for sheet in self.sheets:
            if sheet.sheet_id == sheet_id:
                return sheet
        raise Invalid(f"No grid with id: {sheet_id}")

    def titled(self, title: str | None) -> Sheet:
        """Return a tab by its title, or the first tab if there is no title."""
        for sheet in self.sheets:
            if title is None or sheet.title == title:
                return sheet
        raise Invalid(f"Unable to parse range: {title}")

    def apply(self, requests: list[Body]) -> list[Body]:
        """Apply all requests, or raise Invalid and apply none."""
        changed = self.copy()
        replies = [_apply_one(changed, number, body) for number, body in enumerate(requests)]
        changed.refuse_too_large()
        self.sheets, self.metadata = changed.sheets, changed.metadata
        return replies

    def refuse_too_large(self) -> None:
        """Raise Invalid above Google's limit of cells."""
        cells = sum(sheet.row_count * sheet.column_count for sheet in self.sheets)
        if cells > MAX_CELLS:
            raise Invalid("This action would increase the number of cells above 10000000 cells")

    def document(self) -> Body:
        """Return the JSON of a Spreadsheet, without its cells."""
        return {
            "spreadsheetId": self.id,
            "spreadsheetUrl": f"https://docs.google.com/spreadsheets/d/{self.id}/edit",
            "properties": {"title": self.title, "locale": "en_US", "timeZone": "Etc/UTC"},
            "sheets": [_sheet_document(sheet, index) for index, sheet in enumerate(self.sheets)],
            **({"developerMetadata": list(self.metadata.values())} if self.metadata else {}),
        }


def _sheet_document(sheet: Sheet, index: int) -> Body:
    shown: Body = {"properties": sheet.properties(index)}
    return {**shown, "basicFilter": sheet.filter} if sheet.filter else shown


def _apply_one(book: Book, number: int, body: Body) -> Body:
    [(name, inner)] = body.items()
    if name not in _CHANGES:
        raise Invalid(f"requests[{number}]: the emulator does not support {name!r}")
    try:
        return _CHANGES[name](book, inner) or {}
    except Invalid as error:
        raise Invalid(f"Invalid requests[{number}].{name}: {error}") from error


def _add_sheet(book: Book, body: Body) -> Body:
    given = body["properties"]
    taken = [sheet.sheet_id for sheet in book.sheets]
    sheet = Sheet(given.get("sheetId", max(taken, default=0) + 1), given["title"])
    if sheet.sheet_id in taken:
        raise Invalid(f"A sheet with id {sheet.sheet_id} already exists")
    if given["title"] in [other.title for other in book.sheets]:
        raise Invalid(f'A sheet with the name "{given["title"]}" already exists')
    _set_grid(sheet, given.get("gridProperties", {}))
    book.sheets.append(sheet)
    return {"addSheet": {"properties": sheet.properties(len(book.sheets) - 1)}}


def _delete_sheet(book: Book, body: Body) -> None:
    if len(book.sheets) == 1:
        raise Invalid("You can't remove all the sheets in a document.")
    book.sheets.remove(book.sheet(body["sheetId"]))


def _update_sheet(book: Book, body: Body) -> None:
    given = body["properties"]
    sheet = book.sheet(given["sheetId"])
    sheet.title = given.get("title", sheet.title)
    _set_grid(sheet, given.get("gridProperties", {}))


def _set_grid(sheet: Sheet, grid: Body) -> None:
    sheet.row_count = grid.get("rowCount", sheet.row_count)
    sheet.column_count = grid.get("columnCount", sheet.column_count)
    sheet.frozen_rows = grid.get("frozenRowCount", sheet.frozen_rows)
    if sheet.frozen_rows >= sheet.row_count:
        raise Invalid("You can't freeze all visible rows on the sheet.")


def _append_dimension(book: Book, body: Body) -> None:
    sheet = book.sheet(body["sheetId"])
    if body["dimension"] == "ROWS":
        sheet.row_count += body["length"]
    else:
        sheet.column_count += body["length"]


def _span(body: Body, size: int) -> tuple[int, int]:
    return body.get("startIndex", 0), body.get("endIndex", size)


def _delete_dimension(book: Book, body: Body) -> None:
    sheet, span = book.sheet(body["range"]["sheetId"]), body["range"]
    if span["dimension"] == "ROWS":
        start, end = _span(span, sheet.row_count)
        del sheet.rows[start:end]
        sheet.row_count -= end - start
    else:
        start, end = _span(span, sheet.column_count)
        sheet.rows = [(*row[:start], *row[end:]) for row in sheet.rows]
        sheet.column_count -= end - start


def _insert_dimension(book: Book, body: Body) -> None:
    sheet, span = book.sheet(body["range"]["sheetId"]), body["range"]
    start, end = _span(span, 0)
    count = end - start
    if span["dimension"] == "ROWS":
        sheet.rows[start:start] = [()] * count
        sheet.row_count += count
    else:
        sheet.rows = [_widened(row, start, count) for row in sheet.rows]
        sheet.column_count += count


def _widened(row: tuple[Value, ...], start: int, count: int) -> tuple[Value, ...]:
    return (*row[:start], *(None,) * count, *row[start:]) if len(row) > start else row


def _move_dimension(book: Book, body: Body) -> None:
    sheet, span = book.sheet(body["source"]["sheetId"]), body["source"]
    start, end = _span(span, sheet.column_count)
    target = body["destinationIndex"]
    if span["dimension"] == "ROWS":
        raise Invalid("the emulator moves columns only")
    sheet.rows = [_moved(row, start, end, target, sheet.column_count) for row in sheet.rows]


def _moved(
    row: tuple[Value, ...], start: int, end: int, target: int, width: int
) -> tuple[Value, ...]:
    full = (*row, *(None,) * (width - len(row)))
    rest = (*full[:start], *full[end:])
    place = target if target <= start else target - (end - start)
    return (*rest[:place], *full[start:end], *rest[place:])


def _sort_range(book: Book, body: Body) -> None:
    area, [spec] = body["range"], body["sortSpecs"]
    place = spec["dimensionIndex"]

    def key(row: tuple[Value, ...]) -> tuple[bool, str]:
        value = row[place] if place < len(row) else None
        is_text = not isinstance(value, int | float)
        return is_text, str(value) if is_text else f"{value:030.6f}"

    sheet = book.sheet(area["sheetId"])
    sheet.sort(area.get("startRowIndex", 0), area.get("endRowIndex"), key)
    if spec.get("sortOrder") == "DESCENDING":
        start = area.get("startRowIndex", 0)
        full = sheet.last_row()
        sheet.rows[start:full] = sheet.rows[start:full][::-1]


def _values(rows: list[Body]) -> list[list[Value]]:
    return [[_value(cell) for cell in row.get("values", [])] for row in rows]


def _value(cell: Body) -> Value:
    entered = cell.get("userEnteredValue", {})
    if "formulaValue" in entered:
        return f"#FORMULA {entered['formulaValue']}"
    return next(iter(entered.values()), None)


def _append_cells(book: Book, body: Body) -> None:
    sheet = book.sheet(body["sheetId"])
    values = _values(body["rows"])
    sheet.column_count = max(sheet.column_count, max(map(len, values), default=0))
    sheet.append(values)


def _update_cells(book: Book, body: Body) -> None:
    start = body["start"]
    sheet = book.sheet(start["sheetId"])
    sheet.put(start.get("rowIndex", 0), start.get("columnIndex", 0), _values(body["rows"]))


def _set_filter(book: Book, body: Body) -> None:
    book.sheet(body["filter"]["range"]["sheetId"]).filter = body["filter"]


def _clear_filter(book: Book, body: Body) -> None:
    book.sheet(body["sheetId"]).filter = None


def _create_metadata(book: Book, body: Body) -> Body:
    given = body["developerMetadata"]
    if given["metadataId"] in book.metadata:
        raise Invalid(f"Developer metadata with id {given['metadataId']} already exists")
    location = {**given["location"], "locationType": "SPREADSHEET"}
    book.metadata[given["metadataId"]] = {**given, "location": location}
    if sum(map(_characters, book.metadata.values())) > MAX_METADATA_CHARACTERS:
        raise Invalid(f"Developer metadata exceeds {MAX_METADATA_CHARACTERS} characters")
    return {"createDeveloperMetadata": {"developerMetadata": book.metadata[given["metadataId"]]}}


def _characters(metadata: Body) -> int:
    return len(metadata["metadataKey"]) + len(metadata.get("metadataValue", ""))


def _delete_metadata(book: Book, body: Body) -> Body:
    wanted = body["dataFilter"]["developerMetadataLookup"]["metadataId"]
    gone = book.metadata.pop(wanted, None)
    return {"deleteDeveloperMetadata": {"deletedDeveloperMetadata": [gone] if gone else []}}


def _set_size(book: Book, body: Body) -> None:
    """Store the widths of columns at their current positions; heights are not stored."""
    span, size = body["range"], body["properties"].get("pixelSize")
    sheet = book.sheet(span["sheetId"])
    if span["dimension"] == "COLUMNS" and size:
        start, end = _span(span, sheet.column_count)
        sheet.widths = {**sheet.widths, **dict.fromkeys(range(start, end), size)}


def _nothing(_book: Book, _body: Body) -> None:
    """Ignore formats."""


_CHANGES: dict[str, Callable[[Book, Body], Body | None]] = {
    "addSheet": _add_sheet,
    "deleteSheet": _delete_sheet,
    "updateSheetProperties": _update_sheet,
    "appendDimension": _append_dimension,
    "deleteDimension": _delete_dimension,
    "insertDimension": _insert_dimension,
    "moveDimension": _move_dimension,
    "updateDimensionProperties": _set_size,
    "repeatCell": _nothing,
    "sortRange": _sort_range,
    "appendCells": _append_cells,
    "updateCells": _update_cells,
    "setBasicFilter": _set_filter,
    "clearBasicFilter": _clear_filter,
    "createDeveloperMetadata": _create_metadata,
    "deleteDeveloperMetadata": _delete_metadata,
}
