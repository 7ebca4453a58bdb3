"""Fetch candidate feeds, decide which are fresh and in a wanted language, and register them."""

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import ConfigError, FetchError
from news_platform.html.decode import content_type_charset
from news_platform.html.links import feed_urls, looks_like_html, usual_feed_urls
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, run_concurrently
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.discovery import verdicts
from news_platform.rss.feed_settings import FeedSettings, private_headers
from news_platform.rss.feeds import Feed
from news_platform.rss.ledger.feed_rows import (
    BY_PERSON,
    MAX_FEED_URL,
    POLLED,
    known_feeds,
    read_own_settings,
    upsert_feed,
)
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.rss.polling import poll_schedule
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.text.language import detect
from news_platform.text.normalize import scrub_text
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.responses import is_permanent_redirect
from news_platform.web.urls import canonical_url

# Detection is right 99.8 % of the time from here on.
_MIN_PROBABILITY = 0.8
_SAMPLED_ENTRIES = 20
_DEFAULT = FeedSettings()

Registration = Literal["added", "revived"]
"""A feed is "added" when it is new, "revived" when it was registered but not in use."""


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """Which feeds discovery accepts; empty `languages` accept any."""

    fresh_days_limit: int = 7
    languages: tuple[str, ...] = ("en",)
    concurrency: int = 32
    parsers: int = 1
    # A person wants these feeds, be they old, without dates, or in another language.
    accepts_any: bool = False
    takedowns: Takedowns = NO_TAKEDOWNS


@dataclass(frozen=True, slots=True)
class FeedAccess:
    """The settings of candidates by canonical URL, and the secrets that these name."""

    own: Mapping[str, FeedSettings] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


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
    access: FeedAccess | None = None,
) -> DiscoveryReport:
    """Fetch each candidate, a feed or a site, and register it with its verdict.

    Candidates that are registered already are skipped unless `recheck` is True, or the time has
    come to look at them again.
    """
    # Two spellings of one URL are one candidate.
    by_canonical = {_canonical(url): url for url in map(scrub_text, candidates)}
    known = set() if recheck else known_feeds(engine, now=now)
    allowed = {k: url for k, url in by_canonical.items() if not options.takedowns.covers(k)}
    fresh = [url for canonical, url in allowed.items() if canonical not in known]
    semaphore = asyncio.Semaphore(options.concurrency)
    given = access or FeedAccess()
    own = {**await asyncio.to_thread(read_own_settings, engine), **given.own}
    run = _DiscoveryRun(fetcher, pool, options, now, FeedAccess(own, given.secrets))
    judged = await run_concurrently(run.check(semaphore, url) for url in fresh)
    # A candidate may lead to a feed that is taken down: neither is registered.
    checked = [one for one in judged if not options.takedowns.covers_url(one.feed_url)]
    refused = len(by_canonical) - len(allowed) + len(judged) - len(checked)
    registered = await asyncio.to_thread(_register, engine, checked, now=now)
    found = tuple(verdict for verdict, _ in registered)
    registrations = Counter(registration for _, registration in registered)
    return DiscoveryReport(
        candidates=len(by_canonical),
        known=len(allowed) - len(fresh),
        added=registrations["added"],
        revived=registrations["revived"],
        outcomes=dict(
            Counter(verdict.outcome for verdict in found) + Counter({TAKEN_DOWN: refused})
        ),
        verdicts=found,
    )


def _canonical(url: str) -> str:
    with boundary("candidate", url):
        return canonical_url(url)
    return url


@dataclass(frozen=True, slots=True)
class _DiscoveryRun:
    """What the checks of one discovery share."""

    fetcher: Fetcher
    pool: Pool
    options: DiscoveryOptions
    now: datetime
    access: FeedAccess

    async def check(self, semaphore: asyncio.Semaphore, url: str) -> FeedVerdict:
        """Return the verdict about one candidate; whatever it does, the others are not affected."""
        async with semaphore:
            with boundary("candidate", url) as unit:
                own = self.access.own.get(canonical_url(url), _DEFAULT)
                try:
                    headers = private_headers(own, self.access.secrets)
                    response = await _fetch(url, self.fetcher, headers)
                except ConfigError as error:
                    return FeedVerdict(url, url, "refused", str(error))
                except FetchError as error:
                    outcome = verdicts.failure_verdict(error.reason)
                    return FeedVerdict(url, url, outcome, f"{error.reason}: {error}")
                return await self.evaluate(url, response, own)
            return FeedVerdict(url, url, INTERNAL_ERROR, unit.cause)

    async def evaluate(self, url: str, response: Response, own: FeedSettings) -> FeedVerdict:
        """Return the verdict about a candidate that answered."""
        if response.status != 200:
            outcome = verdicts.status_verdict(response.status)
            return FeedVerdict(url, url, outcome, f"status {response.status}")
        # A feed found by a link or a permanent redirect is registered under its own URL.
        is_moved = is_permanent_redirect(response.redirect_statuses)
        feed_url = response.final_url if is_moved else response.url
        fetched = (response.body, response.headers.get("content-type", ""), response.final_url)
        parsed = await asyncio.wrap_future(self.pool.submit(fetched))
        if not isinstance(parsed, Done):
            # An exception comes from the bytes; a killed process may be the machine's fault.
            outcome = "not_a_feed" if parsed.reason == "error" else "unreadable"
            return FeedVerdict(url, feed_url, outcome, parsed.detail)
        language = own.language or feed_language(parsed.value)
        feed = replace(parsed.value, language=language)
        verdict = FeedVerdict(url, feed_url, verdicts.ACTIVE, "", feed)
        # A person who states the language of a feed wants it in that language.
        languages = () if own.language else self.options.languages
        options = replace(self.options, languages=languages)
        return _evaluate_content(verdict, feed, options=options, now=self.now)


async def _fetch(url: str, fetcher: Fetcher, headers: Mapping[str, str]) -> Response:
    """Return the response of the candidate or, if it is a site, of its feed."""
    if len(url) > MAX_FEED_URL:
        raise FetchError(f"a URL of {len(url)} characters", thing=url, reason="bad_url")
    response = await fetcher.fetch(url, private_headers=headers)
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
    if options.accepts_any:
        return replace(verdict, newest=newest)
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
    chosen = sa.select(FEEDS.c.status, FEEDS.c.lang, FEEDS.c.verdict, FEEDS.c.verdict_tries)
    known = transaction.connection.execute(
        chosen.where(FEEDS.c.feed_url_canon == key)
    ).one_or_none()
    status = known.status if known else ""
    is_lasting = status in POLLED and verdicts.is_temporary(verdict.outcome)
    if is_lasting:
        # The poller knows better how to deal with a feed that fails today.
        return None
    if status in BY_PERSON:
        for name in ("status", "verdict"):
            del columns[name]
    else:
        columns |= _next_check(verdict.outcome, known, now=now)
    # A person may have corrected the language of a feed that was accepted.
    if known and known.lang and feed_is_accepted(status):
        del columns["lang"]
    upsert_feed(transaction, key, **columns)
    if verdict.outcome != verdicts.ACTIVE or status in ("active", *BY_PERSON):
        return None
    return "revived" if known else "added"


def feed_is_accepted(status: str) -> bool:
    """Return whether discovery has accepted a feed with this status at some time."""
    return status not in ("rejected", "unreachable")


def _next_check(outcome: str, known: Any, *, now: datetime) -> dict[str, Any]:
    tries = 1 + (known.verdict_tries if known and known.verdict == outcome else 0)
    return {
        "verdict_tries": tries,
        "next_check_at": verdicts.next_check_at(outcome, tries=tries, now=now),
    }


def _register_site(transaction: LedgerTransaction, verdict: FeedVerdict, *, now: datetime) -> None:
    """Register a site as rejected, so that it is not checked again tomorrow."""
    upsert_feed(
        transaction,
        canonical_url(verdict.candidate_url),
        feed_url=verdict.candidate_url,
        status="rejected",
        health_score=0,
        verdict=verdicts.LEADS_ELSEWHERE,
        next_check_at=verdicts.next_check_at(verdicts.LEADS_ELSEWHERE, tries=1, now=now),
        remark=f"leads to {verdict.feed_url}",
        checked_at=now,
    )


def _columns(verdict: FeedVerdict, *, now: datetime) -> dict[str, Any]:
    silent_days = poll_schedule.days_without_update(verdict.newest, now=now)
    accepted = verdict.outcome == verdicts.ACTIVE
    return {
        "feed_url": verdict.feed_url,
        "status": verdicts.feed_state(verdict.outcome),
        "verdict": verdict.outcome,
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
