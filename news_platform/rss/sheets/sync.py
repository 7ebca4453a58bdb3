"""Bring a Google Sheet up to date: read admins' edits, then send each outbox batch exactly once."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import Conflict
from news_platform.rss.ledger.transactions import note_metrics, write_transaction
from news_platform.rss.sheets import outbox
from news_platform.rss.sheets.access import CallTiming, SheetAccess
from news_platform.rss.sheets.blanking import blank_gone
from news_platform.rss.sheets.books import (
    SheetBook,
    close_book,
    current_book,
    last_number,
    next_title,
    write_next_book,
)
from news_platform.rss.sheets.calls import (
    ChangeRejected,
    OutcomeUnknown,
    SpreadsheetFull,
    backoff_seconds,
)
from news_platform.rss.sheets.edits import Discover, EditReport, InvalidRow, apply_edits
from news_platform.rss.sheets.ensure import LocatedTab, ensure_tabs, locate_tabs
from news_platform.rss.sheets.google import (
    Spreadsheet,
    SpreadsheetState,
    open_by_id,
    open_spreadsheet,
    open_titled,
)
from news_platform.rss.sheets.outbox import Intent
from news_platform.rss.sheets.tabs import FEEDS_TAB, cells_request, quote_title
from news_platform.rss.sheets.tracking import (
    choose_first_rows,
    count_left_out,
    known_spreadsheet_id,
    read_known_tabs,
    write_spreadsheet_id,
)
from news_platform.rss.sheets.update import SheetUpdate, build_update

# More spreadsheets than any sync fills; a setting that leaves no room must not create them forever.
_MAX_CONTINUATIONS = 3


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How much goes into one call, and when to give up."""

    max_rows: int = 1_000
    # Google recommends at most 2 MB per request.
    max_bytes: int = 2_000_000
    # Characters of an article's text that are shown; the ledger holds all of it.
    clean_text_limit: int = 20_000
    # Google's limit is 10 million cells per spreadsheet.
    max_cells: int = 9_500_000
    # How long a writer that died keeps others out; the lease is extended before every batch.
    lease_seconds: float = 600.0
    # No copy of a request arrives a day later, or after 300 other batches, which take a quarter of
    # an hour at Google's quota. A spreadsheet holds 30,000 characters of metadata, 35 per fence.
    fence_hours: float = 24.0
    max_fences: int = 300
    # With the backoff between them, the tries take seven and a half minutes.
    tries: int = 12


@dataclass(slots=True)
class SyncReport:
    """What one sync did."""

    url: str
    appended: int = 0
    updated: int = 0
    batches: int = 0
    # Calls whose outcome was unknown at first.
    doubts: int = 0
    quota_waits: int = 0
    doubled_keys: int = 0
    # Rows older than the first rows of the spreadsheet.
    left_out: int = 0
    # Whether it sent anything besides the counters of earlier syncs.
    sent_news: bool = False
    # The address of the spreadsheet that was full, if this one continues it since now.
    continued_from: str = ""
    # Rows that were taken down, by tab and number.
    blanked: tuple[str, ...] = ()
    edits: EditReport = field(default_factory=EditReport)


@dataclass(frozen=True, slots=True)
class SheetWriter:
    """The writer of one spreadsheet: its lease owner, its resources and its options.

    `discover` checks the URLs that admins add.
    """

    engine: sa.Engine
    spreadsheet: Spreadsheet
    owner: str
    clock: Callable[[], datetime]
    sleep: Callable[[float], None]
    discover: Discover
    options: SyncOptions = SyncOptions()


def run_sync(
    engine: sa.Engine,
    access: SheetAccess,
    *,
    owner: str,
    timing: CallTiming,
    clock: Callable[[], datetime],
    discover: Discover,
    options: SyncOptions | None = None,
) -> SyncReport:
    """Open the spreadsheet of the settings and bring it up to date."""
    spreadsheet = open_known_spreadsheet(engine, access, owner=owner, timing=timing, now=clock())
    chosen = options or SyncOptions()
    writer = SheetWriter(engine, spreadsheet, owner, clock, timing.sleep, discover, chosen)
    full = ""
    for _ in range(_MAX_CONTINUATIONS):
        try:
            return replace(sync(writer), continued_from=full)
        except SpreadsheetFull:
            full = writer.spreadsheet.url
            writer = replace(writer, spreadsheet=_continue(writer, access, timing=timing))
    return replace(sync(writer), continued_from=full)


def _continue(writer: SheetWriter, access: SheetAccess, *, timing: CallTiming) -> Spreadsheet:
    """Create the spreadsheet that goes on where the full one ends, and record both."""
    engine, old, now = writer.engine, writer.spreadsheet, writer.clock()
    with _lease_on_name(engine, access, writer.owner, now=now):
        current = current_book(engine, access.name)
        if current is not None and current.id != old.id:
            # Another writer was faster.
            found = open_by_id(access, timing, current.id)
            if found is not None:
                return found
        number = last_number(engine, access.name) + 1
        new = open_titled(access, timing, next_title(old.title, number))
        is_shared = new.share_like(old.id)
        outbox.abandon_intents(engine, old.id)
        write_next_book(
            engine,
            access.name,
            old=SheetBook(old.id, current.number if current else number - 1, old.url),
            new=SheetBook(new.id, number, new.url),
            changed_after=outbox.shown_up_to(engine, old.id),
            now=now,
        )
    metrics = {"spreadsheets_begun": 1, "spreadsheets_not_shared": not is_shared}
    with write_transaction(engine) as change:
        note_metrics(change, outbox.STAGE, metrics, now=now, notes=new.url)
    return new


@contextmanager
def _lease_on_name(
    engine: sa.Engine, access: SheetAccess, owner: str, *, now: datetime
) -> Iterator[None]:
    """Keep two processes from creating two spreadsheets."""
    # Not the id itself, which is the lease of the writer of that spreadsheet.
    name = f"name {access.name}"
    _claim_lease(engine, name, owner, seconds=SyncOptions().lease_seconds, now=now)
    try:
        yield
    finally:
        outbox.release_lease(engine, name, owner)


def open_known_spreadsheet(
    engine: sa.Engine, access: SheetAccess, *, owner: str, timing: CallTiming, now: datetime
) -> Spreadsheet:
    """Open the spreadsheet of the settings, or the one that continues it, and record its id."""
    while (current := current_book(engine, access.name)) is not None:
        if (found := open_by_id(access, timing, current.id)) is not None:
            return found
        close_book(engine, current, now=now)
    if access.spreadsheet_id:
        return open_spreadsheet(access, timing)
    with _lease_on_name(engine, access, owner, now=now):
        known_id = known_spreadsheet_id(engine, access)
        spreadsheet = open_spreadsheet(access, timing, known_id=known_id)
        if known_id != spreadsheet.id:
            write_spreadsheet_id(engine, access, spreadsheet.id, now=now)
    return spreadsheet


def sync(writer: SheetWriter) -> SyncReport:
    """Send all rows that the spreadsheet lacks; raise Conflict while another sync runs."""
    report = SyncReport(writer.spreadsheet.url)
    _extend_lease(writer)
    try:
        ensure_tabs(writer.engine, writer.spreadsheet)
        _choose_first_rows(writer)
        # First: a feed that was taken down must not look like one that an admin added.
        report.blanked = blank_gone(writer.engine, writer.spreadsheet)
        report.edits = _read_edits(writer)
        while intent := _next_intent(writer):
            _extend_lease(writer)
            _send(writer, intent, report)
            report.batches += 1
            report.sent_news |= not intent.is_own_counters
    finally:
        outbox.release_lease(writer.engine, writer.spreadsheet.id, writer.owner)
        report.quota_waits = writer.spreadsheet.waits
        report.left_out = count_left_out(writer.engine, writer.spreadsheet.id)
        # A failed sync is counted too: the batches it sent are in the spreadsheet.
        _write_metrics(writer, report)
    return report


def _choose_first_rows(writer: SheetWriter) -> None:
    spreadsheet_id, max_cells = writer.spreadsheet.id, writer.options.max_cells
    choose_first_rows(writer.engine, spreadsheet_id, max_cells=max_cells, now=writer.clock())


def _extend_lease(writer: SheetWriter) -> None:
    seconds, now = writer.options.lease_seconds, writer.clock()
    _claim_lease(writer.engine, writer.spreadsheet.id, writer.owner, seconds=seconds, now=now)


def _claim_lease(
    engine: sa.Engine, spreadsheet_id: str, owner: str, *, seconds: float, now: datetime
) -> None:
    if not outbox.claim_lease(engine, spreadsheet_id, owner, seconds=seconds, now=now):
        raise Conflict(
            f"another sync is writing to spreadsheet {spreadsheet_id!r}: wait until it ends",
            thing=spreadsheet_id,
        )


def _next_intent(writer: SheetWriter) -> Intent | None:
    return outbox.next_intent(
        writer.engine,
        writer.spreadsheet.id,
        limits=outbox.BatchLimits(
            writer.options.max_rows, writer.options.max_bytes, writer.options.clean_text_limit
        ),
        now=writer.clock(),
    )


def _read_edits(writer: SheetWriter) -> EditReport:
    spreadsheet = writer.spreadsheet
    known = read_known_tabs(writer.engine, spreadsheet.id)
    located = locate_tabs(spreadsheet, spreadsheet.fetch_state(), known)
    feeds = next(item for item in located if item.tab is FEEDS_TAB)
    [cells] = spreadsheet.fetch_values([quote_title(feeds.sheet.title)])
    report = apply_edits(
        writer.engine, spreadsheet.id, cells, layout=feeds.layout, discover=writer.discover
    )
    _answer(spreadsheet, feeds, report.unreadable)
    return report


def _answer(spreadsheet: Spreadsheet, feeds: LocatedTab, invalid: Sequence[InvalidRow]) -> None:
    """Write into each invalid row why no feed was taken from it."""
    requests = [
        cells_request(feeds.sheet.sheet_id, row.row_index, feeds.layout.positions[name], [text])
        for row in invalid
        for name, text in (("status", "rejected"), ("notes", row.notes))
    ]
    if requests:
        # The next sync writes the answers that did not arrive.
        with suppress(OutcomeUnknown, ChangeRejected):
            spreadsheet.batch_update(requests)


def _send(writer: SheetWriter, intent: Intent, report: SyncReport) -> None:
    """Apply one batch once: check for its fence first, and again if the outcome is unknown."""
    # If an earlier writer's call was applied, only the ledger knows what it appended.
    update = SheetUpdate((), intent.new_rows, len(intent.rows) - intent.new_rows, doubled_keys=0)
    for tries in range(1, writer.options.tries + 1):
        state = writer.spreadsheet.fetch_state()
        if state.fences.get(intent.fence) == intent.token:
            return _mark_applied(writer, intent, update, report)
        expired = _expired_intents(writer)
        update = _build_update(writer, intent, state, expired)
        try:
            writer.spreadsheet.batch_update(update.requests)
        except OutcomeUnknown:
            report.doubts += 1
            writer.sleep(backoff_seconds(tries))
        except ChangeRejected:
            # If the fence exists, a late copy was applied in between; otherwise the batch itself
            # was rejected, and sending it again would not help.
            if writer.spreadsheet.fetch_state().fences.get(intent.fence) != intent.token:
                raise
        else:
            outbox.delete_intents(writer.engine, expired)
            return _mark_applied(writer, intent, update, report)
    raise OutcomeUnknown(
        f"spreadsheet {writer.spreadsheet.id!r}: no answer after {writer.options.tries} tries; "
        "the next sync sends the same batch again"
    )


def _expired_intents(writer: SheetWriter) -> list[Intent]:
    return outbox.expired_intents(
        writer.engine,
        writer.spreadsheet.id,
        before=writer.clock() - timedelta(hours=writer.options.fence_hours),
        keep=writer.options.max_fences,
    )


def _build_update(
    writer: SheetWriter, intent: Intent, state: SpreadsheetState, expired: Sequence[Intent]
) -> SheetUpdate:
    return build_update(
        writer.spreadsheet,
        intent,
        state=state,
        known=read_known_tabs(writer.engine, writer.spreadsheet.id),
        old_fences=[old.fence for old in expired if old.fence in state.fences],
        max_cells=writer.options.max_cells,
    )


def _mark_applied(
    writer: SheetWriter, intent: Intent, update: SheetUpdate, report: SyncReport
) -> None:
    outbox.mark_applied(writer.engine, intent, now=writer.clock())
    report.appended += update.appended
    report.updated += update.updated
    # Every batch finds the same duplicates again.
    report.doubled_keys = max(report.doubled_keys, update.doubled_keys)


def _write_metrics(writer: SheetWriter, report: SyncReport) -> None:
    """Write the counters to Diagnostics if the sync did anything.

    A sync that only sent the counters of the previous one writes none of its own; otherwise every
    sync would give the next one something to send.
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
        TAKEN_DOWN: len(report.blanked),
    }
    edits = report.edits.taken + report.edits.refused
    if report.sent_news or report.blanked or edits or report.doubts or report.quota_waits:
        with write_transaction(writer.engine) as change:
            note_metrics(change, outbox.STAGE, metrics, now=writer.clock())
