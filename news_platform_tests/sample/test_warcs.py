"""One capture as bytes: exactly what the crawler of CC-NEWS would have written."""

import gzip
from datetime import UTC, datetime

from news_platform.sample.crawl import Capture, warc_bytes
from news_platform.sample.outlets import SiteResponse

AT = datetime(2025, 11, 1, 9, 12, 7, tzinfo=UTC)


def lines_of(resource: SiteResponse, url: str = "https://x.example/a?b=1") -> list[str]:
    body = warc_bytes("n.warc.gz", [Capture(url, resource, AT)], started_at=AT)
    return gzip.decompress(body).decode("latin-1").split("\r\n")


def test_a_capture_is_a_request_and_a_response() -> None:
    lines = lines_of(SiteResponse(b"<p>hi</p>"))
    assert lines.count("WARC/1.0") == 3
    assert "GET /a?b=1 HTTP/1.1" in lines
    assert "Host: x.example" in lines
    assert "HTTP/1.1 200 OK" in lines
    assert "Content-Length: 9" in lines
    assert lines.count("WARC-Target-URI: https://x.example/a?b=1") == 2
    assert lines.count("WARC-Date: 2025-11-01T09:12:07Z") == 3


def test_a_redirect_keeps_its_location_and_a_change_its_date() -> None:
    moved = SiteResponse(b"", status=301, location="https://y.example/", modified_at=AT)
    lines = lines_of(moved)
    assert "HTTP/1.1 301 Moved Permanently" in lines
    assert "Location: https://y.example/" in lines
    assert "Last-Modified: Sat, 01 Nov 2025 09:12:07 GMT" in lines


def test_a_compressed_answer_is_stored_inflated_under_another_header() -> None:
    lines = lines_of(SiteResponse(b"x" * 100, gzipped=True))
    assert "X-Crawl-Content-Encoding: gzip" in lines
    assert "Content-Encoding: gzip" not in lines
    assert "Content-Length: 100" in lines


def test_the_payload_digest_is_the_bodys_sha1_in_base32() -> None:
    assert "WARC-Payload-Digest: sha1:3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ" in lines_of(
        SiteResponse(b"")
    )
