"""One Google spreadsheet through gspread: open or create it, fetch its state, change it.

Calls stay within the quota, and a call rejected for its quota is repeated. If the outcome of a
change is unknown (5xx, a lost answer), the call raises `OutcomeUnknown`: the caller must check
the spreadsheet before it sends the change again.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
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
from news_platform.rss.sheets.access import CallTiming, SheetAccess
from news_platform.rss.sheets.calls import (
    ApiCaller,
    ChangeRejected,
    OutcomeUnknown,
    backoff_seconds,
)
from news_platform.rss.sheets.tabs import Cell, Request
from news_platform.storage.objects.backends import read_service_account_key

# Developer metadata with this key marks the batches that a spreadsheet holds (see update.py).
FENCE_KEY = "news_platform_batch"
_SHEETS_SCOPE = "https://www.googleapis.com/auth/spreadsheets"
# The narrowest Drive scope: it finds and creates our own files, and no one else's.
_DRIVE_SCOPE = "https://www.googleapis.com/auth/drive.file"
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
    """The worksheets of a spreadsheet and the fences of the batches it holds."""

    sheets: tuple[Worksheet, ...]
    fences: Mapping[int, str]


@dataclass(slots=True)
class Spreadsheet:
    """One spreadsheet."""

    _sheet: gspread.Spreadsheet
    _caller: ApiCaller

    @property
    def id(self) -> str:
        """Return the id, as it appears in the URL."""
        return str(self._sheet.id)

    def share_like(self, other_id: str) -> bool:
        """Give everyone who may open another spreadsheet the same role; return whether it worked.

        Drive shows an account only the permissions of files that it created itself.
        """
        client = self._sheet.client
        try:
            given = self._caller.read(lambda: client.list_permissions(other_id))
            for one in given:
                if one.get("role") != "owner" and not one.get("deleted"):
                    self._caller.write(partial(_share, client, self.id, one))
        except (ConfigError, ChangeRejected, OutcomeUnknown):
            return False
        return True

    @property
    def url(self) -> str:
        """Return the URL that opens the spreadsheet in a browser."""
        return str(self._sheet.url)

    @property
    def title(self) -> str:
        """Return the title as it was when the spreadsheet was opened."""
        return str(self._sheet.title)

    @property
    def waits(self) -> int:
        """Return how often a call had to wait for the quota."""
        return self._caller.waits

    def wait(self, tries: int) -> None:
        """Wait after this many failures in a row."""
        self._caller.timing.sleep(backoff_seconds(tries))

    def fetch_state(self) -> SpreadsheetState:
        """Return the worksheets and the fences as they are now."""
        return self._caller.read(
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

        return self._caller.read(call)

    def batch_update(self, changes: Sequence[Request]) -> None:
        """Apply all changes or none; raise ChangeRejected or OutcomeUnknown."""
        body = {"requests": list(changes)}
        # Any proxy can answer 200; an answer without the id did not come from Google.
        self._caller.write(lambda: self._sheet.batch_update(body)["spreadsheetId"])


def open_spreadsheet(
    access: SheetAccess, timing: CallTiming, *, known_id: str | None = None
) -> Spreadsheet:
    """Open the spreadsheet by its id, or by its title, which is created if it does not exist.

    `known_id` is the spreadsheet that had the title before; it wins over others with that title.
    """
    caller = ApiCaller(timing)
    client = _client(access, timing)
    if access.spreadsheet_id:
        return Spreadsheet(_open(client, access.spreadsheet_id, caller), caller)
    if known_id:
        with suppress(SpreadsheetNotFound):
            return Spreadsheet(caller.read(lambda: client.open_by_key(known_id)), caller)
    title = access.spreadsheet_title
    try:
        return Spreadsheet(caller.read(lambda: client.open(title)), caller)
    except SpreadsheetNotFound:
        return Spreadsheet(_create(client, title, caller), caller)


def open_titled(access: SheetAccess, timing: CallTiming, title: str) -> Spreadsheet:
    """Open the spreadsheet with this title, or create it."""
    return open_spreadsheet(replace(access, spreadsheet_id=None, spreadsheet_title=title), timing)


def open_by_id(access: SheetAccess, timing: CallTiming, spreadsheet_id: str) -> Spreadsheet | None:
    """Open a spreadsheet by its id; None if it is gone."""
    caller = ApiCaller(timing)
    client = _client(access, timing)
    try:
        return Spreadsheet(caller.read(lambda: client.open_by_key(spreadsheet_id)), caller)
    except SpreadsheetNotFound:
        return None


def find_spreadsheet(access: SheetAccess, timing: CallTiming) -> Spreadsheet | None:
    """Open the spreadsheet by its id or title; None if there is none that the account can see."""
    if access.spreadsheet_id:
        return open_by_id(access, timing, access.spreadsheet_id)
    caller, client = ApiCaller(timing), _client(access, timing)
    try:
        return Spreadsheet(caller.read(lambda: client.open(access.spreadsheet_title)), caller)
    except SpreadsheetNotFound:
        return None


def _share(client: Any, spreadsheet_id: str, permission: Mapping[str, Any]) -> None:
    who = permission.get("emailAddress") or permission.get("domain")
    kind, role = permission["type"], permission["role"]
    client.insert_permission(spreadsheet_id, who, perm_type=kind, role=role, notify=False)


def _client(access: SheetAccess, timing: CallTiming) -> gspread.Client:
    session = _session(access)
    client = gspread.Client(auth=session.credentials, session=session)
    client.set_timeout(timing.timeout_seconds)
    return client


def _open(client: gspread.Client, key: str, caller: ApiCaller) -> gspread.Spreadsheet:
    try:
        return caller.read(lambda: client.open_by_key(key))
    except SpreadsheetNotFound as error:
        raise ConfigError(
            f"SPREADSHEET_ID={key!r}: no such spreadsheet; check the id in its URL", thing=key
        ) from error


def _create(client: gspread.Client, title: str, caller: ApiCaller) -> gspread.Spreadsheet:
    file = {"name": title, "mimeType": MimeType.google_sheets}
    try:
        caller.write(lambda: client.http_client.request("post", DRIVE_FILES_API_V3_URL, json=file))
    except OutcomeUnknown:
        # It may exist all the same; creating a second one would split the rows between the two.
        caller.pause()
    # Opened by its title, because the answer with its id may be lost.
    try:
        return caller.read(lambda: client.open(title))
    except SpreadsheetNotFound as error:
        cause = "Google did not confirm its creation; the next sync looks for it first"
        raise OutcomeUnknown(
            f"there is no spreadsheet {title!r} yet: {cause}", reason="create"
        ) from error


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


def _session(access: SheetAccess) -> AuthorizedSession:
    scopes = [_SHEETS_SCOPE] if access.spreadsheet_id else [_SHEETS_SCOPE, _DRIVE_SCOPE]
    # google-auth is only partly typed; these aliases keep mypy strict here.
    make: Callable[..., AuthorizedSession] = AuthorizedSession
    make_request: Callable[..., AuthRequest] = AuthRequest
    tokens = requests.Session()
    credentials = _credentials(access.service_account, scopes)
    session = make(credentials, auth_request=make_request(tokens))
    if access.endpoint:
        # google-auth also calls Google for tokens; with an endpoint set, nothing goes there.
        session.mount("https://", EndpointAdapter(access.endpoint))
        tokens.mount("https://", EndpointAdapter(access.endpoint))
    return session


def _credentials(key: str, scopes: Sequence[str]) -> Credentials:
    """Read the service account key from its file or from the text itself."""
    text = read_service_account_key(key, setting="GOOGLE_SERVICE_ACCOUNT_JSON")
    make: Callable[..., Credentials] = Credentials.from_service_account_info
    try:
        return make(json.loads(text), scopes=scopes)
    except ValueError as error:
        raise ConfigError(
            "GOOGLE_SERVICE_ACCOUNT_JSON: expected the path or the text of a service account key: "
            f"{error}"
        ) from error


class EndpointAdapter(HTTPAdapter):
    """Send requests meant for Google to another endpoint."""

    def __init__(self, endpoint: str) -> None:
        super().__init__()
        self._endpoint = endpoint

    def send(self, request: requests.PreparedRequest, *args: Any, **kwargs: Any) -> Any:
        """Send the request with the endpoint's scheme and host."""
        parts, endpoint = urlsplit(str(request.url)), urlsplit(self._endpoint)
        request.url = parts._replace(scheme=endpoint.scheme, netloc=endpoint.netloc).geturl()
        return super().send(request, *args, **kwargs)
