"""Turn one archived response into a page with text and language, or a reason why it is dropped.

Archived headers are unreliable: bodies are often stored decoded while the header still says chunked
or gzip (all of CC-NEWS before 16 May 2019). An encoding is undone only when the body itself has it.
"""

import re
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from io import BytesIO

from fastwarc.stream_io import BrotliReader, ZstdReader
from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode, HTMLTree
from resiliparse.parse.lang import detect_fast

from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.warc import DroppedWarcRecord, RecordInfo, WarcResponse
from news_platform.html.dates import parse_rfc822_date
from news_platform.html.decode import content_type_charset, decode_html
from news_platform.html.jsonld import PageMetadata, parse_page_metadata
from news_platform.html.links import FeedLink, feed_links
from news_platform.web.urls import reversed_domain, reversed_labels, surt

# Larger steps would lose more of a body before its damage.
_INFLATE_STEP_BYTES = 4096
# Real servers state two at most.
_MAX_CODINGS = 4
_STATUS = re.compile(rb"HTTP\S*\s+(\d{3})", re.IGNORECASE)
_FIELD = re.compile(
    rb"^(content-type|date|last-modified|transfer-encoding|content-encoding)[ \t]*:[ \t]*"
    rb"([^\r\n]*)",
    re.IGNORECASE | re.MULTILINE,
)
_CHUNK_LINE = re.compile(rb"[ \t]*([0-9a-fA-F]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_USUAL_DATE = re.compile(r"\w{3}, (\d\d) (\w{3}) (\d{4}) (\d\d:\d\d:\d\d) GMT")
_MONTHS = {
    name: f"{number:02}"
    for number, name in enumerate(
        ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"), 1
    )
}


@dataclass(frozen=True, slots=True)
class HttpHead:
    """The fields of the header that we keep; None if absent. Dates are ISO 8601 with offset."""

    status: int | None
    mime: str | None
    charset: str | None
    date: str | None
    last_modified: str | None
    is_chunked: bool
    content_encoding: str


def parse_head(head: bytes) -> HttpHead:
    """Parse the fields that we keep; the first counts if one is repeated."""
    fields = {name.lower(): value for name, value in reversed(_FIELD.findall(head))}
    status = _STATUS.match(head)
    mime, charset = parse_content_type(fields.get(b"content-type", b""))
    return HttpHead(
        status=int(status.group(1)) if status else None,
        mime=mime,
        charset=charset,
        date=iso_date(fields.get(b"date", b"")),
        last_modified=iso_date(fields.get(b"last-modified", b"")),
        is_chunked=b"chunked" in fields.get(b"transfer-encoding", b"").lower(),
        content_encoding=fields.get(b"content-encoding", b"").decode("latin-1").strip().lower(),
    )


# A WARC has 30,000 responses but few distinct content types.
@lru_cache(maxsize=1024)
def parse_content_type(value: bytes) -> tuple[str | None, str | None]:
    """Return MIME type and charset in lower case, unquoted; None for what is not stated."""
    text = value.decode("latin-1").lower()
    mime = re.split(r"[;,\s]", text.strip(), maxsplit=1)[0]
    return mime or None, content_type_charset(text)


@lru_cache(maxsize=4096)
def iso_date(value: bytes) -> str | None:
    """Return an HTTP date as ISO 8601 with offset; None if it cannot be parsed."""
    text = value.decode("latin-1").strip()
    moment = _usual_date(text) or parse_rfc822_date(text)
    return moment.isoformat() if moment else None


def _usual_date(text: str) -> datetime | None:
    """Parse the form that nearly all servers send; much faster than the general parser."""
    usual = _USUAL_DATE.fullmatch(text)
    if not usual or usual[2] not in _MONTHS:
        return None
    try:
        return datetime.fromisoformat(f"{usual[3]}-{_MONTHS[usual[2]]}-{usual[1]}T{usual[4]}+00:00")
    except ValueError:
        return None


def plain_body(body: bytes, head: HttpHead, *, max_bytes: int) -> bytes:
    """Undo chunks and compression that the body really has, up to one byte above `max_bytes`.

    A truncated or damaged body gives the part that could be decoded.
    """
    if head.is_chunked:
        body = _unchunked(body)
    # The coding that was applied last is stated last; the body may have one that is not stated.
    for coding in reversed(head.content_encoding.split(",")[-_MAX_CODINGS:]):
        undo = _undo(body, coding.strip())
        body = undo(body, max_bytes + 1) if undo else body
    return body


def _unchunked(body: bytes) -> bytes:
    parts: list[bytes] = []
    position = 0
    while line := _CHUNK_LINE.match(body, position):
        size = int(line.group(1), 16)
        if size == 0:
            return b"".join(parts)
        end = line.end() + size
        parts.append(body[line.end() : end])
        position = end + (2 if body.startswith(b"\r\n", end) else body.startswith(b"\n", end))
    return b"".join((*parts, body[position:]))


def _undo(body: bytes, encoding: str) -> Callable[[bytes, int], bytes] | None:
    """Choose the decoder by the body; the header decides only for codings without a signature."""
    if body.startswith(b"\x1f\x8b\x08"):
        return partial(_inflated, wbits=(31,))
    if body.startswith(b"\x28\xb5\x2f\xfd"):
        return partial(_read_all, ZstdReader)
    # "deflate" means zlib, but some servers send the bare deflate stream.
    deflate, brotli = partial(_inflated, wbits=(15, -15)), partial(_read_all, BrotliReader)
    undo = {"deflate": deflate, "br": brotli}.get(encoding)
    # A body that starts like HTML was stored decoded, whatever its header says.
    if undo is None or body.lstrip(b"\xef\xbb\xbf\x00 \t\r\n")[:1] == b"<":
        return None
    return undo


def _inflated(body: bytes, max_bytes: int, *, wbits: Iterable[int]) -> bytes:
    """Inflate in small steps, so that damage costs only what follows it; try several formats."""
    for bits in wbits:
        inflate = zlib.decompressobj(bits)
        parts: list[bytes] = []
        room = max_bytes
        for start in range(0, len(body), _INFLATE_STEP_BYTES):
            try:
                parts.append(inflate.decompress(body[start : start + _INFLATE_STEP_BYTES], room))
            except zlib.error:
                break
            room -= len(parts[-1])
            if room <= 0:
                break
        if found := b"".join(parts):
            return found
    return body


def _read_all(reader: type[BrotliReader] | type[ZstdReader], body: bytes, max_bytes: int) -> bytes:
    stream = reader(BytesIO(body))
    parts: list[bytes] = []
    room = max_bytes
    # Keep what could be read.
    with suppress(OSError):
        while room > 0 and (data := stream.read(min(room, 64 << 10))):
            parts.append(data)
            room -= len(data)
    return b"".join(parts) or body


# The time of main-content extraction grows with the square of the nesting depth: 0.02 s at 1,000
# levels, 9 s at 20,000.
_MAX_DEPTH = 1000
# `langs` and `confs` hold the best three languages, as the source design asks.
_LANGUAGES = 3
_HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))
_HTML_STARTS = (b"<!doctype html", b"<html")


@dataclass(frozen=True, slots=True)
class CrawledPage:
    """One row of raw_news, with what page_metadata and feed_candidates need; `tree` is UTF-8."""

    record: RecordInfo
    http: HttpHead
    tree: bytes
    text: str
    main_lang: str
    langs: list[str]
    confs: list[int]
    surt_uri: str
    host: str
    stated: PageMetadata
    feeds: tuple[FeedLink, ...]


def read_page(
    response: WarcResponse, options: CollectOptions, http: HttpHead | None = None
) -> CrawledPage | DroppedWarcRecord:
    """Return the page of an archived response, or a DroppedWarcRecord with the reason.

    `http` is the parsed header, if it is known already.
    """
    http = http or parse_head(response.head)
    host = reversed_domain(response.record.uri)
    if reason := _drop_reason(response, http, host=host, options=options):
        return _dropped(response, reason)
    body = plain_body(response.body, http, max_bytes=options.max_page_bytes)
    if len(body) > options.max_page_bytes:
        return _dropped(response, "too_large")
    html = decode_html(body, http.charset)
    tree = HTMLTree.parse(html.text)
    text = _text(tree)
    # detect_fast takes an empty text for English.
    ranks = detect_fast(text, n_results=_LANGUAGES) if text.strip() else []
    main_lang = ranks[0][0] if ranks else "unknown"
    if options.languages and main_lang not in options.languages:
        return _dropped(response, "filtered_language")
    return CrawledPage(
        record=response.record,
        http=http,
        tree=html.utf8,
        text=text,
        main_lang=main_lang,
        langs=[language for language, _ in ranks],
        confs=[rank for _, rank in ranks],
        surt_uri=surt(response.record.uri),
        host=host,
        stated=parse_page_metadata(tree, html.utf8),
        feeds=feed_links(tree, html.utf8, url=response.record.uri),
    )


def _dropped(response: WarcResponse, reason: str) -> DroppedWarcRecord:
    return DroppedWarcRecord(reason, response.record.offset, response.record.uri)


def _drop_reason(
    response: WarcResponse, http: HttpHead, *, host: str, options: CollectOptions
) -> str | None:
    if response.is_revisit:
        return "revisit_record"
    if not response.record.uri:
        return "no_uri"
    if _mime(response, http) not in _HTML_TYPES:
        return "not_html"
    if not response.is_whole:
        return "too_large"
    if options.hosts and reversed_labels(host) not in options.hosts:
        return "filtered_host"
    return None


def _mime(response: WarcResponse, http: HttpHead) -> str | None:
    """Return the declared type; without one, HTML if the body starts like HTML."""
    if http.mime or response.payload_type:
        return http.mime or response.payload_type
    return "text/html" if looks_like_html(response.body) else None


def looks_like_html(body: bytes) -> bool:
    """Return whether a body starts like an HTML page."""
    return body[:256].lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_HTML_STARTS)


def _text(tree: HTMLTree) -> str:
    # Main content scores F1 0.91 on the article benchmark, the whole page 0.68, and the language is
    # not detected from the menus.
    text: str = extract_plain_text(tree, main_content=not _is_deep(tree))
    return text


def _is_deep(tree: HTMLTree) -> bool:
    """Return whether elements nest too deeply along the page's first or last branch.

    Deep nesting elsewhere is rare, and checking for it would mean walking every page; the worker's
    time limit ends such a page instead.
    """
    return _branch_is_deep(tree, "first_element_child") or _branch_is_deep(
        tree, "last_element_child"
    )


def _branch_is_deep(tree: HTMLTree, step: str) -> bool:
    node: DOMNode | None = tree.body
    for _ in range(_MAX_DEPTH):
        if node is None:
            return False
        node = getattr(node, step)
    return True
