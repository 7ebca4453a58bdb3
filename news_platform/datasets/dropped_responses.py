"""The dropped_responses dataset: every record of a WARC that gave no page, and why."""

from datetime import date
from urllib.parse import quote

import polars as pl

from news_platform.datasets.table import Column, Table

DROPPED_RESPONSES = Table(
    name="dropped_responses",
    feature="ccnews",
    description="Every record of the crawl that gave no row of raw_news, and the reason.",
    path="news/dropped/year=YYYY/month=MM/day=DD/filename=WARC_NAME/part-0.parquet",
    columns=(
        Column("uri", pl.String(), "Target URI of the WARC record; null if it is unknown."),
        Column("reason", pl.String(), "Why the record gave no page, such as `not_html`."),
        Column("offset", pl.Int64(), "First byte of the record in the stored WARC file."),
    ),
    partition_columns=(
        Column("year", pl.String(), "Year of the WARC's timestamp."),
        Column("month", pl.String(), "Month of the WARC's timestamp."),
        Column("day", pl.String(), "Day of the WARC's timestamp."),
        Column("filename", pl.String(), "Name of the WARC file the record is in."),
    ),
)
DROPPED = "news/dropped"


def dropped_responses_path(day: date, filename: str) -> str:
    """Return the path of the dropped_responses file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"{DROPPED}/{folder}/part-0.parquet"
