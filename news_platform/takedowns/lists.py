"""Read opt-out lists: files of domains, prefixes and URLs to versions of a named request.

A list is a text (one entry per line), CSV or JSON. Each entry is a domain, an address, or a prefix,
which ends with `*`. A version is one file under the root, so that a list is stored whole or not at
all; the newest version of a name counts alone.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from news_platform.datasets.takedowns import (
    TakedownKind,
    TakedownRequest,
    list_id,
)
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.requests import (
    TakedownState,
    TakedownTerms,
    clean_value,
    new_request,
    read_states,
)
from news_platform.web.urls import url_path

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_COMMENT = re.compile(r"(?:^|\s)[#;].*")
# The fields of CSV and JSON that hold an entry, each with the kind that it says; None: any.
_FIELDS = {
    "domain": TakedownKind.domain,
    "domains": TakedownKind.domain,
    "host": TakedownKind.domain,
    "site": None,
    "prefix": TakedownKind.prefix,
    "prefixes": TakedownKind.prefix,
    "url": TakedownKind.url,
    "urls": TakedownKind.url,
    "address": None,
    "value": None,
    "entry": None,
    "entries": None,
}
_Entry = tuple[str, TakedownKind | None, str]
"""Where it stands, the kind that its field says, and the entry."""


@dataclass(frozen=True, slots=True)
class ListDifference:
    """What a new version of a list adds to the one before, and what it no longer has."""

    added: tuple[str, ...]
    removed: tuple[str, ...]


class BadList(InputError):
    """Lines of a list name nothing that can be taken down; `lines` has all of them."""

    def __init__(self, message: str, lines: Sequence[str]) -> None:
        super().__init__(message)
        self.lines = tuple(lines)


def parse_list(body: bytes, *, file: str) -> tuple[str, ...]:
    """Return the entries of a list in order, each once; raise BadList if any line is bad."""
    values: dict[str, None] = {}
    bad: list[str] = []
    for place, kind, text in _iter_entries(_decoded(body), file):
        try:
            values[_cleaned(kind, text)] = None
        except InputError as error:
            bad.append(f"{place}: {error}")
    if bad:
        raise BadList(
            f"{file}: {len(bad)} bad lines, and nothing was imported; first: {bad[0]}", bad
        )
    if not values:
        raise InputError(f"{file}: the list is empty; `takedown withdraw NAME` ends one")
    return tuple(values)


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = body.count(b"\n", 0, error.start) + 1
        raise BadList(f"line {line}: expected UTF-8", [f"line {line}"]) from error


def _iter_entries(text: str, file: str) -> Iterator[_Entry]:
    if file.lower().endswith(".json") or text.lstrip()[:1] in ("[", "{"):
        return _iter_json(text, file)
    if file.lower().endswith((".csv", ".tsv")):
        return _iter_csv(text)
    lines = ((n, _COMMENT.sub("", line).strip()) for n, line in enumerate(text.splitlines(), 1))
    return ((f"line {number}", None, line) for number, line in lines if line)


def _iter_csv(text: str) -> Iterator[_Entry]:
    """Yield the cells of known columns, or the first column of a file without a header."""
    first = next((line for line in text.splitlines() if _COMMENT.sub("", line).strip()), "")
    delimiter = max("\t;,", key=first.count)
    rows = csv.reader(text.splitlines(keepends=True), delimiter=delimiter)
    columns: list[tuple[int, TakedownKind | None]] = []
    try:
        for row in rows:
            if not "".join(row).strip() or row[0].lstrip().startswith("#"):
                continue
            if not columns:
                names = [cell.strip().lower() for cell in row]
                columns = [(at, _FIELDS[one]) for at, one in enumerate(names) if one in _FIELDS]
                if columns:
                    continue
                columns = [(0, None)]
            for at, kind in columns:
                if at < len(row) and row[at].strip():
                    yield f"line {rows.line_num}", kind, row[at].strip()
    except csv.Error as error:
        raise BadList(f"line {rows.line_num}: {error}", [f"line {rows.line_num}"]) from error


def _iter_json(text: str, file: str) -> Iterator[_Entry]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadList(f"{file}: not JSON: {error}", [str(error)]) from error
    given = document if isinstance(document, list) else [document]
    for number, one in enumerate(given, 1):
        fields = one.items() if isinstance(one, dict) else [("entry", one)]
        for name, value in fields:
            if name in _FIELDS:
                for text in value if isinstance(value, list) else [value]:
                    yield f"entry {number}", _FIELDS[name], text if isinstance(text, str) else ""


def _cleaned(kind: TakedownKind | None, text: str) -> str:
    """Return an entry as lists store it; raise InputError for one that names nothing."""
    entry = text.strip()
    if entry.endswith("*") and not entry.endswith("%2A") and kind is not TakedownKind.domain:
        kind, entry = TakedownKind.prefix, entry[:-1]
    elif entry.startswith("*."):
        kind, entry = TakedownKind.domain, entry[2:]
    if kind is None:
        # The address of a site without a path stands for the site.
        is_page = url_path(entry if "://" in entry else f"https://{entry}").strip("/") or (
            "?" in entry
        )
        kind = TakedownKind.url if is_page else TakedownKind.domain
    value = clean_value(kind, entry)
    return f"{value}*" if kind is TakedownKind.prefix else value


def newest_version(store: ObjectStore, name: str) -> TakedownState | None:
    """Return the newest version of a list, or None if there is none of this name."""
    for state in read_lists(store):
        if state.request.list_version and state.request.list_version[0] == name:
            return state
    return None


def read_lists(store: ObjectStore) -> list[TakedownState]:
    """Return the newest version of every opt-out list."""
    return [one for one in read_states(store) if one.request.list_version]


def new_version(
    name: str,
    values: Sequence[str],
    *,
    before: TakedownState | None,
    terms: TakedownTerms,
    now: datetime,
) -> tuple[TakedownRequest, ListDifference]:
    """Return the next version of a list, and how it differs from the one that counts now."""
    if not _NAME.fullmatch(name):
        raise InputError(
            f"invalid name of a list {name!r}: expected lower-case letters, digits, - and _",
            thing=name,
        )
    last = before.request.list_version if before else None
    request = new_request(TakedownKind.list, values, terms=terms, now=now)
    request = replace(request, id=list_id(name, last[1] + 1 if last else 1))
    held = before.request.values if before and not before.is_withdrawn else ()
    old, new = set(held), set(values)
    return request, ListDifference(
        tuple(one for one in values if one not in old), tuple(one for one in held if one not in new)
    )


def is_same_version(before: TakedownState, request: TakedownRequest) -> bool:
    """Return whether a list is imported once more as it is."""
    held = before.request
    is_same = set(held.values) == set(request.values) and held.scope is request.scope
    return is_same and not before.is_withdrawn
