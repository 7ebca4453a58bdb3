"""Snapshots as crawlers store them."""

import json
from datetime import UTC, datetime

import pytest

from news_platform.source_records.snapshots import Snapshot, parse_snapshot

NOW = datetime(2025, 11, 3, 20, tzinfo=UTC)


def snapshot(document: object, path: str = "snapshots/institution=u1/a.json") -> Snapshot:
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return Snapshot(path, "u1", body, modified_at=NOW)


def firecrawl(**data: object) -> dict[str, object]:
    metadata = {
        "sourceURL": "https://u1.edu/a",
        "url": "https://u1.edu/a/",
        "statusCode": 200,
        "language": "en-GB",
        "contentType": "text/html; charset=ISO-8859-1",
        "cachedAt": "2025-10-01T08:00:00+02:00",
    }
    return {"success": True, "data": {"metadata": metadata, **data}}


def test_a_firecrawl_answer_becomes_a_page() -> None:
    ((page, error),) = parse_snapshot(snapshot(firecrawl(rawHtml="<p>x", html="<b>", markdown="m")))
    assert error is None
    assert (page.content, page.media, page.url) == ("<p>x", "html", "https://u1.edu/a/")
    assert (page.language, page.charset, page.institution) == ("en-GB", "iso-8859-1", "u1")
    assert page.fetched_at == datetime(2025, 10, 1, 6, tzinfo=UTC)
    assert page.snapshot == "snapshots/institution=u1/a.json"


@pytest.mark.parametrize(
    ("data", "content", "media"),
    [
        ({"html": "<p>", "markdown": "m"}, "<p>", "html"),
        ({"rawHtml": " ", "markdown": "# m"}, "# m", "text"),
        ({"rawHtml": None, "html": 3, "text": "t"}, "t", "text"),
    ],
)
def test_raw_html_is_preferred_then_html_then_markdown(
    data: dict[str, object], content: str, media: str
) -> None:
    ((page, _),) = parse_snapshot(snapshot(firecrawl(**data)))
    assert (page.content, page.media) == (content, media)


@pytest.mark.parametrize(
    ("document", "error"),
    [
        ({"success": False, "error": "timeout"}, "the crawler failed: timeout"),
        ({"success": False}, "the crawler failed: no reason given"),
        (firecrawl(), "the snapshot holds no content"),
        (
            {"success": True, "data": {"html": "<p>", "metadata": {"statusCode": 404}}},
            "the site answered 404: no content",
        ),
        (
            {"success": True, "data": {"html": "<p>", "metadata": {"statusCode": "500"}}},
            "the site answered 500: no content",
        ),
        ([1], "not a JSON object"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"\xff\xfe\xfa", "not JSON"),
    ],
)
def test_a_snapshot_without_a_page_says_why(document: object, error: str) -> None:
    ((page, found),) = parse_snapshot(snapshot(document))
    assert found is not None and found.startswith(error)
    assert page.fetched_at is not None and page.url


@pytest.mark.parametrize(
    ("name", "media"), [("a.html", "html"), ("a.HTM", "html"), ("a.md", "text"), ("a.txt", "text")]
)
def test_plain_files_are_pages_too(name: str, media: str) -> None:
    given = Snapshot(name, "u1", b"<p>body", url="https://u1.edu/b")
    ((page, error),) = parse_snapshot(given)
    assert error is None
    assert (page.content, page.media, page.url) == (b"<p>body", media, "https://u1.edu/b")


def test_a_date_without_a_zone_is_utc_and_a_wrong_one_is_ignored() -> None:
    named = {"markdown": "m", "fetched_at": "2025-10-01T08:00:00"}
    assert parse_snapshot(snapshot(named))[0][0].fetched_at == datetime(2025, 10, 1, 8, tzinfo=UTC)
    wrong = parse_snapshot(snapshot({"markdown": "m", "fetched_at": "soon"}))
    assert wrong[0][0].fetched_at == NOW


def test_the_answer_to_a_crawl_is_read_as_its_pages() -> None:
    pages = [firecrawl(markdown=text)["data"] for text in ("one", "two")]
    found = parse_snapshot(snapshot({"success": True, "status": "completed", "data": [*pages, 3]}))
    assert [page.content for page, _ in found] == ["one", "two", ""]
    assert [error for _, error in found] == [None, None, "the snapshot holds no content"]


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"%PDF-1.7 ...", "a PDF document"),
        (b"\x89PNG\r\n\x1a\n\0\0", "a PNG image"),
        (b"PK\x03\x04word/", "a ZIP archive"),
        (b"\1\0\0\2\0\0<p>", "binary data"),
    ],
)
def test_a_binary_file_named_like_a_page_is_not_one(body: bytes, kind: str) -> None:
    ((_, error),) = parse_snapshot(Snapshot("a.html", "u1", body))
    assert error == f"the file is not a page but {kind}"


def test_utf_16_is_text() -> None:
    body = "<p>Departments</p>".encode("utf-16")
    assert parse_snapshot(Snapshot("a.html", "u1", body))[0][1] is None
