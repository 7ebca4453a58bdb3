"""The raw_news dataset: one row per HTML page of the CC-NEWS crawl, with text and language."""

from datetime import date
from urllib.parse import quote

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

RAW_NEWS = Dataset(
    name="raw_news",
    group="ccnews",
    description="Every HTML page of the CC-NEWS crawl: source, main text, language, provenance.",
    row="one HTML response of the crawl",
    place=parquet(
        "news/raw/year={year}/month={month}/day={day}/main_lang={main_lang}/filename={filename}/part-0.parquet"
    ),
    parents=(ParentDataset("warc_paths", EVERY),),
    kinds=frozenset({"parquet", "python"}),
    sensitivity=Sensitivity.texts,
    cost="high",
    keep="retention.raw_news_days",
    freshness=Freshness(24, 48),
    page="ccnews.md",
    version=versions.CRAWL_EXTRACTOR,
    partitions="day",
    fingerprint="collected",
    columns=(
        Column("uri", Role.url, "Target URI of the WARC record, as written there."),
        Column("tree", Role.html, "HTML of the page, decoded to text."),
        Column("text", Role.text, "Plain text extracted from the HTML; may be empty."),
        Column(
            "langs",
            Role.language,
            "Up to three likely languages, best first.",
            pl.List(pl.String()),
        ),
        Column(
            "confs",
            Role.fact,
            "Out-of-place rank per language; lower is better.",
            pl.List(pl.Int64()),
        ),
        Column(
            "http_date",
            Role.time,
            "Date header, ISO 8601 with offset; null if unusable.",
            pl.String(),
        ),
        Column(
            "http_last_modified",
            Role.time,
            "Last-Modified header, ISO 8601 with offset; null if absent or unusable.",
            pl.String(),
        ),
        Column("http_charset", Role.fact, "Charset the header declares, lower case; else null."),
        Column("surt_uri", Role.surt, "Sort-friendly form of the URI: `com,example)/path`."),
        Column("host", Role.host, "Registrable domain, labels reversed: `uk.co.bbc`."),
    ),
    partition_columns=(
        Column("year", Role.day, "Year of the WARC's timestamp, `2025`."),
        Column("month", Role.day, "Month of the WARC's timestamp, `11`."),
        Column("day", Role.day, "Day of the WARC's timestamp, `01`."),
        Column("main_lang", Role.language, "Best language (ISO code), `unknown` without text."),
        Column("filename", Role.fact, "Name of the WARC file the page comes from."),
    ),
)

# The columns that every file has, itself or in its path, in the order that readers rely on.
RAW_NEWS_FIRST = (
    "uri",
    "tree",
    "text",
    "main_lang",
    "langs",
    "confs",
    "http_date",
    "http_last_modified",
    "http_charset",
    "surt_uri",
    "host",
    "filename",
    "year",
    "month",
    "day",
)
# A column that is added to the table comes last. Files written before lack it: it is null there.
RAW_NEWS_ORDER = (*RAW_NEWS_FIRST, *(it for it in RAW_NEWS.full_schema if it not in RAW_NEWS_FIRST))


def raw_news_day_prefix(day: date) -> str:
    """Return the folder of all rows of one day, relative to the root."""
    return f"news/raw/year={day:%Y}/month={day:%m}/day={day:%d}"


def raw_news_path(day: date, main_lang: str, *, filename: str) -> str:
    """Return the path of the Parquet file of one WARC and language, relative to the root."""
    folder = f"main_lang={main_lang}/filename={quote(filename, safe='')}"
    return f"{raw_news_day_prefix(day)}/{folder}/part-0.parquet"
