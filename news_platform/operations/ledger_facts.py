"""Count what is in the ledger without changing it: feeds, articles, answers, outboxes, quota."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.composition.facts import LedgerFacts
from news_platform.domain_metadata.queue import QUEUE
from news_platform.errors import StorageError
from news_platform.resources import Resources
from news_platform.rss.ledger.status import counts_by
from news_platform.rss.ledger.tables import (
    ALERT_MATCHES,
    DIAGNOSTICS,
    FEED_ALARMS,
    FEED_POLLS,
    FEEDS,
    RAW,
)
from news_platform.rss.ledger.transactions import found_between
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
_LOSSES = ("timeout", "memory", "crash")  # why a worker process was replaced
_DAY, _HOUR = timedelta(days=1), timedelta(hours=1)
# Outcomes of surveys come from our own code; the limit guards the labels all the same.
_MOST_OUTCOMES = 30


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


def read_ledger_facts(resources: Resources) -> LedgerFacts:
    """Count everything in one transaction; empty facts if there is no ledger."""
    now, quota = resources.clock.now(), resources.settings.sheets.calls_per_minute
    with open_ledger(resources) as engine:
        if engine is None:
            return LedgerFacts()
        with read_transaction(engine) as connection:
            return _ledger_facts(connection, now, calls_per_minute=quota)


def _ledger_facts(
    connection: sa.Connection, now: datetime, *, calls_per_minute: int
) -> LedgerFacts:
    return LedgerFacts(
        feeds=counts_by(connection, FEEDS.c.status),
        feed_health=_feed_health(connection),
        feed_alarms=counts_by(connection, FEED_ALARMS.c.kind, FEED_ALARMS.c.healed_at.is_(None)),
        articles=counts_by(connection, RAW.c.status),
        oldest_pending_article_seconds=_oldest_pending(connection, now),
        http_answers_last_day={
            **{("feeds", name): n for name, n in _feed_answers(connection, now).items()},
            **{("articles", name): n for name, n in _page_answers(connection, now).items()},
        },
        domain_queue=counts_by(connection, QUEUE.c.state),
        survey_outcomes_last_day=_outcomes(connection, now),
        outbox={
            "sheet": count_sending(connection),
            "webhook": _count(connection, ALERT_MATCHES.c.delivered_at.is_(None)),
        },
        pool_restarts=_restarts(connection, now),
        sheets_quota_use=_sheet_sum(connection, "batches", now) / max(1, 60 * calls_per_minute),
        sheets_quota_waits_last_hour=int(_sheet_sum(connection, "quota_waits", now)),
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


def _restarts(connection: sa.Connection, now: datetime) -> dict[tuple[str, str], int]:
    of_day = found_between(connection, now - _DAY, now)
    return {
        ("rss", reason): _count(connection, RAW.c.error_msg.like(f"extraction {reason}%"), *of_day)
        for reason in _LOSSES
    }


def _sheet_sum(connection: sa.Connection, metric: str, now: datetime) -> float:
    chosen = sa.select(sa.func.sum(DIAGNOSTICS.c.value)).where(
        DIAGNOSTICS.c.stage == STAGE,
        DIAGNOSTICS.c.metric == metric,
        DIAGNOSTICS.c.run_at > now - _HOUR,
    )
    return float(connection.execute(chosen).scalar() or 0.0)
