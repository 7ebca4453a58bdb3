"""Candidate pairs of a batch from its band keys."""

import numpy as np

from news_platform.near_duplicates.batch import candidate_pairs


def pairs(rows: list[list[int]], *, min_shared: int = 1) -> list[tuple[int, int]]:
    return list(candidate_pairs(np.array(rows, dtype=np.int64), min_shared=min_shared))


def test_rows_that_share_a_key_in_the_same_band_meet() -> None:
    assert pairs([[1, 2], [3, 2], [1, 9]]) == [(0, 1), (0, 2)]


def test_the_same_number_in_another_band_is_no_meeting() -> None:
    assert pairs([[1, 2], [2, 1]]) == []


def test_as_many_shared_keys_as_asked_for_are_needed() -> None:
    assert pairs([[1, 2, 3], [1, 2, 4], [1, 5, 3]], min_shared=2) == [(0, 1), (0, 2)]


def test_one_row_and_no_row_meet_nobody() -> None:
    assert pairs([[1, 2]]) == []
    assert list(candidate_pairs(np.empty((0, 2), dtype=np.int64), min_shared=1)) == []


def test_a_crowd_is_held_together_without_comparing_everybody() -> None:
    crowd = pairs([[7]] * 1000)
    assert len(crowd) <= 20 * 1000
    assert {(number, number + 1) for number in range(999)} <= set(crowd)
