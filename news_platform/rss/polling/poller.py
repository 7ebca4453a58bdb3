"""Poll the feeds that are due and add their new articles to the ledger.

Feeds are fetched with conditional requests. The results are written in batches, one transaction
each. If the poller dies before it writes a batch, those feeds are polled again after their lease.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType

import sqlalchemy as sa

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import ConfigError, FetchError, InputError
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, run_concurrently
from news_platform.isolation.pool import Pool
from news_platform.rss.claim_queue import ClaimQueue
from news_platform.rss.feed_settings import parse_settings, private_headers
from news_platform.rss.ledger.feed_rows import FeedRow, claim_feeds
from news_platform.rss.ledger.transactions import note_metrics, write_transaction
from news_platform.rss.polling.poll_results import (
    PollResult,
    conditional_headers,
    evaluate,
    failed,
    internal_error,
)
from news_platform.rss.polling.poll_schedule import PollOptions, feed_options
from news_platform.rss.polling.recording import PollCounts, delete_old_polls, record
from news_platform.takedowns.build_filters import refuse_taken_down
from news_platform.web.fetch import Fetcher

_NO_SECRETS: Mapping[str, str] = MappingProxyType({})
# Results are written earlier if they hold this much text, so that long feeds do not fill memory.
_MAX_WAITING_CHARS = 32_000_000


@dataclass(frozen=True, slots=True)
class PollReport:
    """Counts of one poll; `outcomes` is the number of feeds by outcome."""

    feeds: int
    new_articles: int
    known_articles: int
    updated_articles: int
    skipped_articles: int
    turned_over: int
    outcomes: Mapping[str, int]
    taken_down: int = 0


async def poll_feeds(
    engine: sa.Engine,
    *,
    fetcher: Fetcher,
    pool: Pool,
    options: PollOptions,
    now: datetime,
    only_due: bool = True,
    secrets: Mapping[str, str] = _NO_SECRETS,
) -> PollReport:
    """Poll feeds until none is due; with `only_due` False, also every healthy feed once.

    `secrets` are the variables that settings of feeds may name.
    """
    run = _PollRun(_PollContext(engine, fetcher, pool, options, now, only_due, secrets))
    await run_concurrently(run.consume() for _ in range(options.concurrency))
    await run.record()
    counts = run.counts
    report = PollReport(
        feeds=counts.outcomes.total(),
        new_articles=counts.new,
        known_articles=counts.known,
        updated_articles=counts.updated,
        skipped_articles=counts.skipped,
        turned_over=counts.turned_over,
        outcomes=dict(counts.outcomes),
        taken_down=counts.taken_down,
    )
    await asyncio.to_thread(_record_metrics, engine, report, now=now)
    oldest = now - timedelta(days=options.polls_kept_days)
    await asyncio.to_thread(delete_old_polls, engine, before=oldest)
    return report


@dataclass(frozen=True, slots=True)
class _PollContext:
    engine: sa.Engine
    fetcher: Fetcher
    pool: Pool
    options: PollOptions
    now: datetime
    only_due: bool
    secrets: Mapping[str, str] = field(repr=False)


class _PollRun:
    """The state of one poll, shared by its consumers; a slow feed delays only one of them."""

    def __init__(self, context: _PollContext) -> None:
        self.context = context
        self.counts = PollCounts()
        self.feeds = ClaimQueue(self.claim)
        self.finished: list[PollResult] = []
        self.finished_chars = 0
        # SQLite has one writer at a time. Waiting here has no limit; a claim that waited for the
        # ledger itself would give up on a very busy machine, and end the poll.
        self.writing = asyncio.Lock()

    async def consume(self) -> None:
        """Poll one feed after the other until none is left; write the results in batches."""
        while (feed := await self.feeds.next_row()) is not None:
            if (result := await self.poll(feed)) is not None:
                self.finished.append(result)
                self.finished_chars += result.size_chars
            is_full = len(self.finished) >= self.context.options.batch_size
            if is_full or self.finished_chars > _MAX_WAITING_CHARS:
                await self.record()

    async def claim(self) -> list[FeedRow]:
        context = self.context
        async with self.writing:
            return await asyncio.to_thread(
                claim_feeds,
                context.engine,
                limit=context.options.batch_size,
                lease_seconds=context.options.lease_seconds,
                now=context.now,
                only_due=context.only_due,
            )

    async def poll(self, feed: FeedRow) -> PollResult | None:
        """Return what to record of a feed; None if not even its failure can be, which is counted.

        Such a feed is due again when its lease ends.
        """
        options, now = self.context.options, self.context.now
        with boundary("feed", feed.feed_url) as unit:
            try:
                return await self._fetch(feed)
            except (InputError, ConfigError) as error:  # of the feed's own settings
                result = failed(feed, "bad_settings", options=options, now=now, kind="hard")
                return replace(result, changes={**result.changes, "remark": str(error)})
        with boundary("feed", feed.feed_url):
            return internal_error(feed, unit.cause, options=options, now=now)
        self.counts.outcomes[INTERNAL_ERROR] += 1
        return None

    async def _fetch(self, feed: FeedRow) -> PollResult:
        context = self.context
        options = feed_options(context.options, feed.own_settings)
        try:
            refuse_taken_down(feed.feed_url, options.takedowns)
            response = await context.fetcher.fetch(
                feed.feed_url,
                headers=conditional_headers(etag=feed.etag, last_modified=feed.last_modified),
                private_headers=private_headers(parse_settings(feed.own_settings), context.secrets),
                max_body_bytes=options.max_body_bytes,
            )
            refuse_taken_down(response.final_url, options.takedowns)
        except FetchError as error:
            return failed(feed, error.reason, options=options, now=context.now)
        return await evaluate(feed, response, context.pool, options=options, now=context.now)

    async def record(self) -> None:
        async with self.writing:
            results, self.finished, self.finished_chars = self.finished, [], 0
            if results:
                options, now = self.context.options, self.context.now
                await asyncio.to_thread(
                    record, self.context.engine, results, self.counts, options=options, now=now
                )


def _record_metrics(engine: sa.Engine, report: PollReport, *, now: datetime) -> None:
    metrics = {f"feeds_{name}": float(count) for name, count in report.outcomes.items()}
    metrics |= {
        "new_articles": report.new_articles,
        "known_articles": report.known_articles,
        "updated_articles": report.updated_articles,
        "articles_skipped_by_limit": report.skipped_articles,
        "feeds_turned_over": report.turned_over,
        TAKEN_DOWN: report.taken_down,
    }
    with write_transaction(engine) as transaction:
        note_metrics(transaction, "poll", metrics, now=now)
