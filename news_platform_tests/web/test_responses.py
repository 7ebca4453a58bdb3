"""Responses: redirects, waits, validators and encoded bodies, whatever a server sends."""

import gzip
import zlib
from datetime import UTC, datetime

import brotli  # type: ignore[import-untyped]  # ships no types
import pytest
from yarl import URL

from news_platform.errors import FetchError
from news_platform.web.responses import (
    MAX_WAIT_SECONDS,
    ResponseBody,
    conditional_headers,
    is_permanent_redirect,
    next_url,
    parse_max_age,
    parse_retry_after,
    requested_wait_seconds,
    validator,
)
from news_platform_tests.web.hostile_headers import HOSTILE_HEADERS

PAGE = "https://post.example/a/b?x=1"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/c", "https://post.example/c"),
        ("//other.example/", "https://other.example/"),
        ("https://other.example/x#part", "https://other.example/x"),
    ],
)
def test_a_location_is_relative_to_the_url_that_sent_it(location: str, target: str) -> None:
    assert next_url(URL(PAGE), location, visited=[PAGE], max_redirects=5) == target


@pytest.mark.parametrize(
    ("statuses", "permanent"),
    [((), False), ((308, 301), True), ((301, 302), False)],
)
def test_only_permanent_redirects_throughout_are_permanent(
    statuses: tuple[int, ...], permanent: bool
) -> None:
    assert is_permanent_redirect(statuses) is permanent


NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("120", 120),
        ("000000000000000000120", 120),
        ("9" * 5_000, MAX_WAIT_SECONDS),
        ("soon, 60", 60),
        ("Mon, 03 Nov 2025 12:05:00 GMT", 300),
        ("Mon, 03 Nov 2025 11:00:00 GMT", 0),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0),
        ("Mon, 99999999999999999999 Nov 2025 12:00:00 GMT", None),
        ("Mon, 03 Nov 2025 12:00:00 GMT" + " " * 60_000 + "x", None),
        ("", None),
        ("-5", None),
    ],
)
def test_retry_after_gives_a_bounded_wait_or_none(value: str, seconds: int | None) -> None:
    assert parse_retry_after(value, now=NOW) == seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("max-age=600", 600),
        ('MAX-AGE = "600"', 600),
        ("s-maxage=60, max-age=600", 60),
        ("max-age=0", 0),
        ("max-age=" + "9" * 5_000, MAX_WAIT_SECONDS),
        ("max-age=-5", None),
        ("max-age" + " " * 60_000, None),
    ],
)
def test_max_age_gives_a_bounded_wait_or_none(value: str, seconds: int | None) -> None:
    assert parse_max_age(value) == seconds


@pytest.mark.parametrize("headers", HOSTILE_HEADERS, ids=lambda it: str(it)[:40])
def test_no_header_asks_for_more_than_the_longest_wait(headers: dict[str, str]) -> None:
    assert requested_wait_seconds(headers, now=NOW) in (0, MAX_WAIT_SECONDS)


def test_the_longer_of_the_two_headers_counts() -> None:
    both = {"cache-control": "max-age=60", "retry-after": "90"}
    assert requested_wait_seconds(both, now=NOW) == 90
    assert requested_wait_seconds({**both, "retry-after": "30"}, now=NOW) == 60
    assert requested_wait_seconds({}, now=NOW) == 0


SENDABLE = ['W/"0815"', "Mon, 03 Nov 2025 12:00:00 GMT", '"é"', '"' + "x" * 900]
NOT_SENDABLE = ['"\udcff"', '"a\x01b"', "a\r\nX: y", "a\rb", "x" * 1_001]


@pytest.mark.parametrize("value", SENDABLE)
def test_a_validator_that_can_be_sent_back_is_kept(value: str) -> None:
    assert validator({"etag": value}, "etag") == value
    assert conditional_headers(etag=value, last_modified="") == {"If-None-Match": value}
    assert conditional_headers(etag="", last_modified=value) == {"If-Modified-Since": value}


@pytest.mark.parametrize("value", NOT_SENDABLE)
def test_a_validator_that_cannot_be_sent_back_is_neither_kept_nor_sent(value: str) -> None:
    assert validator({"etag": value}, "etag") == ""
    assert conditional_headers(etag=value, last_modified=value) == {}


TEXT = b"hello world " * 50
ENCODED = {
    "gzip": gzip.compress(TEXT),
    "deflate": zlib.compress(TEXT),
    "Deflate": zlib.compress(TEXT, wbits=-15),
    "br": brotli.compress(TEXT),
    "deflate, gzip": gzip.compress(zlib.compress(TEXT)),
}


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_body_is_the_same_in_pieces_of_any_size(encoding: str) -> None:
    sent = ENCODED[encoding]
    for size in (1, 3, 1000):
        body = ResponseBody(encoding, cap_bytes=10_000)
        for start in range(0, len(sent), size):
            body.feed(sent[start : start + size])
        assert body.finish() == TEXT
    assert ResponseBody(encoding, cap_bytes=10).finish() == b""


@pytest.mark.parametrize("encoding", ENCODED)
def test_a_body_that_ends_after_its_first_byte_is_incomplete(encoding: str) -> None:
    body = ResponseBody(encoding, cap_bytes=10_000)
    body.feed(ENCODED[encoding][:1])
    with pytest.raises(FetchError) as caught:
        body.finish()
    assert caught.value.reason == "incomplete"
