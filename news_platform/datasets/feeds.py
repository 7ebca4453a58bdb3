"""The feeds, feed_polls and pending_articles datasets: the ledger's tables, a file per day."""

import polars as pl

from news_platform.datasets.table import Column, Table

_TEXT = pl.String()
_NUMBER = pl.Int64()
_MOMENT = pl.Datetime("us", "UTC")

FEEDS = Table(
    name="feeds",
    feature="rss",
    description="Every feed that was ever a candidate, with its status and health.",
    path="feeds/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("feed_url", _TEXT, "address that is polled"),
        Column("feed_url_canon", _TEXT, "canonical address, the key"),
        Column("lang", _TEXT, "ISO 639-1 code the entries are written in"),
        Column(
            "status",
            _TEXT,
            "active, dead (slow probe), gone (410), rejected, unreachable, paused, retired",
        ),
        Column("last_entry_date", _MOMENT, "date of the newest entry"),
        Column("last_crawled", _MOMENT, "last poll"),
        Column("no_updates_days", _NUMBER, "whole days since the newest entry"),
        Column("etag", _TEXT, "validator of the last response"),
        Column("last_modified", _TEXT, "validator of the last response"),
        Column(
            "health_score",
            _NUMBER,
            "100 minus 10 per consecutive failure, 2 per day without updates, 20 if items may be "
            "missed, 20 if items are skipped, 50 if no item has a link",
        ),
        Column("notes", _TEXT, "why it was rejected or what failed; people may add notes"),
        Column("checked_at", _MOMENT, "last check by discovery or poll"),
        Column("title", _TEXT, "as the feed states it"),
        Column("feed_group", _TEXT, "folder of the feed, such as Europe/Spain"),
        Column("origin", _TEXT, "opml and the listed URL, person, or '' (crawl, sheet)"),
        Column("verdict", _TEXT, "what discovery decided"),
        Column("next_check_at", _MOMENT, "when discovery looks again at a feed not accepted"),
        Column("next_poll_at", _MOMENT, "when it is polled next; null: at once"),
        Column("interval_seconds", _NUMBER, "current interval between polls"),
        Column("usual_gap_seconds", _NUMBER, "median gap between its entries; 0: unknown"),
        Column("last_success_at", _MOMENT, "last poll that gave the feed or 304"),
        Column("failing_since", _MOMENT, "first failure in a row; null: the last poll worked"),
        Column("may_miss_items", pl.Boolean(), "it turned over between two polls of late"),
        Column("skipped_items", _NUMBER, "items of the last response beyond the limit"),
    ),
    partition_columns=(Column("date", _TEXT, "UTC day whose last state the row has"),),
)

FEED_POLLS = Table(
    name="feed_polls",
    feature="rss",
    description="Every poll of a feed and what it found.",
    path="feed_polls/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("feed_url", _TEXT, "canonical address of the feed"),
        Column("polled_at", _MOMENT, "when it was polled"),
        Column("outcome", _TEXT, "read, not_modified, same_body, or what failed"),
        Column("status_code", _NUMBER, "HTTP status; 0 if there was no response"),
        Column("items", _NUMBER, "entries in the feed"),
        Column("new_items", _NUMBER, "articles that were new"),
        Column("updated_items", _NUMBER, "articles that the publisher changed"),
        Column("skipped_items", _NUMBER, "articles that the limit of a poll left out"),
        Column("items_without_link", _NUMBER, "entries that link to no page"),
        Column("turned_over", pl.Boolean(), "whether no known entry was left"),
        Column("notes", _TEXT, "why the poll failed"),
    ),
    partition_columns=(Column("date", _TEXT, "UTC day of the poll"),),
)

PENDING_ARTICLES = Table(
    name="pending_articles",
    feature="rss",
    description="Articles found in feeds, from pending to stored, duplicate, error or skipped.",
    path="pending_articles/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("row_id", _NUMBER, "key of the article in the ledger"),
        Column("feed_url", _TEXT, "feed that listed it first"),
        Column("article_url_canon", _TEXT, "canonical URL"),
        Column("url_hash", _TEXT, "SHA-256 hex of article_url_canon"),
        Column("title", _TEXT, "as the feed states it, until the page is read"),
        Column("published_at", _MOMENT, "as the feed states it, until the page is read"),
        Column("found_at", _MOMENT, "when a feed first listed it"),
        Column("last_seen_rss", _MOMENT, "when a feed last listed it"),
        Column(
            "status",
            _TEXT,
            "pending, processing, stored, duplicate, error, skipped (robots, limit, type)",
        ),
        Column("lock_owner", _TEXT, "worker that holds it"),
        Column("lock_at", _MOMENT, "start of its lease"),
        Column("retries", _NUMBER, "failures so far"),
        Column("error_msg", _TEXT, "last reason"),
        Column("source", _TEXT, "registrable domain of the article's address"),
        Column("stored_at", _MOMENT, "when it was first stored; null if it is not"),
        Column("clean_text_len", _NUMBER, "characters of its text"),
        Column("text_source", _TEXT, "page, json_ld, trafilatura or feed"),
    ),
    partition_columns=(Column("date", _TEXT, "UTC day on which a feed first listed it"),),
)


def day_path(table: Table, day: str) -> str:
    """Return the path of the file of one day, relative to the root."""
    return f"{table.name}/date={day}/part-0.parquet"
