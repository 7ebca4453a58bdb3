"""The `collected` markers of raw_news: one per WARC, written last, with counts of its rows.

The name of a marker ends in `@<source>-<recipe>`: a hash of the WARC's bytes, and one of the
extractor's version and options. So a listing alone shows what a day was collected from, and a copy
of a root or a rewrite that removes rows changes nothing for those who follow the day.
"""

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, fields
from datetime import date
from urllib.parse import quote, unquote

from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.raw_news import (
    FEED_CANDIDATES,
    PAGE_METADATA,
    raw_news_path,
    side_path,
)
from news_platform.errors import StorageError

COLLECTED = "news/collected"
_SOURCE_HEX, _RECIPE_HEX = 16, 8
# Desktops leave other files in folders, such as .DS_Store.
_MARKER = re.compile(rf"{COLLECTED}/(\d{{4}})/(\d{{2}})/(\d{{2}})/[^/]+\.json")


@dataclass(frozen=True, slots=True)
class Collected:
    """The result of collecting one WARC; `rows` counts raw_news.

    `expired_at` is the moment at which its raw_news files were deleted, empty while they are there;
    `bytes` is the size of all Parquet files but that of dropped_responses, which expires.

    `captures`, `feed_candidates` and `dropped_responses` count rows of the tables beside it;
    `captures` is None if there are none.
    `attempt` distinguishes two workers that wrote the same WARC; `collected_at` is ISO 8601 UTC.
    `source_digest` is the SHA-256 of the WARC. `options` are those
    that differ from the defaults of the extractor's version. `truncated_at` is set if the WARC was
    accepted although it is broken: nothing after this byte could be read.
    """

    warc: str
    day: date
    source: str
    source_etag: str
    source_bytes: int
    rows: int
    bytes: int
    languages: Mapping[str, int]
    dropped: Mapping[str, int]
    captures: int | None
    feed_candidates: int
    extractor_version: str
    attempt: str
    collected_at: str
    source_digest: str = ""
    options: Mapping[str, object] = field(default_factory=dict)
    truncated_at: int | None = None
    dropped_responses: int = 0
    expired_at: str = ""

    @property
    def is_expired(self) -> bool:
        """Return whether the raw_news files are gone; the domain store holds their rows."""
        return bool(self.expired_at)

    @property
    def fingerprint(self) -> str:
        """Return what the rows depend on, as in the marker's name: `<source>-<recipe>`."""
        source = _short_hash([self.source_digest, self.source_bytes])
        return f"{source[:_SOURCE_HEX]}-{recipe(self.extractor_version, self.options)}"

    def news_paths(self, languages: Collection[str] | None = None) -> Mapping[str, str]:
        """Return the path of the raw_news file of each language, or of some of them.

        There are none if the WARC is expired.
        """
        if self.is_expired:
            return {}
        return {
            language: raw_news_path(self.day, language, filename=self.warc)
            for language in self.languages
            if languages is None or language in languages
        }

    def paths(self) -> tuple[str, ...]:
        """Return the paths of all files that the marker covers, relative to the root."""
        has_sides = self.captures is not None
        tables = (CAPTURES, PAGE_METADATA, FEED_CANDIDATES) if has_sides else ()
        side = (side_path(it, self.day, self.warc) for it in tables)
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


def collected_path(day: date, warc: str, fingerprint: str) -> str:
    """Return the path of a marker, relative to the root."""
    return f"{collected_prefix(day)}/{quote(warc, safe='')}@{fingerprint}.json"


def collected_warc(path: str) -> str:
    """Return the WARC's name from the path of its marker."""
    # A quoted name has no `@` of its own.
    return unquote(path.rpartition("/")[2].removesuffix(".json").partition("@")[0])


def collected_fingerprint(path: str) -> str:
    """Return the fingerprint in the path of a marker."""
    return path.rpartition("/")[2].removesuffix(".json").partition("@")[2]


def recipe(extractor_version: str, options: Mapping[str, object]) -> str:
    """Return the hash of an extractor's version and options, the end of every fingerprint."""
    return _short_hash([extractor_version, dict(options)])[:_RECIPE_HEX]


def recipe_of(fingerprint: str) -> str:
    """Return the part of a fingerprint that stands for the extractor's version and options."""
    return fingerprint.rpartition("-")[2]


def dump_collected(marker: Collected) -> bytes:
    """Return a marker as indented JSON."""
    document = asdict(marker) | {"day": marker.day.isoformat()}
    return json.dumps(document, ensure_ascii=False, indent=1).encode()


def parse_collected(body: bytes, *, path: str) -> Collected:
    """Parse a marker; raise StorageError if it is invalid. Unknown fields are ignored."""
    try:
        document = json.loads(body)
        known = {name: document[name] for name in _FIELDS if name in document}
        marker = Collected(**known | {"day": date.fromisoformat(document["day"])})
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise StorageError(
            f"cannot parse collected marker {path!r}; delete it and collect the WARC again",
            thing=path,
        ) from error
    return marker


_FIELDS = frozenset(one.name for one in fields(Collected))


def _short_hash(parts: list[object]) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
