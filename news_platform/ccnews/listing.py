"""Which WARC files a month has: read from the crawl, remembered under the root by ETag.

A listing grows during its month and uploads come hours late, so it is compared with the ledger as a
set; there is no high-water mark.
"""

import gzip
import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta

from news_platform.datasets.warc_paths import Warc, listing_path, parse_warc_path
from news_platform.errors import InputError, StorageError
from news_platform.storage.commit.markers import fingerprint
from news_platform.storage.objects.store import ObjectStore


@dataclass(frozen=True, slots=True)
class Listing:
    """The WARC files of one month; `foreign` counts lines that name none."""

    month: date
    etag: str
    warcs: tuple[Warc, ...]
    foreign: int

    def days(self) -> Mapping[date, tuple[Warc, ...]]:
        """Return the WARCs of each day, in the order of their names."""
        days: dict[date, list[Warc]] = {}
        for warc in sorted(self.warcs):
            days.setdefault(warc.day, []).append(warc)
        return {day: tuple(warcs) for day, warcs in days.items()}


def parse_listing(lines: Iterable[str], *, month: date, etag: str) -> Listing:
    """Read the lines of a listing; a WARC listed twice counts once."""
    named = [line for line in lines if line.strip()]
    found = [parse_warc_path(line) for line in named]
    warcs = tuple(sorted({warc for warc in found if warc}))
    return Listing(month, etag, warcs, foreign=sum(warc is None for warc in found))


def fetch_listing(crawl: ObjectStore, root: ObjectStore, *, month: date) -> Listing | None:
    """Return a month's listing, None if there is none; it is read anew only if it has changed."""
    path = listing_path(month)
    info = crawl.find(path)
    if info is None:
        return None
    remembered = read_copy(root, month=month)
    if remembered is not None and remembered.etag == info.etag:
        return remembered
    lines = _lines(crawl.read(path, expected_size=info.size_bytes), path)
    root.put(_copy_path(month), json.dumps({"etag": info.etag, "lines": lines}).encode())
    return parse_listing(lines, month=month, etag=info.etag)


def first_answering(sources: Sequence[ObjectStore], *, month: date) -> ObjectStore:
    """Return the first source that answers for a month's listing, be it to say there is none.

    The last one is not asked: if it fails too, its own error is the one to tell.
    """
    for source in sources[:-1]:
        with suppress(StorageError):
            source.find(listing_path(month))
            return source
    return sources[-1]


def read_copy(root: ObjectStore, *, month: date) -> Listing | None:
    """Return the listing as it was last seen; None when it never was."""
    path = _copy_path(month)
    if not root.exists(path):
        return None
    try:
        document = json.loads(root.read(path))
        return parse_listing(document["lines"], month=month, etag=document["etag"])
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(f"not a copy of a listing: {path!r}; remove it", thing=path) from error


def listed_warcs(crawl: ObjectStore, root: ObjectStore, *, day: date) -> tuple[Warc, ...]:
    """Return the WARCs that the crawl lists for a day."""
    listing = fetch_listing(crawl, root, month=day.replace(day=1))
    return listing.days().get(day, ()) if listing else ()


def day_fingerprint(warcs: Iterable[Warc]) -> str:
    """Return what stands for this set of WARCs."""
    return fingerprint(warc.name for warc in warcs)


def month_of(day: date) -> date:
    """Return the first day of the month."""
    return day.replace(day=1)


def next_month(month: date) -> date:
    """Return the first day of the month after."""
    return (month.replace(day=28) + timedelta(days=4)).replace(day=1)


def previous_month(month: date) -> date:
    """Return the first day of the month before."""
    return (month.replace(day=1) - timedelta(days=1)).replace(day=1)


def _copy_path(month: date) -> str:
    return f"news/warc_paths/{month:%Y}-{month:%m}.json"


def _lines(body: bytes, path: str) -> list[str]:
    try:
        return gzip.decompress(body).decode("utf-8", "replace").splitlines()
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"listing {path!r} is no gzip file: {error}", thing=path) from error
