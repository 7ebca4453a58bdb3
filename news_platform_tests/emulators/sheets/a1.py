"""Parse and format ranges in A1 notation."""

import re
from dataclasses import dataclass

_CELL = re.compile(r"([A-Za-z]*)(\d*)\Z")


class BadRange(ValueError):
    """A text is not a range."""


@dataclass(frozen=True, slots=True)
class Range:
    """A block of cells by index, ends excluded; None is an open end."""

    title: str | None
    top: int = 0
    left: int = 0
    bottom: int | None = None
    right: int | None = None


def parse(text: str) -> Range:
    """Parse `'Tab'!A1:B2`, `Tab!A:A`, `Tab!1:1`, `Tab` or `A1`."""
    title, mark, cells = text.rpartition("!")
    if not mark:
        if text.startswith("'") or not _is_block(text):
            return Range(_unquoted(text))
        return _block(None, text)
    return _block(_unquoted(title), cells)


def letters(place: int) -> str:
    """Return the letters of a column."""
    place, rest = divmod(place, 26)
    return (letters(place - 1) if place else "") + chr(ord("A") + rest)


def written(title: str, found: Range) -> str:
    """Format a closed range as Google does."""
    shown = title if title.isalnum() else "'" + title.replace("'", "''") + "'"
    first = f"{letters(found.left)}{found.top + 1}"
    last = f"{letters((found.right or found.left + 1) - 1)}{found.bottom or found.top + 1}"
    return f"{shown}!{first}" if first == last else f"{shown}!{first}:{last}"


def _is_block(text: str) -> bool:
    return all(re.fullmatch(r"[A-Z]{1,3}\d+|[A-Z]{1,3}|\d+", part) for part in text.split(":"))


def _block(title: str | None, text: str) -> Range:
    first, mark, last = text.partition(":")
    left, top = _corner(first)
    right, bottom = _corner(last) if mark else (left, top)
    left, right = _in_order(left, right)
    top, bottom = _in_order(top, bottom)
    return Range(
        title,
        top=top or 0,
        left=left or 0,
        bottom=None if bottom is None else bottom + 1,
        right=None if right is None else right + 1,
    )


def _in_order(first: int | None, last: int | None) -> tuple[int | None, int | None]:
    """Turn around a range that was written from its end, as Sheets does."""
    if first is not None and last is not None and first > last:
        return last, first
    return first, last


def _corner(text: str) -> tuple[int | None, int | None]:
    found = _CELL.match(text)
    if not text or found is None:
        raise BadRange(text)
    column, row = found.groups()
    return _place(column) if column else None, int(row) - 1 if row else None


def _place(column: str) -> int:
    place = 0
    for letter in column.upper():
        place = place * 26 + ord(letter) - ord("A") + 1
    return place - 1


def _unquoted(title: str) -> str:
    if title.startswith("'") and title.endswith("'") and len(title) > 1:
        return title[1:-1].replace("''", "'")
    return title
