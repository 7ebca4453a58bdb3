"""The search_index dataset: a tantivy index per day or old month; its fields, not columns."""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Place,
    Role,
    Sensitivity,
)

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
    kinds=frozenset({"tantivy"}),
    sensitivity=Sensitivity.texts,
    cost="medium",
    page="search.md",
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
)
