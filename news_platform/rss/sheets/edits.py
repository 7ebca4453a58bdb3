"""What admins wrote into Feeds: new addresses, status, notes and language; theirs win.

A new address passes discovery like any other; its row then tells what came of it. What cannot be
taken is answered in the row's own notes.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args

import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.discovery.discover import DiscoveryReport, FeedVerdict
from news_platform.rss.ledger.feed_rows import (
    POLLED,
    FeedStatus,
    remark_of,
    upsert_feed,
    with_remark,
)
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction, write_transaction
from news_platform.rss.sheets.outbox import note_shown, shown_rows
from news_platform.rss.sheets.tabs import FEEDS_TAB, Cell, Layout, key_text
from news_platform.web.urls import canonical_url

Discover = Callable[[Sequence[str]], DiscoveryReport]

NO_ADDRESS = "no web address in feed_url"
_OTHER_KEY = "feed_url_canon is not that of feed_url: leave it empty"
_STATUSES = get_args(FeedStatus)
# So many new addresses are looked at by one sync; the rest waits for the next.
_MAX_NEW = 200
# So many rows without a feed are answered by one sync: more would make too large a request.
_MAX_ANSWERS = 1_000


@dataclass(frozen=True, slots=True)
class Edit:
    """A known feed that an admin changed: the values to write, and what its row says now.

    A status that does not exist is refused, and answered in the notes.
    """

    key: str
    values: Mapping[str, str]
    shown: Mapping[str, str]
    is_refused: bool = False


@dataclass(frozen=True, slots=True)
class NewFeed:
    """An address that an admin added, and what else the row says."""

    key: str
    url: str
    given: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A row that names no feed, counted from the header, and what to answer in its notes."""

    row_index: int
    notes: str


@dataclass(frozen=True, slots=True)
class EditReport:
    """How many edits came back, how many were refused, and which rows wait for an answer."""

    taken: int = 0
    refused: int = 0
    unreadable: tuple[Unreadable, ...] = ()


def feed_key(row: Mapping[str, Cell]) -> str | None:
    """Return the key of a row of Feeds; an admin's new row has an address only."""
    return key_text(row.get("feed_url_canon", "")) or _address_key(row)


def _address_key(row: Mapping[str, Cell]) -> str | None:
    """Return the canonical form of the address, None when there is no web address."""
    url = str(row.get("feed_url", "")).strip()
    try:
        return canonical_url(url) if url.startswith(("http://", "https://")) else None
    except (InputError, ValueError):
        return None


def edits_of(
    rows: Sequence[Mapping[str, Cell]], shown: Mapping[str, Mapping[str, Cell]]
) -> Iterator[Edit | NewFeed | Unreadable]:
    """Compare the tab with what we wrote; of two rows with one key the first speaks."""
    met: set[str] = set()
    for row_index, row in enumerate(rows, 1):
        key = feed_key(row)
        if not any(row.values()) or key in met:
            continue
        now = {name: str(row.get(name, "")).strip() for name in FEEDS_TAB.edited}
        if key is not None and key in shown:
            met.add(key)
            if shown[key] and any(str(shown[key].get(name, "")) != now[name] for name in now):
                yield _changed_feed(key, now, shown[key])
        elif key is not None and key == _address_key(row):
            met.add(key)
            yield NewFeed(key, str(row["feed_url"]).strip(), now)
        else:
            answer = with_remark(now["notes"], _OTHER_KEY if _address_key(row) else NO_ADDRESS)
            if (now["status"], now["notes"]) != ("rejected", answer):
                yield Unreadable(row_index, answer)


def take_edits(
    engine: sa.Engine,
    book: str,
    cells: Sequence[Sequence[Cell]],
    *,
    layout: Layout,
    discover: Discover,
) -> EditReport:
    """Write the admins' edits to the ledger, each with what the row says now."""
    rows = [as_row(row, layout) for row in cells[1:]]
    found = list(edits_of(rows, shown_rows(engine, book, FEEDS_TAB)))
    edits = [item for item in found if isinstance(item, Edit)]
    new = [item for item in found if isinstance(item, NewFeed)][:_MAX_NEW]
    unreadable = tuple(item for item in found if isinstance(item, Unreadable))[:_MAX_ANSWERS]
    # Before its row is noted: who dies in between looks again at what is known by then.
    verdicts = (
        {v.asked_url: v for v in discover([item.url for item in new]).verdicts} if new else {}
    )
    if edits or new:
        with write_transaction(engine) as change:
            for edit in edits:
                upsert_feed(change, edit.key, **edit.values)
                note_shown(change.connection, book, FEEDS_TAB, key=edit.key, shown=edit.shown)
            for item in new:
                _write_new(change, book, item, verdicts.get(item.url))
    refused = sum(edit.is_refused for edit in edits)
    refused += sum(verdict.outcome != "active" for verdict in verdicts.values())
    taken = len(edits) + len(new) - refused
    return EditReport(taken, refused + len(unreadable), unreadable)


def _write_new(
    change: LedgerTransaction, book: str, new: NewFeed, verdict: FeedVerdict | None
) -> None:
    """Put what the admin said over what discovery found, at the feed and at the site it is of."""
    feed = canonical_url(verdict.feed_url) if verdict else new.key
    for key in {feed, new.key}:
        chosen = sa.select(FEEDS.c.status, FEEDS.c.notes).where(FEEDS.c.feed_url_canon == key)
        known = change.connection.execute(chosen).one()
        upsert_feed(change, key, **_given(new.given, known.status, known.notes))
    note_shown(change.connection, book, FEEDS_TAB, key=new.key, shown=new.given)


def _given(given: Mapping[str, str], status: str, notes: str) -> dict[str, str]:
    """Return the admin's columns; of the statuses only `paused` is theirs to choose beforehand."""
    said = {"lang": given["lang"]} if given["lang"] else {}
    if given["status"] == "paused" and status in POLLED:
        said["status"] = "paused"
    theirs = with_remark(given["notes"], "")
    return {**said, "notes": with_remark(theirs, remark_of(notes))} if theirs else said


def as_row(cells: Sequence[Cell], layout: Layout) -> dict[str, Cell]:
    """Return a row's cells by the name of their column; a sheet leaves out empty ends."""
    return {
        name: cells[place] if place < len(cells) else "" for name, place in layout.places.items()
    }


def _changed_feed(key: str, now: Mapping[str, str], before: Mapping[str, Cell]) -> Edit:
    changed = {name: text for name, text in now.items() if str(before.get(name, "")) != text}
    if changed.get("status", "active") in _STATUSES:
        return Edit(key, changed, now)
    refused = f"status {changed.pop('status')!r} is none of {', '.join(_STATUSES)}"
    changed["notes"] = with_remark(now["notes"], refused)
    return Edit(key, changed, now, is_refused=True)
