"""The verdicts of discovery: what each means, and when a feed with it is checked again."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from news_platform.isolation.boundary import INTERNAL_ERROR

# The server may answer tomorrow. Any other status from 400 is a decision of the site.
_TEMPORARY_STATUSES = frozenset((408, 425, 429))
_MISSING_STATUSES = frozenset((404, 410))
# Reasons of a FetchError for which our own guard refuses the address.
_BLOCKED_REASONS = frozenset(("blocked_address", "blocked_port", "bad_url"))


@dataclass(frozen=True, slots=True)
class VerdictRule:
    """What a verdict means; the wait doubles with each try in a row, from the first to the last."""

    meaning: str
    first_days: int
    longest_days: int
    is_temporary: bool = False


ACTIVE = "active"
LEADS_ELSEWHERE = "leads_elsewhere"
UNLISTED = "unlisted"
REMOVED = "removed"
RULES: dict[str, VerdictRule] = {
    "unreachable": VerdictRule(
        "no answer (timeout, DNS, connection) or a temporary status (408, 425, 429, 5xx)",
        1,
        30,
        is_temporary=True,
    ),
    "unreadable": VerdictRule(
        "its parser ran out of time or memory; the machine may have been busy",
        1,
        30,
        is_temporary=True,
    ),
    INTERNAL_ERROR: VerdictRule("our own code failed on it", 1, 30, is_temporary=True),
    "blocked": VerdictRule("the guard does not allow its address", 7, 30),
    "refused": VerdictRule("the site refuses us (401, 402, 403 and other 4xx)", 7, 30),
    "missing": VerdictRule("there is nothing at this address (404, 410)", 7, 60),
    "stale": VerdictRule("its newest entry is older than FRESH_DAYS_LIMIT", 7, 30),
    "undated": VerdictRule("no entry has a date, so nobody knows whether it is alive", 30, 60),
    "language": VerdictRule("it is not in a wanted language", 30, 60),
    "not_a_feed": VerdictRule("the answer is not a feed", 30, 90),
    LEADS_ELSEWHERE: VerdictRule("a site; its feed is registered under its own address", 30, 30),
}

FeedState = Literal["active", "unreachable", "rejected"]


def status_verdict(status: int) -> str:
    """Return the verdict about a candidate that answered with this status, not 200."""
    if status in _TEMPORARY_STATUSES or status >= 500:
        return "unreachable"
    return "missing" if status in _MISSING_STATUSES else "refused"


def failure_verdict(reason: str) -> str:
    """Return the verdict about a candidate that gave no response, by the reason of FetchError."""
    return "blocked" if reason in _BLOCKED_REASONS else "unreachable"


def is_temporary(verdict: str) -> bool:
    """Return whether the next day may bring another verdict about the same feed."""
    return verdict in RULES and RULES[verdict].is_temporary


def feed_state(verdict: str) -> FeedState:
    """Return the status of a feed with this verdict."""
    if verdict == ACTIVE:
        return "active"
    return "unreachable" if is_temporary(verdict) else "rejected"


def next_check_at(verdict: str, *, tries: int, now: datetime) -> datetime | None:
    """Return when to look again after this verdict was given `tries` times in a row."""
    if verdict == ACTIVE:
        return None
    rule = RULES[verdict]
    days = min(rule.first_days * 2 ** min(tries - 1, 16), rule.longest_days)
    # An hour early: the daily run must find a feed that it checked at this time yesterday.
    return now + timedelta(days=days) - timedelta(hours=1)
