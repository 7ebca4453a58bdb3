"""The URL index of the crawl: captures with one run per WARC, capture_index with one file per day.

Both have the columns of Common Crawl's own URL index table, so that queries written for that table
work here. A run is written with the pages of its WARC, or alone by `ccnews index`.
"""

from collections.abc import Mapping
from datetime import date

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
from news_platform.datasets.raw_news import listing_path, side_table

_COLUMNS = (
    Column("url_surtkey", Role.surt, "Sort key of the URL by the `surt` package, as pywb has it."),
    Column("url", Role.url, "Target URI of the WARC record, as written there."),
    Column("url_host_name", Role.fact, "Host of the URL in lower-case punycode, without port."),
    Column("url_host_registered_domain", Role.domain, "Registrable domain: `bbc.co.uk`."),
    Column("fetch_time", Role.time, "WARC-Date of the record, UTC; null if it states none."),
    Column(
        "fetch_status",
        Role.count,
        "HTTP status code; null if the record has no HTTP header.",
        pl.Int16(),
    ),
    Column(
        "content_digest",
        Role.fact,
        "SHA-1 of the payload as archived, base32: as the record states it, else computed; null "
        "for a revisit that states none.",
    ),
    Column(
        "content_mime_type",
        Role.fact,
        "Content-Type header without parameters; `warc/revisit` for a revisit; null if absent.",
    ),
    Column(
        "content_mime_detected",
        Role.fact,
        "Type that the archiver identified, else that of the first bytes; null if unknown.",
    ),
    Column(
        "content_languages",
        Role.language,
        "`langs` of raw_news as ISO 639-3 codes, best first, joined by commas; null without text, "
        "for what is not a page, and in runs of `ccnews index`.",
    ),
    Column("warc_filename", Role.fact, "Path of the WARC in the crawl, from `crawl-data/` on."),
    Column(
        "warc_record_offset",
        Role.count,
        "First byte of the record in the stored WARC file.",
        pl.Int32(),
    ),
    Column(
        "warc_record_length",
        Role.count,
        "Bytes of the stored record; offset and length make a Range. Null if records share a "
        "compressed block.",
        pl.Int32(),
    ),
    Column("warc_segment", Role.fact, "Year and month of the WARC, `2025/11`."),
    Column("crawl", Role.fact, "Name of the month's crawl, `CC-NEWS-2025-11`."),
    Column("subset", Role.fact, "Always `warc`, as in Common Crawl's table."),
)
WARC_COLUMNS = ("warc_filename", "warc_segment", "crawl", "subset")
"""The columns that are the same in all captures of a WARC."""
MAX_OFFSET = 2**31 - 1
"""The last byte that a record may start at: Common Crawl's table has 32-bit offsets."""

CAPTURES = side_table(
    "captures",
    folder="news/captures",
    what="records are in",
    description="The URL index of the crawl: every response and revisit, whatever its status and "
    "type, with its place in the WARC. One run per WARC, sorted by `url_surtkey`. Written by the "
    "run of raw_news, or alone by `ccnews index`.",
    row="one response or revisit record of the crawl",
    page="captures.md",
    sentence=RowSentence(
        "Common Crawl captured the page on {year}-{month}-{day} (HTTP status {fetch_status}, "
        "{content_mime_type}).",
        state="listed",
        at="fetch_time",
        source="{warc_filename}@{warc_record_offset}+{warc_record_length}",
    ),
    columns=_COLUMNS,
    sources={
        "raw_news.uri": ("url", "url_host_name"),
        "raw_news.host": ("url_host_registered_domain",),
        "raw_news.surt_uri": ("url_surtkey",),
        "raw_news.langs": ("content_languages",),
        "raw_news.filename": ("warc_filename", "filename"),
    },
)
CAPTURE_INDEX = Dataset(
    name="capture_index",
    group="ccnews",
    description="The URL index of one settled day of the crawl: the runs of `captures` merged into "
    "one file, sorted by `url_surtkey`, in small row groups. All captures of a domain "
    "take two range reads per day.",
    row="one response or revisit record of the crawl",
    place=parquet("capture_index/date={date}/part-0.parquet"),
    partitions="day",
    parents=(ParentDataset("captures"),),
    version=versions.CAPTURE_INDEX,
    follows_version=True,
    per_run=7,
    removal="rebuild",
    freshness=Freshness(30, 60),
    page="captures.md",
    columns=_COLUMNS,
    partition_columns=(Column("date", Role.day, "day of the WARCs' timestamps"),),
    sources={"captures.year": ("date",), "captures.month": ("date",), "captures.day": ("date",)},
)


def crawl_fields(day: date, uri: str) -> Mapping[str, str]:
    """Return the columns that all captures of a WARC share, by its day and where it was read."""
    _, found, rest = uri.partition("crawl-data/")
    folder, name = listing_path(day).rpartition("/")[0], uri.rpartition("/")[2]
    return {
        "warc_filename": found + rest if found else f"{folder}/{name}",
        "warc_segment": f"{day:%Y/%m}",
        "crawl": f"CC-NEWS-{day:%Y-%m}",
        "subset": "warc",
    }


def run_key(day: date, warc: str) -> str:
    """Return the key of the marker of a run that was written alone."""
    return f"{day}|{warc}"


def run_day(key: str) -> str:
    """Return the day of a run that was written alone, by the key of its marker."""
    return key.partition("|")[0]
