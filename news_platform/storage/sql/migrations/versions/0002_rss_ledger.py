"""Create the RSS ledger: feeds, raw, articles_index, diagnostics, config and worker tables."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_STORED = sa.text("status = 'stored'")


def _text(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, server_default="")


def _given(name: str, *, key: bool = False) -> sa.Column[str]:
    return sa.Column(name, sa.Text, nullable=False, primary_key=key)


def _number(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=str(default))


def _moment(name: str, *, nullable: bool = True) -> sa.Column[object]:
    return sa.Column(name, sa.DateTime(timezone=True), nullable=nullable)


def _texts(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text)


def _changed_seq() -> sa.Column[int]:
    return sa.Column("changed_seq", sa.BigInteger, nullable=False)


def upgrade() -> None:
    """Create the tables."""
    _make_feeds()
    _make_raw()
    _make_index()
    _make_side_tables()
    for table in ("feeds", "raw", "articles_index", "diagnostics", "config"):
        op.create_index(f"ix_{table}_changed_seq", table, ["changed_seq"])
    op.execute("INSERT INTO ledger_sequence (name, value) VALUES ('changed', 0)")


def downgrade() -> None:
    """Drop the tables."""
    for table in (
        "ledger_sequence",
        "config",
        "diagnostics",
        "robots",
        "article_links",
        "article_revisions",
        "articles_index",
        "raw",
        "feeds",
    ):
        op.drop_table(table)


def _make_feeds() -> None:
    op.create_table(
        "feeds",
        _given("feed_url"),
        _given("feed_url_canon", key=True),
        _text("lang"),
        _given("status"),
        _moment("last_entry_date"),
        _moment("last_crawled"),
        _number("no_updates_days"),
        _text("etag"),
        _text("last_modified"),
        _number("health_score", 100),
        _text("notes"),
        _moment("checked_at"),
        _text("title"),
        _moment("next_poll_at"),
        _moment("claimed_until"),
        _number("interval_seconds"),
        _number("errors_in_row"),
        _number("last_status"),
        _text("body_hash"),
        _changed_seq(),
    )
    op.create_index("feeds_due", "feeds", ["status", "next_poll_at"])


def _make_raw() -> None:
    op.create_table(
        "raw",
        sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=True),
        _text("source"),
        _given("feed_url"),
        _given("article_url"),
        _given("article_url_canon"),
        _given("url_hash"),
        _text("text_hash"),
        _moment("found_at", nullable=False),
        _moment("fetched_at"),
        _moment("published_at"),
        *(_text(name) for name in ("language", "title", "subtitle")),
        _texts("authors"),
        _text("section"),
        _texts("tags"),
        _text("article_type"),
        _text("clean_text"),
        _number("clean_text_len"),
        _text("full_text_ref"),
        _number("full_text_len"),
        _number("word_count"),
        _texts("out_links"),
        _text("category_guess"),
        _given("status"),
        _text("lock_owner"),
        _moment("lock_at"),
        _moment("processed_at"),
        _number("retries"),
        _text("error_msg"),
        _texts("sources_list"),
        _texts("aliases"),
        _moment("last_seen_rss"),
        _number("attempt"),
        _moment("next_try_at"),
        _moment("stored_at"),
        _moment("full_text_expired_at"),
        _changed_seq(),
        sqlite_autoincrement=True,
    )
    op.create_index("raw_claimable", "raw", ["status", "next_try_at", "row_id"])
    op.create_index("raw_url_hash", "raw", ["url_hash"])
    op.create_index("raw_stored_at", "raw", ["stored_at"])
    op.create_index(
        "raw_main_text",
        "raw",
        ["text_hash"],
        unique=True,
        sqlite_where=_STORED,
        postgresql_where=_STORED,
    )


def _make_index() -> None:
    op.create_table(
        "articles_index",
        _given("url_hash", key=True),
        _text("text_hash"),
        _given("article_url_canon"),
        sa.Column("row_id_raw", sa.Integer, nullable=False),
        _moment("first_seen", nullable=False),
        _moment("last_seen", nullable=False),
        sa.Column("is_duplicate", sa.Boolean, nullable=False, server_default=sa.false()),
        *(_text(name) for name in ("reason", "language", "category_guess")),
        _number("rev_n"),
        _changed_seq(),
    )
    op.create_index("ix_articles_index_row_id_raw", "articles_index", ["row_id_raw"])


def _make_side_tables() -> None:
    op.create_table(
        "article_revisions",
        sa.Column("row_id", sa.Integer, primary_key=True),
        sa.Column("rev_n", sa.Integer, primary_key=True),
        _moment("revised_at", nullable=False),
        *(_given(name) for name in ("old_text_hash", "new_text_hash", "delta")),
    )
    op.create_table(
        "article_links",
        _given("target_url_hash", key=True),
        sa.Column("row_id", sa.Integer, primary_key=True),
    )
    op.create_table(
        "robots",
        _given("origin", key=True),
        _moment("fetched_at", nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "diagnostics",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        _moment("run_at", nullable=False),
        _given("stage"),
        _given("metric"),
        sa.Column("value", sa.Float, nullable=False),
        _text("notes"),
        _changed_seq(),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "config",
        _given("key", key=True),
        _given("value"),
        _moment("updated_at", nullable=False),
        _changed_seq(),
    )
    op.create_table(
        "ledger_sequence",
        _given("name", key=True),
        sa.Column("value", sa.BigInteger, nullable=False),
    )
