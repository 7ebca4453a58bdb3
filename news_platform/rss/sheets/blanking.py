"""Blank the rows of a Google Sheet whose ledger rows were taken down.

The ledger marks them with a change number below zero when it deletes its own rows. The next sync
finds each by its key, empties all of its cells and forgets it.
"""

from collections.abc import Mapping

import sqlalchemy as sa

from news_platform.rss.sheets.ensure import LocatedTab, locate_tabs
from news_platform.rss.sheets.google import Spreadsheet
from news_platform.rss.sheets.tabs import cells_request
from news_platform.rss.sheets.tracking import GONE, SHEET_ROWS, read_known_tabs
from news_platform.rss.sheets.update import fetch_positions
from news_platform.storage.sql.engine import read_transaction

# A key that people copied stands in several rows; each round blanks one of them.
_ROUNDS = 20


def blank_gone(engine: sa.Engine, spreadsheet: Spreadsheet) -> tuple[str, ...]:
    """Empty the rows of a spreadsheet that were taken down; return them by tab and row number.

    A call whose outcome is unknown is repeated by the next sync: emptying twice does no harm.
    """
    gone = _gone_keys(engine, spreadsheet.id)
    blanked: list[str] = []
    for _ in range(_ROUNDS if gone else 0):
        state = spreadsheet.fetch_state()
        known = read_known_tabs(engine, spreadsheet.id)
        located = [one for one in locate_tabs(spreadsheet, state, known) if one.tab.name in gone]
        found = _found_rows(spreadsheet, located, gone)
        if not found:
            break
        requests = [
            cells_request(item.sheet.sheet_id, row, column, [""])
            for item, row in found
            for column in sorted(item.layout.positions.values())
        ]
        spreadsheet.batch_update(requests)
        blanked += [f"{item.tab.name} row {row + 1}" for item, row in found]
    if gone:
        _forget(engine, spreadsheet.id)
    return tuple(blanked)


def _gone_keys(engine: sa.Engine, spreadsheet_id: str) -> Mapping[str, set[str]]:
    rows = SHEET_ROWS.c
    chosen = sa.select(rows.tab, rows.key).where(rows.book == spreadsheet_id, rows.seq == GONE)
    found: dict[str, set[str]] = {}
    with read_transaction(engine) as connection:
        for tab, key in connection.execute(chosen):
            found.setdefault(tab, set()).add(key)
    return found


def _found_rows(
    spreadsheet: Spreadsheet, located: list[LocatedTab], gone: Mapping[str, set[str]]
) -> list[tuple[LocatedTab, int]]:
    return [
        (item, row)
        for item, positions in zip(located, fetch_positions(spreadsheet, located), strict=True)
        for key, row in positions.rows.items()
        if key in gone[item.tab.name]
    ]


def _forget(engine: sa.Engine, spreadsheet_id: str) -> None:
    is_gone = sa.and_(SHEET_ROWS.c.book == spreadsheet_id, SHEET_ROWS.c.seq == GONE)
    with engine.begin() as connection:
        connection.execute(sa.delete(SHEET_ROWS).where(is_gone))
