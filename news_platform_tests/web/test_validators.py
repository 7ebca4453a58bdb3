"""Validators: what is kept of a response and sent with the next request."""

import pytest

from news_platform.web.validators import conditional_headers, validator

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


def test_without_validators_the_request_has_no_condition() -> None:
    assert validator({}, "etag") == ""
    assert conditional_headers(etag="", last_modified="") == {}
