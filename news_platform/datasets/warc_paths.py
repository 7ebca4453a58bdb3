"""Which WARC files the news crawl has: the monthly listing, its place and what a path says."""

import re
from dataclasses import dataclass
from datetime import date, datetime

import polars as pl

from news_platform.datasets.table import Column, Table

FIRST_DAY = date(2016, 8, 26)

WARC_PATHS = Table(
    name="warc_paths",
    room="ccnews",
    description="The crawl's own monthly lists of WARC files; they grow during the month.",
    path="crawl-data/CC-NEWS/YYYY/MM/warc.paths.gz",
    columns=(Column("path", pl.String(), "Path of a WARC file, relative to the crawl's root."),),
)

_NAME = re.compile(r"[^/]*?-(\d{14})-[^/]*\.warc(?:\.gz)?")
_CRAWL_PATH = re.compile(r"crawl-data/CC-NEWS/\d{4}/\d{2}/(CC-NEWS-\d{14}-\d+\.warc\.gz)")


@dataclass(frozen=True, slots=True, order=True)
class Warc:
    """One WARC file of a day; `path` is relative to the store it lies in."""

    day: date
    name: str
    path: str


def listing_path(month: date) -> str:
    """Return where the crawl lists the WARC files of the month that this day is in."""
    return f"crawl-data/CC-NEWS/{month:%Y}/{month:%m}/warc.paths.gz"


def warc_day(name: str) -> date | None:
    """Return the day of the timestamp in a WARC's name; None when it has none."""
    found = _NAME.fullmatch(name)
    try:
        return datetime.strptime(found[1], "%Y%m%d%H%M%S").date() if found else None  # noqa: DTZ007 - a day, not an instant
    except ValueError:
        return None


def parse_warc_path(line: str) -> Warc | None:
    """Read one line of a listing; None for a line that names no WARC of the news crawl."""
    found = _CRAWL_PATH.fullmatch(line.strip())
    day = warc_day(found[1]) if found else None
    return Warc(day, found[1], line.strip()) if found and day else None
