"""The captures and feed_candidates datasets: one file of each per WARC of raw_news.

A capture is a narrow row per page: the position of its record and what the page states about
itself. A feed candidate is a feed that pages link by `<link rel=alternate>`, once per host.
"""

from datetime import date
from urllib.parse import quote

import polars as pl

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

CAPTURES = Dataset(
    name="captures",
    group="ccnews",
    description="The position of every page of raw_news in its WARC, and the title, date and "
    "author that it states: a link back to the source, and a narrow table for scans. "
    "Written by the run of raw_news.",
    row="the position of one page of raw_news in its WARC",
    place=parquet(
        "news/captures/year={year}/month={month}/day={day}/filename={filename}/part-0.parquet"
    ),
    parents=(ParentDataset("raw_news"),),
    kinds=frozenset({"parquet"}),
    freshness=Freshness(24, 48),
    page="ccnews.md",
    version=versions.CRAWL_EXTRACTOR,
    partitions="day",
    fingerprint="collected",
    sentence=RowSentence(
        "Common Crawl captured the page on {year}-{month}-{day} (HTTP status {status}); extractor "
        "{extractor_version} read it.",
        state="listed",
        at="warc_date",
        source="{filename}@{record_offset}+{record_length}",
    ),
    columns=(
        Column("uri", Role.url, "Target URI of the WARC record, as written there."),
        Column(
            "warc_date",
            Role.time,
            "WARC-Date of the record, ISO 8601 UTC; null if absent.",
            pl.String(),
        ),
        Column("record_offset", Role.count, "First byte of the record in the stored WARC file."),
        Column(
            "record_length",
            Role.count,
            "Bytes of the stored record; offset and length make a Range; null if unknown.",
        ),
        Column("payload_digest", Role.fact, "WARC-Payload-Digest header; null if absent."),
        Column("status", Role.count, "HTTP status code; null if the record has no HTTP header."),
        Column("extractor_version", Role.fact, "Version of the extractor that wrote the row."),
        Column("title", Role.title, "Title stated by JSON-LD, OpenGraph or <title>; else null."),
        Column(
            "published_at",
            Role.time,
            "Publication time stated by the page, ISO 8601, zone as stated; null if none.",
            pl.String(),
        ),
        Column("author", Role.people, "Authors stated by the page, joined by `, `; else null."),
    ),
    partition_columns=(
        Column("year", Role.day, "Year of the WARC's timestamp."),
        Column("month", Role.day, "Month of the WARC's timestamp."),
        Column("day", Role.day, "Day of the WARC's timestamp."),
        Column("filename", Role.fact, "Name of the WARC file the page comes from."),
    ),
    sources={
        "raw_news.tree": ("title", "published_at", "author"),
    },
)


def captures_path(day: date, filename: str) -> str:
    """Return the path of the captures file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"news/captures/{folder}/part-0.parquet"


FEED_CANDIDATES = Dataset(
    name="feed_candidates",
    group="ccnews",
    description="Feeds that crawled pages link to, per host; feed discovery reads them every "
    "morning. Written by the run of raw_news.",
    row="one feed that pages of a host link to",
    place=parquet(
        "news/feed_candidates/year={year}/month={month}/day={day}/filename={filename}/part-0.parquet"
    ),
    parents=(ParentDataset("raw_news"),),
    kinds=frozenset({"parquet"}),
    freshness=Freshness(24, 48),
    page="ccnews.md",
    version=versions.CRAWL_EXTRACTOR,
    partitions="day",
    fingerprint="collected",
    sentence=RowSentence(
        "{pages} pages crawled on {year}-{month}-{day} link to the feed.", state="listed"
    ),
    columns=(
        Column("host", Role.host, "Registrable domain of the linking page, labels reversed."),
        Column("feed_url", Role.url, "Absolute URL of the feed."),
        Column("mime_type", Role.fact, "Type the link states, such as application/rss+xml."),
        Column("title", Role.title, "Title the link states; null if none."),
        Column("pages", Role.count, "Pages of the host in this WARC that link to the feed."),
    ),
    partition_columns=(
        Column("year", Role.day, "Year of the WARC's timestamp."),
        Column("month", Role.day, "Month of the WARC's timestamp."),
        Column("day", Role.day, "Day of the WARC's timestamp."),
        Column("filename", Role.fact, "Name of the WARC file the links come from."),
    ),
    sources={
        "raw_news.tree": ("feed_url", "mime_type", "title"),
        "raw_news.uri": ("feed_url", "pages"),
    },
)


def feed_candidates_path(day: date, filename: str) -> str:
    """Return the path of the feed_candidates file of a WARC, relative to the root."""
    folder = f"year={day:%Y}/month={day:%m}/day={day:%d}/filename={quote(filename, safe='')}"
    return f"news/feed_candidates/{folder}/part-0.parquet"
