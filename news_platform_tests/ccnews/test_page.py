"""One response becomes one row, or is dropped for a reason."""

import gzip
import time

import pytest

from news_platform.ccnews.page import CrawledPage, read_page
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.warc import DroppedWarcRecord, RecordInfo, WarcResponse
from news_platform_tests.ccnews.archive import article, http

ENGLISH = "The mayor of the town opened the new bridge over the river this morning."
DUTCH = "De burgemeester opende vanmorgen de nieuwe brug over de rivier in het midden van de stad."


def _response(
    block: bytes, *, uri: str = "https://www.levels.fyi/nl-nl/x", payload_type: str | None = None
) -> WarcResponse:
    head, separator, body = block.partition(b"\r\n\r\n")
    if not separator:
        head, body = b"", block
    record = RecordInfo(0, 10, 20, uri, "2025-11-01T01:44:44Z", "sha1:ABC")
    return WarcResponse(record, payload_type, head + b"\r\n", body, True)


def _page(block: bytes, options: CollectOptions | None = None, **more: str) -> CrawledPage:
    found = read_page(_response(block, **more), options or CollectOptions())
    assert isinstance(found, CrawledPage)
    return found


def _reason(block: bytes, options: CollectOptions | None = None, **more: str) -> str:
    found = read_page(_response(block, **more), options or CollectOptions())
    assert isinstance(found, DroppedWarcRecord)
    assert found.offset == 10
    return found.reason


def test_a_page_has_all_its_facts() -> None:
    page = _page(http(article(ENGLISH), "Last-Modified: Sat, 01 Nov 2025 00:00:00 GMT"))
    assert page.tree.decode() == article(ENGLISH)
    assert page.text.startswith(ENGLISH)
    assert page.main_lang == "en"
    assert page.langs[0] == "en"
    assert len(page.langs) == len(page.confs) == 3
    assert page.confs == sorted(page.confs)
    assert page.http.date == "2025-11-01T01:44:44+00:00"
    assert page.http.last_modified == "2025-11-01T00:00:00+00:00"
    assert page.http.charset == "utf-8"
    assert page.surt_uri == "fyi,levels)/nl-nl/x"
    assert page.host == "fyi.levels"


@pytest.mark.parametrize(
    ("uri", "host"),
    [
        ("https://proagri.co.za/video", "za.co.proagri"),
        ("http://192.168.0.7:8080/x", "7.0.168.192"),
        ("https://intranet/x", "intranet"),
        ("https://me.github.io/x", "io.github"),
        ("https://bücher.example.de/x", "de.example"),
    ],
)
def test_the_host_is_the_reversed_domain_and_never_null(uri: str, host: str) -> None:
    assert _page(http(article(ENGLISH)), uri=uri).host == host


def test_a_page_without_text_is_kept_as_unknown() -> None:
    for body in ("<html><body><img src=x></body></html>", ""):
        page = _page(http(body))
        assert (page.text, page.main_lang, page.langs, page.confs) == ("", "unknown", [], [])


def test_a_text_of_no_likely_language_is_unknown_too() -> None:
    assert (_page(http("<p>Loft</p>")).text, _page(http("<p>Loft</p>")).main_lang) == (
        "Loft",
        "unknown",
    )


def test_feeds_are_found_anywhere_and_relative_to_the_base() -> None:
    link = '<link rel="Alternate" type="application/rss+xml; charset=utf-8" href="{}" title=All>'
    html = f"<head><base href='/b/'>{link.format('')}</head><p>x</p>{link.format('rss')}"
    page = _page(http(html + link.format("tel:1") + link.format("rss")))
    assert [(feed.url, feed.title) for feed in page.feeds] == [
        ("https://www.levels.fyi/b/rss", "All")
    ]


def test_any_status_gives_a_row() -> None:
    assert _page(http(article(ENGLISH), status="404 Not Found")).http.status == 404


@pytest.mark.parametrize(
    ("mime", "payload_type", "body", "kept"),
    [
        ("text/html", None, "x", True),
        ("application/pdf", "text/html", "<html>", False),
        (None, "text/html", "x", True),
        (None, "image/png", "<html>", False),
        (None, None, "\ufeff\n<!DOCTYPE HTML><p>x", True),
        (None, None, '{"json": true}', False),
    ],
)
def test_the_declared_type_decides_and_else_the_look(
    mime: str | None, payload_type: str | None, body: str, kept: bool
) -> None:
    found = read_page(_response(http(body, mime=mime), payload_type=payload_type), CollectOptions())
    assert isinstance(found, CrawledPage) == kept
    if isinstance(found, DroppedWarcRecord):
        assert found.reason == "not_html"


def test_a_bare_record_that_looks_like_html_is_a_page() -> None:
    page = _page(b"<html><body><p>bare page</p></body></html>")
    assert page.http.status is None
    assert "bare page" in page.text


def test_a_record_without_address_is_dropped() -> None:
    assert _reason(http(article(ENGLISH)), uri="") == "no_uri"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (CollectOptions(hosts=frozenset({"bbc.co.uk"})), "filtered_host"),
        (CollectOptions(languages=frozenset({"en"})), "filtered_language"),
    ],
)
def test_filters_drop_and_say_why(options: CollectOptions, reason: str) -> None:
    block = http(article(DUTCH), status="404 Not Found")
    assert _reason(block, options) == reason
    named = CollectOptions(hosts=frozenset({"levels.fyi"}), languages=frozenset({"nl"}))
    assert _page(block, named).main_lang == "nl"


def test_the_text_of_a_page_is_its_main_content() -> None:
    menu = "<nav class='menu'><ul>" + "<li><a href=/>Menu item</a></li>" * 20 + "</ul></nav>"
    block = http(article(ENGLISH).replace("<article>", menu + "<article>"))
    assert "Menu item" not in _page(block).text


def test_twenty_thousand_nested_elements_do_not_hang() -> None:
    html = "<html><body>" + "<div>" * 20_000 + ENGLISH + "</div>" * 20_000 + "<p>after</p>"
    started = time.process_time()
    assert ENGLISH in _page(http(html)).text
    assert time.process_time() - started < 5


def test_a_page_over_the_limit_is_dropped() -> None:
    small = CollectOptions(max_page_bytes=5_000)
    assert _page(http(gzip.compress(b"<p>x" + b" " * 4_996)), small).tree.startswith(b"<p>x")
    assert _reason(http(gzip.compress(b"<p>x" + b" " * 4_997)), small) == "too_large"
    response = _response(http("x"))
    large = WarcResponse(response.record, None, response.head, b"x" * 9, False)
    assert read_page(large, CollectOptions()) == DroppedWarcRecord(
        "too_large", 10, response.record.uri
    )
