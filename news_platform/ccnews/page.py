"""Pure: one raw response in, one page with its text and language out, or DroppedRecord and why."""

from dataclasses import dataclass

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode, HTMLTree
from resiliparse.parse.lang import detect_fast

from news_platform.ccnews.http import HttpHead, parse_head, plain_body
from news_platform.ccnews.warc import DroppedRecord, RecordInfo, WarcResponse
from news_platform.html.decode import decode_html
from news_platform.html.page_metadata import FeedLink, Stated, feed_links, stated_facts
from news_platform.web.urls import reversed_domain, surt

# A new version says that the same WARC would give other rows; `--older-than` redoes what is behind.
EXTRACTOR_VERSION = "1"
HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))
# Main-content extraction takes time by the square of the nesting: 0.02 s at 1,000, 9 s at 20,000.
_MAX_DEPTH = 1000
_LANGUAGES = 3
_HTML_STARTS = (b"<!doctype html", b"<html")


@dataclass(frozen=True, slots=True)
class PageOptions:
    """What is taken from a WARC, and how; an empty filter lets everything through.

    `hosts` are registrable domains in natural order (`bbc.co.uk`).
    """

    main_content: bool = True
    with_metadata: bool = True
    with_feeds: bool = True
    max_page_bytes: int = 32 << 20
    mimes: frozenset[str] = HTML_TYPES
    hosts: frozenset[str] = frozenset()
    languages: frozenset[str] = frozenset()
    statuses: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class CrawledPage:
    """One row of raw_news and its facts for captures and feed_candidates; `tree` is UTF-8."""

    record: RecordInfo
    http: HttpHead
    tree: bytes
    text: str
    main_lang: str
    langs: list[str]
    confs: list[int]
    surt_uri: str
    host: str
    stated: Stated
    feeds: tuple[FeedLink, ...]


def read_page(response: WarcResponse, options: PageOptions) -> CrawledPage | DroppedRecord:
    """Turn an archived response into a page, or say why it is none."""
    http = parse_head(response.head)
    host = reversed_domain(response.record.uri)
    if reason := _refusal(response, http, host=host, options=options):
        return DroppedRecord(reason, response.record.offset)
    body = plain_body(response.body, http, max_bytes=options.max_page_bytes)
    html = decode_html(body, http.charset)
    tree = HTMLTree.parse(html.text)
    text = _text(tree, main_content=options.main_content)
    ranks = detect_fast(text, n_results=_LANGUAGES) if text.strip() else []
    main_lang = ranks[0][0] if ranks else "unknown"
    if options.languages and main_lang not in options.languages:
        return DroppedRecord("filtered_language", response.record.offset)
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
        stated=stated_facts(tree, html.utf8) if options.with_metadata else Stated(),
        feeds=feed_links(tree) if options.with_feeds else (),
    )


def _refusal(
    response: WarcResponse, http: HttpHead, *, host: str, options: PageOptions
) -> str | None:
    if not response.record.uri:
        return "no_uri"
    if _mime(response, http) not in options.mimes:
        return "not_html"
    if not response.is_whole:
        return "too_large"
    if options.statuses and http.status not in options.statuses:
        return "filtered_status"
    if options.hosts and ".".join(reversed(host.split("."))) not in options.hosts:
        return "filtered_host"
    return None


def _mime(response: WarcResponse, http: HttpHead) -> str | None:
    """Return the declared type; a response that declares none is taken for what it looks like."""
    if http.mime or response.payload_type:
        return http.mime or response.payload_type
    looks = response.body[:256].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return "text/html" if looks.startswith(_HTML_STARTS) else None


def _text(tree: HTMLTree, *, main_content: bool) -> str:
    main_content = main_content and not _is_deep(tree)
    text: str = extract_plain_text(tree, main_content=main_content)
    return text


def _is_deep(tree: HTMLTree) -> bool:
    """Say whether elements nest too deeply along the page's first or last branch.

    Depth elsewhere is rare and would cost a walk of every page; the killable worker is behind it.
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
