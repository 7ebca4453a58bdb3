"""The monthly listings of WARC files in the CC-NEWS crawl, and the day and name in a WARC path."""

import re
from dataclasses import dataclass
from datetime import date, datetime

from news_platform.datasets.dataset import Column, Dataset, Place, Role

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
    page="ccnews.md",
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


def parse_warc_path(line: str) -> Warc | None:
    """Parse one line of a listing; return None for a line that is not a WARC of the news crawl."""
    found = _CRAWL_PATH.fullmatch(line.strip())
    day = warc_day(found[1]) if found else None
    return Warc(day, found[1], line.strip()) if found and day else None
