"""WARC streams: places, cuts, damage, other formats, and records by the book and not."""

import base64
import gzip
import hashlib
import random

import pytest

from news_platform.ccnews.warc import (
    DroppedWarcRecord,
    WarcResponse,
    first_record_day,
    iter_responses,
    parse_strict_record,
)
from news_platform.errors import InputError
from news_platform_tests.ccnews.archive import NAME, Record, gzipped, http, page, stream

LIMIT = 1 << 20


def _read(data: bytes) -> list[WarcResponse | DroppedWarcRecord]:
    return list(iter_responses(stream(data), warc_name=NAME, max_body_bytes=LIMIT))


def _uris(data: bytes) -> list[str]:
    return [item.record.uri for item in _read(data) if isinstance(item, WarcResponse)]


PAGES = [page(number) for number in range(3)]
COMPANIONS = [
    Record(b"software: x\r\n", kind="warcinfo"),
    Record(b"GET / HTTP/1.1\r\n\r\n", "request"),
]


def test_responses_come_in_file_order_with_their_byte_range() -> None:
    data = gzipped([*COMPANIONS, *PAGES])
    found = [item for item in _read(data) if isinstance(item, WarcResponse)]
    assert [item.record.uri for item in found] == [record.uri for record in PAGES]
    for item, record in zip(found, PAGES, strict=True):
        place = item.record
        assert place.length is not None
        assert gzip.decompress(data[place.offset : place.offset + place.length]) == record.dumped()
        assert item.head + b"\r\n" + item.body == record.block
    assert [item.record.number for item in found] == [2, 3, 4]
    assert found[0].record.warc_date == "2025-11-01T01:44:44Z"
    digest = hashlib.sha1(found[0].body, usedforsecurity=False).digest()
    assert found[0].record.payload_digest == base64.b32encode(digest).decode()  # "ABC" is none


def test_a_plain_file_gives_the_same_responses_with_its_own_ranges() -> None:
    data = b"".join(record.dumped() for record in [*COMPANIONS, *PAGES])
    for item, record in zip(_read(data), PAGES, strict=True):
        assert isinstance(item, WarcResponse)
        place = item.record
        assert place.length is not None
        assert data[place.offset : place.offset + place.length] == record.dumped()


def test_a_file_squeezed_into_one_member_still_gives_every_response() -> None:
    data = gzip.compress(b"".join(record.dumped() for record in PAGES))
    assert _uris(data) == [record.uri for record in PAGES]


def test_other_records_are_counted_by_type_and_companions_are_not() -> None:
    data = gzipped([*COMPANIONS, Record(b"x", "revisit"), Record(b"x", "resource"), PAGES[0]])
    reasons = [item.reason for item in _read(data) if isinstance(item, DroppedWarcRecord)]
    assert reasons == ["resource_record"]


def test_a_corrupt_member_costs_its_own_record() -> None:
    parts = [gzipped([record]) for record in PAGES]
    broken = bytearray(parts[1])
    broken[60] ^= 0xFF
    items = _read(parts[0] + bytes(broken) + parts[2])
    assert [type(item) for item in items] == [WarcResponse, DroppedWarcRecord, WarcResponse]
    assert items[1] == DroppedWarcRecord("corrupt_member", len(parts[0]))


PLAIN = b"".join(record.dumped() for record in PAGES)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"", "is empty", id="empty"),
        pytest.param(b"<html>an error page</html>", "not a WARC", id="a page"),
        pytest.param(gzip.compress(b"just text"), "not a WARC", id="gzipped text"),
        pytest.param(gzip.compress(b"filedesc://x 1 2014 a 10\n"), "is an ARC file", id="arc.gz"),
        pytest.param(gzipped(PAGES)[:-1], "is truncated", id="the trailer cut"),
        pytest.param(PLAIN[:-1], "is truncated", id="last line end gone"),
        pytest.param(PLAIN + b"WARC/1.0\r\nWARC-Ty", "is truncated", id="next header begun"),
    ],
)
def test_a_file_that_is_no_whole_warc_fails_with_its_reason(data: bytes, reason: str) -> None:
    with pytest.raises(InputError, match=reason) as caught:
        _read(data)
    assert caught.value.thing == NAME


@pytest.mark.parametrize("compressed", [True, False], ids=["gzip", "plain"])
def test_every_cut_is_seen_unless_it_falls_between_records(compressed: bool) -> None:
    records = [*COMPANIONS, *PAGES, COMPANIONS[1]]
    parts = [gzipped([record]) if compressed else record.dumped() for record in records]
    ends = {sum(len(part) for part in parts[:count]) for count in range(len(parts) + 1)}
    data = b"".join(parts)
    for position in random.Random(3).sample(range(1, len(data)), 80):
        if position in ends:
            continue
        with pytest.raises(InputError, match=r"truncated|not a WARC"):
            _read(data[:position])


def test_a_body_over_the_limit_is_marked_and_not_held() -> None:
    (item,) = _read(gzipped([Record(http(b"x" * (LIMIT + 500)))]))
    assert isinstance(item, WarcResponse)
    assert not item.is_whole
    assert len(item.body) <= LIMIT + 1


def test_brackets_around_a_target_address_are_removed() -> None:
    assert _uris(gzipped([Record(http("x"), uri="<http://example.com/>")])) == [
        "http://example.com/"
    ]


def test_a_file_without_any_date_has_no_day() -> None:
    assert first_record_day(stream(b"garbage"), warc_name="x") is None
    undated = PAGES[0].dumped().replace(b"WARC-Date: 2", b"WARC-Date: x")
    assert first_record_day(stream(undated), warc_name="x") is None
    for arc in (b"filedesc://x.arc 0", gzip.compress(b"filedesc://x.arc 0")):
        with pytest.raises(InputError, match="is an ARC file"):
            first_record_day(stream(arc), warc_name="x.arc")
    assert (
        first_record_day(stream(b"WARC/1.0\r\nContent-Length: 0\r\n\r\n\r\n\r\n"), warc_name="x")
        is None
    )


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
