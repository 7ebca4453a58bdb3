"""Retry-After and Cache-Control: every value a server can send gives None or a bounded wait."""

from datetime import UTC, datetime

import pytest

from news_platform.web.retry_after import (
    MAX_WAIT_SECONDS,
    parse_max_age,
    parse_retry_after,
    requested_wait_seconds,
)

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
# Headers that once ended the poll of every feed; used through the poller and the worker as well.
HOSTILE_HEADERS = [
    pytest.param({"retry-after": "²"}, id="superscript digit"),
    pytest.param({"retry-after": "9" * 5_000}, id="5,000 digits"),
    pytest.param({"retry-after": "Mon, 03 Nov 2025 12:00:00 +99999999999999"}, id="huge offset"),
    pytest.param({"retry-after": "Mon, 03 Nov 99999999999 12:00:00 GMT"}, id="huge year"),
    pytest.param({"retry-after": "Mon, " + "9" * 5_000 + " Nov 2025 12:00:00"}, id="huge day"),
    pytest.param({"retry-after": "-1"}, id="negative"),
    pytest.param({"retry-after": "\udcff\udcb2"}, id="bytes that are not UTF-8"),
    pytest.param({"cache-control": "max-age=" + "9" * 5_000}, id="max-age of 5,000 digits"),
    pytest.param({"cache-control": "max-age=²"}, id="max-age of a superscript digit"),
]


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


@pytest.mark.parametrize("headers", HOSTILE_HEADERS)
def test_no_header_asks_for_more_than_the_longest_wait(headers: dict[str, str]) -> None:
    assert requested_wait_seconds(headers, now=NOW) in (0, MAX_WAIT_SECONDS)


def test_the_longer_of_the_two_headers_counts() -> None:
    both = {"cache-control": "max-age=60", "retry-after": "90"}
    assert requested_wait_seconds(both, now=NOW) == 90
    assert requested_wait_seconds({**both, "retry-after": "30"}, now=NOW) == 60
    assert requested_wait_seconds({}, now=NOW) == 0
