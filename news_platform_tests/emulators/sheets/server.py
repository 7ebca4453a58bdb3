"""The HTTP server: routes, tokens, quotas, sizes and faults; every message is validated."""

import json
import re
import time
from base64 import urlsafe_b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache
from threading import RLock
from typing import Any
from urllib.parse import parse_qs, unquote

from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)

from news_platform_tests.emulators.relay import Answer, Request, serve
from news_platform_tests.emulators.sheets import values
from news_platform_tests.emulators.sheets.a1 import BadRange
from news_platform_tests.emulators.sheets.changes import Body, Book
from news_platform_tests.emulators.sheets.discovery import NotAsDocumented, check
from news_platform_tests.emulators.sheets.drive import (
    ACCOUNT,
    DRIVE,
    Answered,
    Forbidden,
    answer_drive,
    grant,
    is_shared_with_us,
)
from news_platform_tests.emulators.sheets.faults import Fault, Faults, Quota
from news_platform_tests.emulators.sheets.field_mask import masked
from news_platform_tests.emulators.sheets.grid import Invalid

_SHEETS = "sheets.v4"
_BOOK = re.compile(
    r"/v4/spreadsheets/([^/:]+)"
    r"(?::(\w+)|/values(?::(\w+)|/(.+?)(?::(append|clear))?)?)?\Z"
)
_TOKEN = "emulated-token"


@dataclass(slots=True)
class SheetsEmulator:
    """All spreadsheets of one account."""

    faults: Faults = field(default_factory=Faults)
    clock: Callable[[], float] = time.monotonic
    writes_per_minute: int = 60
    reads_per_minute: int = 60
    window_seconds: float = 60.0
    # Google recommends 2 MB and documents no limit; above 10 MB its front end rejects requests.
    max_request_bytes: int = 10_485_760
    books: dict[str, Book] = field(default_factory=dict)
    writes: Quota = field(init=False)
    reads: Quota = field(init=False)
    largest_request_bytes: int = 0
    # The scopes of the last token request.
    scopes: tuple[str, ...] = ()
    _made: int = 0
    _ahead_seconds: float = 0.0
    _late: list[tuple[int, Callable[[], object]]] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock)

    def __post_init__(self) -> None:
        self.writes = Quota(self.writes_per_minute, self.now, self.window_seconds)
        self.reads = Quota(self.reads_per_minute, self.now, self.window_seconds)

    def now(self) -> float:
        """Return the emulator's time in seconds: the clock plus what it was advanced by."""
        return self.clock() + self._ahead_seconds

    def advance(self, seconds: float) -> None:
        """Advance the time of the quotas and the 429 window."""
        with self._lock:
            self._ahead_seconds += seconds

    def set_faults(self, faults: Faults) -> None:
        """Replace the faults, starting with the next call."""
        with self._lock:
            self.faults = faults

    def answer(self, request: Request) -> Answer:
        """Answer one request, after applying late changes that are due."""
        with self._lock:
            if request.path == "/token":
                self.scopes = _asked_scopes(request)
                token = {"access_token": _TOKEN, "token_type": "Bearer", "expires_in": 3600}
                return _json(200, token)
            if request.headers.get("authorization") != f"Bearer {_TOKEN}":
                return _failed(401, "Request had invalid authentication credentials.")
            if not request.path.startswith(("/v4/", "/drive/")):
                return _failed(404, "Not Found")
            self._apply_late()
            self.largest_request_bytes = max(self.largest_request_bytes, len(request.body))
            if len(request.body) > self.max_request_bytes:
                limit = f"Request payload size exceeds the limit: {self.max_request_bytes} bytes."
                return _failed(413, limit)
            return self._metered(request)

    def flush(self) -> int:
        """Apply all late changes now and return how many there were."""
        with self._lock:
            waiting = len(self._late)
            self._apply_late(all_of_it=True)
            return waiting

    def new_book(self, title: str) -> Book:
        """Add an empty spreadsheet."""
        self._made += 1
        book = Book(f"book-{self._made}", title)
        grant(book, {"type": "user", "role": "owner", "emailAddress": ACCOUNT})
        self.books[book.id] = book
        return book

    def _metered(self, request: Request) -> Answer:
        """Count the call against its quota (Drive has none here) and choose its fault."""
        is_write, now = request.method != "GET", self.now()
        if request.path.startswith("/drive/"):
            fault = self.faults.draw_drive(is_write=is_write, now=now)
            return self._with_fault(request, fault)
        if not (self.writes if is_write else self.reads).admits():
            return _failed(429, "Quota exceeded for quota metric")
        return self._with_fault(request, self.faults.draw(is_write=is_write, now=now))

    def _with_fault(self, request: Request, fault: Fault | None) -> Answer:
        if fault == "over_quota":
            return _failed(429, "Quota exceeded for quota metric")
        if fault == "before":
            return _failed(503, "The service is currently unavailable.")
        if fault == "late":
            self._late.append((self.faults.calls_until_late(), lambda: self._told(request)))
            return _unanswered(self.faults.stall_seconds)
        answer = self._told(request)
        return _failed(503, "Deadline exceeded.") if fault == "after" else answer

    def _apply_late(self, *, all_of_it: bool = False) -> None:
        waiting = [(calls - 1, change) for calls, change in self._late]
        self._late = [item for item in waiting if item[0] > 0 and not all_of_it]
        for calls, change in waiting:
            if calls <= 0 or all_of_it:
                change()

    def _told(self, request: Request) -> Answer:
        try:
            body = _without_nulls(json.loads(request.body)) if request.body else {}
            schema, document = self._route(request, body)
        except KeyError as error:
            return _failed(404, f"Requested entity was not found: {error}")
        except (Invalid, BadRange, NotAsDocumented) as error:
            return _failed(400, str(error))
        except json.JSONDecodeError as error:
            return _failed(400, f"Invalid JSON payload received. {error}")
        except Forbidden as error:
            return _failed(403, str(error))
        if schema is None:
            return Answer(204, {}, b"", 0)
        name = DRIVE if request.path.startswith("/drive/") else _SHEETS
        check(name, schema, document)
        return _json(200, masked(document, request.query.get("fields", ["*"])[0]))

    def _route(self, request: Request, body: Body) -> Answered:
        path = unquote(request.path)
        if path.startswith("/drive/"):
            return answer_drive(self.books, request, body, new_book=self.new_book)
        if path == "/v4/spreadsheets":
            check(_SHEETS, "Spreadsheet", body)
            return "Spreadsheet", self.new_book(body["properties"]["title"]).document()
        found = _BOOK.match(path)
        if found is None:
            raise KeyError(path)
        book_id, verb, batch, span, act = found.groups()
        book = self.books[book_id]
        if not is_shared_with_us(book):
            raise Forbidden("The caller does not have permission")
        if verb == "batchUpdate":
            check(_SHEETS, "BatchUpdateSpreadsheetRequest", body)
            replies = book.apply(body["requests"])
            return "BatchUpdateSpreadsheetResponse", {"spreadsheetId": book.id, "replies": replies}
        if batch:
            return _batch_values(book, batch, request)
        return _values(book, span, act, request) if span else ("Spreadsheet", book.document())


def _batch_values(book: Book, verb: str, request: Request) -> tuple[str, Body]:
    if verb == "batchGet":
        ranges = request.query["ranges"]
        return "BatchGetValuesResponse", values.batch_get(book, ranges, _reading(request))
    raise Invalid(f"the emulator has no values:{verb}")


def _values(book: Book, span: str, act: str | None, request: Request) -> tuple[str, Body]:
    if act or request.method != "GET":
        raise Invalid(f"the emulator has no {request.method} of values:{act or 'update'}")
    return "ValueRange", values.get_values(book, span, _reading(request))


def _reading(request: Request) -> values.Reading:
    names = [field.name for field in fields(values.Reading)]
    return values.Reading(**{key: request.query[key][0] for key in names if key in request.query})


def _asked_scopes(request: Request) -> tuple[str, ...]:
    """Read the scopes from a service account's signed token request."""
    wish = parse_qs(request.body.decode()).get("assertion", [""])[0]
    if wish.count(".") != 2:
        return ()
    claims = json.loads(urlsafe_b64decode(wish.split(".")[1] + "=="))
    return tuple(claims["scope"].split())


def _without_nulls(message: Any) -> Any:
    """Leave out fields that are null; Google treats them as absent."""
    if isinstance(message, dict):
        return {key: _without_nulls(value) for key, value in message.items() if value is not None}
    return [_without_nulls(item) for item in message] if isinstance(message, list) else message


def _json(status: int, document: Any) -> Answer:
    body = json.dumps(document, ensure_ascii=False).encode()
    return Answer(status, {"content-type": "application/json; charset=UTF-8"}, body, len(body))


_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    413: "INVALID_ARGUMENT",
    429: "RESOURCE_EXHAUSTED",
    503: "UNAVAILABLE",
}


def _failed(status: int, message: str) -> Answer:
    error = {"code": status, "message": message, "status": _KINDS[status]}
    return _json(status, {"error": error})


def _unanswered(stall_seconds: float) -> Answer:
    """Give the caller no answer: close the connection, or wait with a body that never comes."""
    if stall_seconds:
        return Answer(200, {}, b"", 1, stall_seconds=stall_seconds)
    return Answer(0, {}, b"", 0, silent=True)


@contextmanager
def sheets_server(emulator: SheetsEmulator, *, port: int = 0) -> Iterator[str]:
    """Serve the emulator and yield its URL."""
    with serve(emulator, port=port) as url:
        yield url


def service_account_key(server_url: str) -> str:
    """Return a service account key whose tokens come from the emulator."""
    return json.dumps(
        {
            "type": "service_account",
            "client_email": ACCOUNT,
            "private_key_id": "1",
            "private_key": _private_key(),
            "token_uri": f"{server_url}/token",
        }
    )


@cache
def _private_key() -> str:
    # Short: every client checks the whole key, which takes 0.4 s for one of 2,048 bits.
    key = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    kind = PrivateFormat.PKCS8
    return key.private_bytes(Encoding.PEM, kind, NoEncryption()).decode()
