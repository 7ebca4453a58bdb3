"""Run a sync in its own process, to be killed: `… LEDGER_URL ENDPOINT KEY_FILE OWNER MAX_ROWS`."""

import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from news_platform.rss.discovery import DiscoveryReport
from news_platform.rss.sheets.books import CallTiming, SheetAccess, SyncOptions
from news_platform.rss.sheets.sync import run_sync
from news_platform.storage.sql.engine import open_engine


def _blink(seconds: float) -> None:
    """Sleep a thousandth of the time: the waits protect Google, not the emulator."""
    time.sleep(seconds / 1000)


def _discover(urls: Sequence[str]) -> DiscoveryReport:
    raise AssertionError(f"unexpected new feeds: {urls}")


def main(ledger_url: str, endpoint: str, key_file: str, owner: str, max_rows: str) -> None:
    """Sync once."""
    access = SheetAccess(key_file, spreadsheet_title="Desk", endpoint=endpoint)
    # The lease expires before it is claimed: no writer waits for a dead one, and several can run.
    options = SyncOptions(max_rows=int(max_rows), lease_seconds=-60.0, tries=60)
    run_sync(
        open_engine(ledger_url),
        access,
        owner=owner,
        timing=CallTiming(time.monotonic, _blink, calls=1_000_000, tries=40),
        clock=lambda: datetime.now(UTC),
        discover=_discover,
        options=options,
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
