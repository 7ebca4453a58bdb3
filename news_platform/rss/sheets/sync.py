"""Bring a Google Sheet up to date: read admins' edits, then send each batch exactly once.

A sync takes the one lease, reads back what the spreadsheet shows, commits the rows it lacks to the
outbox as intents, and sends them. If the outcome of a call is unknown, it reads back again. A URL
that an admin adds to the Feeds tab goes through discovery like any other, and its row then shows
the outcome. Input that cannot be used is answered in the notes of its row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from datetime import datetime

import sqlalchemy as sa

from news_platform.errors import Conflict
from news_platform.rss.discovery import CheckedFeed, DiscoveryReport
from news_platform.rss.ledger.feed_rows import (
    POLLED,
    remark_of,
    upsert_feed,
    with_remark,
)
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import (
    LedgerTransaction,
    note_metrics,
    write_config,
    write_transaction,
)
from news_platform.rss.sheets import outbox
from news_platform.rss.sheets.books import (
    FEEDS_TAB,
    LEASES,
    CallTiming,
    Cell,
    InvalidRow,
    NewFeed,
    SheetAccess,
    SheetBook,
    SyncOptions,
    add_book,
    close_book,
    find_edits,
    next_number,
    next_title,
    read_books,
    read_known_tabs,
)
from news_platform.rss.sheets.google import (
    ApiClient,
    ChangeRejected,
    OutcomeUnknown,
    Spreadsheet,
    open_by_id,
    open_spreadsheet,
    open_titled,
)
from news_platform.rss.sheets.layout import (
    LocatedTab,
    SpreadsheetFull,
    build_update,
    cells_request,
    ensure_tabs,
    fetch_row_numbers,
    fetch_view,
)
from news_platform.rss.sheets.outbox import Intent, read_last_written, write_last_written
from news_platform.storage.sql.leases import LeaseTerm, claim_named, release_named
from news_platform.web.urls import canonical_url

Discover = Callable[[Sequence[str]], DiscoveryReport]

# Discovery fetches every new URL; the limit keeps a sync short, the next one takes the rest.
_MAX_NEW_FEEDS = 200
# All answers go in one request; more would make it too large.
_MAX_ANSWERS = 1_000


@dataclass(frozen=True, slots=True)
class EditReport:
    """How many edits were written and refused, and which rows are to be answered."""

    taken: int = 0
    refused: int = 0
    invalid: tuple[InvalidRow, ...] = ()


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


@dataclass(slots=True)
class SyncReport:
    """What one sync did."""

    url: str
    # The address of the spreadsheet that was full, if this one continues it since now.
    continued_from: str = ""
    appended: int = 0
    updated: int = 0
    # Rows that were blanked.
    taken_down: int = 0
    batches: int = 0
    # Calls whose outcome was unknown at first.
    doubts: int = 0
    quota_waits: int = 0
    doubled_keys: int = 0
    edits_taken: int = 0
    edits_refused: int = 0

    @property
    def counters(self) -> dict[str, int]:
        """Return the counters by their names in Diagnostics and in the run's metadata."""
        return {name: found for name, found in asdict(self).items() if isinstance(found, int)}


@dataclass(frozen=True, slots=True)
class SheetWriter:
    """The one writer of the spreadsheets under a name: lease owner, resources and options."""

    engine: sa.Engine
    client: ApiClient
    owner: str
    clock: Callable[[], datetime]
    options: SyncOptions = field(default_factory=SyncOptions)

    @property
    def name(self) -> str:
        """Return the id or title from the settings."""
        return self.client.access.name


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
    """Bring the spreadsheet of the settings up to date; `discover` checks URLs that admins add."""
    client = ApiClient(access, timing)
    writer = SheetWriter(engine, client, owner, clock, options or SyncOptions())
    return sync(writer, discover)


def create_tabs(
    engine: sa.Engine, access: SheetAccess, *, owner: str, timing: CallTiming, now: datetime
) -> str:
    """Create the spreadsheet of the settings and its tabs if needed, and return its URL."""
    writer = SheetWriter(engine, ApiClient(access, timing), owner, lambda: now)
    with _lease(writer):
        spreadsheet = _open_current(writer)
        ensure_tabs(engine, spreadsheet)
    return spreadsheet.url


def sync(writer: SheetWriter, discover: Discover) -> SyncReport:
    """Send all rows that the spreadsheet lacks; raise Conflict while another sync runs.

    A full spreadsheet is continued in a new one.
    """
    with _lease(writer):
        spreadsheet = _open_current(writer)
        report = SyncReport(spreadsheet.url)
        try:
            _read_back(writer, spreadsheet, discover, report)
            while not _fill(writer, spreadsheet, report):
                report.continued_from = spreadsheet.url
                spreadsheet = _open_next(writer, spreadsheet)
                report.url = spreadsheet.url
            _blank_full_books(writer, report)
        finally:
            report.quota_waits = spreadsheet.client.waits
            # A failed sync is counted too: the batches it sent are in the spreadsheet.
            _write_metrics(writer, report)
    return report


@contextmanager
def _lease(writer: SheetWriter) -> Iterator[None]:
    """Be the only writer, so that no work is done twice and no two spreadsheets are created.

    No row is lost or duplicated without the lease.
    """
    _extend_lease(writer)
    try:
        yield
    finally:
        with writer.engine.begin() as connection:
            release_named(connection, LEASES, writer.name, writer.owner)


def _extend_lease(writer: SheetWriter) -> None:
    term = LeaseTerm(writer.clock(), writer.options.lease_seconds, writer.owner)
    with writer.engine.begin() as connection:
        if not claim_named(connection, LEASES, writer.name, term):
            raise Conflict(
                f"another sync is writing to spreadsheet {writer.name!r}: wait until it ends",
                thing=writer.name,
            )


def _open_current(writer: SheetWriter) -> Spreadsheet:
    """Open the newest spreadsheet of the chain that is not gone, else that of the settings."""
    for book in read_books(writer.engine, writer.name):
        if (found := open_by_id(writer.client, book.id)) is not None:
            return found
        _close(writer, book)
    spreadsheet = open_spreadsheet(writer.client)
    number = next_number(writer.engine, writer.name)
    with writer.engine.begin() as connection:
        add_book(connection, SheetBook(spreadsheet.id, writer.name, number, spreadsheet.url))
    return spreadsheet


def _close(writer: SheetWriter, gone: SheetBook) -> None:
    outbox.drop_intents(writer.engine, gone.id)
    close_book(writer.engine, gone, now=writer.clock())


def _open_next(writer: SheetWriter, full: Spreadsheet) -> Spreadsheet:
    """Create the spreadsheet that goes on where a full one ends, and link the two in Config."""
    engine, now = writer.engine, writer.clock()
    number = next_number(engine, writer.name)
    spreadsheet = open_titled(writer.client, next_title(full.title, number))
    is_shared = spreadsheet.share_like(full.id)
    old = read_books(engine, writer.name)[0]
    new = SheetBook(spreadsheet.id, writer.name, number, spreadsheet.url, old.shown_up_to)
    outbox.drop_intents(engine, full.id)
    with write_transaction(engine) as change:
        add_book(change.connection, new)
        for book in (old, new):
            write_config(change, f"spreadsheet {book.number} of {book.name}", book.url, now=now)
        metrics = {"spreadsheets_begun": 1, "spreadsheets_not_shared": not is_shared}
        note_metrics(change, outbox.STAGE, metrics, now=now, notes=spreadsheet.url)
    ensure_tabs(engine, spreadsheet)
    return spreadsheet


def _read_back(
    writer: SheetWriter, spreadsheet: Spreadsheet, discover: Discover, report: SyncReport
) -> None:
    """Create missing tabs, find out about an earlier writer's batch, and read admins' edits."""
    view = ensure_tabs(writer.engine, spreadsheet)
    outbox.mark_copies_gone(writer.engine)
    # First: what an earlier batch wrote is not an edit.
    earlier = outbox.open_intent(writer.engine, spreadsheet.id)
    if earlier is not None and earlier.is_in(view.state.fences):
        _mark_done(writer, earlier, report)
    feeds = view.tabs[FEEDS_TAB.name]
    [cells] = spreadsheet.fetch_values([feeds.range])
    rows = [feeds.row(row) for row in cells[1:]]
    edits = apply_edits(writer.engine, spreadsheet.id, rows, discover)
    report.edits_taken, report.edits_refused = edits.taken, edits.refused
    _answer(spreadsheet, feeds, edits.invalid)


def _fill(writer: SheetWriter, spreadsheet: Spreadsheet, report: SyncReport) -> bool:
    """Send all rows; return False if the spreadsheet is full before it has them."""
    try:
        _send_all(writer, spreadsheet, read_books(writer.engine, writer.name)[0], report)
    except SpreadsheetFull:
        # A limit that leaves no room must not create spreadsheets forever.
        if not outbox.shows_articles(writer.engine, spreadsheet.id):
            raise
        return False
    return True


def _blank_full_books(writer: SheetWriter, report: SyncReport) -> None:
    """Blank rows that were taken down in the spreadsheets before the current one."""
    for book in read_books(writer.engine, writer.name)[1:]:
        if outbox.next_intent(writer.engine, book, writer.options) is None:
            continue
        spreadsheet = open_by_id(writer.client, book.id)
        if spreadsheet is None:
            _close(writer, book)
        else:
            _send_all(writer, spreadsheet, book, report)


def _answer(spreadsheet: Spreadsheet, feeds: LocatedTab, invalid: Sequence[InvalidRow]) -> None:
    """Write into each invalid row why no feed was taken from it."""
    requests = [
        cells_request(feeds.sheet.sheet_id, row.row_index, feeds.positions[name], [text])
        for row in invalid
        for name, text in (("status", "rejected"), ("notes", row.notes))
    ]
    if requests:
        # The next sync writes the answers that did not arrive.
        with suppress(OutcomeUnknown, ChangeRejected):
            spreadsheet.batch_update(requests)


def _send_all(
    writer: SheetWriter, spreadsheet: Spreadsheet, book: SheetBook, report: SyncReport
) -> None:
    while intent := outbox.next_intent(writer.engine, book, writer.options):
        _extend_lease(writer)
        _send(writer, spreadsheet, intent, report)


def _send(
    writer: SheetWriter, spreadsheet: Spreadsheet, intent: Intent, report: SyncReport
) -> None:
    """Apply one batch once: check for its fence first, and again if the outcome is unknown."""
    known = read_known_tabs(writer.engine, spreadsheet.id)
    tokens = outbox.read_tokens(writer.engine, spreadsheet.id)
    for tries in range(1, writer.options.tries + 1):
        # Read back at every try: people sort tabs and move columns.
        view = fetch_view(spreadsheet, known)
        if intent.is_in(view.state.fences):
            return _mark_done(writer, intent, report)
        wanted = [view.tabs[name] for name in {row.tab for row in intent.rows} & set(view.tabs)]
        numbers = fetch_row_numbers(spreadsheet, wanted)
        doubled = sum(len(rows) - 1 for found in numbers.values() for rows in found.values())
        report.doubled_keys = max(report.doubled_keys, doubled)
        max_cells = writer.options.max_cells
        requests = build_update(intent, view, numbers, tokens=tokens, max_cells=max_cells)
        try:
            spreadsheet.batch_update(requests)
        except OutcomeUnknown:
            report.doubts += 1
            spreadsheet.client.back_off(tries)
        except ChangeRejected:
            # If the fence exists, a late copy was applied in between; otherwise the batch itself
            # was rejected, and sending it again would not help.
            if not intent.is_in(spreadsheet.fetch_state().fences):
                raise
        else:
            return _mark_done(writer, intent, report)
    raise OutcomeUnknown(
        f"spreadsheet {spreadsheet.id!r}: no answer after {writer.options.tries} tries; "
        "the next sync sends the same batch again"
    )


def _mark_done(writer: SheetWriter, intent: Intent, report: SyncReport) -> None:
    outbox.mark_done(writer.engine, intent, keep=writer.options.max_fences)
    report.batches += 1
    gone = sum(row.seq == outbox.GONE for row in intent.rows)
    # Otherwise the counters of each sync would give the next one something to count.
    rows = [row for row in intent.rows if row.seq != outbox.GONE and not row.is_own_counter]
    new = sum(row.is_new for row in rows)
    report.taken_down += gone
    report.appended += new
    report.updated += len(rows) - new


def _write_metrics(writer: SheetWriter, report: SyncReport) -> None:
    """Write the counters to Diagnostics if the sync did anything."""
    if any(count for name, count in report.counters.items() if name != "batches"):
        with write_transaction(writer.engine) as change:
            note_metrics(change, outbox.STAGE, report.counters, now=writer.clock())
