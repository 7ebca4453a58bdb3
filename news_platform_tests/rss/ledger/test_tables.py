"""The migrations create the tables that the code defines, on both databases."""

import pytest
import sqlalchemy as sa
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext

from news_platform.rss.ledger.newsroom_tables import FEED_ITEMS
from news_platform.rss.ledger.tables import METADATA
from news_platform.rss.sheets.outbox import SHEET_ROWS


# SQLAlchemy cannot read back the index over an expression.
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
@pytest.mark.filterwarnings("ignore:autogenerate skipping")
def test_the_migrations_create_every_table_and_column(ledger: sa.Engine) -> None:
    # Importing these two modules has added their tables.
    assert SHEET_ROWS.metadata is FEED_ITEMS.metadata is METADATA
    with ledger.begin() as connection:
        found = compare_metadata(MigrationContext.configure(connection), METADATA)
    # The queue and Alembic's own table belong to other packages.
    differences = [item for item in found if item[0] not in ("remove_table", "remove_index")]
    assert differences == []
