"""One Google spreadsheet through gspread: open or create it, fetch its state, change it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import gspread
from gspread.exceptions import SpreadsheetNotFound
from gspread.http_client import ParamsType
from gspread.urls import DRIVE_FILES_API_V3_URL
from gspread.utils import MimeType

from news_platform.errors import ConfigError
from news_platform.rss.sheets.api_client import ApiClient, ChangeRejected, OutcomeUnknown
from news_platform.rss.sheets.tabs import Cell

Request = dict[str, Any]
"""One request of a batchUpdate, as the Sheets API defines it."""

# Developer metadata with this key marks the batches that a spreadsheet holds (see batch.py).
FENCE_KEY = "news_platform_batch"
_STATE_FIELDS = "spreadsheetId,properties,developerMetadata,sheets.properties"


@dataclass(frozen=True, slots=True)
class Worksheet:
    """One tab of a spreadsheet as it is now."""

    sheet_id: int
    title: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class SpreadsheetState:
    """The worksheets of a spreadsheet, and the ids and tokens of the fences it holds."""

    sheets: tuple[Worksheet, ...]
    fences: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class Spreadsheet:
    """One spreadsheet: its id, its address for a browser, and its title when it was opened."""

    client: ApiClient
    _sheet: gspread.Spreadsheet
    id: str
    url: str
    title: str

    def fetch_state(self) -> SpreadsheetState:
        """Return the worksheets and the fences as they are now."""
        return self.client.read(
            lambda: _parse_state(self._sheet.fetch_sheet_metadata({"fields": _STATE_FIELDS}))
        )

    def fetch_values(self, ranges: Sequence[str]) -> list[list[list[Cell]]]:
        """Return the values of each range, row by row, unformatted."""
        if not ranges:
            return []
        # Formatted values depend on the locale and on formats that people set.
        params: ParamsType = {"valueRenderOption": "UNFORMATTED_VALUE"}

        def call() -> list[list[list[Cell]]]:
            found = self._sheet.values_batch_get(list(ranges), params)["valueRanges"]
            if len(found) != len(ranges):
                # `translate_errors` takes this for an invalid answer, so the read is repeated.
                raise KeyError(f"{len(found)} of {len(ranges)} ranges")
            return [item.get("values", []) for item in found]

        return self.client.read(call)

    def batch_update(self, changes: Sequence[Request]) -> None:
        """Apply all changes or none; raise ChangeRejected or OutcomeUnknown."""
        body = {"requests": list(changes)}
        # Any proxy can answer 200; an answer without the id did not come from Google.
        self.client.write(lambda: self._sheet.batch_update(body)["spreadsheetId"])

    def share_like(self, other_id: str) -> bool:
        """Give everyone who may open another spreadsheet the same role; return whether it worked.

        Drive shows an account only the permissions of files that it created itself.
        """
        drive = self._sheet.client
        try:
            given = self.client.read(lambda: drive.list_permissions(other_id))
            for one in given:
                if one.get("role") != "owner" and not one.get("deleted"):
                    self.client.write(partial(_share, drive, self.id, one))
        except (ConfigError, ChangeRejected, OutcomeUnknown):
            return False
        return True


def open_spreadsheet(client: ApiClient) -> Spreadsheet:
    """Open the spreadsheet of the settings; one named by its title is created if needed."""
    found = find_spreadsheet(client)
    if found is not None:
        return found
    if key := client.access.spreadsheet_id:
        raise ConfigError(
            f"SPREADSHEET_ID={key!r}: no such spreadsheet; check the id in its URL", thing=key
        )
    return _create(client, client.access.spreadsheet_title)


def open_titled(client: ApiClient, title: str) -> Spreadsheet:
    """Open or create a spreadsheet with this title; this needs the scope for Drive."""
    access = replace(client.access, spreadsheet_id=None, spreadsheet_title=title)
    return open_spreadsheet(ApiClient(access, client.timing))


def find_spreadsheet(client: ApiClient) -> Spreadsheet | None:
    """Open the spreadsheet of the settings; None if there is none that the account can see."""
    if client.access.spreadsheet_id:
        return open_by_id(client, client.access.spreadsheet_id)
    return _find_titled(client, client.access.spreadsheet_title)


def open_by_id(client: ApiClient, spreadsheet_id: str) -> Spreadsheet | None:
    """Open a spreadsheet by its id; None if it is gone."""
    return _open(client, lambda: client.gspread.open_by_key(spreadsheet_id))


def _find_titled(client: ApiClient, title: str) -> Spreadsheet | None:
    return _open(client, lambda: client.gspread.open(title))


def _open(client: ApiClient, call: Callable[[], gspread.Spreadsheet]) -> Spreadsheet | None:
    try:
        sheet = client.read(call)
    except SpreadsheetNotFound:
        return None
    return Spreadsheet(client, sheet, str(sheet.id), str(sheet.url), str(sheet.title))


def _create(client: ApiClient, title: str) -> Spreadsheet:
    file = {"name": title, "mimeType": MimeType.google_sheets}
    http = client.gspread.http_client
    try:
        client.write(lambda: http.request("post", DRIVE_FILES_API_V3_URL, json=file))
    except OutcomeUnknown:
        # It may exist all the same; creating a second one would split the rows between the two.
        client.back_off(client.timing.tries)
    # Opened by its title, because the answer with its id may be lost.
    found = _find_titled(client, title)
    if found is None:
        cause = "Google did not confirm its creation; the next sync looks for it first"
        raise OutcomeUnknown(f"there is no spreadsheet {title!r} yet: {cause}", reason="create")
    return found


def _share(drive: Any, spreadsheet_id: str, permission: Mapping[str, Any]) -> None:
    who = permission.get("emailAddress") or permission.get("domain")
    kind, role = permission["type"], permission["role"]
    drive.insert_permission(spreadsheet_id, who, perm_type=kind, role=role, notify=False)


def _parse_state(document: Mapping[str, Any]) -> SpreadsheetState:
    return SpreadsheetState(
        tuple(_parse_worksheet(item["properties"]) for item in document["sheets"]),
        {
            item["metadataId"]: item.get("metadataValue", "")
            for item in document.get("developerMetadata", ())
            if item.get("metadataKey") == FENCE_KEY
        },
    )


def _parse_worksheet(properties: Mapping[str, Any]) -> Worksheet:
    grid = properties.get("gridProperties", {})
    return Worksheet(
        properties["sheetId"],
        properties["title"],
        grid.get("rowCount", 0),
        grid.get("columnCount", 0),
    )
