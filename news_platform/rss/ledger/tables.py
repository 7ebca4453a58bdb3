"""Define the tables of the ledger.

Feeds, Raw and ArticlesIndex have the columns of the Google Sheet, then columns of our own.
`changed_seq` is the number of the write transaction that last changed a row. A reader that copies
the ledger selects the rows above the last number it saw; claims do not change the number.
Every text column scrubs what it is given: this is where foreign text enters the ledger.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from news_platform.storage.sql.text import ScrubbedText
from news_platform.text.normalize import scrub_text

METADATA = sa.MetaData()

FEEDS_COLUMNS = (
    "feed_url",
    "feed_url_canon",
    "lang",
    "status",
    "last_entry_date",
    "last_crawled",
    "no_updates_days",
    "etag",
    "last_modified",
    "health_score",
    "notes",
    "checked_at",
)
RAW_COLUMNS = (
    "row_id",
    "source",
    "feed_url",
    "article_url",
    "article_url_canon",
    "url_hash",
    "text_hash",
    "found_at",
    "fetched_at",
    "published_at",
    "language",
    "title",
    "subtitle",
    "authors",
    "section",
    "tags",
    "article_type",
    "clean_text",
    "clean_text_len",
    "full_text_ref",
    "full_text_len",
    "word_count",
    "out_links",
    "category_guess",
    "status",
    "lock_owner",
    "lock_at",
    "processed_at",
    "retries",
    "error_msg",
    "sources_list",
    "aliases",
    "last_seen_rss",
)
INDEX_COLUMNS = (
    "url_hash",
    "text_hash",
    "article_url_canon",
    "row_id_raw",
    "first_seen",
    "last_seen",
    "is_duplicate",
    "reason",
    "language",
    "category_guess",
    "rev_n",
)


class Moment(TypeDecorator[datetime]):
    """An aware UTC datetime on both databases; SQLite itself stores no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC, and drop the time zone where the database does not store it."""
        if value is None:
            return None
        moment = value.astimezone(UTC)
        return moment.replace(tzinfo=None) if dialect.name == "sqlite" else moment

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Return the stored datetime as aware UTC."""
        if value is None or value.tzinfo is not None:
            return value if value is None else value.astimezone(UTC)
        return value.replace(tzinfo=UTC)


class Texts(TypeDecorator[tuple[str, ...]]):
    """A list of strings, stored as a JSON array that is readable in SQL and in a sheet's cell."""

    impl = sa.Text
    cache_ok = True

    def process_bind_param(self, value: Sequence[str] | None, dialect: Dialect) -> str | None:
        """Return the list as a JSON array."""
        if value is None:
            return None
        return json.dumps([scrub_text(text) for text in value], ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...]:
        """Parse the JSON array; NULL and '' are empty lists."""
        return tuple(json.loads(value)) if value else ()


# An empty text instead of NULL, because a cell of the sheet has no NULL either.
def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, ScrubbedText, nullable=False, server_default="")


def _number(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=str(default))


def _changed_seq() -> sa.Column[int]:
    return sa.Column("changed_seq", sa.BigInteger, nullable=False, index=True)


FEEDS = sa.Table(
    "feeds",
    METADATA,
    sa.Column("feed_url", ScrubbedText, nullable=False),
    sa.Column("feed_url_canon", ScrubbedText, primary_key=True),
    _text("lang"),
    sa.Column("status", ScrubbedText, nullable=False),
    sa.Column("last_entry_date", Moment),
    sa.Column("last_crawled", Moment),
    _number("no_updates_days"),
    _text("etag"),
    _text("last_modified"),
    _number("health_score", 100),
    _text("notes"),
    sa.Column("checked_at", Moment),
    # Not in the sheet: the state of the poller.
    _text("title"),
    sa.Column("next_poll_at", Moment),
    sa.Column("claimed_until", Moment),
    _number("interval_seconds"),
    _number("errors_in_row"),
    _number("last_status"),
    _text("body_hash"),
    _changed_seq(),
    # Serves the claim of due feeds.
    sa.Index("feeds_due", "status", "next_poll_at"),
)

RAW = sa.Table(
    "raw",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=True),
    _text("source"),
    sa.Column("feed_url", ScrubbedText, nullable=False),
    sa.Column("article_url", ScrubbedText, nullable=False),
    sa.Column("article_url_canon", ScrubbedText, nullable=False),
    sa.Column("url_hash", ScrubbedText, nullable=False),
    _text("text_hash"),
    sa.Column("found_at", Moment, nullable=False),
    sa.Column("fetched_at", Moment),
    sa.Column("published_at", Moment),
    _text("language"),
    _text("title"),
    _text("subtitle"),
    sa.Column("authors", Texts),
    _text("section"),
    sa.Column("tags", Texts),
    _text("article_type"),
    _text("clean_text"),
    _number("clean_text_len"),
    _text("full_text_ref"),
    _number("full_text_len"),
    _number("word_count"),
    sa.Column("out_links", Texts),
    _text("category_guess"),
    sa.Column("status", ScrubbedText, nullable=False),
    _text("lock_owner"),
    sa.Column("lock_at", Moment),
    sa.Column("processed_at", Moment),
    _number("retries"),
    _text("error_msg"),
    sa.Column("sources_list", Texts),
    sa.Column("aliases", Texts),
    sa.Column("last_seen_rss", Moment),
    # Not in the sheet: the fencing number of claims, the backoff, the day of the export.
    _number("attempt"),
    sa.Column("next_try_at", Moment),
    sa.Column("stored_at", Moment),
    sa.Column("full_text_expired_at", Moment),
    # How the article was extracted; NULL for articles stored before 0.2.
    _text("extractor_version"),
    sa.Column("confidence", sa.Float),
    _text("published_at_source"),
    _changed_seq(),
    # Serves the claim of due articles.
    sa.Index("raw_claimable", "status", "next_try_at", "row_id"),
    sa.Index("raw_url_hash", "url_hash"),
    sa.Index("raw_stored_at", "stored_at"),
    # Two workers that read the same text at once cannot both store it.
    sa.Index(
        "raw_main_text",
        "text_hash",
        unique=True,
        sqlite_where=sa.text("status = 'stored'"),
        postgresql_where=sa.text("status = 'stored'"),
    ),
    # Without it SQLite gives the number of a deleted last row to the next one.
    sqlite_autoincrement=True,
)

ARTICLES_INDEX = sa.Table(
    "articles_index",
    METADATA,
    sa.Column("url_hash", ScrubbedText, primary_key=True),
    _text("text_hash"),
    sa.Column("article_url_canon", ScrubbedText, nullable=False),
    sa.Column("row_id_raw", sa.Integer, nullable=False, index=True),
    sa.Column("first_seen", Moment, nullable=False),
    sa.Column("last_seen", Moment, nullable=False),
    sa.Column("is_duplicate", sa.Boolean, nullable=False, server_default=sa.false()),
    _text("reason"),
    _text("language"),
    _text("category_guess"),
    _number("rev_n"),
    _changed_seq(),
)

REVISIONS = sa.Table(
    "article_revisions",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True),
    sa.Column("rev_n", sa.Integer, primary_key=True),
    sa.Column("revised_at", Moment, nullable=False),
    sa.Column("old_text_hash", ScrubbedText, nullable=False),
    sa.Column("new_text_hash", ScrubbedText, nullable=False),
    sa.Column("delta", ScrubbedText, nullable=False),
)

LINKS = sa.Table(
    "article_links",
    METADATA,
    sa.Column("target_url_hash", ScrubbedText, primary_key=True),
    sa.Column("row_id", sa.Integer, primary_key=True),
)

ROBOTS = sa.Table(
    "robots",
    METADATA,
    sa.Column("origin", ScrubbedText, primary_key=True),
    sa.Column("fetched_at", Moment, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False),
)

DIAGNOSTICS = sa.Table(
    "diagnostics",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_at", Moment, nullable=False),
    sa.Column("stage", ScrubbedText, nullable=False),
    sa.Column("metric", ScrubbedText, nullable=False),
    sa.Column("value", sa.Float, nullable=False),
    _text("notes"),
    _changed_seq(),
    sqlite_autoincrement=True,
)

CONFIG = sa.Table(
    "config",
    METADATA,
    sa.Column("key", ScrubbedText, primary_key=True),
    sa.Column("value", ScrubbedText, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    _changed_seq(),
)

SEQUENCE = sa.Table(
    "ledger_sequence",
    METADATA,
    sa.Column("name", ScrubbedText, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)
