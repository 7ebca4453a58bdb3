"""Drive v3: spreadsheets as files, and their permissions."""

import re
from collections.abc import Callable, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any
from zlib import crc32

from news_platform_tests.emulators.relay import Request
from news_platform_tests.emulators.sheets.changes import Body, Book
from news_platform_tests.emulators.sheets.discovery import check, document
from news_platform_tests.emulators.sheets.grid import Invalid

DRIVE = "drive.v3"
ACCOUNT = "news-platform@emulator.example"

_FILE = re.compile(r"/drive/v3/files(?:/([^/]+)(?:/(permissions)(?:/([^/]+))?)?)?\Z")
_TITLE = re.compile(r'name = "((?:[^"\\]|\\.)*)"')
# The fields of a permission that Drive returns by default.
_BRIEF = ("kind", "id", "type", "role")
_CREATED = datetime(2025, 11, 3, 20, tzinfo=UTC)
_NEEDS = {"user": "emailAddress", "group": "emailAddress", "domain": "domain"}


class Forbidden(Exception):
    """Google would answer 403."""


Answered = tuple[str | None, Body]
"""The schema of an answer and the answer; without a schema there is no body."""


def answer_drive(
    books: MutableMapping[str, Book],
    request: Request,
    body: Body,
    *,
    new_book: Callable[[str], Book],
) -> Answered:
    """Answer a call to Drive; raise KeyError, Invalid or Forbidden."""
    found = _FILE.match(request.path)
    if found is None:
        raise KeyError(request.path)
    file_id, permissions, permission_id = found.groups()
    if permissions:
        return _permissions(books[file_id], request, body, permission_id)
    if request.method == "POST":
        check(DRIVE, "File", body)
        return "File", _file(new_book(body["name"]))
    if request.method == "DELETE":
        del books[file_id]
        return None, {}
    if file_id:
        return "File", _file(books[file_id])
    wanted = _TITLE.search(request.query.get("q", [""])[0])
    shown = [
        _file(book)
        for book in books.values()
        if is_shared_with_us(book) and (wanted is None or book.title == wanted.group(1))
    ]
    return "FileList", {"kind": "drive#fileList", "files": shown}


def is_shared_with_us(book: Book) -> bool:
    """Return whether our account may open a spreadsheet."""
    return any(given.get("emailAddress") == ACCOUNT for given in book.permissions.values())


def grant(book: Book, given: Body) -> Body:
    """Give an account a role, in place of the one it has."""
    kind = given.get("type")
    named = _NEEDS.get(kind or "")
    if kind is None or given.get("role") is None or (named and not given.get(named)):
        raise Invalid(f"The permission is missing one of type, role, {named or 'emailAddress'}.")
    owner = f"{kind} {given[named]}" if named else ""
    key = str(crc32(owner.encode())) if owner else "anyoneWithLink"
    book.permissions[key] = {"kind": "drive#permission", **given, "id": key}
    return book.permissions[key]


def _permissions(book: Book, request: Request, body: Body, key: str | None) -> Answered:
    if request.method == "POST":
        # Drive ignores unknown fields: gspread still sends `withLink`, which belongs to v2.
        known = document(DRIVE)["schemas"]["Permission"]["properties"]
        given = {name: value for name, value in body.items() if name in known}
        check(DRIVE, "Permission", given)
        return "Permission", _shown(grant(book, given), request)
    if key is None:
        shown = [_shown(item, request) for item in book.permissions.values()]
        return "PermissionList", {"kind": "drive#permissionList", "permissions": shown}
    if request.method == "DELETE":
        if book.permissions[key]["role"] == "owner":
            raise Forbidden("The owner of a file cannot be removed.")
        del book.permissions[key]
        return None, {}
    return "Permission", _shown(book.permissions[key], request)


def _shown(permission: Body, request: Request) -> Body:
    asked = "fields" in request.query
    return {key: value for key, value in permission.items() if asked or key in _BRIEF}


def _file(book: Book) -> dict[str, Any]:
    return {
        "kind": "drive#file",
        "id": book.id,
        "name": book.title,
        "mimeType": "application/vnd.google-apps.spreadsheet",
        "createdTime": "2025-11-03T20:00:00.000Z",
        # One second per change, so that a client sees that something changed.
        "modifiedTime": f"{_CREATED + timedelta(seconds=book.revision):%Y-%m-%dT%H:%M:%S.000Z}",
    }
