"""The dropped_responses dataset: every record of a WARC that gave no page, and why."""

from datetime import date
from urllib.parse import quote

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Role,
    RowSentence,
    parquet,
)

DROPPED_RESPONSES = Dataset(
    name="dropped_responses",
    group="ccnews",
    description="Every record of the crawl that gave no page, with the reason: why a page is "
    "missing. Written by the run of raw_news; files expire after "
    "NEWS_PLATFORM_DROPPED_RESPONSES_DAYS.",
    row="one record of the crawl that gave no page",
    place=parquet(
        "news/dropped/year={year}/month={month}/day={day}/filename={filename}/part-0.parquet"
    ),
    parents=(ParentDataset("raw_news"),),
    kinds=frozenset({"parquet"}),
    keep="ccnews.dropped_responses_days",
    freshness=Freshness(24, 48),
    page="ccnews.md",
    version=versions.CRAWL_EXTRACTOR,
    partitions="day",
    fingerprint="collected",
    sentence=RowSentence(
        "The crawl of {year}-{month}-{day} has a response that gave no page: {reason}.",
        state="dropped",
        source="{filename}@{offset}",
    ),
    columns=(
        Column("uri", Role.url, "Target URI of the WARC record; null if it is unknown."),
        Column("reason", Role.fact, "Why the record gave no page, such as `not_html`."),
        Column("offset", Role.count, "First byte of the record in the stored WARC file."),
    ),
    partition_columns=(
        Column("year", Role.day, "Year of the WARC's timestamp."),
        Column("month", Role.day, "Month of the WARC's timestamp."),
        Column("day", Role.day, "Day of the WARC's timestamp."),
        Column("filename", Role.fact, "Name of the WARC file the record is in."),
    ),
)
DROPPED = "news/dropped"


def dropped_responses_path(day: date, filename: str) -> str:
    """Return the path of the dropped_responses file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"{DROPPED}/{folder}/part-0.parquet"
