"""Write the ledger to .xlsx files under the root, for editors without a Google Sheet.

The main book shows the feeds and the newest rows; monthly books hold all articles. Each has a
bounded number of rows, so a change costs a bounded time: the main book is written again, and those
monthly books of which a row changed. The same ledger gives the same bytes, and an unchanged ledger
writes nothing.

A monthly book is written once it is complete: when it has all its rows, or when its month is over.
Rows of an incomplete book are among the newest ones, which the main book shows. Articles get their
row_id as they are found, so the rows of a month lie together; an article found by a slow process
in the first second of a month may be in the book of the month before.
"""

import re
import tempfile
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import first_row_since, found_at, newest_seq
from news_platform.rss.sheets.tabs import (
    ARTICLE_TABS,
    TABS,
    Cell,
    CellLimits,
    Tab,
    column_width,
    to_cell,
)
from news_platform.storage.commit.markers import (
    Marker,
    delete_marker,
    fingerprint,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.build_filters import cleaned_later

FOLDER = "article_sheets"
_BOOK = re.compile(rf"{FOLDER}/\d{{4}}-\d\d/articles-\d{{9,}}-\d{{9,}}\.xlsx")


def is_monthly_book(path: str) -> bool:
    """Return whether a path is that of a monthly book; people may keep other files beside them."""
    return _BOOK.fullmatch(path) is not None


@dataclass(frozen=True, slots=True)
class MonthlyBook:
    """The articles of one month from row_id `first` to `last`."""

    month: str
    first: int
    last: int

    @property
    def path(self) -> str:
        """Return the path of the book, relative to the root."""
        return f"{FOLDER}/{self.month}/articles-{self.first:09d}-{self.last:09d}.xlsx"

    @property
    def partition(self) -> str:
        """Return the key of the book among the markers of the sheets."""
        return f"{self.month}-{self.first:09d}-{self.last:09d}"


def complete_books(connection: sa.Connection, *, rows_per_book: int) -> list[MonthlyBook]:
    """Return all books that are complete, newest first."""
    months = list(_iter_months(connection))
    books = [
        book
        for place, month in enumerate(months)
        for book in _books_of_month(
            month, rows_per_book=rows_per_book, is_over=place < len(months) - 1
        )
    ]
    return books[::-1]


def _books_of_month(
    month: MonthlyBook, *, rows_per_book: int, is_over: bool
) -> Iterator[MonthlyBook]:
    for first in range(month.first, month.last + 1, rows_per_book):
        last = first + rows_per_book - 1
        if last <= month.last or is_over:
            yield MonthlyBook(month.month, first, min(last, month.last))


def _iter_months(connection: sa.Connection) -> Iterator[MonthlyBook]:
    """Yield the range of row_ids of every month, oldest first."""
    bounds = sa.select(sa.func.min(RAW.c.row_id), sa.func.max(RAW.c.row_id))
    first, newest = connection.execute(bounds).one()
    if first is None:
        return
    newest_month = _month_of(connection, newest)
    while True:
        month = _month_of(connection, first)
        if month >= newest_month:
            yield MonthlyBook(f"{month:%Y-%m}", first, newest)
            return
        # At least one row further, whatever order of times the ledger has.
        following = max(first_row_since(connection, _next_month(month)) or newest, first + 1)
        yield MonthlyBook(f"{month:%Y-%m}", first, following - 1)
        first = following


def _month_of(connection: sa.Connection, row_id: int) -> datetime:
    moment = found_at(connection, row_id).astimezone(UTC)
    return datetime(moment.year, moment.month, 1, tzinfo=UTC)


def _next_month(month: datetime) -> datetime:
    return (month + timedelta(days=31)).replace(day=1)


# Excel's limits: characters per cell, and rows per sheet without the header.
CELL_LIMIT = 32_767
ROW_LIMIT = 1_048_575

# Any fixed time: the bytes must not depend on when the file was written.
_CREATED = datetime(2025, 1, 1, tzinfo=UTC).replace(tzinfo=None)
# Excel knows no dates before its own first year.
_FIRST_YEAR = 1900
_DATE_FORMAT = "yyyy-mm-dd hh:mm:ss"


TabRows = tuple[Tab, Iterable[Sequence[object]]]
"""A tab of a book with its ledger rows, each with the values of the tab's columns."""


def write_xlsx(path: Path, tabs: Iterable[TabRows], *, clean_text: int) -> dict[str, int]:
    """Write a book and return the number of rows of each tab.

    The same rows give the same bytes. Rows go to a scratch file beside the book as they come.
    """
    # Imported here because only this function needs it, and every process imports this module.
    import xlsxwriter

    limits = CellLimits(CELL_LIMIT, clean_text)
    options = {"constant_memory": True, "tmpdir": str(path.parent)}
    with xlsxwriter.Workbook(str(path), options) as book:
        book.set_properties({"title": "News Platform", "created": _CREATED})
        heading = book.add_format({"bold": True, "bottom": 1})
        moment = book.add_format({"num_format": _DATE_FORMAT})
        return {
            tab.name: _write_tab(book, (tab, rows), limits, heading=heading, moment=moment)
            for tab, rows in tabs
        }


def _write_tab(book: Any, given: TabRows, limits: CellLimits, *, heading: Any, moment: Any) -> int:
    tab, rows = given
    sheet = book.add_worksheet(tab.name)
    sheet.freeze_panes(1, 0)
    for index, name in enumerate(tab.columns):
        sheet.set_column(index, index, column_width(name))
        sheet.write_string(0, index, name, heading)
    count = 0
    for values in rows:
        count += 1
        for index, (name, value) in enumerate(zip(tab.columns, values, strict=True)):
            if isinstance(value, datetime) and value.year >= _FIRST_YEAR:
                # Excel has no time zones: all times are UTC, as in the ledger.
                when = value.astimezone(UTC).replace(tzinfo=None, microsecond=0)
                sheet.write_datetime(count, index, when, moment)
            else:
                _write_cell(sheet, count, index, to_cell(name, value, limits))
    sheet.autofilter(0, 0, count, len(tab.columns) - 1)
    return count


def _write_cell(sheet: Any, row: int, column: int, cell: Cell) -> None:
    """Write a cell by its type, so that a text never becomes a formula or a link."""
    if isinstance(cell, bool):
        sheet.write_boolean(row, column, cell)
    elif isinstance(cell, str):
        if cell:
            sheet.write_string(row, column, cell)
    else:
        sheet.write_number(row, column, cell)


WORKBOOK_PATH = f"{FOLDER}/articles.xlsx"
DATASET = "article_sheets"
PARTITION = "all"

# Increase it when the same ledger would give different bytes, so that workbooks are rewritten.
_FORMAT = "3"


@dataclass(frozen=True, slots=True)
class WorkbookOptions:
    """Rows of a tab in one book, characters of a text, and monthly books written by one run."""

    # Spreadsheet programs open a book of this size within seconds.
    rows_per_book: int = 20_000
    clean_text_limit: int = 20_000
    # The rest follows with the next run: none takes longer than a few minutes.
    books_per_run: int = 3


@dataclass(frozen=True, slots=True)
class WorkbookReport:
    """The path of the main book, how many rows each of its tabs shows and leaves out.

    `books` are the monthly books that were written, `books_left` those that the next run writes.
    """

    path: str
    rows: dict[str, int]
    left_out: dict[str, int]
    books: tuple[str, ...] = ()
    books_left: int = 0


_DEFAULTS = WorkbookOptions()


def is_stale(engine: sa.Engine, store: ObjectStore, options: WorkbookOptions = _DEFAULTS) -> bool:
    """Return whether the ledger changed since the books were written, or the main one is gone."""
    marker = read_markers(store, DATASET).get(PARTITION)
    if marker is None or marker.inputs != ledger_fingerprint(engine, options):
        return True
    return not store.exists(WORKBOOK_PATH)


def ledger_fingerprint(engine: sa.Engine, options: WorkbookOptions = _DEFAULTS) -> str:
    """Return a fingerprint of everything that the books show."""
    shape = f"{_FORMAT}:{options.rows_per_book}:{options.clean_text_limit}"
    with read_transaction(engine) as connection:
        return fingerprint([shape, *(_table_state(connection, tab) for tab in TABS)])


def _table_state(connection: sa.Connection, tab: Tab) -> str:
    state = sa.select(sa.func.max(tab.table.c.changed_seq), sa.func.count())
    newest, rows = connection.execute(state.select_from(tab.table)).one()
    return f"{tab.name}:{newest}:{rows}"


def write_workbook(
    engine: sa.Engine, store: ObjectStore, options: WorkbookOptions = _DEFAULTS
) -> WorkbookReport:
    """Write the main book and the monthly books that lack a change, each with one PUT."""
    with cleaned_later(store, {DATASET: ["all"]}):
        return write_workbook_now(engine, store, options)


def write_workbook_now(
    engine: sa.Engine, store: ObjectStore, options: WorkbookOptions = _DEFAULTS
) -> WorkbookReport:
    """Write the books while a takedown is served, from a ledger that is clean already."""
    # Taken before the rows are read: a change in between makes the books stale, never wrong.
    inputs, seq = ledger_fingerprint(engine, options), newest_seq(engine)
    markers = read_markers(store, DATASET)
    with read_transaction(engine) as connection:
        books = complete_books(connection, rows_per_book=options.rows_per_book)
        left = _outdated(connection, store, books, markers, shape=_shape(options))
        written = left[: options.books_per_run]
        for book in written:
            _write_month(connection, store, book, options, seq=seq)
        _delete_others(store, books, markers)
        rows, left_out = _write_main(connection, store, options)
    books_left = len(left) - len(written)
    # Without its marker the workbook stays stale, and the next run goes on.
    if not books_left:
        report = {"files": [WORKBOOK_PATH], "rows": rows, "left_out": left_out}
        scope = f"{seq}-{_shape(options)}"
        write_marker(store, DATASET, PARTITION, inputs=inputs, report=report, scope=scope)
    paths = tuple(book.path for book in written)
    return WorkbookReport(WORKBOOK_PATH, rows, left_out, paths, books_left)


def _shape(options: WorkbookOptions) -> str:
    return f"{_FORMAT}-{options.clean_text_limit}"


def _write_main(
    connection: sa.Connection, store: ObjectStore, options: WorkbookOptions
) -> tuple[dict[str, int], dict[str, int]]:
    firsts = {
        tab.name: _first_of_newest(connection, tab, options.rows_per_book)
        for tab in TABS
        if tab.order
    }
    tabs = [(tab, _iter_rows(connection, tab, first=firsts.get(tab.name))) for tab in TABS]
    rows = _put_book(store, WORKBOOK_PATH, tabs, options)
    totals = {tab.name: _count(connection, tab) for tab in TABS}
    return rows, {name: total - rows[name] for name, total in totals.items()}


def _put_book(
    store: ObjectStore, path: str, tabs: Iterable[TabRows], options: WorkbookOptions
) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "workbook.xlsx"
        rows = write_xlsx(file, tabs, clean_text=options.clean_text_limit)
        store.put(path, file)
    return rows


def _write_month(
    connection: sa.Connection,
    store: ObjectStore,
    book: MonthlyBook,
    options: WorkbookOptions,
    *,
    seq: int,
) -> None:
    tabs = [
        (tab, _iter_rows(connection, tab, first=book.first, last=book.last)) for tab in ARTICLE_TABS
    ]
    report = {"files": [book.path], "rows": _put_book(store, book.path, tabs, options)}
    inputs, scope = f"{seq:016d}", _shape(options)
    write_marker(store, DATASET, book.partition, inputs=inputs, report=report, scope=scope)


def _outdated(
    connection: sa.Connection,
    store: ObjectStore,
    books: list[MonthlyBook],
    markers: Mapping[str, Marker],
    *,
    shape: str,
) -> list[MonthlyBook]:
    """Return the books that were never written, or whose rows changed since, newest first."""
    existing = {info.path for info in store.list(FOLDER)}
    known = {
        book: int(marker.inputs)
        for book in books
        if (marker := markers.get(book.partition)) and marker.scope == shape
        if book.path in existing
    }
    outdated = set(books) - known.keys()
    # The books as a whole were complete at the number in the scope of the main book's marker.
    main = markers.get(PARTITION)
    complete, _, written_shape = main.scope.partition("-") if main else ("0", "", "")
    since = int(complete) if written_shape == shape else min(known.values(), default=0)
    ordered = sorted(books, key=lambda book: book.first)
    firsts = [book.first for book in ordered]
    for row_id, seq in _iter_changes(connection, since=since) if known else ():
        book = ordered[max(bisect_right(firsts, row_id) - 1, 0)]
        if book.first <= row_id <= book.last and seq > known.get(book, seq):
            outdated.add(book)
    return [book for book in books if book in outdated]


def _iter_changes(connection: sa.Connection, *, since: int) -> Iterator[Sequence[int]]:
    """Yield the row_id and change number of what changed about articles after a change."""
    for tab in ARTICLE_TABS:
        seq = tab.table.c.changed_seq
        chosen = sa.select(tab.table.c[tab.order or tab.key], seq).where(seq > since)
        # Streamed: before all books are written, every row of the ledger may be among them.
        yield from connection.execute(chosen.execution_options(yield_per=10_000))


def _delete_others(
    store: ObjectStore, books: list[MonthlyBook], markers: Mapping[str, Marker]
) -> None:
    """Delete the books of another number of rows per book; their rows are in the new ones."""
    wanted = {PARTITION, *(book.partition for book in books)}
    for partition in set(markers) - wanted:
        delete_marker(store, DATASET, partition)
    paths = {book.path for book in books}
    found = (info.path for info in store.list(FOLDER))
    store.delete([path for path in found if is_monthly_book(path) and path not in paths])


def _first_of_newest(connection: sa.Connection, tab: Tab, rows: int) -> int | None:
    """Return where the newest rows of a tab begin; None if it shows all."""
    order = tab.table.c[tab.order or tab.key]
    chosen = sa.select(order).order_by(order.desc()).offset(min(rows, ROW_LIMIT) - 1).limit(1)
    return connection.execute(chosen).scalar_one_or_none()


def _count(connection: sa.Connection, tab: Tab) -> int:
    return int(connection.execute(sa.select(sa.func.count()).select_from(tab.table)).scalar_one())


def _iter_rows(
    connection: sa.Connection, tab: Tab, *, first: int | None, last: int | None = None
) -> Iterator[sa.Row[Any]]:
    """Yield the rows of a tab from `first` to `last`, oldest first."""
    columns = [tab.table.c[name] for name in tab.columns]
    ordering = tab.table.c[tab.order or tab.key]
    chosen = sa.select(*columns).order_by(ordering, tab.table.c[tab.key]).limit(ROW_LIMIT)
    if first is not None:
        chosen = chosen.where(ordering >= first)
    if last is not None:
        chosen = chosen.where(ordering <= last)
    yield from connection.execute(chosen.execution_options(yield_per=500))
