"""Sync one day of articles to the emulated Google Sheet, and count the writes it takes."""

import tempfile

from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import add_entries, entries_by_url_hash
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.sheets.google import ApiClient
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform_tests.rss.ledger_rows import change_articles
from news_platform_tests.rss.sheets.harness import SheetHarness, open_harness

FEED = "https://outlet.example/feed"
# As scheduled by default: a poll of each feed every three hours, a sync every ten minutes.
POLLS, SYNCS_PER_POLL, MINUTES = 8, 18, 10


def writes_of_a_day(*, articles: int, sightings: int) -> int:
    """Poll as many articles over a day, each listed again by the next polls; return the writes."""
    with tempfile.TemporaryDirectory() as folder:
        engine = open_engine(f"sqlite:///{folder}/ledger.sqlite")
        migrate(engine)
        with open_harness(engine) as harness:
            client = harness.client()
            # The last articles are seen again on the next day.
            for poll in range(POLLS + sightings):
                _poll(harness, poll, articles=articles // POLLS, sightings=sightings)
                _sync_until_quiet(harness, client)
            shown = len(harness.rows("Raw"))
            writes = harness.emulator.writes.used
        engine.dispose()
    assert shown == articles // POLLS * POLLS, shown
    return writes


def _sync_until_quiet(harness: SheetHarness, client: ApiClient) -> None:
    """Sync every ten minutes until the next poll; after one that wrote nothing, no other does."""
    for _ in range(SYNCS_PER_POLL):
        before = harness.emulator.writes.used
        harness.sync(client=client)
        harness.time.sleep(MINUTES * 60)
        if harness.emulator.writes.used == before:
            return


def _poll(harness: SheetHarness, poll: int, *, articles: int, sightings: int) -> None:
    """List the articles of this poll and of those before it, and read the new ones."""
    listed = [
        FeedEntry(
            link=f"https://outlet.example/{number}/{n}",
            title=f"Title {number} {n}",
            published_at=None,
            id="",
            summary="",
        )
        for number in range(max(0, poll - sightings), min(poll + 1, POLLS))
        for n in range(articles)
    ]
    with write_transaction(harness.engine) as change:
        entries = entries_by_url_hash(listed)
        add_entries(change, FEED, entries, max_new=len(entries), now=harness.time.now())
    if poll < POLLS:
        first = poll * articles + 1
        ids = list(range(first, first + articles))
        # Their texts are equal, but count as different ones.
        stored = {"status": "stored", "clean_text": "word " * 600, "text_hash": RAW.c.url_hash}
        change_articles(harness.engine, ids, **stored)
