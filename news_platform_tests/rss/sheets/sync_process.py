"""Run a sync in its own process, to be killed: `… LEDGER_URL ENDPOINT KEY_FILE OWNER MAX_ROWS`."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from news_platform.rss.discovery.discover import DiscoveryReport
from news_platform.rss.sheets.access import CallTiming, SheetAccess
from news_platform.rss.sheets.google import open_spreadsheet
from news_platform.rss.sheets.sync import SheetWriter, SyncOptions, sync
from news_platform.storage.sql.engine import open_engine


def _blink(seconds: float) -> None:
    """Sleep a thousandth of the time: the waits protect Google, not the emulator."""
    time.sleep(seconds / 1000)


def _discover(urls: Sequence[str]) -> DiscoveryReport:
    raise AssertionError(f"unexpected new feeds: {urls}")


def main(ledger_url: str, endpoint: str, key_file: str, owner: str, max_rows: str) -> None:
    """Sync once."""
    access = SheetAccess(key_file, spreadsheet_title="Desk", endpoint=endpoint)
    book = open_spreadsheet(access, CallTiming(time.monotonic, _blink, calls=1_000_000, tries=40))
    # The lease expires before it is claimed: no writer waits for a dead one, and several can run.
    options = SyncOptions(max_rows=int(max_rows), lease_seconds=-60.0, tries=60)
    engine = open_engine(ledger_url)
    sync(SheetWriter(engine, book, owner, lambda: datetime.now(UTC), _blink, _discover, options))


if __name__ == "__main__":
    main(*sys.argv[1:])
