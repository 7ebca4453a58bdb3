"""One narrow row per page of raw_news: where its record lies, and what it says about itself."""

from datetime import date
from urllib.parse import quote

import polars as pl

from news_platform.datasets.table import Column, Table

CAPTURES = Table(
    name="captures",
    room="ccnews",
    description="Where the record of every raw_news page lies in its WARC, and what it states.",
    path="news/captures/year=YYYY/month=MM/day=DD/filename=WARC_NAME/part-0.parquet",
    columns=(
        Column("uri", pl.String(), "Target URI of the WARC record, as written there."),
        Column("warc_date", pl.String(), "WARC-Date of the record, ISO 8601 UTC; null if absent."),
        Column("record_offset", pl.Int64(), "First byte of the record in the stored WARC file."),
        Column(
            "record_length",
            pl.Int64(),
            "Bytes of the record as stored; offset and length make a Range; null if unknown.",
        ),
        Column("payload_digest", pl.String(), "WARC-Payload-Digest header; null if absent."),
        Column("status", pl.Int64(), "HTTP status code; null if the record has no HTTP header."),
        Column("extractor_version", pl.String(), "Version of the extractor that wrote the row."),
        Column("title", pl.String(), "Title stated by JSON-LD, OpenGraph or <title>; else null."),
        Column(
            "published_at",
            pl.String(),
            "Publication time stated by the page, ISO 8601, zone as stated; null if none.",
        ),
        Column("author", pl.String(), "Authors stated by the page, joined by `, `; else null."),
    ),
    partition_columns=(
        Column("year", pl.String(), "Year of the WARC's timestamp."),
        Column("month", pl.String(), "Month of the WARC's timestamp."),
        Column("day", pl.String(), "Day of the WARC's timestamp."),
        Column("filename", pl.String(), "Name of the WARC file the page comes from."),
    ),
)


def captures_path(day: date, filename: str) -> str:
    """Return the one captures file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"news/captures/{folder}/part-0.parquet"
