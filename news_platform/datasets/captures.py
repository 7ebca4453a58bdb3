"""The captures and feed_candidates datasets: one file of each per WARC of raw_news.

A capture is a narrow row per page: the position of its record and what the page states about
itself. A feed candidate is a feed that pages link by `<link rel=alternate>`, once per host.
"""

from datetime import date
from urllib.parse import quote

import polars as pl

from news_platform.datasets.table import Column, Table

CAPTURES = Table(
    name="captures",
    feature="ccnews",
    description="Every raw_news page: the position of its WARC record, and what the page states.",
    path="news/captures/year=YYYY/month=MM/day=DD/filename=WARC_NAME/part-0.parquet",
    columns=(
        Column("uri", pl.String(), "Target URI of the WARC record, as written there."),
        Column("warc_date", pl.String(), "WARC-Date of the record, ISO 8601 UTC; null if absent."),
        Column("record_offset", pl.Int64(), "First byte of the record in the stored WARC file."),
        Column(
            "record_length",
            pl.Int64(),
            "Bytes of the stored record; offset and length make a Range; null if unknown.",
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
    """Return the path of the captures file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"news/captures/{folder}/part-0.parquet"


FEED_CANDIDATES = Table(
    name="feed_candidates",
    feature="ccnews",
    description="Feeds linked from crawled pages, per host: input of the feed discovery in rss.",
    path="news/feed_candidates/year=YYYY/month=MM/day=DD/filename=WARC_NAME/part-0.parquet",
    columns=(
        Column("host", pl.String(), "Registrable domain of the linking page, labels reversed."),
        Column("feed_url", pl.String(), "Absolute URL of the feed."),
        Column("mime_type", pl.String(), "Type the link states, such as application/rss+xml."),
        Column("title", pl.String(), "Title the link states; null if none."),
        Column("pages", pl.Int64(), "Pages of the host in this WARC that link to the feed."),
    ),
    partition_columns=(
        Column("year", pl.String(), "Year of the WARC's timestamp."),
        Column("month", pl.String(), "Month of the WARC's timestamp."),
        Column("day", pl.String(), "Day of the WARC's timestamp."),
        Column("filename", pl.String(), "Name of the WARC file the links come from."),
    ),
)


def feed_candidates_path(day: date, filename: str) -> str:
    """Return the path of the feed_candidates file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"news/feed_candidates/{folder}/part-0.parquet"
