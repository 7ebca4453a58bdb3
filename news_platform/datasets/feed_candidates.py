"""The feeds that crawled pages point at by `<link rel=alternate>`, once per host and WARC."""

from datetime import date
from urllib.parse import quote

import polars as pl

from news_platform.datasets.table import Column, Table

FEED_CANDIDATES = Table(
    name="feed_candidates",
    room="ccnews",
    description="Feeds linked from crawled pages, per host: what the rss room may want to follow.",
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
    """Return the one feed_candidates file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"news/feed_candidates/{folder}/part-0.parquet"
