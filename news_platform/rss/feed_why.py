"""Explain why nothing, or less than expected, comes from a feed."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.rss.discovery.verdicts import RULES, UNLISTED
from news_platform.rss.feed_admin import FeedHistory
from news_platform.rss.feed_alarms import AlarmOptions, is_silent
from news_platform.rss.ledger.feed_rows import remark_of


@dataclass(frozen=True, slots=True)
class FeedExplanation:
    """The reasons in order of weight; empty if the feed does what it should."""

    reasons: tuple[str, ...]
    rhythm: str
    next_step: str


def explain_feed(
    row: sa.Row[Any], history: FeedHistory, *, alarms: AlarmOptions, now: datetime
) -> FeedExplanation:
    """Return why nothing comes from a feed, its rhythm, and what happens next."""
    reasons = (*_state(row, now=now), *_polls(row, history), *_articles(row, history))
    silence = _silence(row, alarms, now=now)
    return FeedExplanation(
        reasons=tuple(filter(None, (*reasons, silence))),
        rhythm=rhythm_text(row, now=now),
        next_step=_next_step(row, now=now),
    )


def rhythm_text(row: sa.Row[Any], *, now: datetime) -> str:
    """Return how often a feed publishes, and how long ago it did last."""
    usual = f"every {span(row.usual_gap_seconds)}" if row.usual_gap_seconds else "unknown"
    if row.last_entry_date is None:
        return f"usual gap {usual}, no dated entry"
    ago = span((now - row.last_entry_date).total_seconds())
    return f"usual gap {usual}, newest entry {ago} ago"


def span(seconds: float) -> str:
    """Return a length of time for people, in its largest unit."""
    for size, unit in ((86_400, "days"), (3_600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{max(seconds, 0):.0f} seconds"


def _state(row: sa.Row[Any], *, now: datetime) -> Iterator[str]:
    remark = remark_of(row.notes)
    if row.status in ("rejected", "unreachable"):
        rule = RULES.get(row.verdict)
        meaning = f": {rule.meaning}" if rule else ""
        yield f"discovery says {row.verdict or row.status}{meaning} ({remark})"
    elif row.status == "paused":
        yield "a person paused it"
    elif row.status == "retired":
        yield f"it is retired ({remark})"
    elif row.status == "gone":
        yield f"it is gone ({remark})"
    elif row.status == "dead":
        yield "it failed so often that it is only probed once a week"
    if row.failing_since is not None:
        failing = span((now - row.failing_since).total_seconds())
        yield f"its polls have failed for {failing}: {remark or 'no reason recorded'}"


def _polls(row: sa.Row[Any], history: FeedHistory) -> Iterator[str]:
    newest = next(iter(history.polls), None)
    if newest is None:
        if row.status == "active":
            yield "it has not been polled yet"
    elif newest.outcome == "no_links":
        yield f"none of its {newest.items} items links to a page"
    elif newest.outcome == "read" and not newest.items:
        yield "it is an empty feed: its last response lists no items"
    elif newest.outcome in ("not_modified", "same_body") and row.failing_since is None:
        yield "its last response was the same as the one before"
    if row.may_miss_items:
        yield "it turns over between two polls: items may have been missed"
    if row.skipped_items:
        yield f"{row.skipped_items} items of its last response are beyond the limit of a poll"


def _articles(row: sa.Row[Any], history: FeedHistory) -> Iterator[str]:
    for rule, count in history.robots.items():
        yield f"robots.txt forbids {count} of its articles: {rule}"
    for status, text in (
        ("pending", "of its articles wait to be fetched: is a worker running?"),
        ("error", "of its articles failed"),
        ("duplicate", "of its articles were carried by other feeds before"),
    ):
        count = history.articles.get(status, 0)
        if count and not history.articles.get("stored"):
            yield f"{count} {text}"
    top = next(iter(history.reasons.items()), None)
    if top is not None and not history.robots:
        yield f"the most frequent reason of its articles, {top[1]} times: {top[0]}"


def _silence(row: sa.Row[Any], alarms: AlarmOptions, *, now: datetime) -> str:
    if not is_silent(row.last_entry_date, row.usual_gap_seconds, options=alarms, now=now):
        return ""
    return f"it is silent against its own rhythm: {rhythm_text(row, now=now)}"


def _next_step(row: sa.Row[Any], *, now: datetime) -> str:
    if row.status in ("rejected", "unreachable"):
        return f"it is checked again at {_moment(row.next_check_at, now)}"
    if row.status in ("active", "dead"):
        return f"its next poll is at {_moment(row.next_poll_at, now)}"
    if row.status == "retired" and row.verdict == UNLISTED:
        return "nothing, until feeds.opml lists it again or a person resumes it"
    return "nothing, until a person resumes it"


def _moment(moment: datetime | None, now: datetime) -> str:
    if moment is None or moment <= now:
        return "the next run"
    return f"{moment:%Y-%m-%d %H:%M} UTC, in {span((moment - now).total_seconds())}"
