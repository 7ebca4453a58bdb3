"""The training_export dataset: a month of articles that may be used, as a Hugging Face folder."""

import polars as pl

from news_platform.datasets.table import Column, Table

_TEXT = pl.String()
_MOMENT = pl.Datetime("us", "UTC")
USAGE = pl.Struct(
    {"bot": _TEXT, "purpose": _TEXT, "verdict": _TEXT, "surveyed_at": _MOMENT},
)

TRAINING_EXPORT = Table(
    name="training_export",
    feature="corpus",
    description="Articles chosen for training, once each, in shards with a manifest and a card.",
    path="training_export/month=YYYY-MM/<version>/data/train-NNNNN-of-NNNNN.parquet",
    columns=(
        Column("id", _TEXT, "SHA-256 hex of the canonical address, as url_hash in the corpus"),
        Column("url", _TEXT, "canonical address"),
        Column("domain", _TEXT, "registrable domain"),
        Column("source", _TEXT, "`crawl` or `feed`"),
        Column("title", _TEXT, "headline; null if the page states none"),
        Column("authors", pl.List(_TEXT), "people, else agencies"),
        Column("published_at", _MOMENT, "date stated by the page or the feed; else null"),
        Column("section", _TEXT, "the site's own section; else null"),
        Column("tags", pl.List(_TEXT), "the site's own keywords"),
        Column("topic", _TEXT, "politics, sports or other"),
        Column("language", _TEXT, "ISO 639-1 code"),
        Column("text", _TEXT, "text of the article"),
        Column("word_count", pl.Int64(), "words of the text"),
        Column("tokens", pl.Int64(), "tokens of the text; absent without a tokenizer"),
        Column("quality_flags", pl.List(_TEXT), "what may be wrong about the text"),
        Column("usage", pl.List(USAGE), "what the publisher stated when the page was fetched"),
        Column("fetched_at", _MOMENT, "when the page was fetched"),
        Column("day", _TEXT, "day of the article in the corpus"),
        Column("warc", _TEXT, "name of the WARC file; null for articles of feeds"),
        Column("record_offset", pl.Int64(), "first byte of the record in the WARC; else null"),
        Column("record_length", pl.Int64(), "bytes of the stored record; else null"),
        Column("extractor_version", _TEXT, "version of the article extractor"),
    ),
    partition_columns=(Column("month", _TEXT, "month of the articles, YYYY-MM"),),
)

CURRENT = "CURRENT"
"""The file beside the versions of a month that names the newest complete one."""


def export_folder(month: str) -> str:
    """Return the folder of all versions of a month, relative to the root."""
    return f"{TRAINING_EXPORT.name}/month={month}"
