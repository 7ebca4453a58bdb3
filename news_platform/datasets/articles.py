"""The articles dataset: the stored articles of the ledger, one Parquet file per day."""

import polars as pl

from news_platform.datasets.table import Column, Table

_TEXT = pl.String()
_TEXTS = pl.List(pl.String())
_NUMBER = pl.Int64()
_MOMENT = pl.Datetime("us", "UTC")

ARTICLES = Table(
    name="articles",
    feature="rss",
    description="Every article stored from a feed, without duplicates by URL or text.",
    path="articles/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("row_id", _NUMBER, "key of the article in the ledger"),
        Column("source", _TEXT, "registrable domain of the article's address"),
        Column("feed_url", _TEXT, "feed that listed it first"),
        Column("article_url", _TEXT, "link as written in the feed"),
        Column("article_url_canon", _TEXT, "canonical URL after redirects"),
        Column("url_hash", _TEXT, "SHA-256 hex of article_url_canon"),
        Column("text_hash", _TEXT, "SHA-256 hex of the normalized clean text"),
        Column("found_at", _MOMENT, "when a feed first listed it"),
        Column("fetched_at", _MOMENT, "when the page was fetched last"),
        Column("published_at", _MOMENT, "date stated by the page, else by the feed, else null"),
        Column("language", _TEXT, "ISO 639-1 code of the text"),
        Column("title", _TEXT, "headline"),
        Column("subtitle", _TEXT, "second headline or summary stated by the page"),
        Column("authors", _TEXTS, "people, else agencies, as the page names them, else the feed"),
        Column("section", _TEXT, "the site's own section"),
        Column("tags", _TEXTS, "the site's own keywords, else the feed's"),
        Column("article_type", _TEXT, "news, opinion, live, gallery, review, video, blog, ..."),
        Column("clean_text", _TEXT, "text of the article, uncut"),
        Column("clean_text_len", _NUMBER, "characters of the clean text"),
        Column(
            "full_text_ref",
            _TEXT,
            "file of all visible main-column text, from the root; '' once expired",
        ),
        Column("full_text_len", _NUMBER, "characters of the full text"),
        Column("word_count", _NUMBER, "words of the clean text"),
        Column("out_links", _TEXTS, "links in the text to other hosts"),
        Column("category_guess", _TEXT, "politics, sports or other, by a small heuristic"),
        Column("sources_list", _TEXTS, "feeds that carry the article or its text"),
        Column("aliases", _TEXTS, "other addresses of the same article"),
        Column("last_seen_rss", _MOMENT, "when a feed last listed it"),
        Column("extractor_version", _TEXT, "version of the extractor"),
        Column("confidence", pl.Float64(), "F1 to expect of the clean text, 0 to 1"),
        Column("published_at_source", _TEXT, "json-ld, meta, microdata, time, url, visible or ''"),
        Column("summary", _TEXT, "summary of the feed, else of the page"),
        Column("image_url", _TEXT, "main image stated by the page, else by the feed"),
        Column("text_source", _TEXT, "where clean_text is from: page, trafilatura, json_ld, feed"),
        Column("is_paywalled", pl.Boolean(), "true: not the whole article; null: nothing says so"),
    ),
    partition_columns=(Column("date", _TEXT, "UTC day on which it was first stored"),),
)


def articles_path(day: str) -> str:
    """Return the path of the file of one day, relative to the root."""
    return f"articles/date={day}/part-0.parquet"
