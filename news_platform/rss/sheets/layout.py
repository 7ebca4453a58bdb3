"""Where the columns of a tab stand, after people moved, added, renamed or deleted some."""

from collections.abc import Sequence
from dataclasses import dataclass

from news_platform.errors import InputError
from news_platform.rss.sheets.tabs import Cell, Tab


@dataclass(frozen=True, slots=True)
class Layout:
    """The place of each of our columns in a tab; `missing` ones are added right of `width`."""

    places: dict[str, int]
    width: int
    missing: tuple[str, ...] = ()
    header: tuple[str, ...] = ()


def layout_of(tab: Tab, header: Sequence[Cell], *, before: Sequence[str] = ()) -> Layout:
    """Read a header row; `before` is what it said after the last sync.

    A column of ours that is gone while a new name stands in the row was renamed: writing on would
    fill a second column beside it, so this is an error, as is a column that stands there twice.
    """
    names = [str(cell).strip() for cell in header]
    _refuse_doubles(tab, names)
    places = {name: names.index(name) for name in tab.columns if name in names}
    missing = tuple(name for name in tab.columns if name not in places)
    _refuse_renamed(tab, names, missing=missing, before=before)
    if any(names) and tab.key_column in missing:
        raise InputError(
            f"tab {tab.name!r} has no column {tab.key_column!r}, so its rows cannot be told apart: "
            "undo the change, or delete the tab to have it made anew",
            thing=tab.name,
        )
    return Layout(places, len(names), missing, tuple(names))


def _refuse_doubles(tab: Tab, names: Sequence[str]) -> None:
    for name in tab.columns:
        if names.count(name) > 1:
            raise InputError(
                f"tab {tab.name!r} has {names.count(name)} columns {name!r}: rename all but one",
                thing=tab.name,
            )


def _refuse_renamed(
    tab: Tab, names: Sequence[str], *, missing: Sequence[str], before: Sequence[str]
) -> None:
    lost = [name for name in missing if name in before]
    new = [name for name in names if name and name not in before and name not in tab.columns]
    if lost and new:
        raise InputError(
            f"tab {tab.name!r}: column {lost[0]!r} is gone and {new[0]!r} is new: "
            f"if it was renamed, name it {lost[0]!r} again",
            thing=tab.name,
        )


def column_letter(place: int) -> str:
    """Return the letters of a column, counted from 0: 0 is A, 26 is AA."""
    letters = ""
    place += 1
    while place:
        place, rest = divmod(place - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def quoted(title: str) -> str:
    """Return a tab's title as A1 ranges want it."""
    return "'" + title.replace("'", "''") + "'"


def key_text(cell: Cell) -> str:
    """Return a key as the ledger writes it: a sheet may give back 7.0 for 7."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()
