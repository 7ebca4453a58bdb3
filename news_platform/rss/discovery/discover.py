"""Fetch candidate feeds, decide which are fresh and in a wanted language, and register them."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import FetchError
from news_platform.html.decode import content_type_charset
from news_platform.html.feed_autodiscovery import feed_urls, looks_like_html, usual_feed_urls
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, run_concurrently
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.feeds import Feed
from news_platform.rss.ledger.feed_rows import MAX_FEED_URL, known_feeds, upsert_feed
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.rss.polling import poll_schedule
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.text.language import detect
from news_platform.text.normalize import scrub_text
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.redirects import is_permanent_redirect
from news_platform.web.urls import canonical_url

# Detection is right 99.8 % of the time from here on.
_MIN_PROBABILITY = 0.8
_SAMPLED_ENTRIES = 20
# A person paused the feed; discovery must not make it active again.
_IN_USE = ("active", "paused")

Registration = Literal["added", "revived"]
"""A feed is "added" when it is new, "revived" when it was registered but not in use."""


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """Which feeds discovery accepts; empty `languages` accept any."""

    fresh_days_limit: int = 7
    languages: tuple[str, ...] = ("en",)
    concurrency: int = 32
    # A rejected feed is checked again after this time: it may have new entries.
    recheck_days: int = 30
    parsers: int = 1
    takedowns: Takedowns = NO_TAKEDOWNS


@dataclass(frozen=True, slots=True)
class FeedVerdict:
    """The result for one candidate: "active", or one word for why it is rejected.

    `feed_url` is the feed that the candidate leads to, most often the candidate itself.
    """

    candidate_url: str
    feed_url: str
    outcome: str
    notes: str
    feed: Feed | None = None
    newest: datetime | None = None


@dataclass(frozen=True, slots=True)
class DiscoveryReport:
    """Counts of one discovery; `outcomes` is the number of candidates by verdict.

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
    """Fetch each candidate, a feed or a site, and register it with its verdict.

    Candidates that are registered already are skipped unless `recheck` is True.
    """
    # Two spellings of one URL are one candidate.
    by_canonical = {_canonical(url): url for url in map(scrub_text, candidates)}
    since = now - timedelta(days=options.recheck_days)
    known = set() if recheck else known_feeds(engine, checked_after=since)
    allowed = {k: url for k, url in by_canonical.items() if not options.takedowns.covers(k)}
    fresh = [url for canonical, url in allowed.items() if canonical not in known]
    semaphore = asyncio.Semaphore(options.concurrency)
    checks = (_check(semaphore, url, fetcher, pool, options=options, now=now) for url in fresh)
    found = await run_concurrently(checks)
    # A candidate may lead to a feed that is taken down: neither is registered.
    checked = [one for one in found if not options.takedowns.covers_url(one.feed_url)]
    refused = len(by_canonical) - len(allowed) + len(found) - len(checked)
    registered = await asyncio.to_thread(_register, engine, checked, now=now)
    verdicts = tuple(verdict for verdict, _ in registered)
    registrations = Counter(registration for _, registration in registered)
    return DiscoveryReport(
        candidates=len(by_canonical),
        known=len(allowed) - len(fresh),
        added=registrations["added"],
        revived=registrations["revived"],
        outcomes=dict(
            Counter(verdict.outcome for verdict in verdicts) + Counter({TAKEN_DOWN: refused})
        ),
        verdicts=verdicts,
    )


def _canonical(url: str) -> str:
    with boundary("candidate", url):
        return canonical_url(url)
    return url


async def _check(
    semaphore: asyncio.Semaphore,
    url: str,
    fetcher: Fetcher,
    pool: Pool,
    *,
    options: DiscoveryOptions,
    now: datetime,
) -> FeedVerdict:
    async with semaphore:
        with boundary("candidate", url) as unit:
            try:
                response = await _fetch(url, fetcher)
            except FetchError as error:
                return FeedVerdict(url, url, "unreachable", f"{error.reason}: {error}")
            return await _evaluate(url, response, pool, options=options, now=now)
        return FeedVerdict(url, url, INTERNAL_ERROR, unit.cause)


async def _fetch(url: str, fetcher: Fetcher) -> Response:
    """Return the response of the candidate or, if it is a site, of its feed."""
    if len(url) > MAX_FEED_URL:
        raise FetchError(f"a URL of {len(url)} characters", thing=url, reason="bad_url")
    response = await fetcher.fetch(url)
    if response.status == 200 and _is_html(response):
        return await _site_feed(response, fetcher)
    return response


def _is_html(response: Response) -> bool:
    return looks_like_html(response.body, response.headers.get("content-type", ""))


async def _site_feed(page: Response, fetcher: Fetcher) -> Response:
    """Return the response of the first feed of a site, or the page if it has none."""
    charset = content_type_charset(page.headers.get("content-type", ""))
    named = feed_urls(page.body, url=page.final_url, charset=charset)
    for url in named or usual_feed_urls(page.final_url):
        try:
            response = await fetcher.fetch(url)
        except FetchError:
            continue
        # Many sites answer every path with a page.
        if response.status == 200 and not _is_html(response):
            return response
    return page


async def _evaluate(
    url: str, response: Response, pool: Pool, *, options: DiscoveryOptions, now: datetime
) -> FeedVerdict:
    if response.status != 200:
        return FeedVerdict(url, url, "unreachable", f"status {response.status}")
    # A feed found by a link or a permanent redirect is registered under its own URL.
    feed_url = (
        response.final_url if is_permanent_redirect(response.redirect_statuses) else response.url
    )
    fetched = (response.body, response.headers.get("content-type", ""), response.final_url)
    parsed = await asyncio.wrap_future(pool.submit(fetched))
    if not isinstance(parsed, Done):
        # An exception comes from the bytes; a killed process may be the machine's fault.
        outcome = "not_a_feed" if parsed.reason == "error" else "unreadable"
        return FeedVerdict(url, feed_url, outcome, parsed.detail)
    feed = replace(parsed.value, language=feed_language(parsed.value))
    verdict = FeedVerdict(url, feed_url, "active", "", feed)
    return _evaluate_content(verdict, feed, options=options, now=now)


def feed_language(feed: Feed) -> str:
    """Return the detected language of the entries if it is certain, else the declared one."""
    sample = " ".join(f"{entry.title} {entry.summary}" for entry in feed.entries[:_SAMPLED_ENTRIES])
    detected = detect(sample)
    declared = feed.language.partition("-")[0].strip().lower()
    is_certain = detected.probability >= _MIN_PROBABILITY
    return detected.code if is_certain or not declared else declared


def _evaluate_content(
    verdict: FeedVerdict, feed: Feed, *, options: DiscoveryOptions, now: datetime
) -> FeedVerdict:
    newest = poll_schedule.newest((entry.published_at for entry in feed.entries), now=now)
    # Without dates nobody can say whether the feed is still alive.
    if newest is None:
        return replace(verdict, outcome="undated", notes="no entry has a date")
    verdict = replace(verdict, newest=newest)
    if (now - newest).days > options.fresh_days_limit:
        return replace(verdict, outcome="stale", notes=f"newest entry {newest.date()}")
    if options.languages and feed.language not in options.languages:
        return replace(verdict, outcome="language", notes=f"written in {feed.language!r}")
    return verdict


def _register(
    engine: sa.Engine, verdicts: Sequence[FeedVerdict], *, now: datetime
) -> list[tuple[FeedVerdict, Registration | None]]:
    """Write all verdicts to the ledger; return with each whether its feed was added or revived."""
    with write_transaction(engine) as transaction:
        registered = [_register_unit(transaction, verdict, now=now) for verdict in verdicts]
        counts = Counter(f"candidates_{verdict.outcome}" for verdict, _ in registered)
        note_metrics(transaction, "discovery", counts, now=now)
    return registered


def _register_unit(
    transaction: LedgerTransaction, verdict: FeedVerdict, *, now: datetime
) -> tuple[FeedVerdict, Registration | None]:
    """Register one candidate; if that fails, register only the failure."""
    candidate = verdict.candidate_url
    with boundary("candidate", candidate) as unit, transaction.savepoint():
        registration = _register_feed(transaction, verdict, now=now)
        if canonical_url(candidate) != canonical_url(verdict.feed_url):
            _register_site(transaction, verdict, now=now)
        return verdict, registration
    failure = FeedVerdict(candidate, candidate, INTERNAL_ERROR, unit.cause)
    with boundary("candidate", candidate), transaction.savepoint():
        _register_feed(transaction, failure, now=now)
    return failure, None


def _register_feed(
    transaction: LedgerTransaction, verdict: FeedVerdict, *, now: datetime
) -> Registration | None:
    """Register the feed of a verdict; keep what a person set on a feed that is in use."""
    key, columns = canonical_url(verdict.feed_url), _columns(verdict, now=now)
    chosen = sa.select(FEEDS.c.status, FEEDS.c.lang).where(FEEDS.c.feed_url_canon == key)
    known = transaction.connection.execute(chosen).one_or_none()
    if known and known.status == "paused":
        del columns["status"]
    # A person may have corrected the language of a feed that was accepted.
    if known and known.lang and known.status != "rejected":
        del columns["lang"]
    upsert_feed(transaction, key, **columns)
    if verdict.outcome != "active" or (known and known.status in _IN_USE):
        return None
    return "revived" if known else "added"


def _register_site(transaction: LedgerTransaction, verdict: FeedVerdict, *, now: datetime) -> None:
    """Register a site as rejected, so that it is not checked again tomorrow."""
    upsert_feed(
        transaction,
        canonical_url(verdict.candidate_url),
        feed_url=verdict.candidate_url,
        status="rejected",
        health_score=0,
        remark=f"leads to {verdict.feed_url}",
        checked_at=now,
    )


def _columns(verdict: FeedVerdict, *, now: datetime) -> dict[str, Any]:
    silent_days = poll_schedule.days_without_update(verdict.newest, now=now)
    accepted = verdict.outcome == "active"
    return {
        "feed_url": verdict.feed_url,
        "status": "active" if accepted else "rejected",
        "lang": verdict.feed.language if verdict.feed else "",
        "title": verdict.feed.title if verdict.feed else "",
        "last_entry_date": verdict.newest,
        "no_updates_days": silent_days,
        "health_score": poll_schedule.health_score(errors_in_row=0, no_updates_days=silent_days)
        if accepted
        else 0,
        "remark": "" if accepted else f"{verdict.outcome}: {verdict.notes}",
        "checked_at": now,
    }
