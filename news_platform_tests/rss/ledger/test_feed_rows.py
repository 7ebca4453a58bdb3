"""The notes of a feed, which a person and the platform share."""

import pytest

from news_platform.rss.ledger.feed_rows import remark_of, with_remark


@pytest.mark.parametrize(
    ("notes", "remark", "told"),
    [
        pytest.param("", "stale", "[stale]", id="ours alone"),
        pytest.param("ask Ann", "stale", "ask Ann [stale]", id="beside a person's"),
        pytest.param("ask Ann [stale]", "410 Gone", "ask Ann [410 Gone]", id="in place of ours"),
        pytest.param("ask Ann [stale]", "", "ask Ann", id="taken away"),
        pytest.param("see [1] of the list", "stale", "see [1] of the list [stale]", id="brackets"),
        pytest.param("", "dns: [Errno 3]", "[dns: (Errno 3)]", id="brackets of ours"),
    ],
)
def test_our_remark_is_at_the_end_and_hides_nothing(notes: str, remark: str, told: str) -> None:
    assert with_remark(notes, remark) == told
    assert with_remark(told, "") == with_remark(notes, "")


def test_a_remark_is_read_back() -> None:
    assert [remark_of(text) for text in ("ask Ann [stale]", "ask Ann", "")] == ["stale", "", ""]
