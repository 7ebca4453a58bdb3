"""Every state that an article had: appended in the transaction that changes it.

The ledger's table of articles has the present state alone. The newest changes of each article are
kept; they end with the article.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.rss.ledger.tables import ARTICLE_STATES

# A page that fails for weeks is claimed and closed again and again.
MOST_STATES = 40
_LONGEST_REASON = 300


def note_states(
    connection: sa.Connection,
    row_ids: Iterable[int],
    status: str,
    *,
    now: datetime,
    reason: str = "",
) -> None:
    """Record that some articles have a new state from `now` on."""
    rows: list[Mapping[str, Any]] = [
        {"row_id": row_id, "status": status, "at": now, "reason": reason[:_LONGEST_REASON]}
        for row_id in row_ids
    ]
    if rows:
        connection.execute(sa.insert(ARTICLE_STATES), rows)


def trim_states(connection: sa.Connection, row_id: int) -> None:
    """Delete the oldest states of an article above the limit."""
    newest = sa.select(ARTICLE_STATES.c.id).where(ARTICLE_STATES.c.row_id == row_id)
    first_kept = (
        newest.order_by(ARTICLE_STATES.c.id.desc()).offset(MOST_STATES - 1).limit(1)
    ).scalar_subquery()
    connection.execute(
        sa.delete(ARTICLE_STATES).where(
            ARTICLE_STATES.c.row_id == row_id, ARTICLE_STATES.c.id < first_kept
        )
    )


def read_states(connection: sa.Connection, row_id: int) -> list[sa.Row[Any]]:
    """Return the states of an article, oldest first."""
    chosen = sa.select(ARTICLE_STATES).where(ARTICLE_STATES.c.row_id == row_id)
    return list(connection.execute(chosen.order_by(ARTICLE_STATES.c.id)))
