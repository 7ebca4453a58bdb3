"""Count what is in the ledger without changing it: feeds, articles, answers, outboxes, quota."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.domain_metadata.queue import QUEUE
from news_platform.errors import StorageError
from news_platform.resources import Resources
from news_platform.rss.ledger.newsroom_tables import ALERT_MATCHES, FEED_ALARMS, FEED_POLLS
from news_platform.rss.ledger.row_ranges import found_between
from news_platform.rss.ledger.status import counts_by
from news_platform.rss.ledger.tables import DIAGNOSTICS, FEEDS, RAW
from news_platform.rss.sheets.outbox import STAGE, count_sending
from news_platform.storage.sql.engine import (
    has_table,
    known_revisions,
    ledger_url,
    open_engine,
    read_revision,
    read_transaction,
    shown_url,
)

HTTP_CLASSES = ("1xx", "2xx", "3xx", "4xx", "5xx", "none")
"""The classes of answers; `none` means that there was no answer."""
LOSSES = ("timeout", "memory", "crash")
"""Why a worker process was replaced."""
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
# Outcomes of surveys come from our own code; the limit guards the labels all the same.
_MOST_OUTCOMES = 30


@dataclass(frozen=True, slots=True)
class LedgerFacts:
    """Counts at one moment. `answers` are of the last day, by room and class of HTTP status.

    `outbox` counts what waits to be sent, by receiver. `lost` counts articles whose page ended a
    worker process. `quota_use` is the share of the Sheets quota used within the last hour.
    """

    feeds: Mapping[str, int]
    feed_health: float
    alarms: Mapping[str, int]
    articles: Mapping[str, int]
    oldest_pending_seconds: float
    answers: Mapping[tuple[str, str], int]
    queue: Mapping[str, int]
    outcomes: Mapping[str, int]
    outbox: Mapping[str, int]
    lost: Mapping[str, int]
    quota_use: float
    quota_waits: int


@contextmanager
def open_ledger(resources: Resources) -> Iterator[sa.Engine | None]:
    """Open the ledger to read it; None if there is none yet.

    Raise StorageError for a ledger that another version must upgrade first: nothing is written.
    """
    engine = open_engine(ledger_url(resources.data_root.store.url, resources.settings.ledger_url))
    try:
        if not has_table(engine, RAW.name):
            yield None
            return
        with read_transaction(engine) as connection:
            found = read_revision(connection)
        if found != (newest := known_revisions()[0]):
            raise StorageError(
                f"ledger {shown_url(engine.url)!r} has revision {found!r}, expected {newest!r}: "
                "run any command that writes to it, such as `rss ensure`, with this version"
            )
        yield engine
    finally:
        engine.dispose()


def read_ledger_facts(engine: sa.Engine, *, now: datetime, calls_per_minute: int) -> LedgerFacts:
    """Count everything in one transaction."""
    with read_transaction(engine) as connection:
        return LedgerFacts(
            feeds=counts_by(connection, FEEDS.c.status),
            feed_health=_feed_health(connection),
            alarms=counts_by(connection, FEED_ALARMS.c.kind, FEED_ALARMS.c.healed_at.is_(None)),
            articles=counts_by(connection, RAW.c.status),
            oldest_pending_seconds=_oldest_pending(connection, now),
            answers={
                **{("feeds", name): n for name, n in _feed_answers(connection, now).items()},
                **{("articles", name): n for name, n in _page_answers(connection, now).items()},
            },
            queue=counts_by(connection, QUEUE.c.state),
            outcomes=_outcomes(connection, now),
            outbox={
                "sheet": count_sending(connection),
                "webhook": _count(connection, ALERT_MATCHES.c.delivered_at.is_(None)),
            },
            lost=_lost(connection, now),
            quota_use=_sheet_sum(connection, "batches", now) / max(1, 60 * calls_per_minute),
            quota_waits=int(_sheet_sum(connection, "quota_waits", now)),
        )


def _count(connection: sa.Connection, *conditions: sa.ColumnElement[bool]) -> int:
    return int(connection.execute(sa.select(sa.func.count()).where(*conditions)).scalar_one())


def _feed_health(connection: sa.Connection) -> float:
    mean = sa.select(sa.func.avg(FEEDS.c.health_score)).where(FEEDS.c.status == "active")
    return float(connection.execute(mean).scalar() or 0.0)


def _oldest_pending(connection: sa.Connection, now: datetime) -> float:
    oldest = sa.select(sa.func.min(RAW.c.found_at)).where(RAW.c.status == "pending")
    found = connection.execute(oldest).scalar()
    return 0.0 if found is None else max(0.0, (now - found).total_seconds())


def _feed_answers(connection: sa.Connection, now: datetime) -> dict[str, int]:
    chosen = (
        sa.select(FEED_POLLS.c.status_code, sa.func.count())
        .where(FEED_POLLS.c.polled_at > now - _DAY)
        .group_by(FEED_POLLS.c.status_code)
    )
    found = dict.fromkeys(HTTP_CLASSES, 0)
    for status, count in connection.execute(chosen):
        found[_http_class(status)] += count
    return found


def _page_answers(connection: sa.Connection, now: datetime) -> dict[str, int]:
    """Count the answers for article pages; the status of one that failed is in its message."""
    of_day = found_between(connection, now - _DAY, now)
    found = dict.fromkeys(HTTP_CLASSES, 0)
    read = sa.and_(RAW.c.status.in_(("stored", "duplicate")), RAW.c.fetched_at.is_not(None))
    found["2xx"] = _count(connection, read, *of_day)
    chosen = (
        sa.select(RAW.c.error_msg, sa.func.count())
        .where(RAW.c.error_msg.like("status ___"), RAW.c.status != "stored", *of_day)
        .group_by(RAW.c.error_msg)
    )
    for message, count in connection.execute(chosen):
        status = message.removeprefix("status ")
        found[_http_class(int(status) if status.isdecimal() else 0)] += count
    failed = (RAW.c.status == "error", RAW.c.error_msg.not_like("status ___"))
    found["none"] += _count(connection, *failed, *of_day)
    return found


def _http_class(status: int) -> str:
    return f"{status // 100}xx" if 100 <= status < 600 else "none"


def _outcomes(connection: sa.Connection, now: datetime) -> dict[str, int]:
    ended = QUEUE.c.finished_at > (now - _DAY).timestamp()
    chosen = (
        sa.select(QUEUE.c.outcome, sa.func.count())
        .where(QUEUE.c.outcome.is_not(None), ended)
        .group_by(QUEUE.c.outcome)
        .order_by(sa.func.count().desc(), QUEUE.c.outcome)
        .limit(_MOST_OUTCOMES)
    )
    return {str(outcome): count for outcome, count in connection.execute(chosen)}


def _lost(connection: sa.Connection, now: datetime) -> dict[str, int]:
    of_day = found_between(connection, now - _DAY, now)
    return {
        reason: _count(connection, RAW.c.error_msg.like(f"extraction {reason}%"), *of_day)
        for reason in LOSSES
    }


def _sheet_sum(connection: sa.Connection, metric: str, now: datetime) -> float:
    chosen = sa.select(sa.func.sum(DIAGNOSTICS.c.value)).where(
        DIAGNOSTICS.c.stage == STAGE,
        DIAGNOSTICS.c.metric == metric,
        DIAGNOSTICS.c.run_at > now - _HOUR,
    )
    return float(connection.execute(chosen).scalar() or 0.0)
