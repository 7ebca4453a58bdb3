"""The corpus: crawl_articles and feed_articles, two Delta tables with the same columns.

Only Delta readers may read them: files that a newer version replaced stay until the nightly vacuum,
so a glob over the folder would return rows twice. `all_articles` is both tables as one relation.
"""

import polars as pl

from news_platform.datasets.table import Column, Table

_TEXT = pl.String()
_TEXTS = pl.List(pl.String())
_NUMBER = pl.Int64()
_MOMENT = pl.Datetime("us", "UTC")

CRAWL_SOURCE = "crawl"
FEED_SOURCE = "feed"

_COLUMNS = (
    Column("source", _TEXT, "`crawl`: an article of crawl_articles; `feed`: of feed_articles"),
    Column("url", _TEXT, "address of the page, as written in the crawl or the feed"),
    Column("canonical_url", _TEXT, "canonical form of the address"),
    Column("url_hash", _TEXT, "SHA-256 hex of canonical_url"),
    Column("domain", _TEXT, "registrable domain, `bbc.co.uk`"),
    Column("title", _TEXT, "headline; null if the page states none"),
    Column("subtitle", _TEXT, "second headline or summary stated by the page; else null"),
    Column("authors", _TEXTS, "people, else agencies, in the order of the page"),
    Column("published_at", _MOMENT, "date stated by the page or the feed; else null"),
    Column("section", _TEXT, "the site's own section; else null"),
    Column("tags", _TEXTS, "the site's own keywords"),
    Column("topic", _TEXT, "politics, sports or other, by a small heuristic"),
    Column("article_type", _TEXT, "news, opinion, live, review, video, blog, analysis, ..."),
    Column("language", _TEXT, "ISO 639-1 code of the text"),
    Column("language_probability", pl.Float64(), "0 to 1; null if it was not recorded"),
    Column("text", _TEXT, "text of the article, paragraphs separated by line breaks"),
    Column("text_hash", _TEXT, "SHA-256 hex of the normalized text"),
    Column("word_count", _NUMBER, "words of the text"),
    Column("quality_flags", _TEXTS, "no_title, no_date, few_words, unsure_text, ...; sorted"),
    Column("confidence", pl.Float64(), "F1 to expect of the text, 0 to 1"),
    Column("image_url", _TEXT, "address of the main picture; else null"),
    Column("is_paywalled", pl.Boolean(), "whether the page says so; null if it does not say"),
    Column("text_source", _TEXT, "`page`, or the fallback that found the text"),
    Column("fetched_at", _MOMENT, "when the page was fetched"),
    Column("warc", _TEXT, "name of the WARC file; null for articles of feeds"),
    Column("record_offset", _NUMBER, "first byte of the record in the WARC; null if unknown"),
    Column("record_length", _NUMBER, "bytes of the stored record; null if unknown"),
    Column("extractor_version", _TEXT, "version of the article extractor"),
)
_DAY = Column("day", _TEXT, "day of the WARC, or on which a feed's article was stored")

CRAWL_ARTICLES = Table(
    name="crawl_articles",
    feature="corpus",
    description="Every article of the crawl, one row each, sorted by domain and address (Delta).",
    path="crawl_articles/",
    columns=_COLUMNS,
    partition_columns=(_DAY,),
)
FEED_ARTICLES = Table(
    name="feed_articles",
    feature="corpus",
    description="Every article of the feeds, with the columns of crawl_articles (Delta).",
    path="feed_articles/",
    columns=_COLUMNS,
    partition_columns=(_DAY,),
)
ALL_ARTICLES = Table(
    name="all_articles",
    feature="corpus",
    description="crawl_articles and feed_articles as one relation, for SQL and Python.",
    path="crawl_articles/, feed_articles/",
    columns=_COLUMNS,
    partition_columns=(_DAY,),
)
DELTA_TABLES = (CRAWL_ARTICLES, FEED_ARTICLES)

STATISTICS_COLUMNS = ("domain", "language", "published_at", "fetched_at")
"""The only columns whose smallest and largest values are kept in the log of a table.

The log outlives the rows: text or addresses that were removed must not remain in it.
"""

SORT_COLUMNS = ("domain", "canonical_url")
"""The order of the rows of a day; a pair occurs once per day."""
