"""The feeds, feed_polls and pending_articles datasets: the ledger's tables, a file per day."""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    EVERY,
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Role,
    Sensitivity,
    parquet,
)

FEEDS = Dataset(
    name="feeds",
    group="rss",
    description="Every feed that was ever a candidate, with its status and health.",
    row="one feed and its health",
    place=parquet("feeds/date={date}/part-0.parquet"),
    parents=(
        ParentDataset("raw_news", EVERY, is_followed=False),
        ParentDataset("feed_candidates", EVERY, is_followed=False),
    ),
    version=versions.LEDGER,
    kinds=frozenset({"sql"}),
    cost="medium",
    page="rss.md",
    freshness=Freshness(26, 36),
    fingerprint="files",
    columns=(
        Column("feed_url", Role.url, "address that is polled"),
        Column("feed_url_canon", Role.url, "canonical address, the key"),
        Column("lang", Role.language, "ISO 639-1 code the entries are written in"),
        Column(
            "status",
            Role.fact,
            "active, dead (slow probe), gone (410), rejected, unreachable, paused, retired",
        ),
        Column("last_entry_date", Role.time, "date of the newest entry"),
        Column("last_crawled", Role.time, "last poll"),
        Column("no_updates_days", Role.count, "whole days since the newest entry"),
        Column("etag", Role.fact, "validator of the last response"),
        Column("last_modified", Role.fact, "validator of the last response"),
        Column(
            "health_score",
            Role.count,
            "100 minus 10 per consecutive failure, 2 per day without updates, 20 if items may be "
            "missed, 20 if items are skipped, 50 if no item has a link",
        ),
        Column("notes", Role.text, "why it was rejected or what failed; people may add notes"),
        Column("checked_at", Role.time, "last check by discovery or poll"),
        Column("title", Role.title, "as the feed states it"),
        Column("feed_group", Role.fact, "folder of the feed, such as Europe/Spain"),
        Column("origin", Role.links, "opml and the listed URL, person, or '' (crawl, sheet)"),
        Column("verdict", Role.fact, "what discovery decided"),
        Column("next_check_at", Role.time, "when discovery looks again at a feed not accepted"),
        Column("next_poll_at", Role.time, "when it is polled next; null: at once"),
        Column("interval_seconds", Role.count, "current interval between polls"),
        Column("usual_gap_seconds", Role.count, "median gap between its entries; 0: unknown"),
        Column("last_success_at", Role.time, "last poll that gave the feed or 304"),
        Column("failing_since", Role.time, "first failure in a row; null: the last poll worked"),
        Column(
            "may_miss_items", Role.fact, "it turned over between two polls of late", pl.Boolean()
        ),
        Column("skipped_items", Role.count, "items of the last response beyond the limit"),
    ),
    partition_columns=(Column("date", Role.day, "UTC day whose last state the row has"),),
)

FEED_POLLS = Dataset(
    name="feed_polls",
    group="rss",
    description="Every poll of a feed and what it found.",
    row="one poll of a feed",
    place=parquet("feed_polls/date={date}/part-0.parquet"),
    written_by="pending_articles",
    version=versions.LEDGER,
    page="rss.md",
    fingerprint="files",
    columns=(
        Column("feed_url", Role.url, "canonical address of the feed"),
        Column("polled_at", Role.time, "when it was polled"),
        Column("outcome", Role.fact, "read, not_modified, same_body, or what failed"),
        Column("status_code", Role.count, "HTTP status; 0 if there was no response"),
        Column("items", Role.count, "entries in the feed"),
        Column("new_items", Role.count, "articles that were new"),
        Column("updated_items", Role.count, "articles that the publisher changed"),
        Column("skipped_items", Role.count, "articles that the limit of a poll left out"),
        Column("items_without_link", Role.count, "entries that link to no page"),
        Column("turned_over", Role.fact, "whether no known entry was left", pl.Boolean()),
        Column("notes", Role.text, "why the poll failed"),
    ),
    partition_columns=(Column("date", Role.day, "UTC day of the poll"),),
)

PENDING_ARTICLES = Dataset(
    name="pending_articles",
    group="rss",
    description="Articles found in feeds, from pending to stored, duplicate, error or skipped.",
    row="one article announced by a feed",
    place=parquet("pending_articles/date={date}/part-0.parquet"),
    parents=(ParentDataset("feeds", EVERY),),
    version=versions.LEDGER,
    kinds=frozenset({"sql"}),
    sensitivity=Sensitivity.work,
    cost="medium",
    page="rss.md",
    freshness=Freshness(7, 12),
    fingerprint="files",
    columns=(
        Column("row_id", Role.count, "key of the article in the ledger"),
        Column("feed_url", Role.url, "feed that listed it first"),
        Column("article_url_canon", Role.url, "canonical URL"),
        Column("url_hash", Role.url_hash, "SHA-256 hex of article_url_canon"),
        Column("title", Role.title, "as the feed states it, until the page is read"),
        Column("published_at", Role.time, "as the feed states it, until the page is read"),
        Column("found_at", Role.time, "when a feed first listed it"),
        Column("last_seen_rss", Role.time, "when a feed last listed it"),
        Column(
            "status",
            Role.fact,
            "pending, processing, stored, duplicate, error, skipped (robots, limit, type)",
        ),
        Column("lock_owner", Role.fact, "worker that holds it"),
        Column("lock_at", Role.time, "start of its lease"),
        Column("retries", Role.count, "failures so far"),
        Column("error_msg", Role.text, "last reason"),
        Column("source", Role.domain, "registrable domain of the article's address"),
        Column("stored_at", Role.time, "when it was first stored; null if it is not"),
        Column("clean_text_len", Role.count, "characters of its text"),
        Column("text_source", Role.fact, "page, json_ld, trafilatura or feed"),
    ),
    partition_columns=(Column("date", Role.day, "UTC day on which a feed first listed it"),),
)


def day_path(table: Dataset, day: str) -> str:
    """Return the path of the file of one day, relative to the root."""
    return f"{table.name}/date={day}/part-0.parquet"
