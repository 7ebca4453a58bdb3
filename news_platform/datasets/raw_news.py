"""The crawl's lists of WARC files, raw_news with one row per HTML page, and its narrow side tables.

What a page states about itself is in page_metadata. A feed candidate is a feed that pages link by
`<link rel=alternate>`, once per host. A dropped response is a record that gave no page, and why.
Each has one file per WARC, as captures have (`captures.py`).
"""

import re
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any
from urllib.parse import quote

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    EVERY,
    TEXTS,
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Place,
    Role,
    RowSentence,
    Sensitivity,
    parquet,
)

# The first day of CC-NEWS.
FIRST_DAY = date(2016, 8, 26)

WARC_PATHS = Dataset(
    name="warc_paths",
    group="ccnews",
    description="The monthly lists of WARC files in the crawl; they grow during the month.",
    row="one line of a monthly list, which names a WARC file",
    place=Place("external", "crawl-data/CC-NEWS/{year}/{month}/warc.paths.gz"),
    kinds=frozenset({"s3"}),
    freshness="written by the crawl; if it is late, `raw_news` shows it",
    removal="never",
    beside=("news/warc_paths/{month}.json",),
    columns=(Column("path", Role.file, "Path of a WARC file, relative to the crawl's root."),),
)

_NAME = re.compile(r"[^/]*?-(\d{14})-[^/]*\.warc(?:\.gz)?")
_CRAWL_PATH = re.compile(r"crawl-data/CC-NEWS/\d{4}/\d{2}/(CC-NEWS-\d{14}-\d+\.warc\.gz)")


@dataclass(frozen=True, slots=True, order=True)
class Warc:
    """One WARC file of a day; `path` is relative to its store."""

    day: date
    name: str
    path: str


def listing_path(month: date) -> str:
    """Return the path of the list of WARC files for the month of this day."""
    return f"crawl-data/CC-NEWS/{month:%Y}/{month:%m}/warc.paths.gz"


def warc_day(name: str) -> date | None:
    """Return the day of the timestamp in a WARC's name, or None if it has none."""
    moment = warc_time(name)
    return moment.date() if moment else None


def warc_time(name: str) -> datetime | None:
    """Return the timestamp in a WARC's name, or None if it has none."""
    found = _NAME.fullmatch(name)
    try:
        # ISO 8601 is parsed ten times as fast as by strptime, and listings have many names.
        return datetime.fromisoformat(f"{found[1][:8]}T{found[1][8:]}+0000") if found else None
    except ValueError:
        return None


def month_of(day: date) -> date:
    """Return the first day of the day's month."""
    return day.replace(day=1)


def next_month(month: date) -> date:
    """Return the first day of the next month."""
    # Four days after the 28th is in the next month, whatever the length of this one.
    return (month.replace(day=28) + timedelta(days=4)).replace(day=1)


def previous_month(month: date) -> date:
    """Return the first day of the previous month."""
    return (month.replace(day=1) - timedelta(days=1)).replace(day=1)


def last_day(today: date) -> date:
    """Return the last day that a WARC can be of: somewhere it is tomorrow already."""
    return today + timedelta(days=1)


def parse_warc_path(line: str) -> Warc | None:
    """Parse one line of a listing; return None for a line that is not a WARC of the news crawl."""
    found = _CRAWL_PATH.fullmatch(line.strip())
    day = warc_day(found[1]) if found else None
    return Warc(day, found[1], line.strip()) if found and day else None


RAW_NEWS = Dataset(
    name="raw_news",
    group="ccnews",
    description="HTML pages of one day of the CC-NEWS crawl: source, main text, languages and "
    "provenance. A run collects the WARCs of its day that are missing or outdated: a "
    "day that grew is completed, and a complete day costs nothing. One file per "
    "language and WARC.",
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
    version=versions.CRAWL_EXTRACTOR,
    partitions="day",
    fingerprint="collected",
    beside=("news/collected/{file}", "news/wanted/{date}.json"),
    columns=(
        Column("uri", Role.url, "Target URI of the WARC record, as written there."),
        Column("tree", Role.html, "HTML of the page, decoded to text."),
        Column("text", Role.text, "Plain text extracted from the HTML; may be empty."),
        Column("langs", Role.language, "Up to three likely languages, best first.", TEXTS),
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
        Column(
            "warc_record_offset",
            Role.count,
            "First byte of the record in the stored WARC file; null in rows of older versions.",
        ),
        Column(
            "fetch_status",
            Role.count,
            "HTTP status code; null without an HTTP header and in rows of older versions.",
            pl.Int16(),
        ),
    ),
    partition_columns=(
        Column("year", Role.day, "Year of the WARC's timestamp, `2025`."),
        Column("month", Role.day, "Month of the WARC's timestamp, `11`."),
        Column("day", Role.day, "Day of the WARC's timestamp, `01`."),
        Column(
            "main_lang",
            Role.language,
            "Best language (ISO code); `unknown` without text, or if no language is likely.",
        ),
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


DROPPED = "news/dropped"


def side_table(
    name: str, *, folder: str, what: str, columns: tuple[Column, ...], **given: Any
) -> Dataset:
    """Return a dataset that the run of raw_news writes beside it, one file per WARC."""
    return Dataset(
        name=name,
        group=RAW_NEWS.group,
        place=parquet(
            f"{folder}/year={{year}}/month={{month}}/day={{day}}/filename={{filename}}/part-0.parquet"
        ),
        parents=(ParentDataset("raw_news"),),
        freshness=Freshness(24, 48),
        version=versions.CRAWL_EXTRACTOR,
        partitions="day",
        fingerprint="collected",
        columns=columns,
        partition_columns=(
            Column("year", Role.day, "Year of the WARC's timestamp."),
            Column("month", Role.day, "Month of the WARC's timestamp."),
            Column("day", Role.day, "Day of the WARC's timestamp."),
            Column("filename", Role.fact, f"Name of the WARC file the {what}."),
        ),
        **given,
    )


def side_path(table: Dataset, day: date, filename: str) -> str:
    """Return the path of a side table's file for one WARC, relative to the root."""
    return table.place.path(year=f"{day:%Y}", month=f"{day:%m}", day=f"{day:%d}", filename=filename)


PAGE_METADATA = side_table(
    "page_metadata",
    folder="news/page_metadata",
    what="page comes from",
    description="Title, date and authors that every page of raw_news states: a narrow table for "
    "scans. Written by the run of raw_news.",
    row="what one page of raw_news states about itself",
    sensitivity=Sensitivity.texts,
    columns=(
        Column("uri", Role.url, "Target URI of the WARC record, as written there."),
        Column(
            "warc_record_offset",
            Role.count,
            "First byte of the record in the stored WARC file; joins captures and raw_news.",
        ),
        Column("title", Role.title, "Title stated by JSON-LD, OpenGraph or <title>; else null."),
        Column(
            "published_at",
            Role.time,
            "Publication time stated by the page, ISO 8601, zone as stated; null if none.",
            pl.String(),
        ),
        Column("author", Role.people, "Authors stated by the page, joined by `, `; else null."),
    ),
    sources={"raw_news.tree": ("title", "published_at", "author")},
)


FEED_CANDIDATES = side_table(
    "feed_candidates",
    folder="news/feed_candidates",
    what="links come from",
    description="Feeds that crawled pages link to, per host; feed discovery reads them every "
    "morning. Written by the run of raw_news.",
    row="one feed that pages of a host link to",
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
    sources={
        "raw_news.tree": ("feed_url", "mime_type", "title"),
        "raw_news.uri": ("feed_url", "pages"),
    },
)


DROPPED_RESPONSES = side_table(
    "dropped_responses",
    folder=DROPPED,
    what="record is in",
    description="Every record of the crawl that gave no page, with the reason: why a page is "
    "missing. Written by the run of raw_news; files expire after "
    "NEWS_PLATFORM_DROPPED_RESPONSES_DAYS.",
    row="one record of the crawl that gave no page",
    keep="ccnews.dropped_days",
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
)
