"""The corpus: crawl_articles and feed_articles, its monthly export and its full-text index.

Only Delta readers may read the two tables: files that a newer version replaced stay until the
nightly vacuum, so a glob over the folder would return rows twice. `all_articles` is both tables as
one relation.
"""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    KNOWN_IN_MONTH,
    OF_MONTH,
    TEXTS,
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Place,
    Role,
    RowSentence,
    Sensitivity,
    flag,
    number,
    parquet,
)
from news_platform.datasets.feeds import CATEGORY_GUESS

CRAWL_SOURCE = "crawl"
FEED_SOURCE = "feed"

_ADDRESS = (
    Column("source", Role.fact, "`crawl`: an article of crawl_articles; `feed`: of feed_articles"),
    Column("url", Role.url, "address of the page, as written in the crawl or the feed"),
    Column("canonical_url", Role.url, "canonical form of the address"),
    Column("url_hash", Role.url_hash, "SHA-256 hex of canonical_url"),
    Column("domain", Role.domain, "registrable domain, `bbc.co.uk`"),
)
_FROM_PAGE = (
    Column("title", Role.title, "headline; null if the page states none"),
    Column("subtitle", Role.text, "second headline or summary stated by the page; else null"),
    Column("authors", Role.people, "people, else agencies, in the order of the page", TEXTS),
    Column("published_at", Role.time, "date stated by the page or the feed; else null"),
    Column("stated_published_at", Role.time, "a stated date over a day after the fetch; else null"),
    Column("section", Role.text, "the site's own section; else null"),
    Column("tags", Role.text, "the site's own keywords", TEXTS),
    CATEGORY_GUESS,
    Column("article_type", Role.fact, "news, opinion, live, review, video, blog, analysis, ..."),
    Column("language", Role.language, "ISO 639-1 code of the text"),
    number("language_probability", "0 to 1; null if it was not recorded"),
    Column("text", Role.text, "text of the article, paragraphs separated by line breaks"),
    Column("text_hash", Role.fact, "SHA-256 hex of the normalized text"),
    Column("word_count", Role.count, "words of the text"),
    Column(
        "quality_flags", Role.fact, "no_title, no_date, few_words, unsure_text, ...; sorted", TEXTS
    ),
    number("confidence", "F1 to expect of the text, 0 to 1"),
    Column("image_url", Role.links, "address of the main picture; else null"),
    flag("is_paywalled", "whether the page says so; null if it does not say"),
    Column("text_source", Role.fact, "`page`, or the fallback that found the text"),
)
_ORIGIN = (
    Column("fetched_at", Role.time, "when the page was fetched"),
    Column("warc", Role.fact, "name of the WARC file; null for articles of feeds"),
    Column("record_offset", Role.count, "first byte of the record in the WARC; null if unknown"),
    Column("record_length", Role.count, "bytes of the stored record; null if unknown"),
    Column("payload_digest", Role.fact, "digest of the payload that the WARC states; else null"),
    Column("extractor_version", Role.fact, "version of the article extractor"),
)
_COLUMNS = (*_ADDRESS, *_FROM_PAGE, *_ORIGIN)
_DAY = Column("day", Role.day, "day of the WARC, or on which a feed's article was stored")

_SENTENCE = RowSentence(
    "It is an article of {word_count} words, language {language}, by extractor {extractor_version} "
    "({text_source}), confidence {confidence}.",
    at="fetched_at",
    source="{warc}@{record_offset}+{record_length}",
)

CRAWL_ARTICLES = Dataset(
    name="crawl_articles",
    group="corpus",
    description="Articles of one crawl day, sorted by domain and address: text by our own "
    "extractor, with title, authors, date and place. Every page of raw_news is "
    "judged; front pages, lists and other pages are counted, not stored.",
    row="one article of the crawl",
    place=Place("delta", "crawl_articles"),
    partitions="day",
    # A run of raw_news writes captures, too, and changes the state of both.
    parents=(ParentDataset("raw_news"), ParentDataset("captures", is_followed=False)),
    version=versions.CRAWL_ARTICLES,
    options=("languages", "domains"),
    kinds=frozenset({"deltalake", "python"}),
    sensitivity=Sensitivity.texts,
    cost="high",
    explorer="/",
    freshness=Freshness(30, 60),
    sentence=_SENTENCE,
    columns=_COLUMNS,
    partition_columns=(_DAY,),
    sources={
        "raw_news.uri": ("url", "canonical_url", "url_hash", "domain"),
        "raw_news.tree": tuple(column.name for column in _FROM_PAGE),
        "raw_news.http_date": ("fetched_at",),
        "raw_news.filename": ("warc",),
        "raw_news.year": ("day",),
        "raw_news.month": ("day",),
        "raw_news.day": ("day",),
    },
)
FEED_ARTICLES = Dataset(
    name="feed_articles",
    group="corpus",
    description="Articles of feeds by the day they were stored, with the columns of "
    "crawl_articles. The running day is refreshed at most every "
    "15 minutes.",
    row="one article of a feed",
    place=Place("delta", "feed_articles"),
    partitions="day",
    parents=(ParentDataset("articles"),),
    per_run=7,
    version=versions.CRAWL_ARTICLES,
    sensitivity=Sensitivity.texts,
    explorer="/",
    freshness=Freshness(14, 26),
    sentence=_SENTENCE,
    columns=_COLUMNS,
    partition_columns=(_DAY,),
    sources={
        "articles.article_url": ("url",),
        "articles.article_url_canon": ("canonical_url",),
        "articles.source": ("domain",),
        "articles.clean_text": ("text",),
        "articles.date": ("day",),
    },
)
ALL_ARTICLES = Dataset(
    name="all_articles",
    group="corpus",
    description="crawl_articles and feed_articles as one relation, for SQL and Python.",
    row="one article of the crawl or of a feed",
    place=Place("view", "crawl_articles, feed_articles"),
    parents=(ParentDataset("crawl_articles"), ParentDataset("feed_articles")),
    partitions="day",
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


USAGE = pl.Struct(
    {
        **dict.fromkeys(("rule", "bot", "purpose", "verdict"), pl.String()),
        "surveyed_at": pl.Datetime("us", "UTC"),
        "statements": pl.List(pl.String()),
    }
)

TRAINING_EXPORT = Dataset(
    name="training_export",
    group="corpus",
    description="Articles of a month that may be used for training, each text once, as a Hugging "
    "Face folder of shards with a manifest and a card. Paywalled articles and those "
    "whose publisher refuses are left out, and counted by reason.",
    row="one article that may be used for training",
    place=parquet("training_export/month={month}/{version}/data/train-{shard}-of-{shards}.parquet"),
    partitions="month",
    parents=(
        ParentDataset("crawl_articles", OF_MONTH),
        ParentDataset("feed_articles", OF_MONTH),
        ParentDataset("near_duplicates", OF_MONTH),
        ParentDataset("domain_metadata", KNOWN_IN_MONTH),
    ),
    options=("languages", "min_words", "without_flags", "rules", "strict"),
    version=versions.TRAINING_EXPORT,
    kinds=frozenset({"parquet", "huggingface"}),
    sensitivity=Sensitivity.texts,
    cost="medium",
    removal="rebuild",
    freshness="written once a month, after its last days have settled",
    beside=(
        "training_export/month={month}/CURRENT",
        "training_export/month={month}/{version}/manifest.json",
        "training_export/month={month}/{version}/manifest.sig",
        "training_export/month={month}/{version}/README.md",
        "training_export/month={month}/{version}/statements.jsonl",
        "training_export/month={month}/{version}/croissant.json",
        "training_export/month={month}/{version}/training_summary.md",
        "training_export/month={month}/{version}/verify_export.py",
    ),
    columns=(
        Column(
            "id", Role.url_hash, "SHA-256 hex of the canonical address, as url_hash in the corpus"
        ),
        Column("url", Role.url, "canonical address"),
        Column("domain", Role.domain, "registrable domain"),
        Column("source", Role.fact, "`crawl` or `feed`"),
        Column("title", Role.title, "headline; null if the page states none"),
        Column("authors", Role.people, "people, else agencies", TEXTS),
        Column("published_at", Role.time, "date stated by the page or the feed; else null"),
        Column("section", Role.text, "the site's own section; else null"),
        Column("tags", Role.text, "the site's own keywords", TEXTS),
        CATEGORY_GUESS,
        Column("language", Role.language, "ISO 639-1 code"),
        Column("text", Role.text, "text of the article"),
        Column("word_count", Role.count, "words of the text"),
        Column("tokens", Role.count, "tokens of the text; absent without a tokenizer"),
        Column("quality_flags", Role.fact, "what may be wrong about the text", TEXTS),
        Column(
            "usage",
            Role.fact,
            "what the publisher stated about each rule, by statements of statements.jsonl",
            pl.List(USAGE),
        ),
        Column("fetched_at", Role.time, "when the page was fetched"),
        Column("day", Role.day, "day of the article in the corpus"),
        Column("warc", Role.fact, "name of the WARC file; null for articles of feeds"),
        Column("record_offset", Role.count, "first byte of the record in the WARC; else null"),
        Column("record_length", Role.count, "bytes of the stored record; else null"),
        Column(
            "payload_digest", Role.fact, "digest of the payload that the WARC states; else null"
        ),
        Column("extractor_version", Role.fact, "version of the article extractor"),
        Column("sketch", Role.fact, "64 MinHashes of the text, a byte each, in Base64"),
    ),
    partition_columns=(Column("month", Role.day, "month of the articles, YYYY-MM"),),
    sources={
        "crawl_articles.url_hash": ("id",),
        "feed_articles.url_hash": ("id",),
        "crawl_articles.canonical_url": ("url",),
        "feed_articles.canonical_url": ("url",),
        "domain_metadata.usage": ("usage",),
    },
)


CURRENT = "CURRENT"
"""The file beside the versions of a month that names the newest complete one."""


def export_folder(month: str) -> str:
    """Return the folder of all versions of a month, relative to the root."""
    return f"{TRAINING_EXPORT.name}/month={month}"


SEARCH_INDEX = Dataset(
    name="search_index",
    group="search",
    description="Full-text index (tantivy) of the articles of one day: title, text, authors, "
    "section and facts. An index is never changed: a new build takes the place of "
    "the old one in one step, and the days of old months share one.",
    row="one article",
    place=Place("index", "search"),
    partitions="day",
    parents=(ParentDataset("crawl_articles"), ParentDataset("feed_articles")),
    version=versions.SEARCH_INDEX,
    follows_version=True,
    per_run=7,
    sensitivity=Sensitivity.texts,
    cost="medium",
    explorer="/",
    freshness=Freshness(30, 60),
    columns=(
        Column("title", Role.title, "words of the headline"),
        Column("text", Role.text, "words of the text; the text itself is not stored"),
        Column("authors", Role.people, "words of the authors' names"),
        Column("section", Role.text, "words of the site's own section"),
        Column("domain", Role.domain, "registrable domain, `bbc.co.uk`"),
        Column("language", Role.language, "ISO 639-1 code, or `unknown`"),
        Column("day", Role.day, "day of the article's row in its table"),
        Column("url_hash", Role.url_hash, "SHA-256 hex of the canonical URL"),
        Column("at", Role.count, "when it was published, else fetched: Unix seconds"),
        Column("day_number", Role.count, "the day as a number, for ranges"),
        Column("shown", Role.text, "JSON: url, canonical_url, title and source", pl.Binary()),
    ),
    sources={
        f"{table.name}.{column}": made
        for table in DELTA_TABLES
        for column, made in {
            "title": ("title", "shown"),
            "day": ("day", "day_number"),
            **dict.fromkeys(("published_at", "fetched_at"), ("at",)),
            **dict.fromkeys(("url", "canonical_url", "source"), ("shown",)),
        }.items()
    },
)
