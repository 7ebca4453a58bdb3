"""Parse stored snapshots (Firecrawl v2 JSON, HTML, Markdown or text) and segment their pages.

Everything that bad input could make hang or crash is called from here, in a worker process.
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Literal

from news_platform.datasets.source_records import SourceRecord
from news_platform.html.decode import content_type_charset
from news_platform.source_records.blocks import ATTACHED
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.segment import SegmentedPage, SourcePage, failed, segment
from news_platform.text.normalize import scrub_text

_HTML_SUFFIXES = (".html", ".htm", ".xhtml")
_TEXT_SUFFIXES = (".md", ".markdown", ".txt")
# The suffixes of snapshot files; files with any other suffix are ignored.
SUFFIXES = (".json", *_HTML_SUFFIXES, *_TEXT_SUFFIXES)
# rawHtml first: Firecrawl's html may have lost lists and tables.
_FORMATS: tuple[tuple[str, Literal["html", "text"]], ...] = (
    ("rawHtml", "html"),
    ("html", "html"),
    ("markdown", "text"),
    ("text", "text"),
)
# Firecrawl gives no date; the program that stores the snapshot may add one under these names.
_FETCHED = ("fetched_at", "fetchedAt", "scrapedAt", "cachedAt", "timestamp")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored file and its institution; `modified_at` dates a page that gives no date itself."""

    path: str
    institution: str
    body: bytes
    url: str | None = None
    modified_at: datetime | None = None


def parse_snapshot(snapshot: Snapshot) -> tuple[SourcePage, str | None]:
    """Return the page, and the error if the crawl failed or the snapshot cannot be read."""
    suffix = PurePosixPath(snapshot.path).suffix.lower()
    if suffix == ".json":
        return _parse_json(snapshot)
    page = _page(snapshot, {}, {})
    media: Literal["html", "text"] = "text" if suffix in _TEXT_SUFFIXES else "html"
    # Raw files have no HTTP header: the bytes decide about their charset.
    return replace(page, content=snapshot.body, media=media, charset=None), None


def _parse_json(snapshot: Snapshot) -> tuple[SourcePage, str | None]:
    try:
        document = json.loads(snapshot.body)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        return _page(snapshot, {}, {}), f"not JSON: {error}"
    if not isinstance(document, dict):
        return _page(snapshot, {}, {}), "not a JSON object"
    # The content of `data` may also be stored without its envelope.
    data = _mapping(document.get("data")) or document
    page = _page(snapshot, document, data)
    stated = _stated_error(document, data)
    if stated:
        return page, stated
    for name, media in _FORMATS:
        content = _text(data, name)
        if content:
            return replace(page, content=content, media=media), None
    return page, "the snapshot holds no content"


def stated_urls(snapshot: Snapshot) -> tuple[str, ...]:
    """Return every address that a JSON snapshot states for its page, before and after redirects."""
    try:
        document = _mapping(json.loads(snapshot.body)) if snapshot.body[:1] == b"{" else {}
    except (ValueError, RecursionError):
        return ()
    data = _mapping(document.get("data")) or document
    metadata = _mapping(data.get("metadata"))
    places = ((metadata, "url"), (metadata, "sourceURL"), (document, "url"))
    return tuple(url for place, key in places if (url := _text(place, key)))


def _page(
    snapshot: Snapshot, document: Mapping[str, object], data: Mapping[str, object]
) -> SourcePage:
    metadata = _mapping(data.get("metadata"))
    dates = (_text(place, key) for key in _FETCHED for place in (metadata, data, document))
    stated = next(filter(None, dates), None)
    url = _text(metadata, "url") or _text(metadata, "sourceURL") or _text(document, "url")
    return SourcePage(
        content="",
        url=snapshot.url or url or snapshot.path,
        institution=snapshot.institution,
        fetched_at=_instant(stated) or snapshot.modified_at,
        charset=content_type_charset(_text(metadata, "contentType") or ""),
        language=_text(metadata, "language"),
        snapshot=snapshot.path,
    )


def _stated_error(document: Mapping[str, object], data: Mapping[str, object]) -> str | None:
    metadata = _mapping(data.get("metadata"))
    if document.get("success") is False:
        return f"the crawler failed: {_text(document, 'error') or 'no reason given'}"
    status = metadata.get("statusCode")
    if isinstance(status, int) and status >= 400:
        return f"the site answered {status}: {_text(metadata, 'error') or 'no content'}"
    return None


def _mapping(value: object) -> Mapping[str, object]:
    return value if isinstance(value, dict) else {}


def _text(document: Mapping[str, object], key: str) -> str | None:
    value = document.get(key)
    # JSON escapes can spell characters that neither Parquet nor XML holds.
    return scrub_text(value) if isinstance(value, str) and value.strip() else None


def _instant(text: str | None) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        return None
    if found is None:
        return None
    return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)


TARGET = "news_platform.source_records.worker:segment_job"


@dataclass(frozen=True, slots=True)
class SegmentJob:
    """One snapshot and the options to segment it with."""

    snapshot: Snapshot
    options: SegmentOptions


@dataclass(frozen=True, slots=True)
class PageResult:
    """The records of a page, or its one failed record, and counts of its blocks.

    `languages` counts every block whose language was detected, kept or not.
    """

    records: tuple[SourceRecord, ...]
    failure: SourceRecord | None = None
    blocks: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


def segment_job(job: SegmentJob) -> PageResult:
    """Segment one snapshot and count its blocks: what a worker process runs."""
    return count_result(segment_snapshot(job.snapshot, job.options))


def segment_snapshot(snapshot: Snapshot, options: SegmentOptions) -> SegmentedPage:
    """Segment one snapshot into records or an error."""
    page, error = parse_snapshot(snapshot)
    return failed(page, error) if error else segment(page, options)


def failed_snapshot(snapshot: Snapshot, error: str) -> PageResult:
    """Return the result of a snapshot that could not be processed, without parsing its body."""
    page, _ = parse_snapshot(
        Snapshot(snapshot.path, snapshot.institution, b"{}", snapshot.url, snapshot.modified_at)
    )
    return count_result(failed(page, error))


def count_result(done: SegmentedPage) -> PageResult:
    """Count the blocks of a page; attached headings count as neither kept nor dropped."""
    if done.error:
        return PageResult((), failure=done.records[0])
    reasons = Counter(decision.reason for decision in done.decisions if decision.reason)
    attached = reasons.pop(ATTACHED, 0)
    return PageResult(
        done.records,
        blocks=len(done.decisions) - attached,
        dropped=Counter({reason: count for reason, count in reasons.items() if reason}),
        languages=Counter(
            v.language.code for v in done.decisions if v.language and v.language.code
        ),
    )
