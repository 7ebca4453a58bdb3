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
    for matches in _due_matches(engine, by_name, limit=options.messages_per_run, now=clock()):
        name = matches[0].alert
        if name in stopped:
            continue
        if clock() >= until:
            break
        error = _deliver(engine, matches, by_name[name], variables, post or _post, clock())
        if error is None:
            delivered, rejected[name] = delivered + 1, 0
            continue
        reasons[name][error.reason if isinstance(error, FetchError) else "setting"] += 1
        rejected[name] += 1
        is_rejected = isinstance(error, PostRejected)
        if not is_rejected or rejected[name] >= options.rejections_per_run:
            stopped.add(name)
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
    engine: sa.Engine, queries: Mapping[str, SavedQuery], *, limit: int, now: datetime
) -> Iterator[Sequence[sa.Row[Any]]]:
    """Yield the matches of each message, one of each query in turns; the failing ones come last.

    A digest is one message, any other match one of its own.
    """
    matches, names = ALERT_MATCHES.c, list(queries)
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
        due: list[list[Sequence[sa.Row[Any]]]] = []
        for name in sorted(ready, key=lambda name: (ready[name][1], name)):
            is_whole = matches.matched_at <= queries[name].due_until(now)
            found = connection.execute(chosen.where(*_is_open([name]), is_due, is_whole)).all()
            due.append([found] if found and queries[name].digest else [[it] for it in found])
    return (turn for turns in zip_longest(*due) for turn in turns if turn is not None)


def message(
    query: SavedQuery, articles: Sequence[sa.Row[Any]], *, message_id: str, matched_at: datetime
) -> dict[str, object]:
    """Return what is posted: the id, the query, lines for chat systems, and the articles."""
    if query.format == "slack":
        links = [
            f"<{it.article_url_canon}|{_slack(it.title)}> ({_slack(it.source)})" for it in articles
        ]
        return {"text": _lines(f"*{query.name}*", links)}
    links = [f"{it.title} ({it.source}) {it.article_url_canon}" for it in articles]
    items = [feed_item(it) for it in articles]
    return {
        "id": message_id,
        "alert": query.name,
        "matched_at": matched_at.isoformat(),
        "text": _lines(query.name, links),
        **({"articles": items} if query.digest else {"article": items[0]}),
    }


def _lines(name: str, links: Sequence[str]) -> str:
    if len(links) == 1:
        return f"{name}: {links[0]}"
    return "\n".join((f"{name}: {len(links)} articles", *(f"• {link}" for link in links)))


def _slack(text: str) -> str:
    """Return foreign text for Slack, in which no link, mention or mark-up is read."""
    plain = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return " ".join(plain.replace("|", "/").split())


def _post(url: str, document: object, headers: Mapping[str, str], secret: str) -> object:
    return post_json(url, document, headers=headers, secret=secret)


def _deliver(
    engine: sa.Engine,
    matches: Sequence[sa.Row[Any]],
    query: SavedQuery,
    variables: Mapping[str, str],
    post: Post,
    now: datetime,
) -> FetchError | ConfigError | None:
    """Post one message; return why that failed, if it did."""
    first = matches[0]
    try:
        key = first.delivery_id
        document = message(query, matches, message_id=key, matched_at=first.matched_at)
        secret = webhook_secret(query, variables)
        post(webhook_url(query, variables), document, {"Idempotency-Key": key}, secret)
    except (FetchError, ConfigError) as error:
        # Also a rejected one is tried again: an operator may be mending the receiver.
        pause = min(_FIRST_PAUSE_SECONDS * 2 ** min(first.tries, 16), _LONGEST_PAUSE_SECONDS)
        reason = f"{_REJECTED}{error}" if isinstance(error, PostRejected) else str(error)
        values = {"error_msg": reason, "next_try_at": now + timedelta(seconds=pause)}
        _write(engine, matches, tries=first.tries + 1, **values)
        return error
    _write(engine, matches, tries=first.tries + 1, delivered_at=now, error_msg="")
    return None


def send_test(
    query: SavedQuery,
    articles: Sequence[sa.Row[Any]],
    *,
    variables: Mapping[str, str],
    now: datetime,
) -> None:
    """Post a message about these articles, and record nothing; raise what fails."""
    secret, url = webhook_secret(query, variables), webhook_url(query, variables)
    shown = articles if query.digest else articles[:1]
    document = message(query, shown, message_id=f"test-{now.timestamp():.0f}", matched_at=now)
    _post(url, document, {"Idempotency-Key": f"test-{now.timestamp():.0f}"}, secret)


def _write(engine: sa.Engine, sent: Sequence[sa.Row[Any]], **values: Any) -> None:
    matches = ALERT_MATCHES.c
    where = (matches.alert == sent[0].alert, matches.row_id.in_([it.row_id for it in sent]))
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
