"""The response of a feed in, what to record about the feed and its entries out.

That includes when to poll it again and how healthy it is, from its entries and failures.
"""

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import pairwise
from statistics import median
from typing import Any

from yarl import URL

from news_platform.isolation.boundary import INTERNAL_ERROR
from news_platform.isolation.pool import Done, Outcome, Pool
from news_platform.rss.feed_settings import parse_settings
from news_platform.rss.feeds import Feed, FeedEntry
from news_platform.rss.ledger.entries import entries_by_url_hash
from news_platform.rss.ledger.feed_rows import MAX_FEED_URL, FeedRow
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.web.fetch import Response
from news_platform.web.responses import (
    RETRYABLE_STATUSES,
    is_permanent_redirect,
    requested_wait_seconds,
    validator,
)
from news_platform.web.urls import canonical_url

_HOUR = 3600
_DAY = 24 * _HOUR
# Spreads feeds that were registered together over a fifth of the interval.
_JITTER = 0.1
# How long a feed that turned over counts as one that may miss items.
_MAY_MISS_FOR = timedelta(days=7)
# Enough entries to see how often a feed publishes now.
_RECENT_ENTRIES = 20


@dataclass(frozen=True, slots=True)
class PollOptions:
    """How often feeds are polled and how much is taken from one response."""

    # New articles of one poll that are taken; further ones become skipped rows.
    max_items_per_feed: int = 2_000
    min_interval_seconds: int = 3 * _HOUR
    max_interval_seconds: int = 6 * _HOUR
    # The shortest interval of a feed that turned over between two polls.
    turnover_interval_seconds: int = _HOUR // 4
    # Dead feeds are still polled, this rarely, because some come back.
    probe_interval_seconds: int = 7 * _DAY
    errors_until_dead: int = 10
    # If a poller dies, its feeds are due again after this; a poll must end before.
    lease_seconds: int = 3600
    concurrency: int = 64
    max_body_bytes: int = 5 * 1024 * 1024
    # Feeds per write transaction.
    batch_size: int = 200
    parsers: int = 1
    polls_kept_days: int = 30
    # Neither polled nor added.
    takedowns: Takedowns = NO_TAKEDOWNS


def feed_options(options: PollOptions, own_settings: str) -> PollOptions:
    """Return the options for a feed with settings of its own; raise InputError if these are bad."""
    own = parse_settings(own_settings)
    if own.max_items:
        options = replace(options, max_items_per_feed=own.max_items)
    if own.interval_seconds:
        seconds = own.interval_seconds
        options = replace(
            options,
            min_interval_seconds=seconds,
            max_interval_seconds=seconds,
            turnover_interval_seconds=seconds,
        )
    return options


def interval_seconds(
    dates: Iterable[datetime],
    *,
    now: datetime,
    previous: int,
    found_new: bool,
    options: PollOptions,
) -> int:
    """Return the wait until the next poll, within the bounds of the options.

    After new entries it is half the usual gap between them; otherwise 1.5 times the previous wait.
    """
    if found_new:
        gap = usual_gap_seconds(dates, now=now) or options.min_interval_seconds
        wanted = gap / 2
    else:
        wanted = max(previous, options.min_interval_seconds) * 1.5
    return int(min(max(wanted, options.min_interval_seconds), options.max_interval_seconds))


def turnover_interval_seconds(
    dates: Iterable[datetime], *, previous: int, turned_over: bool, options: PollOptions
) -> int:
    """Return the wait for a feed that may miss items: half of the time that its entries span.

    If it has just turned over, the wait is also at most half of the previous one.
    """
    known = list(dates)
    wanted = float(previous) / 2 if turned_over else float(previous)
    if len(known) > 1:
        wanted = min(wanted, (max(known) - min(known)).total_seconds() / 2)
    return int(max(wanted, options.turnover_interval_seconds))


def jittered(seconds: int, *, key: str) -> int:
    """Return the interval changed by up to 10 %, always the same for the same key."""
    draw = int.from_bytes(hashlib.sha256(key.encode()).digest()[:4], "big") / 2**32
    return int(seconds * (1 - _JITTER + 2 * _JITTER * draw))


def failure_wait_seconds(errors_in_row: int, *, options: PollOptions) -> int:
    """Return the wait after a failure: it doubles each time, up to the probe of dead feeds."""
    if errors_in_row >= options.errors_until_dead:
        return options.probe_interval_seconds
    # 2**16 intervals are longer than any probe interval.
    wait = options.min_interval_seconds * 2 ** min(errors_in_row - 1, 16)
    return int(min(wait, options.probe_interval_seconds))


def days_without_update(last_entry: datetime | None, *, now: datetime) -> int:
    """Return the full days since the newest entry; 0 if there is none or it is in the future."""
    return max((now - last_entry).days, 0) if last_entry else 0


def health_score(
    *,
    errors_in_row: int,
    no_updates_days: int,
    may_miss_items: bool = False,
    skipped_items: int = 0,
    has_no_links: bool = False,
) -> int:
    """Return 0 to 100: minus 10 per failure in a row, minus 2 per silent day (at most 60).

    A feed that may miss items loses 20, one with items beyond the limit 20, and one without any
    link 50.
    """
    lost = 10 * errors_in_row + min(2 * no_updates_days, 60)
    lost += 20 * may_miss_items + 20 * bool(skipped_items) + 50 * has_no_links
    return max(100 - lost, 0)


def newest_date(dates: Iterable[datetime | None], *, now: datetime) -> datetime | None:
    """Return the newest date that is at most one day in the future."""
    limit = now + timedelta(days=1)
    return max((date for date in dates if date is not None and date <= limit), default=None)


def usual_gap_seconds(dates: Iterable[datetime], *, now: datetime) -> float | None:
    """Return the median gap between the newest entries; None with fewer than two dates."""
    latest = sorted((date for date in dates if date <= now), reverse=True)
    latest = latest[:_RECENT_ENTRIES]
    gaps = [(a - b).total_seconds() for a, b in pairwise(latest)]
    return median(gaps) if gaps else None


_NOT_MODIFIED = 304
_GONE = 410


@dataclass(frozen=True, slots=True)
class PollResult:
    """What polling one feed gave: a word to count by, and the new columns of the feed's row.

    `moved_to` is the new URL of a feed that has moved, `moved_to_canon` its canonical form.
    `items_without_link` and `left_out` count entries of the feed that are not among `entries`, and
    so do `same_page`, the links that lead to a part of a page that another entry leads to. `is_cut`
    means that the feed was longer than we read, `older_url` is the page with its entries before
    these. `size_chars` is about how much text the result holds in memory.
    """

    feed: FeedRow
    outcome: str
    changes: Mapping[str, Any]
    entries: Mapping[str, FeedEntry] = field(default_factory=dict)
    moved_to: str = ""
    moved_to_canon: str = ""
    items: int = 0
    items_without_link: int = 0
    left_out: int = 0
    same_page: tuple[str, ...] = ()
    is_cut: bool = False
    older_url: str = ""
    older_pages: int = 0
    size_chars: int = 0

    @property
    def has_articles(self) -> bool:
        """Return whether there is more to write than the feed's own row."""
        return bool(self.entries or self.moved_to)

    @property
    def notes(self) -> list[str]:
        """Return what is to be noted about a feed that was read."""
        notes = []
        if self.same_page:
            count, example = len(self.same_page), self.same_page[0]
            notes.append(f"{count} items share a page with another, such as {example}")
        if self.older_pages:
            notes.append(f"{self.older_pages} older pages were read")
        return notes

    @property
    def dates(self) -> list[datetime]:
        """Return when its entries were published."""
        return _dates(self.entries)


def _dates(entries: Mapping[str, FeedEntry]) -> list[datetime]:
    return [entry.published_at for entry in entries.values() if entry.published_at]


async def parse_response(response: Response, pool: Pool) -> Outcome:
    """Parse the feed of a response in another process."""
    fetched = (response.body, response.headers.get("content-type", ""), response.final_url)
    return await asyncio.wrap_future(pool.submit(fetched))


@dataclass(frozen=True, slots=True)
class FeedPoll:
    """One poll of a feed, with the options that count for this feed."""

    feed: FeedRow
    options: PollOptions
    now: datetime

    async def evaluate(self, response: Response, pool: Pool) -> PollResult:
        """Return what a response says about the feed; its body is parsed in another process."""
        if response.status == _NOT_MODIFIED:
            return self._unchanged(response, "not_modified")
        # The server says that the feed will not come back, unlike with any other error.
        if response.status == _GONE:
            changes = {**self._checked(response), "status": "gone", "remark": "410 Gone"}
            return PollResult(self.feed, "gone", changes)
        if response.status != 200:
            # Temporary failures are soft; all others are hard and count double.
            kind = "soft" if response.status in RETRYABLE_STATUSES else "hard"
            return self.failed(f"status_{response.status}", kind=kind, response=response)
        # Many servers ignore conditional requests; the same bytes need not be parsed again.
        body_hash = hashlib.sha256(response.body).hexdigest()
        if body_hash == self.feed.body_hash:
            return self._unchanged(response, "same_body")
        parsed = await parse_response(response, pool)
        if not isinstance(parsed, Done):
            return self.failed(f"parse_{parsed.reason}", kind="hard", response=response)
        return self._read(response, parsed.value, body_hash)

    def failed(
        self,
        reason: str,
        *,
        kind: str = "soft",
        response: Response | None = None,
        remark: str = "",
    ) -> PollResult:
        """Count the failure, a hard one double; after `errors_until_dead` the feed is dead."""
        feed, options = self.feed, self.options
        errors = feed.errors_in_row + (2 if kind == "hard" else 1)
        silent = days_without_update(feed.last_entry_date, now=self.now)
        wait, asked = failure_wait_seconds(errors, options=options), 0
        if response is not None and response.status != 200:
            # A Retry-After header can only lengthen the wait.
            asked = requested_wait_seconds(response.headers, now=self.now)
        changes = {
            **self._checked(response),
            "status": "dead" if errors >= options.errors_until_dead else feed.status,
            "errors_in_row": errors,
            "failing_since": feed.failing_since or self.now,
            "no_updates_days": silent,
            "health_score": health_score(errors_in_row=errors, no_updates_days=silent),
            "next_poll_at": next_poll_at(feed, wait, now=self.now, at_least=asked),
            "remark": remark or f"{kind} error: {reason}",
        }
        return PollResult(feed, reason, changes)

    def postponed(self, wait_seconds: float) -> PollResult:
        """Return the result for a feed whose host has asked us to wait: it was not fetched."""
        due = next_poll_at(self.feed, 0, now=self.now, at_least=wait_seconds)
        return PollResult(self.feed, "host_waits", {"claimed_until": None, "next_poll_at": due})

    def internal_error(self, cause: str) -> PollResult:
        """Return the result for a feed that our own code failed on."""
        return self.failed(INTERNAL_ERROR, remark=f"internal error: {cause}")

    def _unchanged(self, response: Response, outcome: str) -> PollResult:
        feed = self.feed
        changes = self._checked(response)
        if may_miss_items(feed.turned_over_at, now=self.now):
            # A feed that turned over may do so again: a quiet hour must not lengthen its interval.
            interval = feed.interval_seconds or self.options.turnover_interval_seconds
            changes |= self._alive(response, feed.last_entry_date, interval)
            changes["next_poll_at"] = next_poll_at(feed, interval, now=self.now)
        else:
            changes |= self._alive(response, feed.last_entry_date, self._interval((), False))
            if feed.may_miss_items:
                changes |= {"may_miss_items": False, "remark": ""}
        moved_to, canonical = _move(feed, response)
        return PollResult(feed, outcome, changes, moved_to=moved_to, moved_to_canon=canonical)

    def _read(self, response: Response, parsed: Feed, body_hash: str) -> PollResult:
        feed = self.feed
        # Hashes and dates are computed here, outside the write transaction of the batch.
        entries = entries_by_url_hash(parsed.entries)
        dates = _dates(entries)
        newest = newest_date([*dates, feed.last_entry_date], now=self.now)
        found_new = newest is not None and newest != feed.last_entry_date
        has_no_links = bool(parsed.entries) and not entries
        # Such a feed, and one that was cut, is read again in full even if its bytes are the same.
        is_known = not has_no_links and not response.truncated
        interval = self._interval(dates, found_new)
        changes = {
            **self._checked(response),
            **self._alive(response, newest, interval, has_no_links=has_no_links),
            "etag": validator(response.headers, "etag") if is_known else "",
            "last_modified": validator(response.headers, "last-modified") if is_known else "",
            "body_hash": body_hash if is_known else "",
            "usual_gap_seconds": int(usual_gap_seconds(dates, now=self.now) or 0),
            "title": parsed.title or feed.title,
            "hub_url": parsed.hub_url[:MAX_FEED_URL],
        }
        if has_no_links:
            changes["remark"] = f"none of its {len(parsed.entries)} items links to a page"
        moved_to, canonical = _move(feed, response)
        return PollResult(
            feed,
            "no_links" if has_no_links else "read",
            changes,
            entries,
            moved_to=moved_to,
            moved_to_canon=canonical,
            items=len(parsed.entries),
            items_without_link=sum(not entry.link for entry in parsed.entries),
            left_out=parsed.left_out,
            same_page=parsed.same_page,
            is_cut=response.truncated,
            older_url=_same_origin(parsed.older_url, response.final_url),
            size_chars=text_size(entries.values()),
        )

    def _interval(self, dates: Sequence[datetime], found_new: bool) -> int:
        return interval_seconds(
            dates,
            now=self.now,
            previous=self.feed.interval_seconds,
            found_new=found_new,
            options=self.options,
        )

    def _checked(self, response: Response | None) -> dict[str, Any]:
        return {
            "last_crawled": self.now,
            "checked_at": self.now,
            # 0 means that there was no response at all.
            "last_status": response.status if response is not None else 0,
            "claimed_until": None,
        }

    def _alive(
        self,
        response: Response,
        newest: datetime | None,
        interval: int,
        *,
        has_no_links: bool = False,
    ) -> dict[str, Any]:
        feed = self.feed
        silent = days_without_update(newest, now=self.now)
        asked = requested_wait_seconds(response.headers, now=self.now)
        return {
            "status": "active",
            "errors_in_row": 0,
            "failing_since": None,
            "last_success_at": self.now,
            "last_entry_date": newest,
            "no_updates_days": silent,
            "health_score": health_score(
                errors_in_row=0,
                no_updates_days=silent,
                may_miss_items=feed.may_miss_items,
                skipped_items=feed.skipped_items,
                has_no_links=has_no_links,
            ),
            "interval_seconds": interval,
            "next_poll_at": next_poll_at(feed, interval, now=self.now, at_least=asked),
            # Removes our remark about the failures; without any, the notes are not touched.
            **({"remark": ""} if feed.errors_in_row else {}),
        }


def next_poll_at(
    feed: FeedRow, wait_seconds: int, *, now: datetime, at_least: float = 0
) -> datetime:
    """Return when to poll the feed again; the wait differs a little from feed to feed.

    `at_least` is the wait that the site has asked for.
    """
    wait = max(jittered(wait_seconds, key=feed.feed_url_canon), at_least)
    return now + timedelta(seconds=wait)


def text_size(entries: Iterable[FeedEntry]) -> int:
    """Return about how many characters of text entries hold."""
    return sum(len(one.content.text) + len(one.summary) for one in entries)


def _same_origin(url: str, other: str) -> str:
    """Return a URL if it is of the site of another one, else ''."""
    try:
        return url if url and URL(url).origin() == URL(other).origin() else ""
    except ValueError:
        return ""


def may_miss_items(turned_over_at: datetime | None, *, now: datetime) -> bool:
    """Return whether a feed has turned over lately, so that items may be missed again."""
    return turned_over_at is not None and now - turned_over_at < _MAY_MISS_FOR


def _move(feed: FeedRow, response: Response) -> tuple[str, str]:
    """Return the new URL and its canonical form if all redirects to it were permanent, else ''."""
    new = response.final_url
    is_new = new != feed.feed_url and len(new) <= MAX_FEED_URL
    if not (is_new and is_permanent_redirect(response.redirect_statuses)):
        return "", ""
    return new, canonical_url(new)
