"""Admins' edits in the Feeds tab: write new feeds, status, notes and language to the ledger.

A new URL goes through discovery like any other, and its row then shows the outcome. Input that
cannot be used is answered in the notes of its row.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import sqlalchemy as sa

from news_platform.rss.discovery import CheckedFeed, DiscoveryReport
from news_platform.rss.ledger.feed_rows import (
    POLLED,
    RESUMED,
    FeedStatus,
    remark_of,
    upsert_feed,
    with_remark,
)
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction, write_transaction
from news_platform.rss.sheets.layout import feed_key, url_key
from news_platform.rss.sheets.outbox import read_last_written, write_last_written
from news_platform.rss.sheets.tabs import FEEDS_TAB, Cell
from news_platform.web.urls import canonical_url

Discover = Callable[[Sequence[str]], DiscoveryReport]

NO_ADDRESS = "no web address in feed_url"
_WRONG_KEY = "feed_url_canon does not match feed_url: leave it empty"
_STATUSES = get_args(FeedStatus)
# Discovery fetches every new URL; the limit keeps a sync short, the next one takes the rest.
_MAX_NEW_FEEDS = 200
# All answers go in one request; more would make it too large.
_MAX_ANSWERS = 1_000


@dataclass(frozen=True, slots=True)
class FeedEdit:
    """An admin's change of a known feed: the values to write, and the admin's cells as they are.

    An unknown status is refused, and answered in the notes.
    """

    key: str
    values: Mapping[str, Any]
    cells: Mapping[str, str]
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class NewFeed:
    """A URL that an admin added, with the admin's cells of its row."""

    key: str
    url: str
    cells: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class InvalidRow:
    """A row without a usable feed URL, by its index (header 0), and the answer for its notes."""

    row_index: int
    notes: str


@dataclass(frozen=True, slots=True)
class EditReport:
    """How many edits were written and refused, and which rows are to be answered."""

    taken: int = 0
    refused: int = 0
    invalid: tuple[InvalidRow, ...] = ()


def find_edits(
    rows: Sequence[Mapping[str, Cell]], last_written: Mapping[str, Mapping[str, Cell]]
) -> tuple[list[FeedEdit], list[NewFeed], list[InvalidRow]]:
    """Compare the rows of Feeds with what we wrote last; of duplicate keys the first row counts."""
    edits: list[FeedEdit] = []
    new: list[NewFeed] = []
    invalid: list[InvalidRow] = []
    seen: set[str] = set()
    for row_index, row in enumerate(rows, 1):
        key = feed_key(row)
        if not any(row.values()) or key in seen:
            continue
        cells = {name: str(row.get(name, "")).strip() for name in FEEDS_TAB.edited}
        if key is not None and key in last_written:
            seen.add(key)
            # Empty if the tab was deleted or lost a column: then its cells are not edits.
            written = last_written[key]
            if written and any(str(written.get(name, "")) != cells[name] for name in cells):
                edits.append(_feed_edit(key, cells, written))
        elif key is not None and key == url_key(row):
            seen.add(key)
            new.append(NewFeed(key, str(row["feed_url"]).strip(), cells))
        else:
            answer = with_remark(cells["notes"], _WRONG_KEY if url_key(row) else NO_ADDRESS)
            # A row that has its answer is not answered again by every sync.
            if (cells["status"], cells["notes"]) != ("rejected", answer):
                invalid.append(InvalidRow(row_index, answer))
    return edits, new, invalid


def apply_edits(
    engine: sa.Engine, spreadsheet_id: str, rows: Sequence[Mapping[str, Cell]], discover: Discover
) -> EditReport:
    """Write the admins' edits to the ledger, and record the cells they were read from."""
    edits, all_new, all_invalid = find_edits(rows, read_last_written(engine, spreadsheet_id))
    new, invalid = all_new[:_MAX_NEW_FEEDS], tuple(all_invalid[:_MAX_ANSWERS])
    # Discovery comes before the cells are recorded: if the process dies in between, the next sync
    # sees the row as new again and discovery finds a feed that it knows.
    checked = discover([item.url for item in new]).checked if new else ()
    by_url = {one.candidate_url: one for one in checked}
    if edits or new:
        with write_transaction(engine) as change:
            for edit in edits:
                upsert_feed(change, edit.key, **edit.values)
                write_last_written(change.connection, spreadsheet_id, edit.key, edit.cells)
            for item in new:
                _write_new_feed(change, spreadsheet_id, item, by_url.get(item.url))
    refused = sum(edit.is_refused for edit in edits)
    refused += sum(one.outcome != "active" for one in checked)
    taken = len(edits) + len(new) - refused
    return EditReport(taken, refused + len(invalid), invalid)


def _write_new_feed(
    change: LedgerTransaction, spreadsheet_id: str, new: NewFeed, found: CheckedFeed | None
) -> None:
    """Write the admin's values over discovery's, for the feed and for the site that links to it."""
    # Discovery may have found the feed behind the URL of a site.
    feed = canonical_url(found.feed_url) if found else new.key
    for key in {feed, new.key}:
        chosen = sa.select(FEEDS.c.status, FEEDS.c.notes).where(FEEDS.c.feed_url_canon == key)
        known = change.connection.execute(chosen).one()
        upsert_feed(change, key, **_admin_values(new.cells, known.status, known.notes))
    write_last_written(change.connection, spreadsheet_id, new.key, new.cells)


def _admin_values(cells: Mapping[str, str], status: str, notes: str) -> dict[str, str]:
    """Return the admin's values; the only status that can be set in advance is `paused`."""
    values = {"lang": cells["lang"]} if cells["lang"] else {}
    if cells["status"] == "paused" and status in POLLED:
        values["status"] = "paused"
    own_notes = with_remark(cells["notes"], "")
    if own_notes:
        values["notes"] = with_remark(own_notes, remark_of(notes))
    return values


def _feed_edit(key: str, cells: Mapping[str, str], written: Mapping[str, Cell]) -> FeedEdit:
    changed = {name: text for name, text in cells.items() if str(written.get(name, "")) != text}
    if changed.get("status") == "active":
        # As `feeds resume` does, our remark on the failures goes, too.
        notes = with_remark(cells["notes"], "")
        return FeedEdit(key, {**changed, **RESUMED, "notes": notes}, cells)
    if changed.get("status", "active") in _STATUSES:
        return FeedEdit(key, changed, cells)
    refusal = f"unknown status {changed.pop('status')!r}: expected one of {', '.join(_STATUSES)}"
    # The ledger keeps its status; the changed notes make this sync send the row, status included.
    changed["notes"] = with_remark(cells["notes"], refusal)
    return FeedEdit(key, changed, cells, is_refused=True)
