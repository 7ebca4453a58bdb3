"""Deliver the matches of saved queries: to a webhook, at least once each, and as feeds.

Every message has an id that stays the same when it is sent again, in the body and in the header
`Idempotency-Key`. A webhook that fails is tried again later, and never keeps others waiting.
"""

import io
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.errors import ConfigError, FetchError
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.exports.formats import FeedChannel, TextFormat, feed_item, write_articles
from news_platform.rss.exports.selection import exported_columns
from news_platform.rss.ledger.tables import ALERT_MATCHES, RAW
from news_platform.rss.saved_queries.query_file import SavedQuery, webhook_secret, webhook_url
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.web.webhook import post_json

FOLDER = "alerts"
FEEDS: Mapping[str, TextFormat] = {"feed.xml": "rss", "feed.json": "jsonfeed"}
# Seconds before the first retry; each further one waits twice as long, up to six hours.
_FIRST_PAUSE_SECONDS = 60
_LONGEST_PAUSE_SECONDS = 6 * 3600

# The address, the document, the headers, and the secret that signs them.
Post = Callable[[str, object, Mapping[str, str], str], object]


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """Limits of one run, and when a match is given up."""

    messages_per_run: int = 200
    # A webhook that fails so often in a row is left alone until the next run.
    failures_per_run: int = 3
    seconds_per_run: float = 40.0
    give_up_days: float = 7.0
    feed_items: int = 100


@dataclass(frozen=True, slots=True)
class DeliveryReport:
    """How many messages were accepted, failed, and were given up; and what failed, by query."""

    delivered: int = 0
    failed: int = 0
    given_up: int = 0
    failures: dict[str, dict[str, int]] = field(default_factory=dict)


def deliver_matches(
    engine: sa.Engine,
    queries: Sequence[SavedQuery],
    *,
    variables: Mapping[str, str],
    options: DeliveryOptions,
    clock: Callable[[], datetime],
    post: Post | None = None,
) -> DeliveryReport:
    """Post the matches that are due, oldest first; a failure is recorded with its match."""
    by_name = {query.name: query for query in queries if query.has_webhook}
    failures = dict.fromkeys(by_name, 0)
    until = clock() + timedelta(seconds=options.seconds_per_run)
    delivered, reasons = 0, {name: Counter[str]() for name in by_name}
    for match in _due_matches(engine, list(by_name), limit=options.messages_per_run, now=clock()):
        if failures[match.alert] >= options.failures_per_run or clock() >= until:
            continue
        reason = _deliver(engine, match, by_name[match.alert], variables, post or _post, clock())
        delivered += not reason
        reasons[match.alert] += Counter([reason] if reason else [])
        failures[match.alert] = failures[match.alert] + 1 if reason else 0
    return DeliveryReport(
        delivered,
        failed=sum(counts.total() for counts in reasons.values()),
        given_up=_give_up(engine, options, now=clock()),
        failures={name: dict(counts) for name, counts in reasons.items() if counts},
    )


def _due_matches(
    engine: sa.Engine, names: Sequence[str], *, limit: int, now: datetime
) -> list[sa.Row[Any]]:
    matches = ALERT_MATCHES.c
    is_due = sa.or_(matches.next_try_at.is_(None), matches.next_try_at <= now)
    columns = exported_columns(engine.dialect.name)
    chosen = (
        sa.select(matches.alert, matches.delivery_id, matches.tries, matches.matched_at, *columns)
        .join_from(ALERT_MATCHES, RAW, matches.row_id == RAW.c.row_id)
        .where(matches.alert.in_(names), matches.delivered_at.is_(None), is_due)
        .where(matches.error_msg.not_like("given up%"))
        .order_by(matches.matched_at, RAW.c.row_id)
        .limit(limit)
    )
    with read_transaction(engine) as connection:
        return list(connection.execute(chosen))


def message(match: sa.Row[Any]) -> dict[str, object]:
    """Return what is posted: the id, the query, a line for chat systems, and the article."""
    return {
        "id": match.delivery_id,
        "alert": match.alert,
        "matched_at": match.matched_at.isoformat(),
        "text": f"{match.alert}: {match.title} ({match.source}) {match.article_url_canon}",
        "article": feed_item(match),
    }


def _post(url: str, document: object, headers: Mapping[str, str], secret: str) -> object:
    return post_json(url, document, headers=headers, secret=secret)


def _deliver(
    engine: sa.Engine,
    match: sa.Row[Any],
    query: SavedQuery,
    variables: Mapping[str, str],
    post: Post,
    now: datetime,
) -> str:
    """Post one match; return the reason if that failed, else ''."""
    try:
        headers = {"Idempotency-Key": match.delivery_id}
        secret = webhook_secret(query, variables)
        post(webhook_url(query, variables), message(match), headers, secret)
    except (FetchError, ConfigError) as error:
        # Also a rejected one is tried again: an operator may be mending the receiver.
        pause = min(_FIRST_PAUSE_SECONDS * 2**match.tries, _LONGEST_PAUSE_SECONDS)
        values = {"error_msg": str(error), "next_try_at": now + timedelta(seconds=pause)}
        _write(engine, match, tries=match.tries + 1, **values)
        return error.reason if isinstance(error, FetchError) else "setting"
    _write(engine, match, tries=match.tries + 1, delivered_at=now, error_msg="")
    return ""


def _write(engine: sa.Engine, match: sa.Row[Any], **values: Any) -> None:
    matches = ALERT_MATCHES.c
    where = (matches.alert == match.alert, matches.row_id == match.row_id)
    with engine.begin() as connection:
        connection.execute(sa.update(ALERT_MATCHES).where(*where).values(**values))


def _give_up(engine: sa.Engine, options: DeliveryOptions, *, now: datetime) -> int:
    matches = ALERT_MATCHES.c
    given_up = (
        sa.update(ALERT_MATCHES)
        .where(
            matches.delivered_at.is_(None),
            matches.tries > 0,
            matches.matched_at < now - timedelta(days=options.give_up_days),
            matches.error_msg.not_like("given up%"),
        )
        .values(error_msg=sa.literal("given up: ") + matches.error_msg)
    )
    with engine.begin() as connection:
        return int(connection.execute(given_up).rowcount)


def write_match_feeds(
    engine: sa.Engine,
    store: ObjectStore,
    queries: Sequence[SavedQuery],
    *,
    options: DeliveryOptions,
) -> list[str]:
    """Write the newest matches of each query as RSS and JSON Feed; return the changed files."""
    with cleaned_later(store, WHOLE_LEDGER):
        return _write_match_feeds(engine, store, queries, options=options)


def _write_match_feeds(
    engine: sa.Engine,
    store: ObjectStore,
    queries: Sequence[SavedQuery],
    *,
    options: DeliveryOptions,
) -> list[str]:
    changed = []
    for query in queries:
        rows = _newest_matches(engine, query.name, limit=options.feed_items) if query.feed else []
        for name, kind in FEEDS.items() if query.feed else ():
            path = f"{FOLDER}/{query.name}/{name}"
            file = io.StringIO()
            channel = FeedChannel(query.name, description=f"Matches of the alert {query.name}")
            write_articles(file, rows, kind=kind, channel=channel)
            body = file.getvalue().encode()
            if _read(store, path) != body:
                store.put(path, body)
                changed.append(path)
    return changed


def _read(store: ObjectStore, path: str) -> bytes | None:
    try:
        return store.read(path)
    except NotFound:
        return None


def _newest_matches(engine: sa.Engine, name: str, *, limit: int) -> list[sa.Row[Any]]:
    matches = ALERT_MATCHES.c
    chosen = (
        sa.select(*exported_columns(engine.dialect.name))
        .join_from(ALERT_MATCHES, RAW, matches.row_id == RAW.c.row_id)
        .where(matches.alert == name)
        .order_by(matches.matched_at.desc(), RAW.c.row_id.desc())
        .limit(limit)
    )
    with read_transaction(engine) as connection:
        return list(connection.execute(chosen))


def match_counts(engine: sa.Engine) -> dict[str, tuple[int, int]]:
    """Return, by query, how many matches there are and how many are not delivered."""
    matches = ALERT_MATCHES.c
    waiting = sa.func.sum(sa.case((matches.delivered_at.is_(None), 1), else_=0))
    chosen = sa.select(matches.alert, sa.func.count(), waiting).group_by(matches.alert)
    with read_transaction(engine) as connection:
        return {name: (count, left) for name, count, left in connection.execute(chosen)}
