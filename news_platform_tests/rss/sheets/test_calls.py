"""The rate limit of calls, and the waits after failures."""

from news_platform.rss.sheets.google import RateLimit, backoff_seconds


def test_calls_within_the_allowance_go_at_once() -> None:
    limit = RateLimit(calls=2, window_seconds=60)
    limit.note(0.0)
    assert limit.wait_seconds(1.0) == 0


def test_one_call_too_many_waits_until_the_oldest_is_a_window_old() -> None:
    limit = RateLimit(calls=2, window_seconds=60)
    limit.note(0.0)
    limit.note(10.0)
    assert limit.wait_seconds(20.0) == 40
    assert limit.wait_seconds(60.0) == 0


def test_waits_double_up_to_about_a_minute() -> None:
    assert [backoff_seconds(tries) for tries in (1, 2, 3, 7, 20)] == [1, 2, 4, 64, 64]
