"""A month of a newsroom in simulated time: nothing is missed silently, nothing is doubled.

The 2,000 feeds of the soak are eight parts of 250, each with a ledger of its own, so that each part
can be run, and run again, alone.
"""

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.discovery import DiscoveryOptions, discover_feeds
from news_platform.rss.feed_alarms import (
    find_alarms,
    mark_told,
    untold_alarms,
    update_alarms,
)
from news_platform.rss.ledger.article_queue import WorkOptions
from news_platform.rss.ledger.status import doubled_main_rows
from news_platform.rss.ledger.tables import ARTICLES_INDEX, FEED_POLLS, FEEDS, RAW, REVISIONS
from news_platform.rss.pipeline import work_articles
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import poll_feeds
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform_tests.rss.newsroom_world import (
    DAY,
    KINDS,
    START,
    SimulatedFeed,
    SimulatedWeb,
    item_hash,
    make_feeds,
)
from news_platform_tests.rss.stages import worker_context

HOUR = timedelta(hours=1)
# How long a feed may be polled later than what has happened to it: the wait after failures.
POLL_DELAY = 2 * DAY


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that people were told about a feed or source."""

    kind: str
    thing: str
    is_healed: bool
    told_at: datetime


@dataclass(slots=True)
class Newsroom:
    """A ledger, the world that it follows, and what people were told."""

    engine: sa.Engine
    feeds: list[SimulatedFeed]
    pools: tuple[Pool, Pool]
    store: ObjectStore
    messages: list[Message] = field(default_factory=list)

    def run(self, *, days: int, step: timedelta = HOUR) -> None:
        """Let the schedules run: discovery once, polls, work and alarms at every step."""
        asyncio.run(self._run(SimulatedWeb(self.feeds), START + days * DAY, step))

    async def _run(self, web: SimulatedWeb, end: datetime, step: timedelta) -> None:
        parse, extract = self.pools
        context = worker_context(self.engine, web, extract, self.store, clock=lambda: web.now)
        urls = [feed.url for feed in self.feeds]
        options = DiscoveryOptions()
        await discover_feeds(self.engine, urls, fetcher=web, pool=parse, options=options, now=START)
        for feed in self.feeds:  # discovery looks, but takes no articles
            feed.seen.clear()
            feed.polled_at.clear()
        while web.now <= end:
            polling = PollOptions()
            await poll_feeds(self.engine, fetcher=web, pool=parse, options=polling, now=web.now)
            await work_articles(context, worker_id="w", options=WorkOptions(extractors=1))
            self._watch(web.now)
            web.now += step

    def _watch(self, now: datetime) -> None:
        """Do what the sensor `watch_feeds` does."""
        found = find_alarms(self.engine, now=now)
        update_alarms(self.engine, found, now=now)
        for untold in untold_alarms(self.engine):
            kind, is_healed = untold.kind, untold.is_healed
            self.messages += [Message(kind, it, is_healed, now) for it in untold.things]
            mark_told(self.engine, untold, now=now)

    def rows(self, table: sa.Table) -> list[sa.Row[Any]]:
        with read_transaction(self.engine) as connection:
            return list(connection.execute(sa.select(table)))


def check_ledger(newsroom: Newsroom) -> Counter[str]:
    """Assert that every item is accounted for; return the number of items by what they became."""
    assert doubled_main_rows(newsroom.engine) == []
    rows = {row.row_id: row for row in newsroom.rows(RAW)}
    index = {row.url_hash: rows[row.row_id_raw] for row in newsroom.rows(ARTICLES_INDEX)}
    turned: dict[str, list[datetime]] = {}
    for poll in newsroom.rows(FEED_POLLS):
        if poll.turned_over:
            turned.setdefault(poll.feed_url, []).append(poll.polled_at)
    became: Counter[str] = Counter()
    for feed in newsroom.feeds:
        told = [moment for url in (feed.url, feed.new_url) for moment in turned.get(url, [])]
        for item in feed.items:
            if item in feed.seen:
                row = index[item_hash(feed, item)]
                assert row.article_url == f"https://{feed.host}{item.path}"
                assert row.status in ("stored", "skipped", "error", "pending"), row.status
                assert row.status == "stored" or row.error_msg, row
                became[row.status] += 1
            elif is_missed(feed, item.published_at):
                # It came and went between two polls: the next one has said so.
                after = min(moment for moment in feed.polled_at if moment > item.published_at)
                assert after in told, (feed.host, feed.name, item)
                became["named as possibly missed"] += 1
    # Nothing else is in the ledger, so nothing is there twice.
    assert len(rows) == sum(len(feed.seen) for feed in newsroom.feeds)
    return became


def is_missed(feed: SimulatedFeed, published_at: datetime) -> bool:
    """Return whether an item was published between two successful polls of its feed."""
    if not feed.polled_at or published_at <= feed.polled_at[0]:
        return False
    return published_at <= feed.polled_at[-1]


def check_fates(newsroom: Newsroom, *, end: datetime) -> None:
    """Assert what became of the feeds that moved, ended, failed, edited or hid their articles."""
    status = {row.feed_url_canon: row for row in newsroom.rows(FEEDS)}
    by_host: dict[str, list[sa.Row[Any]]] = {}
    for row in newsroom.rows(RAW):
        by_host.setdefault(row.source, []).append(row)
    revised = {row.row_id for row in newsroom.rows(REVISIONS)}
    for feed in newsroom.feeds:
        own = by_host[feed.host]
        last = status[feed.url]
        if feed.kind.moves:
            assert last.status == "gone"
            last = status[feed.new_url]
        assert last.status == ("gone" if feed.kind.ends else "active"), feed.name
        if feed.kind.window == KINDS["fast"].window:
            assert last.may_miss_items, feed.name
        if feed.kind.paywall:
            assert all(row.is_paywalled for row in own if row.status == "stored")
            assert not any("Subscribe" in row.clean_text for row in own)
        if feed.kind.broken_template:
            assert {row.error_msg for row in own} == {"", "no article text found"}
        if feed.kind.edits:
            check_edits(feed, own, revised, end=end)


def check_edits(
    feed: SimulatedFeed, own: list[sa.Row[Any]], revised: set[int], *, end: datetime
) -> None:
    by_path = {row.article_url.removeprefix(f"https://{feed.host}"): row for row in own}
    followed = 0
    for item in feed.seen:
        row = by_path[item.path]
        assert item.edited_at is not None
        polled = [moment for moment in feed.polled_at if item.edited_at <= moment < end - HOUR]
        is_listed = any(item in feed.listed(moment) for moment in polled)
        if is_listed and row.found_at < item.edited_at:
            assert "corrected" in row.clean_text, item
            assert row.row_id in revised
            followed += 1
    assert followed


def check_alarms(newsroom: Newsroom) -> Counter[str]:
    """Assert that each alarm was told once, and its healing once, at their times."""
    told = Counter((one.kind, one.thing, one.is_healed) for one in newsroom.messages)
    moments = {(one.kind, one.thing, one.is_healed): one.told_at for one in newsroom.messages}
    expected: Counter[tuple[str, str, bool]] = Counter()
    for feed in newsroom.feeds:
        periods = {
            "failing": feed.kind.outage,
            "silent": feed.kind.silence,
            "text_share": feed.kind.broken_template,
        }
        if feed.kind.ends:  # gone, which only a person ends
            expected.update([("failing", feed.url, False)])
        for alarm in feed.kind.alarms:
            thing, period = feed.host if alarm == "text_share" else feed.url, periods[alarm]
            expected.update([(alarm, thing, False), (alarm, thing, True)])
            assert period is not None
            ends_at = feed.turns_at + period.last_day * DAY
            assert moments.get((alarm, thing, False), ends_at) < ends_at + POLL_DELAY, thing
            assert moments.get((alarm, thing, True), ends_at) >= ends_at, (alarm, thing)
    assert told == expected
    return Counter(kind for kind, _, is_healed in told if is_healed)


@pytest.fixture
def pools(parse_pool: Pool, extract_pool: Pool) -> tuple[Pool, Pool]:
    return parse_pool, extract_pool


def test_two_days_of_sixteen_feeds(
    sqlite_ledger: sa.Engine,
    pools: tuple[Pool, Pool],
    local_store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    feeds = make_feeds(range(16), days=2, seed=7)
    newsroom = Newsroom(sqlite_ledger, feeds, pools, local_store)
    newsroom.run(days=2)
    became = check_ledger(newsroom)
    check_fates(newsroom, end=START + 2 * DAY)
    assert became["stored"] > 60
    # It turned over, and was polled often enough from then on.
    assert any(row.may_miss_items for row in newsroom.rows(FEEDS))
    assert became["pending"] == 0
    # Nothing of ours failed behind a boundary either.
    assert caplog.messages == []


@pytest.mark.soak
@pytest.mark.parametrize("part", range(8))
def test_thirty_days_of_two_thousand_feeds(
    part: int,
    sqlite_ledger: sa.Engine,
    pools: tuple[Pool, Pool],
    local_store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    feeds = make_feeds(range(part * 250, part * 250 + 250), days=30, seed=1)
    newsroom = Newsroom(sqlite_ledger, feeds, pools, local_store)
    newsroom.run(days=30, step=2 * HOUR)
    became = check_ledger(newsroom)
    check_fates(newsroom, end=START + 30 * DAY)
    alarms = check_alarms(newsroom)
    assert became["stored"] > 2_500
    assert became["named as possibly missed"] > 0
    assert set(alarms) == {"failing", "silent", "text_share"}, alarms
    assert caplog.messages == []
