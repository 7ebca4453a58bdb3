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
        ("Sat, 31 Feb 2025 01:44:44 GMT", None),
        ("Sat, 01 Foo 2025 01:44:44 GMT", None),
        ("-1", None),
        ("0", None),
        ("", None),
        ("Thu, 01 Jan 99999999 00:00:00 GMT", None),
    ],
)
def test_http_dates_become_iso_with_offset_or_none(value: str, expected: str | None) -> None:
    assert iso_date(value.encode()) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b"text/html", ("text/html", None)),
        (b'Text/HTML; Charset="UTF-8"', ("text/html", "utf-8")),
        (b"text/html;charset=ISO-8859-1;x=y", ("text/html", "iso-8859-1")),
        (b"text/html; charset='koi8-r'", ("text/html", "koi8-r")),
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
        ("HTTP/1.0 302 ", 302),
        ("HTTP/2 404", 404),
        ("HTTPX/1.1 200 OK", 200),
        ("HTTP/1.1 abc", None),
    ],
)
def test_odd_status_lines_are_read_as_far_as_they_go(line: str, status: int | None) -> None:
    assert parse_head(f"{line}\r\n".encode()).status == status


def test_of_a_repeated_field_the_first_counts() -> None:
    head = _head("Content-Type: text/html", "content-type: text/plain", "date: nonsense")
    assert (head.mime, head.date) == ("text/html", None)


def test_no_header_states_nothing() -> None:
    assert parse_head(b"") == HttpHead(None, None, None, None, None, False, "")


CHUNKED = b"6\r\n<html>\r\n16;ext=1\r\n<p>the page</p></html>\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("fields", "body", "expected"),
    [
        (["Transfer-Encoding: chunked"], CHUNKED, HTML),
        (["Transfer-Encoding: chunked"], CHUNKED.replace(b"\r\n", b"\n"), HTML),
        (["Transfer-Encoding: chunked"], CHUNKED[:22], b"<html><"),
        (["Transfer-Encoding: chunked"], HTML, HTML),
        (["Transfer-Encoding: chunked"], b"6\r\n<html>\r\nzz", b"<html>zz"),
        (["Content-Encoding: gzip"], gzip.compress(HTML), HTML),
        (["Content-Encoding: gzip"], HTML, HTML),
        ([], gzip.compress(HTML), HTML),
        (["Content-Encoding: gzip"], gzip.compress(HTML * 9)[:-20], None),
        (["Content-Encoding: gzip"], b"\x1f\x8b\x08broken", b"\x1f\x8b\x08broken"),
        (["Content-Encoding: deflate"], zlib.compress(HTML), HTML),
        (["Content-Encoding: deflate"], zlib.compress(HTML)[2:-4], HTML),
        (["Content-Encoding: deflate"], HTML, HTML),
        (["Content-Encoding: br"], HTML, HTML),
        (["Content-Encoding: br"], b"", b""),
    ],
    ids=[
        "chunked",
        "chunked by LF",
        "chunked and cut",
        "falsely chunked",
        "chunks that end in rubbish",
        "gzip",
        "falsely gzip",
        "gzip without saying so",
        "gzip cut off",
        "gzip in name only",
        "deflate",
        "raw deflate",
        "falsely deflate",
        "falsely brotli",
        "brotli of nothing",
    ],
)
def test_a_coding_is_undone_only_when_it_is_there(
    fields: list[str], body: bytes, expected: bytes | None
) -> None:
    plain = plain_body(body, _head(*fields), max_bytes=MAX)
    if expected is None:
        assert plain
        assert (HTML * 9).startswith(plain)
    else:
        assert plain == expected


def test_brotli_and_zstd_are_undone() -> None:
    for name, writer in (("br", BrotliWriter), ("zstd", ZstdWriter)):
        packed = BytesIO()
        with writer(packed) as file:
            file.write(HTML * 50)
        head = _head(f"Content-Encoding: {name}")
        assert plain_body(packed.getvalue(), head, max_bytes=MAX) == HTML * 50
        assert plain_body(packed.getvalue(), head, max_bytes=100) == (HTML * 50)[:100]


def test_a_bomb_is_inflated_only_to_the_limit() -> None:
    bomb = gzip.compress(b"\0" * 50_000_000)
    assert len(plain_body(bomb, _head(), max_bytes=MAX)) == MAX
