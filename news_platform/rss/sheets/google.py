"""Google Sheets through gspread: one book looked at, read and changed; nothing is decided here.

Calls are paced, and a call that Google refused for its quota is made again. A change whose fate is
unknown (5xx, a lost answer) is a `Doubt`: whoever asked must look before asking again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import gspread
import requests
from google.auth.transport.requests import AuthorizedSession
from google.auth.transport.requests import Request as AuthRequest
from google.oauth2.service_account import Credentials
from gspread.exceptions import SpreadsheetNotFound
from gspread.http_client import ParamsType
from gspread.urls import DRIVE_FILES_API_V3_URL
from gspread.utils import MimeType
from requests.adapters import HTTPAdapter

from news_platform.errors import ConfigError
from news_platform.rss.sheets.access import Access, Timing
from news_platform.rss.sheets.calls import ApiCaller, Doubt, backoff_seconds
from news_platform.rss.sheets.tabs import Cell, Request

FENCE_KEY = "news_platform_batch"
_SHEETS_SCOPE = "https://www.googleapis.com/auth/spreadsheets"
# Enough to find and create our own files, and no one else's.
_DRIVE_SCOPE = "https://www.googleapis.com/auth/drive.file"
_LONGEST_PATH = 1_000
_SEEN = "spreadsheetId,properties,developerMetadata,sheets.properties"


@dataclass(frozen=True, slots=True)
class Sheet:
    """One tab as it is now."""

    sheet_id: int
    title: str
    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class BookState:
    """The tabs of a book and the fences of the batches it holds."""

    sheets: tuple[Sheet, ...]
    fences: Mapping[int, str]


@dataclass(slots=True)
class Book:
    """One spreadsheet."""

    _sheet: gspread.Spreadsheet
    _line: ApiCaller

    @property
    def id(self) -> str:
        """Return the id that stands in the book's address."""
        return str(self._sheet.id)

    @property
    def url(self) -> str:
        """Return the address a person opens."""
        return str(self._sheet.url)

    @property
    def waits(self) -> int:
        """Return how often a call had to wait for the quota."""
        return self._line.waits

    def wait(self, tries: int) -> None:
        """Wait after so many failures in a row."""
        self._line.timing.sleep(backoff_seconds(tries))

    def look(self) -> BookState:
        """Return the tabs and the fences as they are now."""
        return self._line.read(
            lambda: _state_of(self._sheet.fetch_sheet_metadata({"fields": _SEEN}))
        )

    def read(self, ranges: Sequence[str]) -> list[list[list[Cell]]]:
        """Return the values of each range, row by row, as they are and not as they are shown."""
        if not ranges:
            return []
        params: ParamsType = {"valueRenderOption": "UNFORMATTED_VALUE"}

        def call() -> list[list[list[Cell]]]:
            found = self._sheet.values_batch_get(list(ranges), params)["valueRanges"]
            if len(found) != len(ranges):
                raise KeyError(f"{len(found)} of {len(ranges)} ranges")
            return [item.get("values", []) for item in found]

        return self._line.read(call)

    def change(self, changes: Sequence[Request]) -> None:
        """Apply all changes or none; raise Refused or Doubt."""
        # Only an answer that names the book is one from Google.
        body = {"requests": list(changes)}
        self._line.write(lambda: self._sheet.batch_update(body)["spreadsheetId"])


def open_book(access: Access, timing: Timing, *, known_id: str | None = None) -> Book:
    """Open the book by its id, else by its title, which is created when there is none.

    `known_id` is what the title stood for before: it wins over others that bear the same title.
    """
    line = ApiCaller(timing)
    session = _session(access)
    client = gspread.Client(auth=session.credentials, session=session)
    client.set_timeout(timing.timeout_seconds)
    if access.spreadsheet_id:
        return Book(_open(client, access.spreadsheet_id, line), line)
    if known_id:
        with suppress(SpreadsheetNotFound):
            return Book(line.read(lambda: client.open_by_key(known_id)), line)
    title = access.spreadsheet_title
    try:
        return Book(line.read(lambda: client.open(title)), line)
    except SpreadsheetNotFound:
        return Book(_create(client, title, line), line)


def _open(client: gspread.Client, key: str, line: ApiCaller) -> gspread.Spreadsheet:
    try:
        return line.read(lambda: client.open_by_key(key))
    except SpreadsheetNotFound as error:
        raise ConfigError(f"SPREADSHEET_ID={key!r}: there is no such book", thing=key) from error


def _create(client: gspread.Client, title: str, line: ApiCaller) -> gspread.Spreadsheet:
    file = {"name": title, "mimeType": MimeType.google_sheets}
    try:
        line.write(lambda: client.http_client.request("post", DRIVE_FILES_API_V3_URL, json=file))
    except Doubt:
        # It may be there all the same; a second one of its name would split the rows.
        line.pause()
    try:
        return line.read(lambda: client.open(title))
    except SpreadsheetNotFound as error:
        cause = "Google did not say whether it made it; the next sync looks for it first"
        raise Doubt(f"there is no book {title!r} yet: {cause}", reason="create") from error


def _state_of(found: Mapping[str, Any]) -> BookState:
    return BookState(
        tuple(_sheet_of(item["properties"]) for item in found["sheets"]),
        {
            item["metadataId"]: item.get("metadataValue", "")
            for item in found.get("developerMetadata", ())
            if item.get("metadataKey") == FENCE_KEY
        },
    )


def _sheet_of(properties: Mapping[str, Any]) -> Sheet:
    grid = properties.get("gridProperties", {})
    return Sheet(
        properties["sheetId"],
        properties["title"],
        grid.get("rowCount", 0),
        grid.get("columnCount", 0),
    )


def _session(access: Access) -> AuthorizedSession:
    scopes = [_SHEETS_SCOPE] if access.spreadsheet_id else [_SHEETS_SCOPE, _DRIVE_SCOPE]
    # google-auth ships its types half written.
    make: Callable[..., AuthorizedSession] = AuthorizedSession
    make_request: Callable[..., AuthRequest] = AuthRequest
    tokens = requests.Session()
    credentials = _credentials(access.service_account, scopes)
    session = make(credentials, auth_request=make_request(tokens))
    if access.endpoint:
        # google-auth asks Google for more than tokens; with an endpoint nothing goes there.
        session.mount("https://", _Elsewhere(access.endpoint))
        tokens.mount("https://", _Elsewhere(access.endpoint))
    return session


def _credentials(given: str, scopes: Sequence[str]) -> Credentials:
    """Read the key: the path of its file, or its text."""
    cause = "GOOGLE_SERVICE_ACCOUNT_JSON: expected the path or the text of a service account's key"
    try:
        text = given if given.lstrip().startswith("{") else Path(given).read_text("utf-8")
        make: Callable[..., Credentials] = Credentials.from_service_account_info
        return make(json.loads(text), scopes=scopes)
    except OSError as error:
        # Too long for a path: perhaps the key itself in another coding, which nobody may see.
        shown = f"{given!r}: " if len(given) < _LONGEST_PATH else ""
        raise ConfigError(f"{cause}: {shown}{error.strerror}") from None
    except ValueError as error:
        raise ConfigError(f"{cause}: {error}") from error


class _Elsewhere(HTTPAdapter):
    """Send what is meant for Google to another address."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._endpoint = endpoint

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send the request with the endpoint's scheme and host."""
        parts, there = urlsplit(str(request.url)), urlsplit(self._endpoint)
        request.url = parts._replace(scheme=there.scheme, netloc=there.netloc).geturl()
        return super().send(request, *args, **kwargs)
