"""Call the Google Sheets API: log in, keep to the quota, open, read and change a spreadsheet.

A failing server, or a proxy in front of it, may answer anything: an HTML page, half a document,
nothing. After such an answer it is unknown whether a change was applied.
"""

import json
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import gspread
import requests
from google.auth.exceptions import GoogleAuthError
from google.auth.transport.requests import AuthorizedSession
from google.auth.transport.requests import Request as AuthRequest
from google.oauth2.service_account import Credentials
from gspread.exceptions import APIError, SpreadsheetNotFound
from gspread.http_client import ParamsType
from gspread.urls import DRIVE_FILES_API_V3_URL
from gspread.utils import MimeType
from requests.adapters import HTTPAdapter

from news_platform.errors import ConfigError, FetchError, InputError
from news_platform.rss.sheets.books import CallTiming, Cell, SheetAccess
from news_platform.storage.objects.backends import read_service_account_key

Result = TypeVar("Result")

_SHEETS_SCOPE = "https://www.googleapis.com/auth/spreadsheets"
# The narrowest Drive scope: it finds and creates our own files, and no one else's.
_DRIVE_SCOPE = "https://www.googleapis.com/auth/drive.file"
# Enough of an error page to recognize it by.
_MAX_MESSAGE_CHARACTERS = 200
# Request timeout, and aborted because of a concurrent change: check the outcome and retry.
_RETRYABLE_STATUSES = (408, 409)
# The Drive API reports exceeded quotas as 403, the Sheets API as 429.
_RATE_LIMIT_REASONS = ("rateLimitExceeded", "userRateLimitExceeded")
# Google recommends exponential backoff with a maximum of about a minute.
_MAX_BACKOFF_SECONDS = 64.0


class OutcomeUnknown(FetchError):
    """It is unknown whether a change was applied."""


class ChangeRejected(InputError):
    """Google understood the change and did not apply it."""


class QuotaExceeded(FetchError):
    """There were too many calls; this one was not applied."""


@dataclass(slots=True)
class RateLimit:
    """A sliding window: at most `calls` calls in any `window_seconds`."""

    calls: int
    window_seconds: float
    _times: deque[float] = field(default_factory=deque)

    def wait_seconds(self, now: float) -> float:
        """Return how long to wait before the next call; 0 if it can start at once."""
        while self._times and self._times[0] <= now - self.window_seconds:
            self._times.popleft()
        if len(self._times) < self.calls:
            return 0.0
        return self._times[0] + self.window_seconds - now

    def note(self, now: float) -> None:
        """Count one call."""
        self._times.append(now)


def backoff_seconds(tries: int) -> float:
    """Return the wait after this many failures in a row: 1, 2, 4, … up to 64 seconds."""
    return float(min(2.0 ** (tries - 1), _MAX_BACKOFF_SECONDS))


class ApiClient:
    """gspread within the quota: repeat reads until they are answered, writes never.

    If the outcome of a write is unknown (5xx, a lost answer), the call raises `OutcomeUnknown`:
    the caller must check the spreadsheet before it sends the change again.
    """

    def __init__(self, access: SheetAccess, timing: CallTiming) -> None:
        self.access = access
        self.timing = timing
        session = _session(access)
        self.gspread = gspread.Client(auth=session.credentials, session=session)
        self.gspread.set_timeout(timing.timeout_seconds)
        # How often a call had to wait for the quota.
        self.waits = 0
        # Google counts reads and writes separately, with the same quota for each.
        self._reads = RateLimit(timing.calls, timing.window_seconds)
        self._writes = RateLimit(timing.calls, timing.window_seconds)

    def read(self, call: Callable[[], Result]) -> Result:
        """Make a call that changes nothing; retry it while its outcome is unknown."""
        for tries in range(1, self.timing.tries):
            try:
                return self._call(call, self._reads)
            except OutcomeUnknown:
                self.back_off(tries)
        return self._call(call, self._reads)

    def write(self, call: Callable[[], Result]) -> Result:
        """Make a call that changes something; only a call over the quota is repeated."""
        return self._call(call, self._writes)

    def back_off(self, tries: int) -> None:
        """Wait after this many failures in a row."""
        self.timing.sleep(backoff_seconds(tries))

    def _call(self, call: Callable[[], Result], limit: RateLimit) -> Result:
        for tries in range(1, self.timing.tries):
            self._wait(limit.wait_seconds(self.timing.clock()))
            limit.note(self.timing.clock())
            try:
                return translate_errors(call)
            except QuotaExceeded:
                self._wait(backoff_seconds(tries))
        return translate_errors(call)

    def _wait(self, seconds: float) -> None:
        if seconds > 0:
            self.waits += 1
            self.timing.sleep(seconds)


def translate_errors(call: Callable[[], Result]) -> Result:
    """Make the call; raise gspread's and Google's errors as ours."""
    try:
        return call()
    except APIError as error:
        # gspread sets the code to 0 or to a text if the answer is not Google's error document.
        has_code = isinstance(error.code, int) and error.code > 0
        code = error.code if has_code else error.response.status_code
        if _is_rate_limit(error.error):
            code = 429
        raise _error_for_status(code, str(error.error.get("message", ""))) from error
    except PermissionError as error:
        message = "the spreadsheet is not shared with the service account"
        raise _error_for_status(403, message) from error
    except GoogleAuthError as error:
        raise _auth_error(error) from error
    except requests.RequestException as error:
        message = f"no answer from Google Sheets: {_shorten(error)}"
        raise OutcomeUnknown(message, reason="network") from error
    except (AttributeError, KeyError, TypeError) as error:
        # gspread takes the shape of every answer for granted.
        message = f"unexpected answer from Google Sheets: {error!r}"
        raise OutcomeUnknown(message, reason="answer") from error


def _is_rate_limit(error: Mapping[str, Any]) -> bool:
    details = error.get("errors")
    items = details if isinstance(details, list) else []
    return any(
        isinstance(item, dict) and item.get("reason") in _RATE_LIMIT_REASONS for item in items
    )


def _error_for_status(code: int, message: str) -> Exception:
    message = _shorten(message)
    if code == 429:
        return QuotaExceeded(f"Google Sheets: {message}", reason="quota")
    if code >= 500 or code in _RETRYABLE_STATUSES:
        return OutcomeUnknown(f"Google Sheets answered {code}: {message}", reason="status")
    if code in (401, 403):
        cure = "share the spreadsheet with the service account, or check"
        return ConfigError(
            f"Google Sheets denied access: {message}; {cure} GOOGLE_SERVICE_ACCOUNT_JSON"
        )
    return ChangeRejected(f"Google Sheets rejected the request: {message}")


def _auth_error(error: GoogleAuthError) -> Exception:
    """Distinguish a rejected key, which Google reports in a document, from a failing server."""
    has_document = any(isinstance(item, dict) and "error" in item for item in error.args)
    if has_document and not error.retryable:
        return ConfigError(
            f"Google rejected the service account: {_shorten(error)}; "
            "check GOOGLE_SERVICE_ACCOUNT_JSON"
        )
    return OutcomeUnknown(f"no token from Google: {_shorten(error)}", reason="token")


def _shorten(message: object) -> str:
    return " ".join(str(message).split())[:_MAX_MESSAGE_CHARACTERS]


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


Request = dict[str, Any]
"""One request of a batchUpdate, as the Sheets API defines it."""

# Developer metadata with this key marks the batches that a spreadsheet holds (see layout.py).
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
