"""Take feeds into the ledger: fetched, parsed, fresh enough and in a wanted language."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.html.decode import content_type_charset
from news_platform.html.feed_autodiscovery import feed_urls, looks_like_html, usual_feed_urls
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.feeds import Feed
from news_platform.rss.ledger.feed_rows import known_feeds, upsert_feed
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.rss.options import DiscoveryOptions
from news_platform.rss.polling import poll_schedule
from news_platform.text.language import detect
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.redirects import is_moved_for_good
from news_platform.web.urls import canonical_url

_SURE = 0.8
_LANGUAGE_SAMPLE = 20
# A paused feed stays so: a person put it aside.
_IN_USE = ("active", "paused")

Taken = Literal["added", "revived"]
"""How a feed came into use: registered for the first time, or known and not in use before."""


@dataclass(frozen=True, slots=True)
class FeedVerdict:
    """What became of one candidate: "active", or one word for why not.

    `asked_url` is the candidate, `feed_url` the feed it led to, most often the same.
    """

    asked_url: str
    feed_url: str
    outcome: str
    notes: str
    feed: Feed | None = None
    newest: datetime | None = None


@dataclass(frozen=True, slots=True)
class DiscoveryReport:
    """How a discovery went; `outcomes` counts candidates by verdict.

    `revived` feeds were registered as rejected, dead or gone, and are active now.
    """

    candidates: int
    known: int
    added: int
    revived: int
    outcomes: Mapping[str, int]
    verdicts: tuple[FeedVerdict, ...]


async def discover_feeds(
    engine: sa.Engine,
    candidates: Iterable[str],
    *,
    fetcher: Fetcher,
    pool: Pool,
    options: DiscoveryOptions,
    now: datetime,
    recheck: bool = False,
) -> DiscoveryReport:
    """Look at each candidate, a feed or a site, and register it with its verdict.

    Feeds that are registered already are passed over unless `recheck` asks for a new look.
    """
    asked = {canonical_url(url): url for url in candidates}
    since = now - timedelta(days=options.recheck_days)
    known = set() if recheck else known_feeds(engine, checked_after=since)
    fresh = [url for canonical, url in asked.items() if canonical not in known]
    gate = asyncio.Semaphore(options.concurrency)
    looks = (_look_within(gate, url, fetcher, pool, options=options, now=now) for url in fresh)
    verdicts = tuple(await asyncio.gather(*looks))
    taken = Counter(await asyncio.to_thread(_register, engine, verdicts, now=now))
    return DiscoveryReport(
        candidates=len(asked),
        known=len(asked) - len(fresh),
        added=taken["added"],
        revived=taken["revived"],
        outcomes=dict(Counter(verdict.outcome for verdict in verdicts)),
        verdicts=verdicts,
    )


async def _look_within(
    gate: asyncio.Semaphore,
    url: str,
    fetcher: Fetcher,
    pool: Pool,
    *,
    options: DiscoveryOptions,
    now: datetime,
) -> FeedVerdict:
    async with gate:
        try:
            answer = await fetcher.fetch(url)
            if answer.status == 200 and _is_page(answer):
                answer = await _site_feed(answer, fetcher)
        except FetchError as error:
            return FeedVerdict(url, url, "unreachable", f"{error.reason}: {error}")
        return await _judge(url, answer, pool, options=options, now=now)


def _is_page(answer: Response) -> bool:
    return looks_like_html(answer.body, answer.headers.get("content-type", ""))


async def _site_feed(page: Response, fetcher: Fetcher) -> Response:
    """Return the answer of the site's first feed that answers; the page itself when none does."""
    charset = content_type_charset(page.headers.get("content-type", ""))
    named = feed_urls(page.body, url=page.final_url, charset=charset)
    for url in named or usual_feed_urls(page.final_url):
        try:
            answer = await fetcher.fetch(url)
        except FetchError:
            continue
        if answer.status == 200 and not _is_page(answer):
            return answer
    return page


async def _judge(
    url: str, answer: Response, pool: Pool, *, options: DiscoveryOptions, now: datetime
) -> FeedVerdict:
    if answer.status != 200:
        return FeedVerdict(url, url, "unreachable", f"status {answer.status}")
    # What led elsewhere, by a link or for good, is registered under the feed's own address.
    feed_url = answer.final_url if is_moved_for_good(answer) else answer.url
    fetched = (answer.body, answer.headers.get("content-type", ""), answer.final_url)
    parsed = await asyncio.wrap_future(pool.submit(fetched))
    if not isinstance(parsed, Done):
        # An exception comes from the bytes; a lost process may be the machine's fault.
        outcome = "not_a_feed" if parsed.reason == "error" else "unreadable"
        return FeedVerdict(url, feed_url, outcome, parsed.detail)
    feed = replace(parsed.value, language=written_language(parsed.value))
    found = FeedVerdict(url, feed_url, "active", "", feed)
    return _judge_content(found, feed, options=options, now=now)


def written_language(feed: Feed) -> str:
    """Return the language of the entries when that is sure, else what the feed declares."""
    sample = " ".join(f"{entry.title} {entry.summary}" for entry in feed.entries[:_LANGUAGE_SAMPLE])
    found = detect(sample)
    declared = feed.language.partition("-")[0].strip().lower()
    return found.code if found.probability >= _SURE or not declared else declared


def _judge_content(
    found: FeedVerdict, feed: Feed, *, options: DiscoveryOptions, now: datetime
) -> FeedVerdict:
    newest = poll_schedule.newest((entry.published_at for entry in feed.entries), now=now)
    if newest is None:
        return replace(found, outcome="undated", notes="no entry has a date")
    found = replace(found, newest=newest)
    if (now - newest).days > options.fresh_days_limit:
        return replace(found, outcome="stale", notes=f"newest entry {newest.date()}")
    if options.languages and feed.language not in options.languages:
        return replace(found, outcome="language", notes=f"written in {feed.language!r}")
    return found


def _register(
    engine: sa.Engine, verdicts: Sequence[FeedVerdict], *, now: datetime
) -> list[Taken | None]:
    """Write every verdict down; return, one for each, how it came into use, None: it did not."""
    with write_transaction(engine) as transaction:
        taken = [_register_feed(transaction, verdict, now=now) for verdict in verdicts]
        for verdict in verdicts:
            if canonical_url(verdict.asked_url) != canonical_url(verdict.feed_url):
                _register_site(transaction, verdict, now=now)
        counts = Counter(f"candidates_{verdict.outcome}" for verdict in verdicts)
        note_metrics(transaction, "discovery", counts, now=now)
    return taken


def _register_feed(
    transaction: LedgerTransaction, verdict: FeedVerdict, *, now: datetime
) -> Taken | None:
    """Register what was found; what a person may have set about a feed in use stays."""
    key, columns = canonical_url(verdict.feed_url), _columns(verdict, now=now)
    chosen = sa.select(FEEDS.c.status, FEEDS.c.lang).where(FEEDS.c.feed_url_canon == key)
    known = transaction.connection.execute(chosen).one_or_none()
    if known and known.status == "paused":
        del columns["status"]
    if known and known.lang and known.status != "rejected":
        del columns["lang"]
    upsert_feed(transaction, key, **columns)
    if verdict.outcome != "active" or (known and known.status in _IN_USE):
        return None
    return "revived" if known else "added"


def _register_site(transaction: LedgerTransaction, verdict: FeedVerdict, *, now: datetime) -> None:
    """Remember that a site was asked, so that it is not asked again tomorrow."""
    upsert_feed(
        transaction,
        canonical_url(verdict.asked_url),
        feed_url=verdict.asked_url,
        status="rejected",
        health_score=0,
        remark=f"leads to {verdict.feed_url}",
        checked_at=now,
    )


def _columns(verdict: FeedVerdict, *, now: datetime) -> dict[str, Any]:
    silent = poll_schedule.days_without_update(verdict.newest, now=now)
    accepted = verdict.outcome == "active"
    return {
        "feed_url": verdict.feed_url,
        "status": "active" if accepted else "rejected",
        "lang": verdict.feed.language if verdict.feed else "",
        "title": verdict.feed.title if verdict.feed else "",
        "last_entry_date": verdict.newest,
        "no_updates_days": silent,
        "health_score": poll_schedule.health_score(errors_in_row=0, no_updates_days=silent)
        if accepted
        else 0,
        "remark": "" if accepted else f"{verdict.outcome}: {verdict.notes}",
        "checked_at": now,
    }
