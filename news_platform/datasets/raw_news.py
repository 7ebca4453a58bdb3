"""The raw_news dataset: one row per HTML page of the CC-NEWS crawl, with text and language."""

from datetime import date
from urllib.parse import quote

import polars as pl

from news_platform.datasets.table import Column, Table

RAW_NEWS = Table(
    name="raw_news",
    feature="ccnews",
    description="Every HTML page of the CC-NEWS crawl: source, main text, language, provenance.",
    path="news/raw/year=YYYY/month=MM/day=DD/main_lang=LL/filename=WARC_NAME/part-0.parquet",
    columns=(
        Column("uri", pl.String(), "Target URI of the WARC record, as written there."),
        Column("tree", pl.String(), "HTML of the page, decoded to text."),
        Column("text", pl.String(), "Plain text extracted from the HTML; may be empty."),
        Column("langs", pl.List(pl.String()), "Up to three likely languages, best first."),
        Column("confs", pl.List(pl.Int64()), "Out-of-place rank per language; lower is better."),
        Column("http_date", pl.String(), "Date header, ISO 8601 with offset; null if unusable."),
        Column(
            "http_last_modified",
            pl.String(),
            "Last-Modified header, ISO 8601 with offset; null if absent or unusable.",
        ),
        Column("http_charset", pl.String(), "Charset the header declares, lower case; else null."),
        Column("surt_uri", pl.String(), "Sort-friendly form of the URI: `com,example)/path`."),
        Column("host", pl.String(), "Registrable domain, labels reversed: `uk.co.bbc`."),
    ),
    partition_columns=(
        Column("year", pl.String(), "Year of the WARC's timestamp, `2025`."),
        Column("month", pl.String(), "Month of the WARC's timestamp, `11`."),
        Column("day", pl.String(), "Day of the WARC's timestamp, `01`."),
        Column("main_lang", pl.String(), "Best language (ISO code), `unknown` without text."),
        Column("filename", pl.String(), "Name of the WARC file the page comes from."),
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
