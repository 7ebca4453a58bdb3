"""Fetch candidate feeds, decide which are fresh and in a wanted language, and register them."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Literal

import sqlalchemy as sa

from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.errors import ConfigError, FetchError
from news_platform.html.decode import content_type_charset
from news_platform.html.links import feed_urls, looks_like_html, usual_feed_urls
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, run_concurrently
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.feed_settings import FeedSettings, private_headers
from news_platform.rss.feeds import Feed
from news_platform.rss.ledger.feed_rows import (
    BY_PERSON,
    MAX_FEED_URL,
    NOT_ACCEPTED,
    POLLED,
    known_feeds,
    read_own_settings,
    upsert_feed,
)
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.ledger.transactions import LedgerTransaction, note_metrics, write_transaction
from news_platform.rss.poll_results import (
    days_without_update,
    health_score,
    newest_date,
    parse_response,
)
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.text.language import detect
from news_platform.text.normalize import scrub_text
from news_platform.web.fetch import Fetcher, Response
from news_platform.web.responses import RETRYABLE_STATUSES, is_permanent_redirect
from news_platform.web.urls import canonical_url

# Detection is right 99.8 % of the time from here on.
_MIN_PROBABILITY = 0.8
_SAMPLED_ENTRIES = 20
# Whoever stops a check of hundreds of feeds keeps all but the last of them.
_REGISTERED_AT_ONCE = 20
_DEFAULT = FeedSettings()
_MISSING_STATUSES = frozenset((404, 410))
# Reasons of a FetchError for which our own guard refuses the address.
_BLOCKED_REASONS = frozenset(("blocked_address", "blocked_port", "bad_url"))


@dataclass(frozen=True, slots=True)
class Recheck:
    """What an outcome means; the wait until the next check doubles with each try in a row."""

    meaning: str
    first_days: int
    longest_days: int
    # The next day may bring another outcome for the same feed.
    is_temporary: bool = False


ACTIVE = "active"
LEADS_ELSEWHERE = "leads_elsewhere"
UNLISTED = "unlisted"
REMOVED = "removed"
# The outcomes of discovery for candidates that it does not accept, as in the column `verdict`.
RECHECKS: dict[str, Recheck] = {
    "unreachable": Recheck(
        "no answer (timeout, DNS, connection) or a temporary status (408, 425, 429, 5xx)",
        1,
        30,
        is_temporary=True,
    ),
    "unreadable": Recheck(
        "its parser ran out of time or memory; the machine may have been busy",
        1,
        30,
        is_temporary=True,
    ),
    INTERNAL_ERROR: Recheck("our own code failed on it", 1, 30, is_temporary=True),
    "blocked": Recheck("the guard does not allow its address", 7, 30),
    "refused": Recheck("the site refuses us (401, 402, 403 and other 4xx)", 7, 30),
    "missing": Recheck("there is nothing at this address (404, 410)", 7, 60),
    "stale": Recheck("its newest entry is older than FRESH_DAYS_LIMIT", 7, 30),
    "undated": Recheck("no entry has a date, so nobody knows whether it is alive", 30, 60),
    "language": Recheck("it is not in a wanted language", 30, 60),
    "not_a_feed": Recheck("the answer is not a feed", 30, 90),
    LEADS_ELSEWHERE: Recheck("a site; its feed is registered under its own address", 30, 30),
}


# Feeds that a person may want all the same.
ACCEPTABLE = ("stale", "undated", "language")


def next_check_at(outcome: str, *, tries: int, now: datetime) -> datetime | None:
    """Return when to check again after this outcome came `tries` times in a row."""
    if outcome == ACTIVE:
        return None
    rule = RECHECKS[outcome]
    days = min(rule.first_days * 2 ** min(tries - 1, 16), rule.longest_days)
    # An hour early: the daily run must find a feed that it checked at this time yesterday.
    return now + timedelta(days=days) - timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class DiscoveryOptions:
    """Which feeds discovery accepts; empty `languages` accept any."""

    fresh_days_limit: int = 7
    languages: tuple[str, ...] = ("en",)
    concurrency: int = 32
    parsers: int = 1
    # A person wants these feeds, be they old, without dates, or in another language.
    accepts_any: bool = False
    # Also look at feeds that are registered already.
    recheck: bool = False
    takedowns: Takedowns = NO_TAKEDOWNS


@dataclass(frozen=True, slots=True)
class FeedAccess:
    """The settings of candidates by canonical URL, and the secrets that these name."""

    own: Mapping[str, FeedSettings] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class CheckedFeed:
    """The result for one candidate: its outcome is "active", or a key of RECHECKS.

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
    """Counts of one discovery; `outcomes` is the number of candidates by outcome.

    `revived` feeds were registered as rejected, dead or gone, and are active now.
    """

    candidates: int
    known: int
    added: int
    revived: int
    outcomes: Mapping[str, int]
    checked: tuple[CheckedFeed, ...]


OnRegistered = Callable[[Sequence[CheckedFeed]], object]
"""Called with candidates that have just been registered."""


async def discover_feeds(
    engine: sa.Engine,
    candidates: Iterable[str],
    *,
    fetcher: Fetcher,
    pool: Pool,
    options: DiscoveryOptions,
    now: datetime,
    access: FeedAccess | None = None,
    on_registered: OnRegistered = len,
) -> DiscoveryReport:
    """Fetch each candidate, a feed or a site, and register it with its outcome.

    Candidates that are registered already are skipped unless the options say so, or the time has
    come to look at them again. Those that were checked are registered as it goes, also if a person
    ends the check.
    """
    # Two spellings of one URL are one candidate.
    by_canonical = {canonical_candidate(url): url for url in map(scrub_text, candidates)}
    known = set() if options.recheck else known_feeds(engine, now=now)
    allowed = {k: url for k, url in by_canonical.items() if not options.takedowns.covers(k)}
    fresh = [url for canonical, url in allowed.items() if canonical not in known]
    semaphore = asyncio.Semaphore(options.concurrency)
    given = access or FeedAccess()
    own = {**await asyncio.to_thread(read_own_settings, engine), **given.own}
    run = _DiscoveryRun(fetcher, pool, options, now, FeedAccess(own, given.secrets))
    place = {url: number for number, url in enumerate(fresh)}
    finished: list[CheckedFeed] = []
    registered: list[tuple[CheckedFeed, str]] = []

    async def register() -> None:
        batch, finished[:] = finished[:], []
        done = await asyncio.to_thread(_register, engine, batch, now=now)
        registered.extend(done)
        await asyncio.to_thread(on_registered, [one for one, _ in done])

    async def check(url: str) -> None:
        one = await run.check(semaphore, url)
        # A candidate may lead to a feed that is taken down: neither is registered.
        if not options.takedowns.covers_url(one.feed_url):
            finished.append(one)
        if len(finished) >= _REGISTERED_AT_ONCE:
            await register()

    try:
        await run_concurrently(map(check, fresh))
    finally:
        await register()
        outcomes = Counter(one.outcome for one, _ in registered)
        await asyncio.to_thread(_write_counts, engine, outcomes, now=now)
    registrations = Counter(registration for _, registration in registered)
    refused = len(by_canonical) - len(allowed) + len(fresh) - len(registered)
    return DiscoveryReport(
        candidates=len(by_canonical),
        known=len(allowed) - len(fresh),
        added=registrations["added"],
        revived=registrations["revived"],
        outcomes=dict(outcomes + Counter({TAKEN_DOWN: refused})),
        checked=tuple(
            sorted((one for one, _ in registered), key=lambda it: place[it.candidate_url])
        ),
    )


def _write_counts(engine: sa.Engine, outcomes: Counter[str], *, now: datetime) -> None:
    counts = {f"candidates_{outcome}": count for outcome, count in sorted(outcomes.items())}
    with write_transaction(engine) as transaction:
        note_metrics(transaction, "discovery", counts, now=now)


def canonical_candidate(url: str) -> str:
    """Return the canonical form of a URL, or the URL if our own code fails on it."""
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

    async def check(self, semaphore: asyncio.Semaphore, url: str) -> CheckedFeed:
        """Return the result for one candidate; whatever it does, the others are not affected."""
        async with semaphore:
            with boundary("candidate", url) as unit:
                own = self.access.own.get(canonical_url(url), _DEFAULT)
                try:
                    headers = private_headers(own, self.access.secrets)
                    response = await _fetch(url, self.fetcher, headers)
                except ConfigError as error:
                    return CheckedFeed(url, url, "refused", str(error))
                except FetchError as error:
                    outcome = "blocked" if error.reason in _BLOCKED_REASONS else "unreachable"
                    return CheckedFeed(url, url, outcome, f"{error.reason}: {error}")
                return await self._read(url, response, own)
            return CheckedFeed(url, url, INTERNAL_ERROR, unit.cause)

    async def _read(self, url: str, response: Response, own: FeedSettings) -> CheckedFeed:
        """Return the result for a candidate that answered."""
        status = response.status
        # The server may answer tomorrow. Any other status from 400 is a decision of the site.
        if status in RETRYABLE_STATUSES or status >= 500:
            return CheckedFeed(url, url, "unreachable", f"status {status}")
        if status != 200:
            outcome = "missing" if status in _MISSING_STATUSES else "refused"
            return CheckedFeed(url, url, outcome, f"status {status}")
        # A feed found by a link or a permanent redirect is registered under its own URL.
        is_moved = is_permanent_redirect(response.redirect_statuses)
        feed_url = response.final_url if is_moved else response.url
        parsed = await parse_response(response, self.pool)
        if not isinstance(parsed, Done):
            # An exception comes from the bytes; a killed process may be the machine's fault.
            outcome = "not_a_feed" if parsed.reason == "error" else "unreadable"
            return CheckedFeed(url, feed_url, outcome, parsed.detail)
        feed = replace(parsed.value, language=own.language or feed_language(parsed.value))
        newest = newest_date((entry.published_at for entry in feed.entries), now=self.now)
        outcome, notes = self._outcome(feed, newest, own)
        return CheckedFeed(url, feed_url, outcome, notes, feed, newest)

    def _outcome(self, feed: Feed, newest: datetime | None, own: FeedSettings) -> tuple[str, str]:
        """Return whether a feed is fresh and in a wanted language, and why not."""
        if self.options.accepts_any:
            return ACTIVE, ""
        # Without dates nobody can say whether the feed is still alive.
        if newest is None:
            return "undated", "no entry has a date"
        if (self.now - newest).days > self.options.fresh_days_limit:
            return "stale", f"newest entry {newest.date()}"
        # A person who states the language of a feed wants it in that language.
        languages = () if own.language else self.options.languages
        if languages and feed.language not in languages:
            return "language", f"written in {feed.language!r}"
        return ACTIVE, ""


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


def _register(
    engine: sa.Engine, checked: Sequence[CheckedFeed], *, now: datetime
) -> list[tuple[CheckedFeed, str]]:
    """Write some results to the ledger; return with each what `_register_feed` did."""
    if not checked:
        return []
    with write_transaction(engine) as transaction:
        return [_register_unit(transaction, one, now=now) for one in checked]


def _register_unit(
    transaction: LedgerTransaction, checked: CheckedFeed, *, now: datetime
) -> tuple[CheckedFeed, str]:
    """Register one candidate; if that fails, register only the failure."""
    candidate = checked.candidate_url
    with boundary("candidate", candidate) as unit, transaction.savepoint():
        registration = _register_feed(transaction, checked, now=now)
        if canonical_url(candidate) != canonical_url(checked.feed_url):
            _register_site(transaction, checked, now=now)
        return checked, registration
    failure = CheckedFeed(candidate, candidate, INTERNAL_ERROR, unit.cause)
    with boundary("candidate", candidate), transaction.savepoint():
        _register_feed(transaction, failure, now=now)
    return failure, ""


def _register_feed(
    transaction: LedgerTransaction, checked: CheckedFeed, *, now: datetime
) -> Literal["added", "revived", ""]:
    """Register a feed; keep what a person set on one that is in use.

    It is "added" when it is new, "revived" when it was registered but not in use.
    """
    key, outcome = canonical_url(checked.feed_url), checked.outcome
    chosen = sa.select(FEEDS.c.status, FEEDS.c.lang, FEEDS.c.verdict, FEEDS.c.verdict_tries)
    known = transaction.connection.execute(
        chosen.where(FEEDS.c.feed_url_canon == key)
    ).one_or_none()
    status = known.status if known else ""
    is_temporary = outcome in RECHECKS and RECHECKS[outcome].is_temporary
    if status in POLLED and is_temporary:
        # The poller knows better how to deal with a feed that fails today.
        return ""
    silent_days, accepted = days_without_update(checked.newest, now=now), outcome == ACTIVE
    columns: dict[str, Any] = {
        "feed_url": checked.feed_url,
        "title": checked.feed.title if checked.feed else "",
        "last_entry_date": checked.newest,
        "no_updates_days": silent_days,
        "health_score": health_score(errors_in_row=0, no_updates_days=silent_days)
        if accepted
        else 0,
        "remark": "" if accepted else f"{outcome}: {checked.notes}",
        "checked_at": now,
    }
    # A person may have corrected the language of a feed that was accepted.
    if not (known and known.lang and status not in NOT_ACCEPTED):
        columns["lang"] = checked.feed.language if checked.feed else ""
    if status not in BY_PERSON:
        tries = 1 + (known.verdict_tries if known and known.verdict == outcome else 0)
        rejected = "unreachable" if is_temporary else "rejected"
        columns |= {
            "status": "active" if accepted else rejected,
            "verdict": outcome,
            "verdict_tries": tries,
            "next_check_at": next_check_at(outcome, tries=tries, now=now),
        }
    upsert_feed(transaction, key, **columns)
    if not accepted or status in ("active", *BY_PERSON):
        return ""
    return "revived" if known else "added"


def _register_site(transaction: LedgerTransaction, checked: CheckedFeed, *, now: datetime) -> None:
    """Register a site as rejected, so that it is not checked again tomorrow."""
    upsert_feed(
        transaction,
        canonical_url(checked.candidate_url),
        feed_url=checked.candidate_url,
        status="rejected",
        health_score=0,
        verdict=LEADS_ELSEWHERE,
        next_check_at=next_check_at(LEADS_ELSEWHERE, tries=1, now=now),
        remark=f"leads to {checked.feed_url}",
        checked_at=now,
    )
