"""What a person does with feeds: list and find them, pause, resume and remove them, set them up."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.discovery.verdicts import ACTIVE, REMOVED
from news_platform.rss.feed_list import OPML
from news_platform.rss.feed_settings import FeedSettings, settings_text
from news_platform.rss.ledger.feed_rows import POLLED, read_feed, upsert_feed
from news_platform.rss.ledger.tables import FEED_POLLS, FEEDS, RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.sql.engine import read_transaction
from news_platform.web.urls import canonical_url

PERSON = "person"
# So many feeds are named when a text fits more than one.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """Which feeds to list; '' means any. A group includes the groups below it."""

    status: str = ""
    group: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class FeedHistory:
    """The last polls of a feed, newest first, and its articles by status and by reason."""

    polls: Sequence[sa.Row[Any]]
    articles: Mapping[str, int]
    reasons: Mapping[str, int]
    robots: Mapping[str, int]


def list_feeds(engine: sa.Engine, wanted: FeedFilter) -> list[sa.Row[Any]]:
    """Return the rows of feeds by group and URL."""
    conditions = []
    if wanted.status:
        conditions.append(FEEDS.c.status == wanted.status)
    if wanted.group:
        below = FEEDS.c.feed_group.startswith(f"{wanted.group}/", autoescape=True)
        conditions.append(sa.or_(FEEDS.c.feed_group == wanted.group, below))
    if wanted.text:
        conditions.append(_contains(wanted.text))
    chosen = sa.select(FEEDS).where(*conditions)
    with read_transaction(engine) as connection:
        ordered = chosen.order_by(FEEDS.c.feed_group, FEEDS.c.feed_url_canon)
        return list(connection.execute(ordered))


def find_feed(engine: sa.Engine, named: str) -> sa.Row[Any]:
    """Return the feed of a URL, or the only one whose URL or title contains a text.

    Raise InputError if there is none, or more than one.
    """
    row = read_feed(engine, canonical_url(named)) or read_feed(engine, named)
    if row is not None:
        return row
    found = list_feeds(engine, FeedFilter(text=named))
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"there is no feed {named!r}: `feeds list` shows all, `feeds add` adds one"
        raise InputError(message, thing=named)
    urls = ", ".join(one.feed_url for one in found[:_SHOWN])
    raise InputError(f"{named!r} fits {len(found)} feeds, such as {urls}", thing=named)


def read_history(engine: sa.Engine, feed_url_canon: str, *, limit: int = 10) -> FeedHistory:
    """Return the last polls of a feed and what became of the articles that it found first."""
    polls = sa.select(FEED_POLLS).where(FEED_POLLS.c.feed_url == feed_url_canon)
    newest = polls.order_by(FEED_POLLS.c.polled_at.desc(), FEED_POLLS.c.id.desc()).limit(limit)
    is_here = RAW.c.feed_url == feed_url_canon
    open_ones = (is_here, RAW.c.error_msg != "", RAW.c.status != "stored")
    with read_transaction(engine) as connection:
        rule = RAW.c.robots_rule + sa.literal(" in ") + RAW.c.robots_file
        is_closed = (is_here, RAW.c.status == "skipped", RAW.c.robots_file != "")
        return FeedHistory(
            polls=connection.execute(newest).all(),
            articles=_counts(connection, RAW.c.status, is_here),
            reasons=_counts(connection, RAW.c.error_msg, *open_ones),
            robots=_counts(connection, rule, *is_closed),
        )


def _counts(
    connection: sa.Connection,
    column: sa.ColumnElement[str],
    *conditions: sa.ColumnElement[bool],
) -> dict[str, int]:
    count = sa.func.count()
    chosen = sa.select(column, count).where(*conditions).group_by(column)
    ordered = chosen.order_by(count.desc(), column).limit(_SHOWN)
    return {value: number for value, number in connection.execute(ordered)}


def pause_feed(engine: sa.Engine, row: sa.Row[Any]) -> None:
    """Stop polling a feed until a person resumes it; raise InputError if it is not polled."""
    if row.status not in POLLED:
        raise InputError(f"{row.feed_url!r} is {row.status} and not polled", thing=row.feed_url)
    _update(engine, row.feed_url_canon, status="paused")


def resume_feed(engine: sa.Engine, row: sa.Row[Any]) -> None:
    """Poll a paused, retired, dead or gone feed again, at once.

    Raise InputError for a feed that discovery did not accept.
    """
    if row.status in ("rejected", "unreachable"):
        cure = f"`feeds add {row.feed_url} --force` accepts it"
        message = f"{row.feed_url!r} is {row.status} ({row.verdict}): {cure}"
        raise InputError(message, thing=row.feed_url)
    values = {"status": "active", "verdict": ACTIVE, "next_poll_at": None, "errors_in_row": 0}
    _update(engine, row.feed_url_canon, remark="", **values)


def remove_feed(engine: sa.Engine, row: sa.Row[Any], *, now: datetime) -> bool:
    """Retire a feed with its history; return whether the root's file still lists it."""
    values = {"status": "retired", "verdict": REMOVED, "checked_at": now}
    _update(engine, row.feed_url_canon, remark="removed by a person", **values)
    return bool(row.origin.startswith(f"{OPML} "))


def set_up_feed(
    engine: sa.Engine,
    feed_url_canon: str,
    *,
    settings: FeedSettings | None = None,
    group: str | None = None,
    origin: str | None = None,
) -> None:
    """Write the settings, the group and the origin of a feed, as far as they are given."""
    values: dict[str, Any] = {}
    if settings is not None:
        values["own_settings"] = settings_text(settings)
        # What was read under other settings must not count as known.
        values |= {"etag": "", "last_modified": "", "body_hash": "", "next_poll_at": None}
        if settings.language:
            values["lang"] = settings.language
    if group is not None:
        values["feed_group"] = group
    if origin is not None:
        values["origin"] = origin
    if values:
        _update(engine, feed_url_canon, **values)


def _update(engine: sa.Engine, feed_url_canon: str, **values: Any) -> None:
    with write_transaction(engine) as transaction:
        upsert_feed(transaction, feed_url_canon, **values)


def _contains(text: str) -> sa.ColumnElement[bool]:
    url = FEEDS.c.feed_url_canon.icontains(text, autoescape=True)
    return sa.or_(url, FEEDS.c.title.icontains(text, autoescape=True))
