"""The articles dataset: the stored articles of the ledger, one Parquet file per day."""

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

_TEXTS = pl.List(pl.String())

ARTICLES = Dataset(
    name="articles",
    group="rss",
    description="Every article stored from a feed, without duplicates by URL or text.",
    row="one article with its text",
    place=parquet("articles/date={date}/part-0.parquet"),
    parents=(
        ParentDataset("pending_articles", EVERY),
        ParentDataset("domain_metadata", EVERY, is_followed=False),
    ),
    version=versions.LEDGER,
    kinds=frozenset({"sql", "parquet"}),
    sensitivity=Sensitivity.texts,
    cost="medium",
    page="rss.md",
    freshness=Freshness(12, 24),
    fingerprint="files",
    columns=(
        Column("row_id", Role.count, "key of the article in the ledger"),
        Column("source", Role.domain, "registrable domain of the article's address"),
        Column("feed_url", Role.links, "feed that listed it first"),
        Column("article_url", Role.url, "link as written in the feed"),
        Column("article_url_canon", Role.url, "canonical URL after redirects"),
        Column("url_hash", Role.url_hash, "SHA-256 hex of article_url_canon"),
        Column("text_hash", Role.fact, "SHA-256 hex of the normalized clean text"),
        Column("found_at", Role.time, "when a feed first listed it"),
        Column("fetched_at", Role.time, "when the page was fetched last"),
        Column("published_at", Role.time, "date stated by the page, else by the feed, else null"),
        Column("language", Role.language, "ISO 639-1 code of the text"),
        Column("title", Role.title, "headline"),
        Column("subtitle", Role.text, "second headline or summary stated by the page"),
        Column(
            "authors",
            Role.people,
            "people, else agencies, as the page names them, else the feed",
            _TEXTS,
        ),
        Column("section", Role.text, "the site's own section"),
        Column("tags", Role.text, "the site's own keywords, else the feed's", _TEXTS),
        Column("article_type", Role.fact, "news, opinion, live, gallery, review, video, blog, ..."),
        Column("clean_text", Role.text, "text of the article, uncut"),
        Column("clean_text_len", Role.count, "characters of the clean text"),
        Column(
            "full_text_ref",
            Role.file,
            "file of all visible main-column text, from the root; '' once expired",
        ),
        Column("full_text_len", Role.count, "characters of the full text"),
        Column("word_count", Role.count, "words of the clean text"),
        Column("out_links", Role.links, "links in the text to other hosts", _TEXTS),
        Column("category_guess", Role.fact, "politics, sports or other, by a small heuristic"),
        Column("sources_list", Role.links, "feeds that carry the article or its text", _TEXTS),
        Column("aliases", Role.url, "other addresses of the same article", _TEXTS),
        Column("last_seen_rss", Role.time, "when a feed last listed it"),
        Column("extractor_version", Role.fact, "version of the extractor; '' before 0.2"),
        Column("confidence", Role.fact, "F1 to expect of the clean text, 0 to 1", pl.Float64()),
        Column(
            "published_at_source", Role.fact, "json-ld, meta, microdata, time, url, visible or ''"
        ),
        Column("summary", Role.text, "summary of the feed, else of the page"),
        Column("image_url", Role.links, "main image stated by the page, else by the feed"),
        Column(
            "text_source", Role.fact, "where clean_text is from: page, trafilatura, json_ld, feed"
        ),
        Column(
            "is_paywalled",
            Role.fact,
            "true: not the whole article; null: nothing says so",
            pl.Boolean(),
        ),
    ),
    partition_columns=(Column("date", Role.day, "UTC day on which it was first stored"),),
)


def articles_path(day: str) -> str:
    """Return the path of the file of one day, relative to the root."""
    return f"articles/date={day}/part-0.parquet"
