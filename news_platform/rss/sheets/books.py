"""The spreadsheets that show the ledger: their tabs and cells, and how they may be called.

The spreadsheets under one name of the settings form a chain, which has one writer at a time. When
one is full, the next goes on: a row of an ordered tab is in the newest spreadsheet that it changed
for, feeds and settings are complete in each of them.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, get_args

import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.ledger.feed_rows import RESUMED, FeedStatus, with_remark
from news_platform.rss.ledger.tables import (
    ANALYSES,
    ARTICLES_INDEX,
    CONFIG,
    DIAGNOSTICS,
    FEEDS,
    METADATA,
    RAW,
    Moment,
)
from news_platform.storage.sql.engine import read_transaction
from news_platform.storage.sql.leases import LeaseTable, upsert
from news_platform.text.normalize import cut_at_word_end
from news_platform.web.urls import canonical_url


@dataclass(frozen=True, slots=True)
class SheetAccess:
    """The account, the spreadsheet by id or title, and an `endpoint` to call instead of Google."""

    service_account: str = field(repr=False)
    spreadsheet_id: str | None = None
    spreadsheet_title: str = ""
    endpoint: str | None = None

    @property
    def name(self) -> str:
        """Return the id or title from the settings."""
        return self.spreadsheet_id or self.spreadsheet_title


@dataclass(frozen=True, slots=True)
class CallTiming:
    """A clock in seconds, a sleep function, and the limits of the calls to Google."""

    clock: Callable[[], float]
    sleep: Callable[[float], None]
    # Reads per window, and as many writes: the default is Google's quota per user.
    calls: int = 60
    window_seconds: float = 60.0
    timeout_seconds: float = 120.0
    tries: int = 8


@dataclass(frozen=True, slots=True)
class SyncOptions:
    """How much goes into one call and one spreadsheet, and when to give up."""

    max_rows: int = 1_000
    # Google recommends at most 2 MB per request.
    max_bytes: int = 2_000_000
    # Characters of an article's text that are shown; the ledger holds all of it.
    clean_text_limit: int = 20_000
    # Google's limit is 10 million cells per spreadsheet.
    max_cells: int = 9_500_000
    # How long a writer that died keeps others out; the lease is extended before every batch.
    lease_seconds: float = 600.0
    # No copy of a batch arrives after 300 others, which take a quarter of an hour at Google's
    # quota. A spreadsheet holds 30,000 characters of metadata, 35 per fence.
    max_fences: int = 300
    # With the backoff between them, the tries take seven and a half minutes.
    tries: int = 12


# `book` is the id of the spreadsheet, `number` its place in the chain. `tabs` has the sheet id and
# header of each tab after the last sync, as JSON. Of ordered tabs, all changes up to `shown_up_to`
# are in this spreadsheet or an earlier one. `closed_at` is set when the spreadsheet is gone.
SHEET_BOOKS = sa.Table(
    "sheet_books",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("name", sa.Text, nullable=False),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("url", sa.Text, nullable=False),
    sa.Column("tabs", sa.Text, nullable=False, server_default="{}"),
    sa.Column("shown_up_to", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("closed_at", Moment),
)
SHEET_WRITERS = sa.Table(
    "sheet_writers",
    METADATA,
    sa.Column("name", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("until", Moment, nullable=False),
)
# The lease of the one writer of a chain, by the name of the chain.
LEASES = LeaseTable(
    key=SHEET_WRITERS.c.name, time=SHEET_WRITERS.c.until, owner=SHEET_WRITERS.c.owner
)

KnownTabs = Mapping[str, tuple[int, tuple[str, ...]]]
"""The sheet id and the header of each tab after the last sync, by the tab's name."""

_NUMBER = re.compile(r" \(\d+\)\Z")


@dataclass(frozen=True, slots=True)
class SheetBook:
    """One spreadsheet of the chain under one id or title of the settings."""

    id: str
    name: str
    number: int
    url: str
    shown_up_to: int = 0


def read_chain(connection: sa.Connection, name: str) -> list[SheetBook]:
    """Return the spreadsheets under a name that are not gone, newest first."""
    books = SHEET_BOOKS.c
    chosen = (
        sa.select(books.book, books.name, books.number, books.url, books.shown_up_to)
        .where(books.name == name, books.closed_at.is_(None))
        .order_by(books.number.desc())
    )
    return [SheetBook(*row) for row in connection.execute(chosen)]


def read_books(engine: sa.Engine, name: str) -> list[SheetBook]:
    """Return the chain under a name, newest first; the first one is written."""
    with read_transaction(engine) as connection:
        return read_chain(connection, name)


def next_number(engine: sa.Engine, name: str) -> int:
    """Return the number of the next spreadsheet; the numbers of closed ones are not used again."""
    newest = sa.select(sa.func.max(SHEET_BOOKS.c.number)).where(SHEET_BOOKS.c.name == name)
    with read_transaction(engine) as connection:
        return int(connection.execute(newest).scalar_one() or 0) + 1


def next_title(title: str, number: int) -> str:
    """Return the title of a further spreadsheet: `Desk (2)` after `Desk`, `Desk (3)` after that."""
    return f"{_NUMBER.sub('', title) if number > 2 else title} ({number})"


def add_book(connection: sa.Connection, book: SheetBook) -> None:
    """Record a spreadsheet as the newest of its chain; one that was known keeps its tabs."""
    chain = {"name": book.name, "number": book.number, "closed_at": None}
    new = {"book": book.id, "url": book.url, "shown_up_to": book.shown_up_to, **chain}
    added = upsert(connection, SHEET_BOOKS).values(new)
    connection.execute(added.on_conflict_do_update(index_elements=["book"], set_=chain))


def close_book(engine: sa.Engine, book: SheetBook, *, now: datetime) -> None:
    """Record that a spreadsheet is gone: its rows are sent again to the one that is written."""
    gone = sa.update(SHEET_BOOKS).where(SHEET_BOOKS.c.book == book.id)
    with engine.begin() as connection:
        connection.execute(gone.values(closed_at=now))


def read_known_tabs(engine: sa.Engine, spreadsheet_id: str) -> KnownTabs:
    """Return the tabs of a spreadsheet as they were after the last sync."""
    chosen = sa.select(SHEET_BOOKS.c.tabs).where(SHEET_BOOKS.c.book == spreadsheet_id)
    with read_transaction(engine) as connection:
        tabs = json.loads(connection.execute(chosen).scalar_one_or_none() or "{}")
    return {name: (sheet_id, tuple(header)) for name, (sheet_id, header) in tabs.items()}


def write_known_tabs(engine: sa.Engine, spreadsheet_id: str, tabs: KnownTabs) -> None:
    """Record the tabs of a spreadsheet."""
    changed = sa.update(SHEET_BOOKS).where(SHEET_BOOKS.c.book == spreadsheet_id)
    with engine.begin() as connection:
        connection.execute(changed.values(tabs=json.dumps(tabs, ensure_ascii=False)))


Cell = str | int | float | bool

# Ends a truncated cell, so that no reader takes it for the whole text.
CUT_MARK = " …[cut]"

# Neither XML nor a spreadsheet cell can hold these characters; tabs and line ends are allowed.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff\ufffe\uffff]")
# In characters, as Excel measures columns.
_WIDTHS = {
    **dict.fromkeys(("title", "clean_text", "summary"), 60),
    **dict.fromkeys(("feed_url", "article_url", "subtitle", "notes", "key"), 40),
    **dict.fromkeys(("value", "metric"), 24),
    **dict.fromkeys(("Title", "Summary"), 60),
    **dict.fromkeys(("Link", "Authors"), 30),
    **dict.fromkeys(("Day", "Language", "Copies", "Row"), 10),
}
_DEFAULT_WIDTH = 18
_SUMMARY_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab: its name and columns, and the ledger table it shows, with the key of its rows.

    `edited` names the columns that admins may change. `order` is the column that grows with newer
    rows: such a tab is divided among spreadsheets, a tab without it is complete in each of them.
    """

    name: str
    table: sa.FromClause
    columns: tuple[str, ...]
    key: str
    edited: tuple[str, ...] = ()
    order: str | None = None

    @property
    def is_keyed(self) -> bool:
        """Return whether rows can be found again by their key; without one they never change."""
        return self.key in self.columns


def _columns(table: sa.FromClause, last: str) -> tuple[str, ...]:
    """Return the columns that a tab shows; those after `last` are not for editors."""
    names = table.columns.keys()
    return tuple(names[: names.index(last) + 1])


def _one_row_per_text() -> sa.Subquery:
    """Return what editors read of stored articles: one row per text, with headers for people."""
    raw, index = RAW.c, ARTICLES_INDEX.c
    is_copy = (index.row_id_raw == raw.row_id, index.reason == "text")
    copies = sa.select(sa.func.count()).select_from(ARTICLES_INDEX).where(*is_copy)

    def first_of(*texts: sa.ColumnElement[str]) -> sa.ColumnElement[str]:
        return sa.func.coalesce(*(sa.func.nullif(text, "") for text in texts), "")

    status = sa.case(
        (raw.is_paywalled.is_(sa.true()), "behind a paywall"),
        (raw.status == "stored", "complete"),
        else_="is being updated",
    )
    shown = {
        "Day": sa.func.coalesce(raw.published_at, raw.found_at),
        "Source": raw.source,
        "Title": first_of(raw.title, raw.article_url_canon),
        "Summary": first_of(raw.summary, raw.subtitle, sa.func.substr(raw.clean_text, 1, 1_000)),
        "Topic": first_of(raw.section, raw.category_guess),
        "Language": raw.language,
        "Authors": raw.authors,
        "Copies": copies.correlate(RAW).scalar_subquery(),
        "Status": status,
        "Link": raw.article_url_canon,
        "Row": raw.row_id,
        "changed_seq": raw.changed_seq,
    }
    chosen = sa.select(*(column.label(name) for name, column in shown.items()))
    return chosen.where(raw.stored_at.is_not(None), raw.status != "duplicate").subquery()


_ARTICLES = _one_row_per_text()
ARTICLES_TAB = Tab("Articles", _ARTICLES, _columns(_ARTICLES, "Row"), "Row", order="Row")
FEEDS_TAB = Tab(
    "Feeds", FEEDS, _columns(FEEDS, "checked_at"), "feed_url_canon", ("lang", "status", "notes")
)
RAW_TAB = Tab("Raw", RAW, _columns(RAW, "last_seen_rss"), "row_id", order="row_id")
INDEX_TAB = Tab(
    "ArticlesIndex",
    ARTICLES_INDEX,
    _columns(ARTICLES_INDEX, "rev_n"),
    "url_hash",
    order="row_id_raw",
)
# The number of a row is not shown.
DIAGNOSTICS_TAB = Tab(
    "Diagnostics", DIAGNOSTICS, _columns(DIAGNOSTICS, "notes")[1:], "id", order="id"
)
CONFIG_TAB = Tab("Config", CONFIG, _columns(CONFIG, "updated_at"), "key")
ANALYSES_TAB = Tab(
    "Analyses", ANALYSES, _columns(ANALYSES, "analysed_at"), "row_id", order="row_id"
)
TABS = (ARTICLES_TAB, FEEDS_TAB, RAW_TAB, INDEX_TAB, DIAGNOSTICS_TAB, CONFIG_TAB, ANALYSES_TAB)


@dataclass(frozen=True, slots=True)
class CellLimits:
    """How many characters a cell may have, and how many of an article's text are shown."""

    cell: int
    clean_text: int = 20_000


def column_width(name: str) -> int:
    """Return the width of a column in characters: texts are wide, URLs medium."""
    return _WIDTHS.get(name, _DEFAULT_WIDTH)


def to_cells(tab: Tab, values: Sequence[object], limits: CellLimits) -> list[Cell]:
    """Return a ledger row as the cells of a tab; the ledger itself holds the whole text."""
    return [to_cell(name, value, limits) for name, value in zip(tab.columns, values, strict=True)]


def to_cell(name: str, value: object, limits: CellLimits) -> Cell:
    """Return a column's value as a cell: numbers stay, times and lists become text, None is ''."""
    if isinstance(value, bool | int | float):
        return value
    if name in ("authors", "Authors") and isinstance(value, tuple):
        value = ", ".join(value)
    elif name == "clean_text" and isinstance(value, str):
        value = cut_at_word_end(value, limits.clean_text)
    elif name == "Summary" and isinstance(value, str):
        whole = " ".join(value.split())
        value = cut_at_word_end(whole, _SUMMARY_CHARACTERS)
        value += " …" if value != whole else ""
    elif name == "Day" and isinstance(value, datetime):
        value = f"{value.astimezone(UTC):%Y-%m-%d}"
    return truncate(_to_text(value), limits.cell)


def _to_text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, tuple):
        return _UNPRINTABLE.sub("", json.dumps(value, ensure_ascii=False)) if value else ""
    return _UNPRINTABLE.sub("", str(value))


def truncate(text: str, limit: int) -> str:
    """Truncate a text to `limit` UTF-16 units, as spreadsheets count, and append the mark."""
    # A character is at most two units, so short texts need no encoding.
    if len(text) * 2 <= limit:
        return text
    units = text.encode("utf-16-le")
    if len(units) <= limit * 2:
        return text
    kept = units[: (limit - len(CUT_MARK)) * 2]
    return kept.decode("utf-16-le", errors="ignore") + CUT_MARK


NO_ADDRESS = "no web address in feed_url"
_WRONG_KEY = "feed_url_canon does not match feed_url: leave it empty"
_STATUSES = get_args(FeedStatus)


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


def feed_key(row: Mapping[str, Cell]) -> str | None:
    """Return the key of a row of Feeds; in a row that an admin added it comes from the URL."""
    return key_text(row.get("feed_url_canon", "")) or url_key(row)


def url_key(row: Mapping[str, Cell]) -> str | None:
    """Return the canonical form of the row's URL, None if it is not a web address."""
    url = str(row.get("feed_url", "")).strip()
    try:
        return canonical_url(url) if url.startswith(("http://", "https://")) else None
    except (InputError, ValueError):
        return None


def key_text(cell: Cell) -> str:
    """Return a key as the ledger writes it; a spreadsheet may return 7.0 for 7."""
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return str(cell).strip()


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
