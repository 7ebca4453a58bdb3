"""Define the tables of the ledger.

Feeds, Raw and ArticlesIndex have the columns of the Google Sheet, then columns of our own.
`changed_seq` is the number of the write transaction that last changed a row. A reader that copies
the ledger selects the rows above the last number it saw; claims do not change the number. A feed
that lists an article again changes only `seen_seq`, which counts in the same numbers.
Every text column scrubs what it is given: this is where foreign text enters the ledger. Columns
with addresses and foreign text state their role in `info`: takedowns remove and verify rows by it.
"""

import json
from collections.abc import Sequence
from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Dialect
from sqlalchemy.types import TypeDecorator

from news_platform.datasets.dataset import Role
from news_platform.storage.sql.engine import ScrubbedText
from news_platform.text.normalize import scrub_text

METADATA = sa.MetaData()


class Moment(TypeDecorator[datetime]):
    """An aware UTC datetime on both databases; SQLite itself stores no time zone."""

    impl = sa.DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """Convert to UTC, and drop the time zone where the database does not store it."""
        if value is None:
            return None
        moment = value if value.tzinfo is UTC else value.astimezone(UTC)
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
        # Most lists are empty, and there are ten of them to an article.
        if not value:
            return "[]"
        return json.dumps([scrub_text(text) for text in value], ensure_ascii=False)

    def process_result_value(self, value: str | None, dialect: Dialect) -> tuple[str, ...]:
        """Parse the JSON array; NULL and '' are empty lists."""
        return tuple(json.loads(value)) if value else ()


# An empty text instead of NULL, because a cell of the sheet has no NULL either.
def text_column(name: str, role: Role = Role.fact) -> sa.Column[str]:
    """Return a column of text that is never NULL."""
    return sa.Column(name, ScrubbedText, nullable=False, server_default="", info={"role": role})


def number_column(name: str, default: int = 0) -> sa.Column[int]:
    """Return a column of whole numbers that is never NULL."""
    return sa.Column(name, sa.Integer, nullable=False, server_default=str(default))


def flag_column(name: str) -> sa.Column[bool]:
    """Return a column that is False unless it is set."""
    return sa.Column(name, sa.Boolean, nullable=False, server_default=sa.false())


def changed_seq_column() -> sa.Column[int]:
    """Return the column for the number of the last change."""
    return sa.Column("changed_seq", sa.BigInteger, nullable=False, index=True)


def _seen_seq() -> sa.Column[int]:
    return sa.Column("seen_seq", sa.BigInteger, nullable=False, server_default="0")


FEEDS = sa.Table(
    "feeds",
    METADATA,
    sa.Column("feed_url", ScrubbedText, nullable=False, info={"role": Role.url}),
    sa.Column("feed_url_canon", ScrubbedText, primary_key=True, info={"role": Role.url}),
    text_column("lang"),
    sa.Column("status", ScrubbedText, nullable=False),
    sa.Column("last_entry_date", Moment),
    sa.Column("last_crawled", Moment),
    number_column("no_updates_days"),
    text_column("etag"),
    text_column("last_modified"),
    number_column("health_score", 100),
    text_column("notes", Role.text),
    sa.Column("checked_at", Moment),
    # Not in the sheet: the state of the poller.
    text_column("title", Role.title),
    sa.Column("next_poll_at", Moment),
    sa.Column("claimed_until", Moment),
    number_column("interval_seconds"),
    number_column("errors_in_row"),
    number_column("last_status"),
    text_column("body_hash"),
    changed_seq_column(),
    # Who named the feed (opml, crawl, person, sheet), the folder it is in, and its own settings as
    # the JSON of FeedSettings.
    text_column("origin", Role.links),
    text_column("feed_group"),
    text_column("own_settings"),
    # What discovery decided, how often in a row, and when it looks again; NULL means at once.
    text_column("verdict"),
    number_column("verdict_tries"),
    sa.Column("next_check_at", Moment),
    # The rhythm of the entries in seconds (0: unknown), and what went wrong with the polls.
    number_column("usual_gap_seconds"),
    sa.Column("last_success_at", Moment),
    sa.Column("failing_since", Moment),
    flag_column("may_miss_items"),
    sa.Column("turned_over_at", Moment),
    number_column("skipped_items"),
    # The hub that tells of new entries (WebSub); recorded, not subscribed to.
    text_column("hub_url", Role.links),
    _seen_seq(),
    # Serves the claim of due feeds.
    sa.Index("feeds_due", "status", "next_poll_at"),
)

RAW = sa.Table(
    "raw",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=True),
    text_column("source", Role.links),
    sa.Column("feed_url", ScrubbedText, nullable=False, info={"role": Role.links}),
    sa.Column("article_url", ScrubbedText, nullable=False, info={"role": Role.url}),
    sa.Column("article_url_canon", ScrubbedText, nullable=False, info={"role": Role.url}),
    sa.Column("url_hash", ScrubbedText, nullable=False, info={"role": Role.url_hash}),
    text_column("text_hash"),
    sa.Column("found_at", Moment, nullable=False),
    sa.Column("fetched_at", Moment),
    sa.Column("published_at", Moment),
    text_column("language"),
    text_column("title", Role.title),
    text_column("subtitle", Role.text),
    sa.Column("authors", Texts, info={"role": Role.people}),
    text_column("section", Role.text),
    sa.Column("tags", Texts, info={"role": Role.text}),
    text_column("article_type"),
    text_column("clean_text", Role.text),
    number_column("clean_text_len"),
    text_column("full_text_ref", Role.file),
    number_column("full_text_len"),
    number_column("word_count"),
    sa.Column("out_links", Texts, info={"role": Role.links}),
    text_column("category_guess"),
    sa.Column("status", ScrubbedText, nullable=False),
    text_column("lock_owner"),
    sa.Column("lock_at", Moment),
    sa.Column("processed_at", Moment),
    number_column("retries"),
    text_column("error_msg", Role.text),
    sa.Column("sources_list", Texts, info={"role": Role.links}),
    sa.Column("aliases", Texts, info={"role": Role.links}),
    sa.Column("last_seen_rss", Moment),
    # Not in the sheet: the fencing number of claims, the backoff, the day of the export.
    number_column("attempt"),
    sa.Column("next_try_at", Moment),
    sa.Column("stored_at", Moment),
    sa.Column("full_text_expired_at", Moment),
    changed_seq_column(),
    # How the article was extracted.
    text_column("extractor_version"),
    sa.Column("confidence", sa.Float),
    text_column("published_at_source"),
    # Where the text comes from: page, json_ld, trafilatura or feed.
    text_column("text_source"),
    text_column("summary", Role.text),
    text_column("image_url", Role.links),
    # NULL: neither the page nor the feed says so.
    sa.Column("is_paywalled", sa.Boolean),
    # The stored bytes of the page, its final URL and HTTP charset; '' without or after expiry.
    text_column("page_ref"),
    text_column("page_url", Role.links),
    text_column("page_charset"),
    sa.Column("reextracted_at", Moment),
    # The line of the robots.txt that decided ('': no line applies), the file, and its age.
    text_column("robots_rule", Role.text),
    text_column("robots_file", Role.links),
    sa.Column("robots_at", Moment),
    # Since when the article waits for a robots.txt that cannot be read.
    sa.Column("deferred_since", Moment),
    # The publisher changed the article while a worker held it: it is fetched again.
    flag_column("fetch_again"),
    # Held while the row has a text that makes an equal one its duplicate; see `unique_text_hash`.
    sa.Column("unique_text_hash", ScrubbedText, unique=True),
    # A date more than a day ahead, which the page or the feed states.
    sa.Column("stated_published_at", Moment),
    # The one sign that the page may be another than the article; two make an error.
    text_column("page_doubt"),
    _seen_seq(),
    # Serves the claim of due articles.
    sa.Index("raw_claimable", "status", "next_try_at", "row_id"),
    sa.Index("raw_url_hash", "url_hash"),
    sa.Index("raw_stored_at", "stored_at"),
    sa.Index("raw_feed_url", "feed_url", "found_at"),
    sa.Index("raw_page_ref", "page_ref"),
    # Serves exports that begin with the newest article.
    sa.Index("raw_newest", sa.text("coalesce(published_at, found_at)"), "row_id"),
    # Without it SQLite gives the number of a deleted last row to the next one.
    sqlite_autoincrement=True,
)

ARTICLES_INDEX = sa.Table(
    "articles_index",
    METADATA,
    sa.Column("url_hash", ScrubbedText, primary_key=True, info={"role": Role.url_hash}),
    text_column("text_hash"),
    sa.Column("article_url_canon", ScrubbedText, nullable=False, info={"role": Role.url}),
    sa.Column("row_id_raw", sa.Integer, nullable=False, index=True),
    sa.Column("first_seen", Moment, nullable=False),
    sa.Column("last_seen", Moment, nullable=False),
    sa.Column("is_duplicate", sa.Boolean, nullable=False, server_default=sa.false()),
    text_column("reason"),
    text_column("language"),
    text_column("category_guess"),
    number_column("rev_n"),
    changed_seq_column(),
    _seen_seq(),
)

REVISIONS = sa.Table(
    "article_revisions",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True),
    sa.Column("rev_n", sa.Integer, primary_key=True),
    sa.Column("revised_at", Moment, nullable=False),
    sa.Column("old_text_hash", ScrubbedText, nullable=False),
    sa.Column("new_text_hash", ScrubbedText, nullable=False),
    sa.Column("delta", ScrubbedText, nullable=False, info={"role": Role.text}),
)

LINKS = sa.Table(
    "article_links",
    METADATA,
    sa.Column("target_url_hash", ScrubbedText, primary_key=True, info={"role": Role.links}),
    sa.Column("row_id", sa.Integer, primary_key=True),
)

ROBOTS = sa.Table(
    "robots",
    METADATA,
    # It goes with its host, not with the home page.
    sa.Column(
        "origin", ScrubbedText, primary_key=True, info={"role": Role.url, "path": "/robots.txt"}
    ),
    sa.Column("fetched_at", Moment, nullable=False),
    sa.Column("status", sa.Integer, nullable=False),
    sa.Column("body", sa.LargeBinary, nullable=False, info={"role": Role.text}),
)

DIAGNOSTICS = sa.Table(
    "diagnostics",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("run_at", Moment, nullable=False),
    sa.Column("stage", ScrubbedText, nullable=False),
    sa.Column("metric", ScrubbedText, nullable=False),
    sa.Column("value", sa.Float, nullable=False),
    text_column("notes", Role.text),
    changed_seq_column(),
    sqlite_autoincrement=True,
)

CONFIG = sa.Table(
    "config",
    METADATA,
    sa.Column("key", ScrubbedText, primary_key=True),
    sa.Column("value", ScrubbedText, nullable=False),
    sa.Column("updated_at", Moment, nullable=False),
    changed_seq_column(),
)

SEQUENCE = sa.Table(
    "ledger_sequence",
    METADATA,
    sa.Column("name", ScrubbedText, primary_key=True),
    sa.Column("value", sa.BigInteger, nullable=False),
)

# What each feed says about an article; the feed is compared with what it said before.
FEED_ITEMS = sa.Table(
    "feed_items",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("feed_url", ScrubbedText, primary_key=True, info={"role": Role.url}),
    text_column("item_id", Role.links),
    text_column("title", Role.title),
    sa.Column("published_at", Moment),
    sa.Column("updated_at", Moment),
    sa.Column("authors", Texts, info={"role": Role.people}),
    sa.Column("tags", Texts, info={"role": Role.text}),
    text_column("summary", Role.text),
    # The text of content:encoded or its like, without markup.
    text_column("content", Role.text),
    text_column("image_url", Role.links),
    flag_column("is_paywalled"),
    # The hash of title, date and text; a different one is an update by the publisher.
    text_column("item_hash"),
    sa.Column("changed_at", Moment, nullable=False),
    # Serves the search for an item that the feed links to under a new address.
    sa.Index("feed_items_item", "feed_url", "item_id"),
)

# The latest polls of each feed.
FEED_POLLS = sa.Table(
    "feed_polls",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("feed_url", ScrubbedText, nullable=False, info={"role": Role.url}),
    sa.Column("polled_at", Moment, nullable=False, index=True),
    sa.Column("outcome", ScrubbedText, nullable=False),
    # 0 means that there was no response.
    number_column("status_code"),
    number_column("items"),
    number_column("new_items"),
    number_column("updated_items"),
    number_column("skipped_items"),
    number_column("items_without_link"),
    flag_column("turned_over"),
    text_column("notes", Role.text),
    sa.Index("feed_polls_feed", "feed_url", "polled_at"),
    sqlite_autoincrement=True,
)

# The states that each article had, as far as they were recorded; never changed, only added to.
ARTICLE_STATES = sa.Table(
    "article_states",
    METADATA,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
    sa.Column("row_id", sa.Integer, nullable=False),
    sa.Column("status", ScrubbedText, nullable=False),
    sa.Column("at", Moment, nullable=False),
    text_column("reason", Role.text),
    sa.Index("article_states_row", "row_id", "id"),
    sqlite_autoincrement=True,
)

ANALYSES = sa.Table(
    "analyses",
    METADATA,
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
    text_column("summary", Role.text),
    sa.Column("keywords", Texts, info={"role": Role.text}),
    text_column("sentiment"),
    sa.Column("topics", Texts, info={"role": Role.text}),
    text_column("model"),
    sa.Column("analysed_at", Moment, nullable=False),
    # The text that was analysed; another one is analysed again.
    text_column("text_hash"),
    changed_seq_column(),
)

# Articles that match a saved query, and whether the webhook has been told.
ALERT_MATCHES = sa.Table(
    "alert_matches",
    METADATA,
    sa.Column("alert", ScrubbedText, primary_key=True),
    sa.Column("row_id", sa.Integer, primary_key=True, autoincrement=False),
    # Sent with the message, so that a receiver can drop a repeated one.
    sa.Column("delivery_id", ScrubbedText, nullable=False),
    sa.Column("matched_at", Moment, nullable=False),
    sa.Column("delivered_at", Moment),
    number_column("tries"),
    sa.Column("next_try_at", Moment),
    text_column("error_msg", Role.text),
    sa.Index("alert_matches_due", "delivered_at", "next_try_at"),
)

# Alarms about feeds and sources that are raised or healed; each is told once.
FEED_ALARMS = sa.Table(
    "feed_alarms",
    METADATA,
    sa.Column("kind", ScrubbedText, primary_key=True),
    sa.Column("thing", ScrubbedText, primary_key=True, info={"role": Role.url}),
    sa.Column("began_at", Moment, primary_key=True),
    text_column("detail", Role.text),
    sa.Column("told_at", Moment),
    sa.Column("healed_at", Moment),
    sa.Column("healing_told_at", Moment),
)
