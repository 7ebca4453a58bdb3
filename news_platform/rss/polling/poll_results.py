"""The response of a feed in, what to record about the feed and its entries out."""

import asyncio
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from news_platform.isolation.boundary import INTERNAL_ERROR
from news_platform.isolation.pool import Done, Pool
from news_platform.rss.feeds import Feed, FeedEntry
from news_platform.rss.ledger.entries import entries_by_url_hash
from news_platform.rss.ledger.feed_rows import MAX_FEED_URL, FeedRow
from news_platform.rss.polling import poll_schedule
from news_platform.rss.polling.poll_schedule import PollOptions
from news_platform.web.fetch import Response
from news_platform.web.responses import (
    conditional_headers,
    is_permanent_redirect,
    requested_wait_seconds,
    validator,
)
from news_platform.web.urls import canonical_url

__all__ = ["PollResult", "conditional_headers", "evaluate", "failed", "internal_error"]

_NOT_MODIFIED = 304
_GONE = 410
# Temporary failures; all others are hard and count double.
_SOFT_STATUSES = frozenset((408, 425, 429, 500, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class PollResult:
    """What polling one feed gave: a word to count by, and the new columns of the feed's row.

    `moved_to` is the new URL of a feed that has moved, `moved_to_canon` its canonical form.
    `items_without_link` and `left_out` count entries of the feed that are not among `entries`;
    `is_cut` means that the feed was longer than we read. `size_chars` is about how much text the
    result holds in memory.
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
    is_cut: bool = False
    size_chars: int = 0

    @property
    def has_articles(self) -> bool:
        """Return whether there is more to write than the feed's own row."""
        return bool(self.entries or self.moved_to)


async def evaluate(
    feed: FeedRow, response: Response, pool: Pool, *, options: PollOptions, now: datetime
) -> PollResult:
    """Return what a response says about a feed; its body is parsed in another process."""
    if response.status == _NOT_MODIFIED:
        return _unchanged(feed, response, "not_modified", options=options, now=now)
    # The server says that the feed will not come back, unlike with any other error.
    if response.status == _GONE:
        return PollResult(
            feed, "gone", {**_checked(response, now), "status": "gone", "remark": "410 Gone"}
        )
    if response.status != 200:
        kind = "soft" if response.status in _SOFT_STATUSES else "hard"
        wait = requested_wait_seconds(response.headers, now=now)
        reason = f"status_{response.status}"
        return failed(
            feed, reason, options=options, now=now, wait=wait, kind=kind, response=response
        )
    # Many servers ignore conditional requests; the same bytes need not be parsed again.
    body_hash = hashlib.sha256(response.body).hexdigest()
    if body_hash == feed.body_hash:
        return _unchanged(feed, response, "same_body", options=options, now=now)
    fetched = (response.body, response.headers.get("content-type", ""), response.final_url)
    parsed = await asyncio.wrap_future(pool.submit(fetched))
    if not isinstance(parsed, Done):
        reason = f"parse_{parsed.reason}"
        return failed(feed, reason, options=options, now=now, kind="hard", response=response)
    return _read(feed, response, parsed.value, body_hash, options=options, now=now)


def _read(
    feed: FeedRow,
    response: Response,
    parsed: Feed,
    body_hash: str,
    *,
    options: PollOptions,
    now: datetime,
) -> PollResult:
    # Hashes and dates are computed here, outside the write transaction of the batch.
    entries = entries_by_url_hash(parsed.entries)
    dates = [entry.published_at for entry in entries.values() if entry.published_at]
    newest = poll_schedule.newest([*dates, feed.last_entry_date], now=now)
    found_new = newest is not None and newest != feed.last_entry_date
    interval = poll_schedule.interval_seconds(
        dates, now=now, previous=feed.interval_seconds, found_new=found_new, options=options
    )
    linkless = sum(not entry.link for entry in parsed.entries)
    has_no_links = bool(parsed.entries) and not entries
    # Without validators such a feed is read again in full, so that its note stays true.
    validators = {} if has_no_links else _validators(response, body_hash)
    changes = {
        **_checked(response, now),
        **_alive(feed, response, newest, interval, now=now, has_no_links=has_no_links),
        "etag": "",
        "last_modified": "",
        "body_hash": "",
        **validators,
        "usual_gap_seconds": int(poll_schedule.usual_gap_seconds(dates, now=now) or 0),
        "title": parsed.title or feed.title,
    }
    if has_no_links:
        changes["remark"] = f"none of its {len(parsed.entries)} items links to a page"
    moved_to = _moved_to(feed, response)
    return PollResult(
        feed,
        "no_links" if has_no_links else "read",
        changes,
        entries,
        moved_to=moved_to,
        moved_to_canon=canonical_url(moved_to) if moved_to else "",
        items=len(parsed.entries),
        items_without_link=linkless,
        left_out=parsed.left_out,
        is_cut=response.truncated,
        size_chars=sum(len(one.content.text) + len(one.summary) for one in entries.values()),
    )


def _validators(response: Response, body_hash: str) -> dict[str, str]:
    # A feed that was cut is not known in full: the same bytes must be looked at again.
    if response.truncated:
        return {}
    return {
        "etag": validator(response.headers, "etag"),
        "last_modified": validator(response.headers, "last-modified"),
        "body_hash": body_hash,
    }


def _unchanged(
    feed: FeedRow, response: Response, outcome: str, *, options: PollOptions, now: datetime
) -> PollResult:
    interval = poll_schedule.interval_seconds(
        (), now=now, previous=feed.interval_seconds, found_new=False, options=options
    )
    alive = _alive(feed, response, feed.last_entry_date, interval, now=now)
    return PollResult(feed, outcome, {**_checked(response, now), **alive})


def failed(
    feed: FeedRow,
    reason: str,
    *,
    options: PollOptions,
    now: datetime,
    wait: int = 0,
    kind: str = "soft",
    response: Response | None = None,
) -> PollResult:
    """Count the failure, a hard one double; after `errors_until_dead` the feed is dead."""
    errors = feed.errors_in_row + (2 if kind == "hard" else 1)
    silent = poll_schedule.days_without_update(feed.last_entry_date, now=now)
    # A Retry-After header can only lengthen the wait.
    wait = max(poll_schedule.failure_wait_seconds(errors, options=options), wait)
    return PollResult(
        feed,
        reason,
        {
            **_checked(response, now),
            "status": "dead" if errors >= options.errors_until_dead else feed.status,
            "errors_in_row": errors,
            "failing_since": feed.failing_since or now,
            "no_updates_days": silent,
            "health_score": poll_schedule.health_score(
                errors_in_row=errors, no_updates_days=silent
            ),
            "next_poll_at": next_poll_at(feed, wait, now=now),
            "remark": f"{kind} error: {reason}",
        },
    )


def internal_error(feed: FeedRow, cause: str, *, options: PollOptions, now: datetime) -> PollResult:
    """Return the result for a feed that our own code failed on."""
    result = failed(feed, INTERNAL_ERROR, options=options, now=now)
    return replace(result, changes={**result.changes, "remark": f"internal error: {cause}"})


def _checked(response: Response | None, now: datetime) -> dict[str, Any]:
    # Status 0 means that there was no response at all.
    status = response.status if response is not None else 0
    return {"last_crawled": now, "checked_at": now, "last_status": status, "claimed_until": None}


def _alive(
    feed: FeedRow,
    response: Response,
    newest: datetime | None,
    interval: int,
    *,
    now: datetime,
    has_no_links: bool = False,
) -> dict[str, Any]:
    silent = poll_schedule.days_without_update(newest, now=now)
    wait = max(interval, requested_wait_seconds(response.headers, now=now))
    return {
        "status": "active",
        "errors_in_row": 0,
        "failing_since": None,
        "last_success_at": now,
        "last_entry_date": newest,
        "no_updates_days": silent,
        "health_score": poll_schedule.health_score(
            errors_in_row=0,
            no_updates_days=silent,
            may_miss_items=feed.may_miss_items,
            skipped_items=feed.skipped_items,
            has_no_links=has_no_links,
        ),
        "interval_seconds": interval,
        "next_poll_at": next_poll_at(feed, wait, now=now),
        # Removes our remark about the failures; without any, the notes are not touched.
        **({"remark": ""} if feed.errors_in_row else {}),
    }


def next_poll_at(feed: FeedRow, wait_seconds: int, *, now: datetime) -> datetime:
    """Return when to poll the feed again; the wait differs a little from feed to feed."""
    return now + timedelta(seconds=poll_schedule.jittered(wait_seconds, key=feed.feed_url_canon))


def _moved_to(feed: FeedRow, response: Response) -> str:
    """Return the new URL if every redirect to it was permanent, else ''."""
    new = response.final_url
    is_new = new != feed.feed_url and len(new) <= MAX_FEED_URL
    return new if is_new and is_permanent_redirect(response.redirect_statuses) else ""
