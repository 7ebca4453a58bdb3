"""The draws are the ground under "same bytes everywhere"."""

from collections import Counter

import pytest

from news_platform.sample.story import Chance


def test_a_stream_gives_the_same_values_on_every_machine() -> None:
    chance = Chance(7, "outlet", 3)
    assert [chance.number(0, 999) for _ in range(6)] == [281, 274, 641, 420, 821, 963]


def test_names_are_kept_apart() -> None:
    assert Chance("ab", "c").octets(8) != Chance("a", "bc").octets(8)


@pytest.mark.parametrize(("low", "high"), [(0, 0), (3, 7), (-2, 2)])
def test_numbers_stay_within_both_ends_and_reach_them(low: int, high: int) -> None:
    chance = Chance("range", low, high)
    seen = {chance.number(low, high) for _ in range(200)}
    assert seen == set(range(low, high + 1))


def test_a_sample_holds_different_items_and_all_of_them_when_too_many_are_asked() -> None:
    drawn = Chance("sample").sample("abcdef", 4)
    assert len(set(drawn)) == 4
    assert sorted(Chance("sample").sample("abc", 9)) == ["a", "b", "c"]


def test_drawing_in_order_keeps_the_given_order() -> None:
    for name in range(20):
        drawn = Chance("order", name).in_order(range(30), 12)
        assert drawn == sorted(drawn)
        assert len(drawn) == 12


def test_percent_is_what_it_says() -> None:
    chance = Chance("percent")
    counted = Counter(chance.happens(25) for _ in range(4000))
    assert 900 < counted[True] < 1100
    assert not any(Chance("never", n).happens(0) for n in range(50))
