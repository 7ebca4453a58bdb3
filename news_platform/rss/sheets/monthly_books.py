"""Divide the ledger's articles into monthly books of bounded size, by ranges of row_id.

A book is written once it is complete: when it has all its rows, or when its month is over. Rows
of an incomplete book are among the newest ones, which the main book shows. Articles get their
row_id as they are found, so the rows of a month lie together; an article found by a slow process
in the first second of a month may be in the book of the month before.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import sqlalchemy as sa

from news_platform.rss.ledger.row_ranges import first_row_since, found_at
from news_platform.rss.ledger.tables import RAW

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
