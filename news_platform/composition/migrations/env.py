"""Alembic's entry point: create the tables of a new ledger, or run the revisions of an older one.

A new ledger gets the tables as the code defines them. A revision only changes ledgers that exist,
so no column is declared twice.
"""

import sqlalchemy as sa
from alembic import context

from news_platform.domain_metadata import queue
from news_platform.rss.ledger import tables
from news_platform.rss.sheets import outbox

# The sheets add their tables to those of the ledger.
TABLES = (queue.METADATA, outbox.SHEET_ROWS.metadata)

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=TABLES,
    # SQLite can alter a table only by copying it.
    render_as_batch=True,
)
with context.begin_transaction():
    if context.get_context().get_current_revision() is not None:
        context.run_migrations()
    else:
        for metadata in TABLES:
            # Unchecked: a database with such a table and no revision belongs to someone else.
            metadata.create_all(connection, checkfirst=False)
        connection.execute(sa.insert(tables.SEQUENCE).values(name="changed", value=0))
        context.get_context().stamp(context.script, "head")
