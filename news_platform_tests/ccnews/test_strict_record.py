"""A strict record is parsed directly; all others are left to fastwarc."""

import gzip

import pytest

from news_platform.ccnews.warc import WarcResponse, iter_responses, parse_strict_record
from news_platform_tests.ccnews.archive import NAME, Record, page, stream

LIMIT = 1 << 20
PAGE = page(1)
STRICT = PAGE.dumped()


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(b"filedesc://x 0.0.0.0\r\n\r\n", id="an ARC header"),
        pytest.param(STRICT.replace(b"\r\n", b"\n"), id="LF-only lines"),
        pytest.param(STRICT.replace(b"sha1:ABC", "sha1:ÄBC".encode()), id="a field beyond ASCII"),
        pytest.param(STRICT.replace(b"sha1:ABC", b"sha1:\r\n ABC"), id="a folded line"),
        pytest.param(STRICT.replace(b"WARC-Date", b"warc-type"), id="a field twice"),
        pytest.param(STRICT.replace(b"Length: ", b"Length: " + b"9" * 5000), id="5,000 digits"),
        pytest.param(STRICT + STRICT, id="two records"),
        pytest.param(STRICT + b"\r\n", id="a blank line too many"),
        pytest.param(Record(b"HTTP/1.1 200 OK\r\nA: b").dumped(), id="an HTTP header without end"),
    ],
)
def test_whatever_is_not_by_the_book_is_left_alone(data: bytes) -> None:
    assert parse_strict_record(data, max_body_bytes=LIMIT) is None


def test_a_repeated_warc_type_does_not_cost_the_page() -> None:
    """After a second WARC-Type fastwarc reads no Content-Length, so the page seemed empty."""
    kind = b"WARC-Type: response\r\n"
    response = _response(STRICT.replace(kind, kind + kind))
    assert response.head + b"\r\n" + response.body == PAGE.block


@pytest.mark.parametrize(
    "block",
    [
        pytest.param(PAGE.block.replace(b"\r\n", b"\n"), id="an LF-only HTTP header"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: b\r\n \t\r\nbody", id="a blank line with blanks"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: b\r\n\r\n\r\n\r\nbody", id="blank lines in the body"),
        pytest.param(b"HTTP/1.1 200 OK\r\nA: " + b"b" * 70_000 + b"\r\n\r\nx", id="a huge header"),
    ],
)
def test_both_readers_agree(block: bytes) -> None:
    book = Record(block).dumped()
    # Two values of one field: only the tolerant reader takes that.
    odd = book.replace(b"WARC-Payload-Digest: sha1:ABC", b"X-A: 1\r\nX-A: 2")
    found = [_response(data) for data in (book, odd)]
    assert (found[0].head, found[0].body) == (found[1].head, found[1].body)
    assert found[0].record.uri == found[1].record.uri


def _response(data: bytes) -> WarcResponse:
    source = stream(gzip.compress(data, mtime=0))
    (response,) = iter_responses(source, warc_name=NAME, max_body_bytes=LIMIT)
    assert isinstance(response, WarcResponse)
    return response
