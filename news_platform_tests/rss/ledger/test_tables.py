"""The migrations create the tables that the code defines, on both databases, and move old rows."""

from datetime import UTC, datetime

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext

from news_platform.rss.ledger.newsroom_tables import FEED_ITEMS
from news_platform.rss.ledger.tables import METADATA
from news_platform.rss.sheets.tracking import SHEET_ROWS
from news_platform.storage.sql import migrations

NOW = datetime(2026, 1, 5, tzinfo=UTC)


# SQLAlchemy cannot read back the index over an expression.
@pytest.mark.filterwarnings("ignore:Skipped unsupported reflection")
@pytest.mark.filterwarnings("ignore:autogenerate skipping")
def test_the_migrations_create_every_table_and_column(ledger: sa.Engine) -> None:
    # Importing these two modules has added their tables.
    assert SHEET_ROWS.metadata is FEED_ITEMS.metadata is METADATA
    with ledger.begin() as connection:
        found = compare_metadata(MigrationContext.configure(connection), METADATA)
    # The queue, the bands and Alembic's own table belong to other packages.
    differences = [item for item in found if item[0] not in ("remove_table", "remove_index")]
    assert differences == []


_OLD_FEED = (
    "INSERT INTO feeds (feed_url, feed_url_canon, status, notes, changed_seq) VALUES "
    "('https://a.example/rss', 'https://a.example/rss', 'rejected', "
    "'ask Ann [unreachable: status 503]', 1)"
)
_OLD_ARTICLE = (
    "INSERT INTO raw (feed_url, article_url, article_url_canon, url_hash, found_at, stored_at, "
    "full_text_ref, status, changed_seq) VALUES ('f', 'u', 'u', 'abcd', :now, :now, "
    "'/old/root/articles/full_text/ab/abcd.txt.gz', 'stored', 1)"
)


