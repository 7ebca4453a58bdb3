"""Find rows of Raw by the time they were found, through their ascending row_id.

Articles get their row_id as they are found, so bisection takes some twenty lookups where a search
by `found_at`, which has no index of its own, would read the whole table. Processes that poll at the
same time may interleave by the seconds that their transactions take.
"""

from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.rss.ledger.tables import RAW

# More than the transactions of any two pollers overlap.
_SLACK = timedelta(hours=1)


def first_row_since(connection: sa.Connection, moment: datetime) -> int | None:
    """Return the first row_id found at or after a moment; None if all rows are older."""
    bounds = sa.select(sa.func.min(RAW.c.row_id), sa.func.max(RAW.c.row_id))
    low, high = connection.execute(bounds).one()
    if low is None or found_at(connection, high) < moment:
        return None
    while low < high:
        middle = (low + high) // 2
        if found_at(connection, middle) >= moment:
            high = middle
        else:
            low = middle + 1
    return int(low)


def found_at(connection: sa.Connection, row_id: int) -> datetime:
    """Return when this row, or the next one if it does not exist, was found."""
    chosen = sa.select(RAW.c.found_at).where(RAW.c.row_id >= row_id)
    moment: datetime = connection.execute(chosen.order_by(RAW.c.row_id).limit(1)).scalar_one()
    return moment


def found_between(
    connection: sa.Connection, start: datetime, end: datetime
) -> tuple[sa.ColumnElement[bool], ...]:
    """Return the conditions of the rows found from `start` until `end`."""
    first = first_row_since(connection, start - _SLACK)
    last = first_row_since(connection, end + _SLACK)
    conditions = [RAW.c.found_at >= start, RAW.c.found_at < end]
    conditions.append(sa.false() if first is None else RAW.c.row_id >= first)
    if last is not None:
        conditions.append(RAW.c.row_id < last)
    return tuple(conditions)
