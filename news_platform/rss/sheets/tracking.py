"""The outbox's tables: which rows a book shows, what is on its way, and who may write."""

import sqlalchemy as sa

from news_platform.rss.ledger.tables import METADATA, Moment, Texts

# One row for each row of the ledger that a book shows or is about to show. `seq` is the change it
# shows (0: none yet), `shown` the cells of the admin's columns as we last wrote them. While an
# intent holds the row, `sending` is the row's cells as JSON and `sending_seq` their change.
SHEET_ROWS = sa.Table(
    "sheet_rows",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("tab", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
    sa.Column("shown", sa.Text, nullable=False, server_default=""),
    sa.Column("intent_id", sa.Integer),
    sa.Column("sending_seq", sa.BigInteger),
    sa.Column("sending", sa.Text),
    sa.Index("sheet_rows_intent", "intent_id"),
)

INTENTS = sa.Table(
    "sheet_intents",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("book", sa.Text, nullable=False),
    sa.Column("token", sa.Text, nullable=False),
    sa.Column("made_at", Moment, nullable=False),
    sa.Column("applied_at", Moment),
    sqlite_autoincrement=True,
)

SHEET_TABS = sa.Table(
    "sheet_tabs",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("tab", sa.Text, primary_key=True),
    sa.Column("sheet_id", sa.Integer, nullable=False),
    sa.Column("header", Texts, nullable=False),
)

WRITERS = sa.Table(
    "sheet_writers",
    METADATA,
    sa.Column("book", sa.Text, primary_key=True),
    sa.Column("owner", sa.Text, nullable=False),
    sa.Column("until", Moment, nullable=False),
)
