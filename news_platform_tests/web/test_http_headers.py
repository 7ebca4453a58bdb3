"""Headers of responses: redirects, waits and validators, whatever a server sends."""

from datetime import UTC, datetime

import pytest
from yarl import URL

from news_platform.errors import FetchError
from news_platform.web.responses import (
    MAX_WAIT_SECONDS,
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
        ("c", "https://post.example/a/c"),
        ("//other.example/", "https://other.example/"),
        ("https://other.example/x#part", "https://other.example/x"),
        ("?y=2", "https://post.example/a/b?y=2"),
    ],
)
def test_a_location_is_relative_to_the_url_that_sent_it(location: str, target: str) -> None:
    assert next_url(URL(PAGE), location, visited=[PAGE], max_redirects=5) == target


@pytest.mark.parametrize(
    ("location", "visited", "reason"),
    [
        (PAGE, [PAGE], "too_many_redirects"),
        ("/c", ["https://post.example/c", PAGE], "too_many_redirects"),
        ("/c", [f"https://post.example/{n}" for n in range(6)], "too_many_redirects"),
        ("http://[broken", [PAGE], "bad_url"),
    ],
    ids=["to itself", "loop", "too many", "not a URL"],
)
def test_a_redirect_that_leads_nowhere_is_an_error(
    location: str, visited: list[str], reason: str
) -> None:
    with pytest.raises(FetchError) as caught:
        next_url(URL(PAGE), location, visited=visited, max_redirects=5)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("statuses", "permanent"),
    [((), False), ((301,), True), ((308, 301), True), ((301, 302), False), ((307,), False)],
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
        (" 120 ", 120),
        ("0", 0),
        ("000000000000000000120", 120),
        ("9" * 5_000, MAX_WAIT_SECONDS),
        ("86401", MAX_WAIT_SECONDS),
        ("120, 60", 120),
        ("soon, 60", 60),
        ("Mon, 03 Nov 2025 12:05:00 GMT", 300),
        ("Mon, 03 Nov 2025 12:05:00 -0000", 300),
        ("Mon, 03 Nov 2025 13:05:00 +0100", 300),
        ("Mon, 03 Nov 2025 12:05:00 GMT, Mon, 03 Nov 2025 12:05:00 GMT", 300),
        ("Mon, 03 Nov 2025 11:00:00 GMT", 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", MAX_WAIT_SECONDS),
        ("Mon, 01 Jan 0001 00:00:00 +2359", 0),
        ("Mon, 03 Nov 2025 12:00:00 +999999", None),
        ("Mon, 03 Nov 2025 12:00:00 +99999999999999", None),
        ("Mon, 03 Nov 99999999999 12:00:00 GMT", None),
        ("Mon, 99999999999999999999 Nov 2025 12:00:00 GMT", None),
        ("Mon, 03 Nov 2025 12:00:00 GMT" + " " * 60_000 + "x", None),
        ("", None),
        (" ", None),
        (",,,", None),
        ("-5", None),
        ("1.5", None),
        ("1e9", None),
        ("²", None),
        ("٣٠", None),
        ("\udcff", None),
        ("soon", None),
        ("\x00", None),
    ],
)
def test_retry_after_gives_a_bounded_wait_or_none(value: str, seconds: int | None) -> None:
    assert parse_retry_after(value, now=NOW) == seconds


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("max-age=600", 600),
        ("public, max-age=600", 600),
        ('MAX-AGE = "600"', 600),
        ("s-maxage=60, max-age=600", 60),
        ("max-age=0", 0),
        ("max-age=" + "0" * 100 + "7", 7),
        ("max-age=" + "9" * 5_000, MAX_WAIT_SECONDS),
        ("x-max-age=600", None),
        ("max-age=-5", None),
        ("max-age=²", None),
        ("max-age=", None),
        ("max-age" + " " * 60_000, None),
        ("no-store", None),
        ("", None),
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


SENDABLE = ['"abc"', 'W/"0815"', "Mon, 03 Nov 2025 12:00:00 GMT", '"é"', "a\tb", '"' + "x" * 900]
NOT_SENDABLE = ['"\udcff"', '"a\x01b"', "\x00", "a\r\nX: y", "a\nb", "a\rb", "\x7f", "x" * 1_001]


@pytest.mark.parametrize("value", SENDABLE)
def test_a_validator_that_can_be_sent_back_is_kept(value: str) -> None:
    assert validator({"etag": value}, "etag") == value
    assert conditional_headers(etag=value, last_modified="") == {"If-None-Match": value}
    assert conditional_headers(etag="", last_modified=value) == {"If-Modified-Since": value}


@pytest.mark.parametrize("value", NOT_SENDABLE)
def test_a_validator_that_cannot_be_sent_back_is_neither_kept_nor_sent(value: str) -> None:
    assert validator({"etag": value}, "etag") == ""
    assert conditional_headers(etag=value, last_modified=value) == {}
