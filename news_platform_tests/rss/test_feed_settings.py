"""The settings of a feed: what they accept, and which secrets they may send where."""

import pytest
from pydantic import ValidationError

from news_platform.errors import ConfigError, InputError
from news_platform.rss.feed_settings import (
    FeedSettings,
    feed_secrets,
    page_headers,
    parse_settings,
    private_headers,
    settings_text,
)

FEED = "https://paid.example/feed"


def test_the_settings_of_a_feed_are_kept_as_json() -> None:
    own = FeedSettings(interval_seconds=600, headers={"X-Key": "1"}, feed_text_is_enough=True)
    assert parse_settings(settings_text(own)) == own
    assert settings_text(FeedSettings()) == ""
    assert parse_settings("") == FeedSettings()


@pytest.mark.parametrize("text", ["no", "[]", '{"unknown": 1}', '{"interval_seconds": -1}'])
def test_settings_that_a_person_damaged_are_told(text: str) -> None:
    with pytest.raises(InputError, match="invalid settings of a feed"):
        parse_settings(text)


@pytest.mark.parametrize(
    "wrong",
    [
        {"token": "AWS_SECRET_ACCESS_KEY"},
        {"headers": {"Host": "other.example"}},
        {"headers": {"X-Key": "a\r\nX-Other: b"}},
        {"headers": {"authorization": "Bearer abc"}},
        {"user_agent": "a\nb"},
    ],
)
def test_settings_that_could_do_harm_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        FeedSettings.model_validate(wrong)


def test_a_login_comes_from_the_named_variable() -> None:
    secrets = feed_secrets({"FEED_SECRET_A": "ann:pass word", "HOME": "/root"})
    assert secrets == {"FEED_SECRET_A": "ann:pass word"}
    headers = private_headers(FeedSettings(basic_auth="FEED_SECRET_A"), secrets)
    assert headers == {"Authorization": "Basic YW5uOnBhc3Mgd29yZA=="}
    with pytest.raises(ConfigError, match="FEED_SECRET_B is not set"):
        private_headers(FeedSettings(token="FEED_SECRET_B"), secrets)


@pytest.mark.parametrize(
    ("url", "is_sent"),
    [
        ("https://paid.example/article", True),
        ("https://other.example/article", False),
        ("https://www.paid.example/article", False),
        ("http://paid.example/article", False),
    ],
)
def test_a_login_is_sent_to_pages_of_the_same_host_only(url: str, is_sent: bool) -> None:
    own = FeedSettings(token="FEED_SECRET_A")
    sent = page_headers(own, {"FEED_SECRET_A": "abc"}, feed_url=FEED, url=url)
    assert bool(sent) is is_sent
