"""Deliver the matches of saved queries to their webhooks, at least once each.

Every message has an id that stays the same when it is sent again, in the body and in the header
`Idempotency-Key`. A webhook that does not answer is left alone for a while, with all its matches;
a message that is rejected is tried again later on its own. Neither keeps other queries waiting.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import zip_longest
from typing import Any

import sqlalchemy as sa

from news_platform.errors import ConfigError, FetchError
from news_platform.rss.exports.formats import feed_item
from news_platform.rss.exports.selection import exported_columns
from news_platform.rss.ledger.tables import ALERT_MATCHES, RAW
from news_platform.rss.saved_queries.query_file import SavedQuery, webhook_secret, webhook_url
from news_platform.storage.sql.engine import read_transaction
from news_platform.web.webhook import PostRejected, post_json

# Seconds before the first retry; each further one waits twice as long, up to six hours.
_FIRST_PAUSE_SECONDS = 60
_LONGEST_PAUSE_SECONDS = 6 * 3600
# How the column `error_msg` begins for a message that the server does not want, and for a match
# that is not sent any more.
_REJECTED, _GIVEN_UP = "rejected: ", "given up: "

# The address, the document, the headers, and the secret that signs them.
Post = Callable[[str, object, Mapping[str, str], str], object]


@dataclass(frozen=True, slots=True)
class DeliveryOptions:
    """Limits of one run, and when a match is given up."""

    # Of one query.
    messages_per_run: int = 200
    # A webhook that rejects so many in a row is left alone until the next run.
    rejections_per_run: int = 3
    seconds_per_run: float = 40.0
    give_up_days: float = 7.0


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
    """Post the matches that are due, those of all queries in turns, the oldest first."""
    by_name = {query.name: query for query in queries if query.has_webhook}
    until = clock() + timedelta(seconds=options.seconds_per_run)
    delivered, reasons = 0, {name: Counter[str]() for name in by_name}
    rejected, stopped = Counter[str](), set[str]()
    for match in _due_matches(engine, list(by_name), limit=options.messages_per_run, now=clock()):
        if match.alert in stopped:
            continue
        if clock() >= until:
            break
        error = _deliver(engine, match, by_name[match.alert], variables, post or _post, clock())
        if error is None:
            delivered, rejected[match.alert] = delivered + 1, 0
            continue
        reasons[match.alert][error.reason if isinstance(error, FetchError) else "setting"] += 1
        rejected[match.alert] += 1
        is_rejected = isinstance(error, PostRejected)
        if not is_rejected or rejected[match.alert] >= options.rejections_per_run:
            stopped.add(match.alert)
    return DeliveryReport(
        delivered,
        failed=sum(counts.total() for counts in reasons.values()),
        given_up=_give_up(engine, list(by_name), options, now=clock()),
        failures={name: dict(counts) for name, counts in reasons.items() if counts},
    )


def _is_open(names: Sequence[str]) -> tuple[sa.ColumnElement[bool], ...]:
    matches = ALERT_MATCHES.c
    is_given_up = matches.error_msg.startswith(_GIVEN_UP)
    return matches.alert.in_(names), matches.delivered_at.is_(None), ~is_given_up


def _due_matches(
    engine: sa.Engine, names: Sequence[str], *, limit: int, now: datetime
) -> Iterator[sa.Row[Any]]:
    """Yield due matches, one of each query in turns; webhooks that failed most come last."""
    matches = ALERT_MATCHES.c
    is_due = sa.or_(matches.next_try_at.is_(None), matches.next_try_at <= now)
    # A rejected message says nothing about the next one.
    is_failure = ~matches.error_msg.startswith(_REJECTED)
    newest = (sa.func.max(matches.next_try_at), sa.func.max(matches.tries))
    state = sa.select(matches.alert, *newest).where(*_is_open(names), is_failure)
    chosen = (
        sa.select(
            matches.alert,
            matches.delivery_id,
            matches.tries,
            matches.matched_at,
            *exported_columns(engine.dialect.name),
        )
        .join_from(ALERT_MATCHES, RAW, matches.row_id == RAW.c.row_id)
        .order_by(matches.matched_at, RAW.c.row_id)
        .limit(limit)
    )
    with read_transaction(engine) as connection:
        failing = {alert: row for alert, *row in connection.execute(state.group_by(matches.alert))}
        ready = {name: failing.get(name, (None, 0)) for name in names}
        # Its oldest match has failed: until that is due again, its webhook is left alone.
        ready = {name: row for name, row in ready.items() if row[0] is None or row[0] <= now}
        due = [
            connection.execute(chosen.where(*_is_open([name]), is_due)).all()
            for name in sorted(ready, key=lambda name: (ready[name][1], name))
        ]
    return (match for turn in zip_longest(*due) for match in turn if match is not None)


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
) -> FetchError | ConfigError | None:
    """Post one match; return why that failed, if it did."""
    try:
        headers = {"Idempotency-Key": match.delivery_id}
        secret = webhook_secret(query, variables)
        post(webhook_url(query, variables), message(match), headers, secret)
    except (FetchError, ConfigError) as error:
        # Also a rejected one is tried again: an operator may be mending the receiver.
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(match.tries, 16), _LONGEST_PAUSE_SECONDS)
        reason = f"{_REJECTED}{error}" if isinstance(error, PostRejected) else str(error)
        values = {"error_msg": reason, "next_try_at": now + timedelta(seconds=pause)}
        _write(engine, match, tries=match.tries + 1, **values)
        return error
    _write(engine, match, tries=match.tries + 1, delivered_at=now, error_msg="")
    return None


def _write(engine: sa.Engine, match: sa.Row[Any], **values: Any) -> None:
    matches = ALERT_MATCHES.c
    where = (matches.alert == match.alert, matches.row_id == match.row_id)
    with engine.begin() as connection:
        connection.execute(sa.update(ALERT_MATCHES).where(*where).values(**values))


def _give_up(
    engine: sa.Engine, names: Sequence[str], options: DeliveryOptions, *, now: datetime
) -> int:
    """Give up matches of these queries that are too old, also those that were never tried."""
    matches = ALERT_MATCHES.c
    why = sa.func.coalesce(sa.func.nullif(matches.error_msg, ""), "its webhook failed for others")
    is_old = matches.matched_at < now - timedelta(days=options.give_up_days)
    given_up = sa.update(ALERT_MATCHES).where(*_is_open(names), is_old)
    with engine.begin() as connection:
        changed = connection.execute(given_up.values(error_msg=sa.literal(_GIVEN_UP) + why))
        return int(changed.rowcount)


def match_counts(engine: sa.Engine) -> dict[str, tuple[int, int]]:
    """Return, by query, how many matches there are and how many are not delivered."""
    matches = ALERT_MATCHES.c
    waiting = sa.func.sum(sa.case((matches.delivered_at.is_(None), 1), else_=0))
    chosen = sa.select(matches.alert, sa.func.count(), waiting).group_by(matches.alert)
    with read_transaction(engine) as connection:
        return {name: (count, left) for name, count, left in connection.execute(chosen)}
