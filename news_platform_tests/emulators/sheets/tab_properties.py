"""Set the properties of a tab: its title, its size, what is frozen, its colour."""

from typing import Any

from news_platform_tests.emulators.sheets.grid import Invalid, Sheet

_KEPT = {
    "sheetId",
    "title",
    "hidden",
    "sheetType",
    "index",
    "gridProperties.rowCount",
    "gridProperties.columnCount",
    "gridProperties.frozenRowCount",
    "gridProperties.frozenColumnCount",
    "gridProperties.hideGridlines",
}


def set_tab_properties(sheet: Sheet, given: dict[str, Any], leaves: set[str]) -> None:
    """Set the named fields; one that is named and not given gets its default."""
    colors = {leaf for leaf in leaves if leaf.startswith(("tabColor.", "tabColorStyle"))}
    unknown = leaves - _KEPT - colors - {"tabColor"}
    if unknown:
        raise Invalid(f"the emulator keeps no {sorted(unknown)}")
    if "title" in leaves:
        sheet.title = given["title"]
    if "hidden" in leaves:
        sheet.is_hidden = given.get("hidden", False)
    if colors or "tabColor" in leaves:
        sheet.tab_color = given.get("tabColorStyle", {}).get("rgbColor", given.get("tabColor"))
    _set_grid(sheet, given.get("gridProperties", {}), leaves)


def _set_grid(sheet: Sheet, given: dict[str, Any], leaves: set[str]) -> None:
    names = {leaf.removeprefix("gridProperties.") for leaf in leaves}
    sheet.resize(
        rows=given["rowCount"] if "rowCount" in names else sheet.row_count,
        columns=given["columnCount"] if "columnCount" in names else sheet.column_count,
    )
    if "frozenRowCount" in names:
        sheet.frozen_rows = given.get("frozenRowCount", 0)
    if "frozenColumnCount" in names:
        sheet.frozen_columns = given.get("frozenColumnCount", 0)
    if "hideGridlines" in names:
        sheet.hides_gridlines = given.get("hideGridlines", False)
    if sheet.row_count < 1 or sheet.frozen_rows >= sheet.row_count:
        raise Invalid("You can't freeze all visible rows on the sheet.")
    if sheet.column_count < 1 or sheet.frozen_columns >= sheet.column_count:
        raise Invalid("You can't freeze all visible columns on the sheet.")
