"""Create the ledger: the domain queue, feeds, articles, their side tables and the sheet outbox."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "initial"
down_revision = None

_MOMENT = sa.DateTime(timezone=True)
_STORED = sa.text("status = 'stored'")


def _key(name: str) -> sa.Column[str]:
    return sa.Column(name, sa.Text, primary_key=True)


def _row_id() -> sa.Column[int]:
    return sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False)


def _serial(name: str) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, primary_key=True, autoincrement=True)


def _given(*names: str) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, sa.Text, nullable=False) for name in names)


def _text(*names: str) -> tuple[sa.Column[str], ...]:
    return tuple(sa.Column(name, sa.Text, nullable=False, server_default="") for name in names)


def _texts(*names: str) -> tuple[sa.Column[str], ...]:
    """Return columns for lists of texts; NULL is an empty list."""
    return tuple(sa.Column(name, sa.Text) for name in names)


def _number(name: str, default: int = 0) -> sa.Column[int]:
    return sa.Column(name, sa.Integer, nullable=False, server_default=str(default))


def _flag(name: str) -> sa.Column[bool]:
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def _moment(*names: str, nullable: bool = True) -> tuple[sa.Column[Any], ...]:
    return tuple(sa.Column(name, _MOMENT, nullable=nullable) for name in names)


def _changed_seq() -> sa.Column[int]:
    return sa.Column("changed_seq", sa.BigInteger, nullable=False)


def _seen_seq() -> sa.Column[int]:
    return sa.Column("seen_seq", sa.BigInteger, nullable=False, server_default="0")


def upgrade() -> None:
    """Create the tables."""
    _create_domain_queue()
    _create_feeds()
    _create_feed_tables()
    _create_raw()
    _create_article_tables()
    _create_reader_tables()
    _create_sheet_tables()
    for table in ("feeds", "raw", "articles_index", "diagnostics", "config", "analyses"):
        op.create_index(f"ix_{table}_changed_seq", table, ["changed_seq"])
    op.execute("INSERT INTO ledger_sequence (name, value) VALUES ('changed', 0)")


def _create_domain_queue() -> None:
    op.create_table(
        "domain_queue",
        sa.Column("id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True),
        *_given("batch", "domain", "message", "state"),
        sa.Column("accepted_at", sa.Double, nullable=False),
        sa.Column("due_at", sa.Double, nullable=False),
        sa.Column("worker", sa.Text),
        sa.Column("lease_until", sa.Double),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("tries", sa.Integer, nullable=False),
        sa.Column("outcome", sa.Text),
        sa.Column("finished_at", sa.Double),
        sa.UniqueConstraint("batch", "domain", name="domain_queue_batch_domain"),
    )
    op.create_index("domain_queue_due", "domain_queue", ["batch", "state", "due_at", "id"])
    op.create_index("domain_queue_domain", "domain_queue", ["domain"])
    op.create_table(
        "research_files",
        _key("path"),
        *_given("batch", "sha256"),
        sa.Column("records", sa.Integer, nullable=False),
        sa.Column("messages", sa.Integer, nullable=False),
        sa.Column("dropped", sa.Integer, nullable=False),
        sa.Column("accepted_at", sa.Double, nullable=False),
    )


def _create_feeds() -> None:
    op.create_table(
        "feeds",
        *_given("feed_url"),
        _key("feed_url_canon"),
        *_text("lang"),
        *_given("status"),
        *_moment("last_entry_date", "last_crawled"),
        _number("no_updates_days"),
        *_text("etag", "last_modified"),
        _number("health_score", 100),
        *_text("notes"),
        *_moment("checked_at"),
        *_text("title"),
        *_moment("next_poll_at", "claimed_until"),
        _number("interval_seconds"),
        _number("errors_in_row"),
        _number("last_status"),
        *_text("body_hash"),
        _changed_seq(),
        *_text("origin", "feed_group", "own_settings", "verdict"),
        _number("verdict_tries"),
        *_moment("next_check_at"),
        _number("usual_gap_seconds"),
        *_moment("last_success_at", "failing_since"),
        _flag("may_miss_items"),
        *_moment("turned_over_at"),
        _number("skipped_items"),
        _seen_seq(),
    )
    op.create_index("feeds_due", "feeds", ["status", "next_poll_at"])


def _create_feed_tables() -> None:
    op.create_table(
        "feed_items",
        _row_id(),
        _key("feed_url"),
        *_text("item_id", "title"),
        *_moment("published_at", "updated_at"),
        *_texts("authors", "tags"),
        *_text("summary", "content", "image_url"),
        *_texts("enclosures"),
        *_text("comments_url"),
        _flag("is_paywalled"),
        *_text("item_hash"),
        *_moment("changed_at", nullable=False),
    )
    op.create_table(
        "feed_polls",
        _serial("id"),
        *_given("feed_url"),
        *_moment("polled_at", nullable=False),
        *_given("outcome"),
        _number("status_code"),
        _number("items"),
        _number("new_items"),
        _number("updated_items"),
        _number("skipped_items"),
        _number("items_without_link"),
        _flag("turned_over"),
        *_text("notes"),
        sqlite_autoincrement=True,
    )
    op.create_index("feed_polls_feed", "feed_polls", ["feed_url", "polled_at"])
    op.create_index("ix_feed_polls_polled_at", "feed_polls", ["polled_at"])
    op.create_table(
        "feed_alarms",
        _key("kind"),
        _key("thing"),
        sa.Column("began_at", _MOMENT, primary_key=True),
        *_text("detail"),
        *_moment("told_at", "healed_at", "healing_told_at"),
    )


def _create_raw() -> None:
    op.create_table(
        "raw",
        _serial("row_id"),
        *_text("source"),
        *_given("feed_url", "article_url", "article_url_canon", "url_hash"),
        *_text("text_hash"),
        *_moment("found_at", nullable=False),
        *_moment("fetched_at", "published_at"),
        *_text("language", "title", "subtitle"),
        *_texts("authors"),
        *_text("section"),
        *_texts("tags"),
        *_text("article_type", "clean_text"),
        _number("clean_text_len"),
        *_text("full_text_ref"),
        _number("full_text_len"),
        _number("word_count"),
        *_texts("out_links"),
        *_text("category_guess"),
        *_given("status"),
        *_text("lock_owner"),
        *_moment("lock_at", "processed_at"),
        _number("retries"),
        *_text("error_msg"),
        *_texts("sources_list", "aliases"),
        *_moment("last_seen_rss"),
        _number("attempt"),
        *_moment("next_try_at", "stored_at", "full_text_expired_at"),
        _changed_seq(),
        *_text("extractor_version"),
        sa.Column("confidence", sa.Float),
        *_text("published_at_source", "text_source", "summary", "image_url"),
        sa.Column("is_paywalled", sa.Boolean),
        *_text("page_ref", "page_url", "page_charset"),
        *_moment("reextracted_at"),
        *_text("robots_rule", "robots_file"),
        *_moment("robots_at", "deferred_since"),
        _seen_seq(),
        sqlite_autoincrement=True,
    )
    op.create_index("raw_claimable", "raw", ["status", "next_try_at", "row_id"])
    op.create_index("raw_url_hash", "raw", ["url_hash"])
    op.create_index("raw_stored_at", "raw", ["stored_at"])
    op.create_index("raw_feed_url", "raw", ["feed_url", "found_at"])
    op.create_index("raw_page_ref", "raw", ["page_ref"])
    op.create_index("raw_newest", "raw", [sa.text("coalesce(published_at, found_at)"), "row_id"])
    op.create_index(
        "raw_main_text",
        "raw",
        ["text_hash"],
        unique=True,
        sqlite_where=_STORED,
        postgresql_where=_STORED,
    )


def _create_article_tables() -> None:
    op.create_table(
        "articles_index",
        _key("url_hash"),
        *_text("text_hash"),
        *_given("article_url_canon"),
        sa.Column("row_id_raw", sa.Integer, nullable=False),
        *_moment("first_seen", "last_seen", nullable=False),
        _flag("is_duplicate"),
        *_text("reason", "language", "category_guess"),
        _number("rev_n"),
        _changed_seq(),
        _seen_seq(),
    )
    op.create_index("ix_articles_index_row_id_raw", "articles_index", ["row_id_raw"])
    op.create_table(
        "article_revisions",
        sa.Column("row_id", sa.Integer, primary_key=True),
        sa.Column("rev_n", sa.Integer, primary_key=True),
        *_moment("revised_at", nullable=False),
        *_given("old_text_hash", "new_text_hash", "delta"),
    )
    op.create_table(
        "article_links",
        _key("target_url_hash"),
        sa.Column("row_id", sa.Integer, primary_key=True),
    )
    op.create_table(
        "article_states",
        _serial("id"),
        sa.Column("row_id", sa.Integer, nullable=False),
        *_given("status"),
        *_moment("at", nullable=False),
        *_text("reason"),
        sqlite_autoincrement=True,
    )
    op.create_index("article_states_row", "article_states", ["row_id", "id"])
    op.create_table(
        "robots",
        _key("origin"),
        *_moment("fetched_at", nullable=False),
        sa.Column("status", sa.Integer, nullable=False),
        sa.Column("body", sa.LargeBinary, nullable=False),
    )


def _create_reader_tables() -> None:
    op.create_table(
        "diagnostics",
        _serial("id"),
        *_moment("run_at", nullable=False),
        *_given("stage", "metric"),
        sa.Column("value", sa.Float, nullable=False),
        *_text("notes"),
        _changed_seq(),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "config",
        _key("key"),
        *_given("value"),
        *_moment("updated_at", nullable=False),
        _changed_seq(),
    )
    op.create_table(
        "ledger_sequence", _key("name"), sa.Column("value", sa.BigInteger, nullable=False)
    )
    op.create_table(
        "analyses",
        _row_id(),
        *_text("summary"),
        *_texts("keywords"),
        *_text("sentiment"),
        *_texts("topics"),
        *_text("model"),
        *_moment("analysed_at", nullable=False),
        *_text("text_hash"),
        _changed_seq(),
    )
    op.create_table(
        "alert_matches",
        _key("alert"),
        _row_id(),
        *_given("delivery_id"),
        *_moment("matched_at", nullable=False),
        *_moment("delivered_at"),
        _number("tries"),
        *_moment("next_try_at"),
        *_text("error_msg"),
    )
    op.create_index("alert_matches_due", "alert_matches", ["delivered_at", "next_try_at"])


def _create_sheet_tables() -> None:
    op.create_table(
        "sheet_books",
        _key("book"),
        *_given("name"),
        sa.Column("number", sa.Integer, nullable=False),
        *_given("url"),
        sa.Column("tabs", sa.Text, nullable=False, server_default="{}"),
        sa.Column("shown_up_to", sa.BigInteger, nullable=False, server_default="0"),
        *_moment("closed_at"),
    )
    op.create_table(
        "sheet_rows",
        _key("book"),
        _key("tab"),
        _key("key"),
        sa.Column("seq", sa.BigInteger, nullable=False, server_default="0"),
        *_text("shown"),
    )
    op.create_index("sheet_rows_seq", "sheet_rows", ["seq", "book"])
    op.create_table("sheet_intents", _serial("id"), *_given("book", "token", "state", "rows"))
    op.create_table(
        "sheet_writers", _key("name"), *_given("owner"), *_moment("until", nullable=False)
    )
