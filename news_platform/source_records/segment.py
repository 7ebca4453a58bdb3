"""Segment one page into source records in reading order; a failed page becomes one error record."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from news_platform.datasets.source_records import Meta, Provenance, SourceRecord
from news_platform.errors import InputError
from news_platform.html.decode import DecodedPage, decode_html, html_text
from news_platform.source_records.blocks import BlockDecision, WalkedPage, iter_kept
from news_platform.source_records.decisions import decide_blocks
from news_platform.source_records.html_events import parse_html
from news_platform.source_records.markdown import is_markup, read_markdown
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.walk import walk

# The largest real pages have a few thousand; more would take longer than a worker's deadline.
MAX_BLOCKS = 20_000


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
