"""HTTP headers and codings as archives really hold them."""

import gzip
import zlib
from io import BytesIO

import pytest
from fastwarc.stream_io import BrotliWriter, ZstdWriter

from news_platform.ccnews.page import HttpHead, iso_date, parse_content_type, parse_head, plain_body

HTML = b"<html><p>the page</p></html>"
MAX = 1 << 20


def _head(*lines: str) -> HttpHead:
    return parse_head("\r\n".join(["HTTP/1.1 200 OK", *lines, ""]).encode())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Sat, 01 Nov 2025 01:44:44 GMT", "2025-11-01T01:44:44+00:00"),
        ("Sat, 01 Nov 2025 02:44:44 +0100", "2025-11-01T02:44:44+01:00"),
        ("Saturday, 01-Nov-25 01:44:44 GMT", "2025-11-01T01:44:44+00:00"),
        ("Sat Nov  1 01:44:44 2025", "2025-11-01T01:44:44+00:00"),
        ("Sat, 01 Foo 2025 01:44:44 GMT", None),
        ("", None),
        ("Thu, 01 Jan 99999999 00:00:00 GMT", None),
    ],
)
def test_http_dates_become_iso_with_offset_or_none(value: str, expected: str | None) -> None:
    assert iso_date(value.encode()) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'Text/HTML; Charset="UTF-8"', ("text/html", "utf-8")),
        (b"text/html, text/html", ("text/html", None)),
        (b"; charset=utf-8", (None, "utf-8")),
        (b"text/html; charset=", ("text/html", None)),
        (b"", (None, None)),
    ],
)
def test_content_types_are_lower_case_and_unquoted(
    value: bytes, expected: tuple[str | None, str | None]
) -> None:
    assert parse_content_type(value) == expected


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("HTTP/1.1 200 OK", 200),
        ("HTTP/2 404", 404),
        ("HTTP/1.1 abc", None),
    ],
)
def test_odd_status_lines_are_read_as_far_as_they_go(line: str, status: int | None) -> None:
    assert parse_head(f"{line}\r\n".encode()).status == status


def test_of_a_repeated_field_the_first_counts() -> None:
    head = _head("Content-Type: text/html", "content-type: text/plain", "date: nonsense")
    assert (head.mime, head.date) == ("text/html", None)


TWICE = gzip.compress(gzip.compress(HTML))
DEFLATED = gzip.compress(zlib.compress(HTML))
CHUNKED = b"6\r\n<html>\r\n16;ext=1\r\n<p>the page</p></html>\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("field", "body", "expected"),
    [
        pytest.param("Transfer-Encoding: chunked", CHUNKED, HTML, id="chunked"),
        pytest.param("Transfer-Encoding: chunked", CHUNKED[:22], b"<html><", id="chunked and cut"),
        pytest.param("Transfer-Encoding: chunked", HTML, HTML, id="falsely chunked"),
        pytest.param("Content-Encoding: gzip", gzip.compress(HTML), HTML, id="gzip"),
        pytest.param("Content-Encoding: gzip", HTML, HTML, id="falsely gzip"),
        pytest.param("Content-Encoding: gzip, gzip", TWICE, HTML, id="gzip twice"),
        pytest.param("Content-Encoding: gzip, gzip", gzip.compress(HTML), HTML, id="only once"),
        pytest.param("Content-Encoding: deflate, gzip", DEFLATED, HTML, id="two codings"),
        pytest.param("X-A: b", gzip.compress(HTML), HTML, id="gzip without saying so"),
        pytest.param("Content-Encoding: deflate", zlib.compress(HTML), HTML, id="deflate"),
        pytest.param("Content-Encoding: deflate", zlib.compress(HTML)[2:-4], HTML, id="raw"),
        pytest.param("Content-Encoding: br", HTML, HTML, id="falsely brotli"),
    ],
)
def test_a_coding_is_undone_only_when_it_is_there(field: str, body: bytes, expected: bytes) -> None:
    assert plain_body(body, _head(field), max_bytes=MAX) == expected


def test_of_a_coding_that_is_cut_off_what_is_there_is_read() -> None:
    cut = gzip.compress(HTML * 9)[:-20]
    plain = plain_body(cut, _head("Content-Encoding: gzip"), max_bytes=MAX)
    assert plain
    assert (HTML * 9).startswith(plain)


def test_brotli_and_zstd_are_undone() -> None:
    for name, writer in (("br", BrotliWriter), ("zstd", ZstdWriter)):
        packed = BytesIO()
        with writer(packed) as file:
            file.write(HTML * 50)
        head = _head(f"Content-Encoding: {name}")
        assert plain_body(packed.getvalue(), head, max_bytes=MAX) == HTML * 50
        assert plain_body(packed.getvalue(), head, max_bytes=100) == (HTML * 50)[:101]


def test_a_bomb_is_inflated_only_to_just_above_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(plain_body(bomb, _head(), max_bytes=MAX)) == MAX + 1
