"""A ledger, an emulated Google Sheet and a sync between them, with a clock that tests control."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.rss import pipeline
from news_platform.rss.discovery import DiscoveryOptions, DiscoveryReport, discover_feeds
from news_platform.rss.sheets.books import (
    TABS,
    CallTiming,
    Cell,
    CellLimits,
    SheetAccess,
    SyncOptions,
    Tab,
    to_cells,
)
from news_platform.rss.sheets.google import ApiClient
from news_platform.rss.sheets.outbox import CELL_LIMIT, is_behind
from news_platform.rss.sheets.sync import SheetWriter, SyncReport, create_tabs, sync
from news_platform_tests.emulators.relay import Service, serve
from news_platform_tests.emulators.sheets import changes
from news_platform_tests.emulators.sheets.grid import Sheet
from news_platform_tests.emulators.sheets.server import SheetsEmulator, service_account_key
from news_platform_tests.fakes import FakeFetcher
from news_platform_tests.rss.ledger_rows import NOW


@dataclass(slots=True)
class FakeTime:
    """A clock that advances only by sleeping."""

    seconds: float = 0.0

    def clock(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def now(self) -> datetime:
        return NOW + timedelta(seconds=self.seconds)


@dataclass(slots=True)
class SheetHarness:
    """The ledger, emulator, clock and options of one test."""

    engine: sa.Engine
    emulator: SheetsEmulator
    time: FakeTime
    access: SheetAccess
    options: SyncOptions = field(default_factory=SyncOptions)
    # The responses that discovery gets, by URL.
    web: dict[str, object] = field(default_factory=dict)
    timeout_seconds: float = 10.0

    @property
    def timing(self) -> CallTiming:
        return CallTiming(self.time.clock, self.time.sleep, timeout_seconds=self.timeout_seconds)

    def client(self) -> ApiClient:
        return ApiClient(self.access, self.timing)

    def sync(self, owner: str = "desk", *, client: ApiClient | None = None) -> SyncReport:
        """Sync once, with the given client or a new one."""
        client = client or self.client()
        writer = SheetWriter(self.engine, client, owner, self.time.now, self.options)
        return sync(writer, self.discover)

    def ensure(self) -> str:
        """Create the spreadsheet and its tabs."""
        now = self.time.now()
        return create_tabs(self.engine, self.access, owner="e", timing=self.timing, now=now)

    def is_behind(self) -> bool:
        return is_behind(self.engine, self.access.name)

    def discover(self, urls: Sequence[str]) -> DiscoveryReport:
        """Run discovery on the responses in `web`."""
        fetcher, options = FakeFetcher(self.web), DiscoveryOptions()
        with pipeline.parse_pool(1) as pool:
            looking = discover_feeds(
                self.engine, urls, fetcher=fetcher, pool=pool, options=options, now=self.time.now()
            )
            return asyncio.run(looking)

    @property
    def book(self) -> changes.Book:
        """The spreadsheet that was created last."""
        return list(self.emulator.books.values())[-1]

    def sheet(self, tab: str) -> Sheet:
        return self.book.titled(tab)

    def by_hand(self, *requests: dict[str, Any]) -> None:
        """Apply what a person does in the browser."""
        self.book.apply(list(requests))

    def rows(self, tab: str) -> list[dict[str, Cell]]:
        """Return a tab's rows by header name, empty cells as ''."""
        return tab_rows(self.sheet(tab))


def tab_rows(sheet: Sheet) -> list[dict[str, Cell]]:
    header, *rows = sheet.rows
    return [
        {
            str(name): (row[place] if place < len(row) else None) or _empty(row, place)
            for place, name in enumerate(header)
        }
        for row in rows
        if any(value not in (None, "") for value in row)
    ]


def _empty(row: tuple[Any, ...], place: int) -> Cell:
    value = row[place] if place < len(row) else None
    return "" if value is None else value


def ledger_rows(engine: sa.Engine, tab: Tab) -> list[dict[str, Cell]]:
    """Return what a tab should show."""
    columns = [tab.table.c[name] for name in tab.columns]
    with engine.begin() as connection:
        rows = connection.execute(sa.select(*columns).order_by(tab.table.c[tab.key])).all()
    limits = CellLimits(CELL_LIMIT)
    return [dict(zip(tab.columns, to_cells(tab, row, limits), strict=True)) for row in rows]


def differences(engine: sa.Engine, book: changes.Book) -> dict[str, list[dict[str, Cell]]]:
    """Return, by tab, the rows that differ between ledger and spreadsheet.

    The counters of the sync itself are left out; the next sync sends them.
    """
    found = {}
    for tab in TABS:
        shown = Counter(_comparable(tab_rows(book.titled(tab.name))))
        held = Counter(_comparable(ledger_rows(engine, tab)))
        odd = ((shown - held) + (held - shown)).elements()
        found[tab.name] = [dict(row) for row in odd]
    return {name: rows for name, rows in found.items() if rows}


def _comparable(rows: list[dict[str, Cell]]) -> Iterator[tuple[tuple[str, Cell], ...]]:
    return (tuple(row.items()) for row in rows if row.get("stage") != "sheets")


@contextmanager
def open_harness(
    engine: sa.Engine, *, before: Callable[[SheetsEmulator], Service] | None = None
) -> Iterator[SheetHarness]:
    """Serve an empty emulator, or a service in front of it, and yield the harness."""
    time = FakeTime()
    emulator = SheetsEmulator(clock=time.clock)
    with serve(before(emulator) if before else emulator) as url:
        access = SheetAccess(service_account_key(url), spreadsheet_title="Desk", endpoint=url)
        yield SheetHarness(engine, emulator, time, access)
