"""Segment stored pages into records in reading order; a failed page becomes one error record.

A page is HTML, Markdown or plain text; a snapshot is such a file, or Firecrawl v2 JSON. Everything
that bad input could make hang or crash is called from `segment_job`, in a worker process.
"""

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from urllib.parse import unquote, urljoin, urlsplit

from news_platform.datasets.source_records import Meta, Provenance, SourceRecord
from news_platform.errors import InputError
from news_platform.html.decode import DecodedPage, decode_html, html_text
from news_platform.source_records.blocks import (
    ATTACHED,
    BlockDecision,
    PageBlock,
    WalkedPage,
    iter_kept,
)
from news_platform.source_records.decisions import decide_blocks
from news_platform.source_records.html_events import parse_html
from news_platform.source_records.markdown import is_markup, read_markdown
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.snapshots import Snapshot, SourcePage, page_of, parse_snapshot
from news_platform.source_records.walk import walk
from news_platform.text.normalize import scrub_text

TARGET = "news_platform.source_records.worker:segment_job"
"""What a worker process runs: `segment_job`, with the language model loaded."""

# The largest real pages have a few thousand; more would take longer than a worker's deadline.
MAX_BLOCKS = 20_000


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
        if decision.path != origin.section_path:
            origin = replace(origin, section=decision.section, section_path=decision.path)
        yield SourceRecord(decision.block.text, origin, _meta(page, decision, charset))


def _meta(page: SourcePage, decision: BlockDecision, charset: str) -> Meta:
    block, language = decision.block, decision.language
    code = probability = source = None
    if language:
        code, probability, source = language.code, language.probability, language.source
    hints: dict[str, str | list[str]] = {**block.hints, **_contacts(block, page.url)}
    if decision.also_in:
        hints["also_in"] = decision.also_in
    return Meta(
        code, charset, hints, block.kind, decision.order, probability, source, page.snapshot
    )


_EMAIL = re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63}){1,8}")
_PHONE = re.compile(r"(?<![\w/.-])\+?\(?\d{1,4}\)?(?:[ ./()-]{1,2}\d{2,5}){2,5}(?![\w/-])")
_TIME = r"\d{1,2}(?:[:.]\d\d)? ?(?:[ap]\.?m\.?|h|uhr)?"
_HOURS = re.compile(
    rf"(?<![\d.:]){_TIME} ?(?:-|–|—|to|until|bis|à|a) ?{_TIME}(?![\d:])", re.IGNORECASE
)
_HOUR_SIGN = re.compile(r"\d[:.]\d\d|[ap]\.?m\b|\dh\b|uhr\b", re.IGNORECASE)


def _contacts(block: PageBlock, url: str) -> dict[str, str]:
    """Return the target of a block's first link, and its e-mail address, phone number and hours."""
    found: dict[str, str] = {}
    for target in block.links:
        scheme, _, rest = target.strip().partition(":")
        name = {"mailto": "email", "tel": "phone"}.get(scheme.lower(), "link")
        value = _joined(url, target) if name == "link" else unquote(rest.partition("?")[0])
        if value:
            found.setdefault(name, scrub_text(value))
    text = block.text
    if "email" not in found and "@" in text and (email := _EMAIL.search(text)):
        found["email"] = email[0]
    if _DIGIT.search(text):
        if "phone" not in found and (phone := _PHONE.search(text)):
            found["phone"] = phone[0]
        if _HOUR_SIGN.search(text) and (hours := _HOURS.search(text)):
            found["hours"] = hours[0].strip()
    return found


_DIGIT = re.compile(r"\d")
_WEB = ("http://", "https://")


def _joined(url: str, target: str) -> str | None:
    """Return the absolute target of a link, None for one within the page or to a script."""
    found = target.strip()
    # Most targets are absolute, and joining takes ten times as long as all else here.
    if not found.startswith(_WEB):
        try:
            found = "" if found.startswith("#") else _joined_path(url, found)
        except ValueError:
            return None
    return found if found.startswith(_WEB) else None


# Paths that joining leaves as they are.
_PLAIN_PATH = re.compile(r"/(?!/)[A-Za-z0-9_%~/-]*(?:\.[A-Za-z0-9]+)?")


def _joined_path(url: str, path: str) -> str:
    return _origin(url) + path if _PLAIN_PATH.fullmatch(path) else urljoin(url, path)


@lru_cache(maxsize=64)
def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


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
_MARK = re.compile("|".join(_MARKS))
# One search for all of them: most pages have none.
_MARK_BYTES = re.compile(b"|".join(mark.encode() for mark in _MARKS))


def undo_double_encoding(content: str | bytes) -> str | bytes:
    """Return a page as it was before its second encoding; any other page as it is.

    Only a page that is valid UTF-8 as a whole after the first step back was encoded twice: a single
    character beyond Latin-1, or an accented letter that was encoded once, shows that it was not.
    """
    if isinstance(content, str):
        return _undone(content) or content if _MARK.search(content) else content
    if content.isascii() or not _MARK_BYTES.search(content):
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
class SegmentJob:
    """One snapshot and the options to segment it with."""

    snapshot: Snapshot
    options: SegmentOptions


@dataclass(frozen=True, slots=True)
class SnapshotResult:
    """The records of a snapshot's pages, one failed record per page that failed, and counts.

    `empty` counts pages without any record. `languages` counts every block whose language was
    detected, kept or not.
    """

    records: tuple[SourceRecord, ...] = ()
    failures: tuple[SourceRecord, ...] = ()
    pages: int = 1
    empty: int = 0
    blocks: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    languages: Counter[str] = field(default_factory=Counter)


def segment_job(job: SegmentJob) -> SnapshotResult:
    """Segment one snapshot and count its blocks: what a worker process runs.

    Attached headings count as neither kept nor dropped.
    """
    pages = segment_snapshot(job.snapshot, job.options)
    done = [page for page in pages if not page.error]
    decisions = [decision for page in done for decision in page.decisions]
    reasons = Counter(decision.reason for decision in decisions if decision.reason)
    blocks = len(decisions) - reasons.pop(ATTACHED, 0)
    found = (decision.language for decision in decisions)
    return SnapshotResult(
        tuple(record for page in done for record in page.records),
        tuple(page.records[0] for page in pages if page.error),
        len(pages),
        sum(not page.records for page in done),
        blocks,
        reasons,
        Counter(language.code for language in found if language and language.code),
    )


def segment_snapshot(snapshot: Snapshot, options: SegmentOptions) -> list[SegmentedPage]:
    """Segment the pages of one snapshot into records or an error."""
    return [
        failed(page, error) if error else segment(page, options)
        for page, error in parse_snapshot(snapshot)
    ]


def failed_snapshot(snapshot: Snapshot, error: str) -> SnapshotResult:
    """Return the result of a snapshot that could not be processed, without parsing its body."""
    return SnapshotResult(failures=(failed(page_of(snapshot, {}, {}), error).records[0],))
