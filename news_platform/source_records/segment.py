"""Segment stored pages into records in reading order; a failed page becomes one error record.

A page is HTML, Markdown or plain text; a snapshot is such a file, or Firecrawl v2 JSON. Everything
that bad input could make hang or crash is called from `segment_job`, in a worker process.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Literal

from news_platform.datasets.source_records import Meta, Provenance, SourceRecord
from news_platform.errors import InputError
from news_platform.html.decode import DecodedPage, content_type_charset, decode_html, html_text
from news_platform.source_records.blocks import ATTACHED, BlockDecision, WalkedPage, iter_kept
from news_platform.source_records.decisions import decide_blocks
from news_platform.source_records.html_events import parse_html
from news_platform.source_records.markdown import is_markup, read_markdown
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.walk import walk
from news_platform.text.normalize import scrub_text

TARGET = "news_platform.source_records.worker:segment_job"
"""What a worker process runs: `segment_job`, with the language model loaded."""

# The largest real pages have a few thousand; more would take longer than a worker's deadline.
MAX_BLOCKS = 20_000
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
class SegmentedPage:
    """The result for a page: the decision about every block, and the records or the error."""

    page: SourcePage
    decisions: tuple[BlockDecision, ...]
    records: tuple[SourceRecord, ...]
    error: str | None = None


def segment_page(
    html: str | bytes,
    *,
    url: str,
    institution: str,
    options: SegmentOptions | None = None,
    fetched_at: datetime | None = None,
) -> list[SourceRecord]:
    """Return the records of a page; for an unreadable page, one with text "" and meta.error.

    Text without an HTML tag is parsed as Markdown.
    """
    page = SourcePage(html, url=url, institution=institution, fetched_at=fetched_at)
    return list(segment(page, options or SegmentOptions()).records)


def segment(page: SourcePage, options: SegmentOptions) -> SegmentedPage:
    """Split a page into blocks, decide about each, and return records of those that are kept."""
    try:
        decoded = _decoded(page)
        walked = _walked(decoded, page, options)
        _check_blocks(walked)
    except InputError as error:
        return failed(page, str(error))
    decisions = decide_blocks(walked, options, declared=page.language or walked.language)
    return SegmentedPage(
        page, tuple(decisions), tuple(_iter_records(page, decisions, decoded.encoding))
    )


def failed(page: SourcePage, error: str) -> SegmentedPage:
    """Return the result for a page that cannot be read: one empty record with the error."""
    meta = Meta(charset=page.charset, snapshot=page.snapshot, error=error)
    record = SourceRecord("", Provenance(page.institution, page.url, None, page.fetched_at), meta)
    return SegmentedPage(page, (), (record,), error)


def _check_blocks(walked: WalkedPage) -> None:
    if not walked.blocks:
        raise InputError("the page has no text")
    if len(walked.blocks) > MAX_BLOCKS:
        raise InputError(f"the page has {len(walked.blocks)} blocks, at most {MAX_BLOCKS} are read")


def _decoded(page: SourcePage) -> DecodedPage:
    content = undo_double_encoding(page.content)
    if isinstance(content, bytes):
        return decode_html(content, page.charset)
    text = html_text(content)
    return DecodedPage(text, text.encode(), page.charset or "utf-8")


def _walked(decoded: DecodedPage, page: SourcePage, options: SegmentOptions) -> WalkedPage:
    # A page declared as HTML may be plain text: parsed as HTML it would be one long paragraph.
    if page.media == "text" or not is_markup(decoded.text):
        return read_markdown(decoded.text)
    return walk(parse_html(decoded.utf8), zone_share=options.boilerplate.zone_share)


def _iter_records(
    page: SourcePage, decisions: list[BlockDecision], charset: str
) -> Iterator[SourceRecord]:
    # Consecutive records of one section share their provenance object.
    origin = Provenance(page.institution, page.url, None, page.fetched_at)
    for decision in iter_kept(decisions):
        if decision.section != origin.section:
            origin = Provenance(page.institution, page.url, decision.section, page.fetched_at)
        yield SourceRecord(decision.block.text, origin, _meta(page, decision, charset))


def _meta(page: SourcePage, decision: BlockDecision, charset: str) -> Meta:
    block, language = decision.block, decision.language
    code = probability = source = None
    if language:
        code, probability, source = language.code, language.probability, language.source
    return Meta(
        code, charset, block.hints, block.kind, decision.order, probability, source, page.snapshot
    )


# HTTP clients that take a page without a declared charset for ISO-8859-1 store it as UTF-8 that was
# encoded twice: "it’s" becomes "itâ" with two control characters. 11 of 364 real pages are so.
#
# The first two characters of every dash, quotation mark, accented letter and no-break space that
# was encoded twice. The second one is a control character, or stands after one of these letters.
_MARKS = (
    "\u00e2\u0080",
    "\u00c3\u0083",
    "\u00c3\u00a2",
    "\u00c3\u00a9",
    "\u00c3\u00bc",
    "\u00c2\u00a0",
    "\u00c2\u00a9",
)
_MARK_BYTES = tuple(mark.encode() for mark in _MARKS)


def undo_double_encoding(content: str | bytes) -> str | bytes:
    """Return a page as it was before its second encoding; any other page as it is.

    Only a page that is valid UTF-8 as a whole after the first step back was encoded twice: a single
    character beyond Latin-1, or an accented letter that was encoded once, shows that it was not.
    """
    if isinstance(content, str):
        return _undone(content) or content if any(map(content.__contains__, _MARKS)) else content
    if not any(map(content.__contains__, _MARK_BYTES)):
        return content
    try:
        found = _undone(content.decode())
    except UnicodeDecodeError:
        return content
    return found.encode() if found else content


def _undone(text: str) -> str | None:
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return None


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
    """Segment one snapshot and count its blocks: what a worker process runs.

    Attached headings count as neither kept nor dropped.
    """
    done = segment_snapshot(job.snapshot, job.options)
    if done.error:
        return PageResult((), failure=done.records[0])
    reasons = Counter(decision.reason for decision in done.decisions if decision.reason)
    blocks = len(done.decisions) - reasons.pop(ATTACHED, 0)
    found = (decision.language for decision in done.decisions)
    languages = Counter(language.code for language in found if language and language.code)
    return PageResult(done.records, None, blocks, reasons, languages)


def segment_snapshot(snapshot: Snapshot, options: SegmentOptions) -> SegmentedPage:
    """Segment one snapshot into records or an error."""
    page, error = parse_snapshot(snapshot)
    return failed(page, error) if error else segment(page, options)


def failed_snapshot(snapshot: Snapshot, error: str) -> PageResult:
    """Return the result of a snapshot that could not be processed, without parsing its body."""
    return PageResult((), failure=failed(_page(snapshot, {}, {}), error).records[0])
