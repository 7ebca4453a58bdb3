"""The search_index dataset: a tantivy index per day or old month; its fields, not columns."""

import polars as pl

from news_platform.datasets.table import Column, Table

_TEXT = pl.String()

SEARCH_INDEX = Table(
    name="search_index",
    feature="search",
    description="Full-text index of the articles of a day or an old month (tantivy).",
    path="search/day=YYYY-MM-DD/BUILD/, search/month=YYYY-MM/BUILD/",
    columns=(
        Column("title", _TEXT, "words of the headline"),
        Column("text", _TEXT, "words of the text; the text itself is not stored"),
        Column("authors", _TEXT, "words of the authors' names"),
        Column("section", _TEXT, "words of the site's own section"),
        Column("domain", _TEXT, "registrable domain, `bbc.co.uk`"),
        Column("language", _TEXT, "ISO 639-1 code, or `unknown`"),
        Column("day", _TEXT, "day of the article's row in its table"),
        Column("url_hash", _TEXT, "SHA-256 hex of the canonical URL"),
        Column("at", pl.Int64(), "when it was published, else fetched: Unix seconds"),
        Column("day_number", pl.Int64(), "the day as a number, for ranges"),
        Column("shown", pl.Binary(), "JSON: url, canonical_url, title and source"),
    ),
)
