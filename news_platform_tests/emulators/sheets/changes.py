"""The requests of batchUpdate: each function applies one to a spreadsheet and returns its reply."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from news_platform_tests.emulators.sheets import blocks
from news_platform_tests.emulators.sheets.cells import Formula, Value
from news_platform_tests.emulators.sheets.field_mask import mask_leaves
from news_platform_tests.emulators.sheets.grid import Invalid, Sheet
from news_platform_tests.emulators.sheets.tab_properties import set_tab_properties

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
    locale: str = "en_US"
    time_zone: str = "Etc/UTC"
    revision: int = 0

    def copy(self) -> "Book":
        """Return an independent copy."""
        sheets = [sheet.copy() for sheet in self.sheets]
        return replace(self, sheets=sheets, metadata=dict(self.metadata))

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
        self.title, self.locale, self.time_zone = changed.title, changed.locale, changed.time_zone
        self.revision += 1
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
            "properties": {
                "title": self.title,
                "locale": self.locale,
                "timeZone": self.time_zone,
            },
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
    except (LookupError, TypeError, ValueError) as error:  # a field is missing or of a wrong kind
        raise Invalid(f"Invalid requests[{number}].{name}: {error!r}") from error


def _add_sheet(book: Book, body: Body) -> Body:
    given = body["properties"]
    taken = [sheet.sheet_id for sheet in book.sheets]
    sheet = Sheet(given.get("sheetId", max(taken, default=0) + 1), given["title"])
    if sheet.sheet_id in taken:
        raise Invalid(f"A sheet with id {sheet.sheet_id} already exists")
    if given["title"] in [other.title for other in book.sheets]:
        raise Invalid(f'A sheet with the name "{given["title"]}" already exists')
    set_tab_properties(sheet, given, mask_leaves("*", given))
    book.sheets.insert(given.get("index", len(book.sheets)), sheet)
    return {"addSheet": {"properties": sheet.properties(book.sheets.index(sheet))}}


def _delete_sheet(book: Book, body: Body) -> None:
    if len(book.sheets) == 1:
        raise Invalid("You can't remove all the sheets in a document.")
    book.sheets.remove(book.sheet(body["sheetId"]))


def _update_sheet(book: Book, body: Body) -> None:
    given = body["properties"]
    sheet, leaves = book.sheet(given["sheetId"]), mask_leaves(body["fields"], given)
    set_tab_properties(sheet, given, leaves - {"index"})
    if any(other.title == sheet.title for other in book.sheets if other is not sheet):
        raise Invalid(f'A sheet with the name "{sheet.title}" already exists')
    if all(other.is_hidden for other in book.sheets):
        raise Invalid("You can't hide all the sheets in a document.")
    if "index" in leaves:
        # The index counts the tabs before the move.
        old, new = book.sheets.index(sheet), given.get("index", 0)
        book.sheets.remove(sheet)
        book.sheets.insert(new - 1 if new > old else new, sheet)


def _update_book(book: Book, body: Body) -> None:
    given, leaves = body["properties"], mask_leaves(body["fields"], body["properties"])
    if not leaves <= {"title", "locale", "timeZone"}:
        raise Invalid(f"the emulator keeps title, locale and timeZone, not {sorted(leaves)}")
    book.title = given["title"] if "title" in leaves else book.title
    book.locale = given["locale"] if "locale" in leaves else book.locale
    book.time_zone = given["timeZone"] if "timeZone" in leaves else book.time_zone


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
    is_rows = span["dimension"] == "ROWS"
    start, end = _span(span, sheet.row_count if is_rows else sheet.column_count)
    if is_rows:
        del sheet.rows[start:end]
        sheet.row_count -= end - start
    else:
        sheet.rows = [(*row[:start], *row[end:]) for row in sheet.rows]
        sheet.column_count -= end - start


def _insert_dimension(book: Book, body: Body) -> None:
    sheet, span = book.sheet(body["range"]["sheetId"]), body["range"]
    start, end = _span(span, 0)
    count, is_rows = end - start, span["dimension"] == "ROWS"
    if is_rows:
        if start < len(sheet.rows):
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
    sheet = book.sheet(body["range"]["sheetId"])
    area = blocks.area_of(sheet, body["range"])
    blocks.sort(sheet, area, body.get("sortSpecs", []))


def _copy_paste(book: Book, body: Body) -> None:
    if body.get("pasteType", "PASTE_NORMAL") not in ("PASTE_NORMAL", "PASTE_VALUES"):
        raise Invalid(f"the emulator does not paste {body['pasteType']!r}")
    if body.get("pasteOrientation", "NORMAL") != "NORMAL":
        raise Invalid("the emulator does not transpose")
    source = book.sheet(body["source"]["sheetId"])
    target = book.sheet(body["destination"]["sheetId"])
    area = blocks.area_of(source, body["source"])
    into = blocks.area_of(target, body["destination"])
    blocks.copy(source, area, target, into)


def _cut_paste(book: Book, body: Body) -> None:
    source = book.sheet(body["source"]["sheetId"])
    target = book.sheet(body["destination"]["sheetId"])
    blocks.move(
        source,
        blocks.area_of(source, body["source"]),
        target,
        (body["destination"].get("rowIndex", 0), body["destination"].get("columnIndex", 0)),
    )


def _values(rows: list[Body]) -> list[list[Value]]:
    return [[_value(cell) for cell in row.get("values", [])] for row in rows]


def _value(cell: Body) -> Value:
    entered = cell.get("userEnteredValue", {})
    if "formulaValue" in entered:
        return Formula(entered["formulaValue"])
    return next(iter(entered.values()), None)


def _writes_values(fields: str) -> bool:
    """Return whether a mask names values; formats are accepted and not kept, notes are neither."""
    names = {name.partition(".")[0].strip() for name in fields.split(",")}
    if not names <= {"userEnteredValue", "userEnteredFormat", "*"}:
        raise Invalid(f"the emulator keeps no {fields!r}")
    return bool(names & {"userEnteredValue", "*"})


def _append_cells(book: Book, body: Body) -> None:
    sheet = book.sheet(body["sheetId"])
    values = _values(body["rows"])
    sheet.column_count = max(sheet.column_count, max(map(len, values), default=0))
    sheet.append(values)


def _update_cells(book: Book, body: Body) -> None:
    start = body["start"]
    sheet = book.sheet(start["sheetId"])
    if _writes_values(body["fields"]):
        sheet.put(start.get("rowIndex", 0), start.get("columnIndex", 0), _values(body["rows"]))


def _repeat_cell(book: Book, body: Body) -> None:
    sheet = book.sheet(body["range"]["sheetId"])
    if _writes_values(body["fields"]):
        area = blocks.area_of(sheet, body["range"])
        row = [_value(body["cell"])] * (area.right - area.left)
        sheet.put(area.top, area.left, [row] * (area.bottom - area.top))


def _set_filter(book: Book, body: Body) -> None:
    sheet = book.sheet(body["filter"]["range"]["sheetId"])
    area = blocks.area_of(sheet, body["filter"]["range"])
    sheet.filter = {**body["filter"], "range": area.grid_range(sheet.sheet_id)}


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
    """Store the widths of columns where they are now; heights and hidden ones are not stored."""
    span, size = body["range"], body["properties"].get("pixelSize")
    sheet = book.sheet(span["sheetId"])
    if span["dimension"] == "COLUMNS" and size:
        start, end = _span(span, sheet.column_count)
        sheet.widths = {**sheet.widths, **dict.fromkeys(range(start, end), size)}


_CHANGES: dict[str, Callable[[Book, Body], Body | None]] = {
    "addSheet": _add_sheet,
    "deleteSheet": _delete_sheet,
    "updateSheetProperties": _update_sheet,
    "updateSpreadsheetProperties": _update_book,
    "appendDimension": _append_dimension,
    "deleteDimension": _delete_dimension,
    "insertDimension": _insert_dimension,
    "moveDimension": _move_dimension,
    "updateDimensionProperties": _set_size,
    "repeatCell": _repeat_cell,
    "copyPaste": _copy_paste,
    "cutPaste": _cut_paste,
    "sortRange": _sort_range,
    "appendCells": _append_cells,
    "updateCells": _update_cells,
    "setBasicFilter": _set_filter,
    "clearBasicFilter": _clear_filter,
    "createDeveloperMetadata": _create_metadata,
    "deleteDeveloperMetadata": _delete_metadata,
}
