"""Blank the rows of a Google Sheet whose ledger rows were taken down.

The ledger marks them with a change number below zero when it deletes its own rows. The next sync
finds each by its key, empties all of its cells and forgets it.
"""

from collections.abc import Collection

import sqlalchemy as sa

from news_platform.rss.sheets.tracking import SHEET_ROWS

# `SHEET_ROWS.seq` of a row that the spreadsheet still shows and must not.
GONE = -1
_CHUNK = 500


def mark_gone(
    connection: sa.Connection,
    *,
    rows: Collection[int],
    index: Collection[str],
    feeds: Collection[str],
) -> int:
    """Mark what spreadsheets show of deleted ledger rows, and drop cells that wait to be sent."""
    keys = {
        "Raw": [str(row) for row in rows],
        "ArticlesIndex": list(index),
        "Feeds": list(feeds),
    }
    marked = 0
    for tab, values in keys.items():
        for start in range(0, len(values), _CHUNK):
            shown = sa.and_(
                SHEET_ROWS.c.tab == tab, SHEET_ROWS.c.key.in_(values[start : start + _CHUNK])
            )
            gone = {"seq": GONE, "shown": "", "sending": None, "sending_seq": None}
            changed = sa.update(SHEET_ROWS).where(shown).values(**gone, intent_id=None)
            marked += connection.execute(changed).rowcount
    return marked
