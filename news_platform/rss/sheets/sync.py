"""Bring a book up to the ledger: admins' edits first, then every batch of the outbox, each once."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.errors import Conflict
from news_platform.rss.ledger.transactions import (
    note_metrics,
    read_config,
    write_config,
    write_transaction,
)
from news_platform.rss.sheets import outbox
from news_platform.rss.sheets.access import Access, Timing
from news_platform.rss.sheets.calls import Doubt, Refused, backoff_seconds
from news_platform.rss.sheets.edits import Discover, EditReport, Unreadable, take_edits
from news_platform.rss.sheets.ensure import PlacedTab, ensure_tabs, read_placed
from news_platform.rss.sheets.google import Book, BookState, open_book
from news_platform.rss.sheets.outbox import Intent
from news_platform.rss.sheets.start import begin_book, count_left_out
from news_platform.rss.sheets.tabs import FEEDS_TAB, cells_request, quoted
from news_platform.rss.sheets.update import Batch, build_batch


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How much goes in one call, and when to stop."""

    max_rows: int = 1_000
    # Google advises 2 MB a request.
    max_bytes: int = 2_000_000
    # Google's limit is 10 million cells a book.
    max_cells: int = 9_500_000
    lease_seconds: float = 600.0
    # No copy of a request lives that long, or comes after so many others, which take a quarter of
    # an hour at Google's quota. A book has room for 30,000 characters of fences, 35 each.
    fence_hours: float = 24.0
    max_fences: int = 300
    tries: int = 12


@dataclass(slots=True)
class SyncReport:
    """What one sync did."""

    url: str
    appended: int = 0
    updated: int = 0
    batches: int = 0
    doubts: int = 0
    quota_waits: int = 0
    doubled_keys: int = 0
    # Rows older than those the book began with.
    left_out: int = 0
    # Whether there was more to send than what an earlier sync counted of itself.
    sent_news: bool = False
    edits: EditReport = field(default_factory=EditReport)


@dataclass(frozen=True, slots=True)
class Writer:
    """The one who writes to a book: its name, its resources and its options.

    `discover` looks at the addresses that admins add.
    """

    engine: sa.Engine
    book: Book
    owner: str
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    discover: Discover
    options: SyncOptions = SyncOptions()


def run_sync(
    engine: sa.Engine,
    access: Access,
    *,
    owner: str,
    timing: Timing,
    clock: Callable[[], datetime],
    discover: Discover,
) -> SyncReport:
    """Bring the book of the settings up to the ledger."""
    book = open_remembered(engine, access, owner=owner, timing=timing, now=clock())
    return sync(Writer(engine, book, owner, clock, timing.sleep, discover))


def open_remembered(
    engine: sa.Engine, access: Access, *, owner: str, timing: Timing, now: datetime
) -> Book:
    """Open the book of the settings and remember which one it is; one at a time may create it."""
    if access.spreadsheet_id:
        return open_book(access, timing)
    _lease(engine, access.name, owner, seconds=SyncOptions().lease_seconds, now=now)
    try:
        known_id = read_config(engine, _book_key(access))
        book = open_book(access, timing, known_id=known_id)
        if known_id != book.id:
            with write_transaction(engine) as change:
                write_config(change, _book_key(access), book.id, now=now)
    finally:
        outbox.give_lease_back(engine, access.name, owner)
    return book


def is_behind(engine: sa.Engine, access: Access) -> bool:
    """Tell, without asking Google, whether the ledger holds what the book does not show."""
    book = access.spreadsheet_id or read_config(engine, _book_key(access))
    return book is None or outbox.has_pending(engine, book)


def _book_key(access: Access) -> str:
    return f"spreadsheet_id of {access.name}"


def sync(writer: Writer) -> SyncReport:
    """Send all that the book does not show yet; raise Conflict while another one writes."""
    report = SyncReport(writer.book.url)
    _renew(writer)
    try:
        ensure_tabs(writer.engine, writer.book)
        _begin(writer)
        report.edits = _take_edits(writer)
        while intent := _next_intent(writer):
            _renew(writer)
            _send(writer, intent, report)
            report.batches += 1
            report.sent_news |= not intent.is_own_counters
    finally:
        outbox.give_lease_back(writer.engine, writer.book.id, writer.owner)
        report.quota_waits = writer.book.waits
        report.left_out = count_left_out(writer.engine, writer.book.id)
        # Also of a sync that failed: what it did is done.
        _note(writer, report)
    return report


def _begin(writer: Writer) -> None:
    book, max_cells = writer.book.id, writer.options.max_cells
    begin_book(writer.engine, book, max_cells=max_cells, now=writer.clock())


def _renew(writer: Writer) -> None:
    seconds, now = writer.options.lease_seconds, writer.clock()
    _lease(writer.engine, writer.book.id, writer.owner, seconds=seconds, now=now)


def _lease(engine: sa.Engine, book: str, owner: str, *, seconds: float, now: datetime) -> None:
    if not outbox.take_lease(engine, book, owner, seconds=seconds, now=now):
        raise Conflict(f"another sync writes to book {book!r}: wait for it to end", thing=book)


def _next_intent(writer: Writer) -> Intent | None:
    return outbox.next_intent(
        writer.engine,
        writer.book.id,
        max_rows=writer.options.max_rows,
        max_bytes=writer.options.max_bytes,
        now=writer.clock(),
    )


def _take_edits(writer: Writer) -> EditReport:
    book = writer.book
    placed = read_placed(book, book.look(), outbox.read_tabs(writer.engine, book.id))
    feeds = next(item for item in placed if item.tab is FEEDS_TAB)
    [cells] = book.read([quoted(feeds.sheet.title)])
    report = take_edits(
        writer.engine, book.id, cells, layout=feeds.layout, discover=writer.discover
    )
    _answer(book, feeds, report.unreadable)
    return report


def _answer(book: Book, feeds: PlacedTab, unreadable: Sequence[Unreadable]) -> None:
    """Tell an admin, in the row itself, that it names no feed."""
    requests = [
        cells_request(feeds.sheet.sheet_id, row.row_index, feeds.layout.places[name], [text])
        for row in unreadable
        for name, text in (("status", "rejected"), ("notes", row.notes))
    ]
    if requests:
        # What does not get there is said by the next sync.
        with suppress(Doubt, Refused):
            book.change(requests)


def _send(writer: Writer, intent: Intent, report: SyncReport) -> None:
    """Apply one batch once: look for its fence first, and again after every doubt."""
    # Until it is tried here, what it does is known from the ledger alone.
    batch = Batch((), intent.new_rows, len(intent.rows) - intent.new_rows, doubled_keys=0)
    for tries in range(1, writer.options.tries + 1):
        state = writer.book.look()
        if state.fences.get(intent.fence) == intent.token:
            return _settle(writer, intent, batch, report)
        old = outbox.old_intents(
            writer.engine,
            writer.book.id,
            before=writer.clock() - timedelta(hours=writer.options.fence_hours),
            keep=writer.options.max_fences,
        )
        batch = _batch(writer, intent, state, old)
        try:
            writer.book.change(batch.requests)
        except Doubt:
            report.doubts += 1
            writer.sleep(backoff_seconds(tries))
        except Refused:
            # Refused by its own fence, it is there; refused for itself, it never will be.
            if writer.book.look().fences.get(intent.fence) != intent.token:
                raise
        else:
            outbox.forget_intents(writer.engine, old)
            return _settle(writer, intent, batch, report)
    raise Doubt(f"book {writer.book.id!r}: no answer after {writer.options.tries} tries")


def _batch(writer: Writer, intent: Intent, state: BookState, old: Sequence[Intent]) -> Batch:
    return build_batch(
        writer.book,
        intent,
        state=state,
        known=outbox.read_tabs(writer.engine, writer.book.id),
        old_fences=[done.fence for done in old if done.fence in state.fences],
        max_cells=writer.options.max_cells,
    )


def _settle(writer: Writer, intent: Intent, batch: Batch, report: SyncReport) -> None:
    outbox.settle(writer.engine, intent, now=writer.clock())
    report.appended += batch.appended
    report.updated += batch.updated
    report.doubled_keys = max(report.doubled_keys, batch.doubled_keys)


def _note(writer: Writer, report: SyncReport) -> None:
    """Write the counters to Diagnostics, when there is anything to count.

    A sync that only brought the counters of the one before has none of its own, or every sync would
    give the next one something to write.
    """
    metrics = {
        "appended": report.appended,
        "updated": report.updated,
        "batches": report.batches,
        "doubts": report.doubts,
        "quota_waits": report.quota_waits,
        "edits_taken": report.edits.taken,
        "edits_refused": report.edits.refused,
        "doubled_keys": report.doubled_keys,
        "left_out": report.left_out,
    }
    edits = report.edits.taken + report.edits.refused
    if report.sent_news or edits or report.doubts or report.quota_waits:
        with write_transaction(writer.engine) as change:
            note_metrics(change, outbox.STAGE, metrics, now=writer.clock())
