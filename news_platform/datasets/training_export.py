"""The training_export dataset: a month of articles that may be used, as a Hugging Face folder."""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    EVERY,
    OF_MONTH,
    Column,
    Dataset,
    ParentDataset,
    Role,
    Sensitivity,
    parquet,
)

_TEXT = pl.String()
_MOMENT = pl.Datetime("us", "UTC")
USAGE = pl.Struct(
    {"bot": _TEXT, "purpose": _TEXT, "verdict": _TEXT, "surveyed_at": _MOMENT},
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
        ParentDataset("domain_metadata", EVERY, is_followed=False),
    ),
    options=("languages", "min_words", "without_flags", "rules", "strict"),
    version=versions.TRAINING_EXPORT,
    kinds=frozenset({"parquet", "huggingface"}),
    sensitivity=Sensitivity.texts,
    cost="medium",
    removal="rebuild",
    page="corpus.md",
    freshness="written once a month, after its last days have settled",
    beside=(
        "training_export/month={month}/CURRENT",
        "training_export/month={month}/{version}/manifest.json",
        "training_export/month={month}/{version}/README.md",
    ),
    columns=(
        Column(
            "id", Role.url_hash, "SHA-256 hex of the canonical address, as url_hash in the corpus"
        ),
        Column("url", Role.url, "canonical address"),
        Column("domain", Role.domain, "registrable domain"),
        Column("source", Role.fact, "`crawl` or `feed`"),
        Column("title", Role.title, "headline; null if the page states none"),
        Column("authors", Role.people, "people, else agencies", pl.List(_TEXT)),
        Column("published_at", Role.time, "date stated by the page or the feed; else null"),
        Column("section", Role.text, "the site's own section; else null"),
        Column("tags", Role.text, "the site's own keywords", pl.List(_TEXT)),
        Column("topic", Role.fact, "politics, sports or other"),
        Column("language", Role.language, "ISO 639-1 code"),
        Column("text", Role.text, "text of the article"),
        Column("word_count", Role.count, "words of the text"),
        Column("tokens", Role.count, "tokens of the text; absent without a tokenizer"),
        Column("quality_flags", Role.fact, "what may be wrong about the text", pl.List(_TEXT)),
        Column(
            "usage",
            Role.fact,
            "what the publisher stated when the page was fetched",
            pl.List(USAGE),
        ),
        Column("fetched_at", Role.time, "when the page was fetched"),
        Column("day", Role.day, "day of the article in the corpus"),
        Column("warc", Role.fact, "name of the WARC file; null for articles of feeds"),
        Column("record_offset", Role.count, "first byte of the record in the WARC; else null"),
        Column("record_length", Role.count, "bytes of the stored record; else null"),
        Column("extractor_version", Role.fact, "version of the article extractor"),
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
