"""Turn one archived response into a page with text and language, or a reason why it is dropped."""

from dataclasses import dataclass

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import DOMNode, HTMLTree
from resiliparse.parse.lang import detect_fast

from news_platform.ccnews.http import HttpHead, parse_head, plain_body
from news_platform.ccnews.options import CollectOptions
from news_platform.ccnews.warc import DroppedWarcRecord, RecordInfo, WarcResponse
from news_platform.html.decode import decode_html
from news_platform.html.jsonld import PageMetadata, parse_page_metadata
from news_platform.html.links import FeedLink, feed_links
from news_platform.web.urls import reversed_domain, reversed_labels, surt

# The time of main-content extraction grows with the square of the nesting depth: 0.02 s at 1,000
# levels, 9 s at 20,000.
_MAX_DEPTH = 1000
# `langs` and `confs` hold the best three languages, as the source design asks.
_LANGUAGES = 3
_HTML_STARTS = (b"<!doctype html", b"<html")


@dataclass(frozen=True, slots=True)
class CrawledPage:
    """One row of raw_news, with what captures and feed_candidates need; `tree` is UTF-8."""

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


def read_page(response: WarcResponse, options: CollectOptions) -> CrawledPage | DroppedWarcRecord:
    """Return the page of an archived response, or a DroppedWarcRecord with the reason."""
    http = parse_head(response.head)
    host = reversed_domain(response.record.uri)
    if reason := _drop_reason(response, http, host=host, options=options):
        return _dropped(response, reason)
    body = plain_body(response.body, http, max_bytes=options.max_page_bytes)
    html = decode_html(body, http.charset)
    tree = HTMLTree.parse(html.text)
    text = _text(tree, main_content=options.main_content)
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
        stated=parse_page_metadata(tree, html.utf8) if options.captures else PageMetadata(),
        feeds=feed_links(tree) if options.feed_candidates else (),
    )


def _dropped(response: WarcResponse, reason: str) -> DroppedWarcRecord:
    return DroppedWarcRecord(reason, response.record.offset, response.record.uri)


def _drop_reason(
    response: WarcResponse, http: HttpHead, *, host: str, options: CollectOptions
) -> str | None:
    if not response.record.uri:
        return "no_uri"
    if _mime(response, http) not in options.mimes:
        return "not_html"
    if not response.is_whole:
        return "too_large"
    if options.statuses and http.status not in options.statuses:
        return "filtered_status"
    if options.hosts and reversed_labels(host) not in options.hosts:
        return "filtered_host"
    return None


def _mime(response: WarcResponse, http: HttpHead) -> str | None:
    """Return the declared type; without one, HTML if the body starts like HTML."""
    if http.mime or response.payload_type:
        return http.mime or response.payload_type
    looks = response.body[:256].lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    return "text/html" if looks.startswith(_HTML_STARTS) else None


def _text(tree: HTMLTree, *, main_content: bool) -> str:
    main_content = main_content and not _is_deep(tree)
    text: str = extract_plain_text(tree, main_content=main_content)
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
