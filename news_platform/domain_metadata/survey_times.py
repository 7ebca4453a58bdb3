"""Read from the queue when each domain was surveyed, and where its earlier results are."""

from dataclasses import dataclass

import sqlalchemy as sa

from news_platform.domain_metadata.queue import QUEUE
from news_platform.storage.sql.engine import read_transaction

# Clocks of several machines differ by seconds; a clock that jumps is off by more.
CLOCK_TOLERANCE_SECONDS = 3_600.0


@dataclass(frozen=True, slots=True)
class LastSurvey:
    """The newest message about a domain: its batch, when it was surveyed, and whether it waits.

    `at` is the time of the survey, or else when it was queued; None if that lies in the future,
    which a clock that was ahead has written.
    """

    message_id: int
    domain: str
    batch: str
    at: float | None
    is_open: bool


def last_surveys(engine: sa.Engine, *, now: float) -> list[LastSurvey]:
    """Return the newest message about every domain, in the order of their ids.

    Messages are numbered in the order they came. One that claims to be older than those before it
    was written by a clock that was behind, and counts as being as old as they are.
    """
    latest = now + CLOCK_TOLERANCE_SECONDS
    finished_at = sa.func.coalesce(QUEUE.c.finished_at, 0.0)
    is_future = sa.or_(QUEUE.c.accepted_at > latest, finished_at > latest)
    queued_at = sa.func.max(sa.case((~is_future, QUEUE.c.accepted_at), else_=0.0)).over(
        order_by=QUEUE.c.id, rows=(None, 0)
    )
    later = sa.case((finished_at > queued_at, finished_at), else_=queued_at)
    timed = sa.select(
        QUEUE.c.id,
        QUEUE.c.domain,
        sa.case((~is_future, later)).label("at"),
        sa.case((is_future, QUEUE.c.id), else_=0).label("future_id"),
        sa.case((QUEUE.c.state.in_(("ready", "claimed")), 1), else_=0).label("open"),
    ).subquery()
    ids, future_ids = sa.func.max(timed.c.id), sa.func.max(timed.c.future_id)
    # An earlier survey in the future does not matter once a later one has a time that can be.
    at = sa.case((ids > future_ids, sa.func.max(timed.c.at)))
    columns = (ids.label("id"), at.label("at"), sa.func.max(timed.c.open).label("open"))
    last = sa.select(*columns).group_by(timed.c.domain).subquery()
    rows = sa.select(QUEUE.c.id, QUEUE.c.domain, QUEUE.c.batch, last.c.at, last.c.open)
    with read_transaction(engine) as connection:
        found = connection.execute(rows.join(last, last.c.id == QUEUE.c.id).order_by(QUEUE.c.id))
        return [LastSurvey(*row[:4], is_open=bool(row[4])) for row in found]


def count_repeated(engine: sa.Engine, day: str) -> int:
    """Count the messages of a day's batches about domains that were queued before."""
    earlier = QUEUE.alias()
    was_known = sa.exists().where(earlier.c.domain == QUEUE.c.domain, earlier.c.id < QUEUE.c.id)
    is_of_day = QUEUE.c.batch.like(f"%|{day}")
    counted = sa.select(sa.func.count()).select_from(QUEUE).where(is_of_day, was_known)
    with read_transaction(engine) as connection:
        return connection.execute(counted).scalar_one()


def earlier_batches(engine: sa.Engine, batch: str) -> dict[str, str]:
    """Return, for each domain of a batch, its finished batch of the latest day before."""
    day = batch.rpartition("|")[2]
    dated = sa.func.substr(QUEUE.c.batch, sa.func.length(QUEUE.c.batch) - len(day) + 1)
    of_batch = sa.select(QUEUE.c.domain).where(QUEUE.c.batch == batch)
    latest = sa.func.max(dated.concat("|").concat(QUEUE.c.batch))
    rows = (
        sa.select(QUEUE.c.domain, latest)
        .where(QUEUE.c.domain.in_(of_batch), QUEUE.c.state == "done", dated < day)
        .group_by(QUEUE.c.domain)
    )
    with read_transaction(engine) as connection:
        return {domain: key.partition("|")[2] for domain, key in connection.execute(rows)}
