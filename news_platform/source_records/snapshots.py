"""A stored file in, its pages out: Firecrawl v2 JSON, HTML, Markdown or plain text."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Literal

from news_platform.html.decode import content_type_charset
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
# Stands for the date of a page that gives none, when snapshots are ordered.
UNDATED = datetime.min.replace(tzinfo=UTC)
# Firecrawl gives no date; the program that stores the snapshot may add one under these names.
_FETCHED = ("fetched_at", "fetchedAt", "scrapedAt", "cachedAt", "timestamp")


@dataclass(frozen=True, slots=True)
class SourcePage:
    """A stored page and its metadata; `content` is HTML, Markdown or plain text."""

    content: str | bytes
    url: str
    institution: str
    media: Literal["html", "text"] = "html"
    fetched_at: datetime | None = None
    charset: str | None = None
    language: str | None = None
    snapshot: str | None = None


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A stored file and its institution; `modified_at` dates a page that gives no date itself."""

    path: str
    institution: str
    body: bytes
    url: str | None = None
    modified_at: datetime | None = None


def parse_snapshot(snapshot: Snapshot) -> list[tuple[SourcePage, str | None]]:
    """Return the pages of a snapshot, each with the error if it failed or cannot be read.

    Only the answer to a crawl holds more than one.
    """
    suffix = PurePosixPath(snapshot.path).suffix.lower()
    if suffix == ".json":
        return _parse_json(snapshot)
    page = page_of(snapshot, {}, {})
    if kind := _binary_kind(snapshot.body):
        return [(page, f"the file is not a page but {kind}")]
    media: Literal["html", "text"] = "text" if suffix in _TEXT_SUFFIXES else "html"
    # Raw files have no HTTP header: the bytes decide about their charset.
    return [(replace(page, content=snapshot.body, media=media, charset=None), None)]


# The first bytes of files that crawlers store under the name of a page.
_SIGNATURES = {
    b"%PDF-": "a PDF document",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"RIFF": "a RIFF file",
    b"PK\x03\x04": "a ZIP archive",
    b"\x1f\x8b": "gzip data",
    b"\xd0\xcf\x11\xe0": "an Office document",
}
# Text in UTF-16 has NUL bytes, but not before these.
_WIDE_MARKS = (b"\xff\xfe", b"\xfe\xff")
_SNIFFED_BYTES = 1_024


def _binary_kind(body: bytes) -> str | None:
    """Return what kind of binary file this is, None for text."""
    for signature, kind in _SIGNATURES.items():
        if body.startswith(signature):
            return kind
    head = body[:_SNIFFED_BYTES]
    is_text = head.startswith(_WIDE_MARKS) or head.count(0) * 10 <= len(head)
    return None if is_text else "binary data"


def _parse_json(snapshot: Snapshot) -> list[tuple[SourcePage, str | None]]:
    try:
        document = json.loads(snapshot.body)
    except (ValueError, RecursionError) as error:  # RecursionError: nested too deeply
        return [(page_of(snapshot, {}, {}), f"not JSON: {error}")]
    if not isinstance(document, dict):
        return [(page_of(snapshot, {}, {}), "not a JSON object")]
    return [_parse_page(snapshot, document, data) for data in _page_documents(document)]


def _page_documents(document: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return what a JSON document holds of each page: `data` is one page, or all of a crawl."""
    data = document.get("data")
    if isinstance(data, list) and data:
        return [_mapping(one) for one in data]
    # The content of `data` may also be stored without its envelope.
    return [_mapping(data) or document]


def _parse_page(
    snapshot: Snapshot, document: Mapping[str, object], data: Mapping[str, object]
) -> tuple[SourcePage, str | None]:
    page = page_of(snapshot, document, data)
    stated = _stated_error(document, data)
    if stated:
        return page, stated
    for name, media in _FORMATS:
        content = _text(data, name)
        if content:
            return replace(page, content=content, media=media), None
    return page, "the snapshot holds no content"


def page_of(
    snapshot: Snapshot, document: Mapping[str, object], data: Mapping[str, object]
) -> SourcePage:
    """Return the page of a snapshot without its content."""
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
    status = str(metadata.get("statusCode", ""))
    if status.isdecimal() and len(status) < 4 and int(status) >= 400:
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
