"""The `collected` markers of raw_news: one per WARC, written last, with counts of its rows."""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from urllib.parse import quote, unquote

from news_platform.datasets.captures import captures_path, feed_candidates_path
from news_platform.datasets.raw_news import raw_news_path
from news_platform.errors import StorageError

COLLECTED = "news/collected"
# Where a WARC came from, by which run and when: none of it changes the rows.
_CIRCUMSTANCES = ("source", "attempt", "collected_at")
# Desktops leave other files in folders, such as .DS_Store.
_MARKER = re.compile(rf"{COLLECTED}/(\d{{4}})/(\d{{2}})/(\d{{2}})/[^/]+\.json")


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of collecting one WARC; `rows` counts raw_news, `bytes` all Parquet files.

    `duplicates` counts the rows whose (uri, http_date) equals that of an earlier row of the WARC.
    `captures` and `feed_candidates` count rows, or are None if the dataset was switched off.
    `attempt` distinguishes two workers that wrote the same WARC; `collected_at` is ISO 8601 UTC.
    """

    warc: str
    day: date
    source: str
    source_etag: str
    source_bytes: int
    rows: int
    duplicates: int
    bytes: int
    languages: Mapping[str, int]
    dropped: Mapping[str, int]
    captures: int | None
    feed_candidates: int | None
    extractor_version: str
    attempt: str
    collected_at: str

    def news_paths(self) -> Mapping[str, str]:
        """Return the path of the raw_news file of each language, relative to the root."""
        return {
            language: raw_news_path(self.day, language, filename=self.warc)
            for language in self.languages
        }

    def paths(self) -> tuple[str, ...]:
        """Return the paths of all files that the marker covers, relative to the root."""
        side = []
        if self.captures is not None:
            side.append(captures_path(self.day, self.warc))
        if self.feed_candidates is not None:
            side.append(feed_candidates_path(self.day, self.warc))
        return (*self.news_paths().values(), *side)


def collected_prefix(day: date) -> str:
    """Return the folder of the markers of one day, relative to the root."""
    return f"{COLLECTED}/{day:%Y}/{day:%m}/{day:%d}"


def collected_day(path: str) -> str | None:
    """Return the day of a marker, or None for any other file in the folder."""
    found = _MARKER.fullmatch(path)
    day = "-".join(found.groups()) if found else ""
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        return None


def collected_path(day: date, warc: str) -> str:
    """Return the path of the marker of one WARC, relative to the root."""
    return f"{collected_prefix(day)}/{quote(warc, safe='')}.json"


def collected_warc(path: str) -> str:
    """Return the WARC's name from the path of its marker."""
    return unquote(path.rpartition("/")[2].removesuffix(".json"))


def dump_collected(marker: Collected) -> bytes:
    """Return a marker as indented JSON."""
    document = asdict(marker) | {"day": marker.day.isoformat()}
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def parse_collected(body: bytes, *, path: str) -> Collected:
    """Parse a marker; raise StorageError if it is not valid."""
    try:
        document = json.loads(body)
        return Collected(**document | {"day": date.fromisoformat(document["day"])})
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(
            f"cannot parse collected marker {path!r}; delete it and collect the WARC again",
            thing=path,
        ) from error


def collected_digest(body: bytes) -> str:
    """Return the SHA-256 of the counts in a marker, which is equal if a WARC gave the same rows."""
    try:
        document = json.loads(body)
    except ValueError:
        document = None
    if isinstance(document, dict):
        kept = {key: value for key, value in document.items() if key not in _CIRCUMSTANCES}
        body = json.dumps(kept, sort_keys=True).encode()
    return hashlib.sha256(body).hexdigest()
