"""Sketches: similar texts share keys and meet, and their Jaccard is that of the texts."""

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from news_platform.datasets.near_duplicates import CLUSTER_BANDS
from news_platform.near_duplicates.candidates import (
    MAX_CHARS,
    SKETCH_VERSION,
    Sketch,
    find_candidates,
    jaccard_of,
    sketch_of,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform.text.normalize import jaccard, shingles
from news_platform_tests.near_duplicates.stories import story, variant


def sketched(text: str) -> Sketch:
    sketch = sketch_of(text)
    assert sketch is not None
    return sketch


def shared_keys(left: str, right: str) -> int:
    return len(set(sketched(left).band_keys) & set(sketched(right).band_keys))


def test_a_sketch_has_one_key_a_band_and_fits_a_sql_integer() -> None:
    keys = sketched(story(1)).band_keys
    assert len(keys) == len(set(keys)) == 32
    assert all(-(2**63) <= key < 2**63 for key in keys)


def test_the_same_words_give_the_same_sketch_whatever_their_form() -> None:
    first, second = sketched(story(1)), sketched(story(1).upper().replace(" ", " ,\n"))
    assert first.band_keys == second.band_keys
    assert first.text_key == second.text_key


def test_a_sketch_never_changes_since_stored_ones_must_be_met_again() -> None:
    sketch = sketched(story(1))
    assert (sketch.text_key, sketch.band_keys[0]) == ("f5d95c35e266efbb", 6944448641716512016)
    assert SKETCH_VERSION == "2-3-32-4-20-200000"


def test_alike_texts_share_many_keys_and_others_none() -> None:
    assert shared_keys(story(1), variant(1, changed=5)) >= 8
    assert shared_keys(story(1), story(2)) == 0


@pytest.mark.parametrize("text", ["", "too short to be judged", "again and again " * 100])
def test_a_text_of_few_different_words_has_no_sketch(text: str) -> None:
    assert sketch_of(text) is None


def test_only_the_beginning_of_an_endless_text_is_read() -> None:
    long = (story(1) + "\n") * (MAX_CHARS // len(story(1)) + 1)
    assert sketched(long[:MAX_CHARS]).text_key == sketched(f"{long} {story(2)}").text_key


@given(st.integers(0, 60), st.integers(0, 3))
def test_the_verified_jaccard_is_the_plain_one(changed: int, seed: int) -> None:
    left, right = story(seed), variant(seed, changed=changed)
    plain = jaccard(shingles(left, 3), shingles(right, 3))
    verified = jaccard_of(sketched(left).shingle_hashes, sketched(right).shingle_hashes)
    assert verified == pytest.approx(plain, abs=0.001)


DAYS = ("2025-11-01", "2025-11-02")


def store_bands(store: ObjectStore, day: str, keys: list[list[int]]) -> None:
    rows = {"place": range(len(keys)), "bands": keys, "is_new": [True] * len(keys)}
    frame = pl.DataFrame(rows, schema=dict(CLUSTER_BANDS.schema))
    write_table(store, CLUSTER_BANDS.place.path(date=day), frame, CLUSTER_BANDS)


def found(store: ObjectStore, scratch: Path, *days: list[list[int]]) -> list[tuple[int, str, int]]:
    for day, keys in zip(DAYS, days, strict=False):
        store_bands(store, day, keys)
    return find_candidates(store, DAYS[: len(days)], scratch)


@pytest.mark.parametrize(
    ("days", "met"),
    [
        ([[[1, 2, 8], [3, 2, 8], [1, 9, 8]]], [(1, DAYS[0], 0), (2, DAYS[0], 0)]),
        ([[[5, 6], [1, 2, 8]], [[1, 9, 8], [7, 4]]], [(0, DAYS[0], 1)]),
        ([[[1, 2], [1, 2]], [[9]]], []),
        ([[[1, 2, 3], [1, 2, 4], [1, 5, 9]]], [(1, DAYS[0], 0)]),
    ],
    ids=["of a day, once", "of an earlier day", "not again", "one key is chance"],
)
def test_texts_that_share_keys_meet(
    local_store: ObjectStore,
    tmp_path: Path,
    days: list[list[list[int]]],
    met: list[tuple[int, str, int]],
) -> None:
    assert found(local_store, tmp_path, *days) == met


def test_a_crowd_is_held_together_without_comparing_everybody(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    crowd = found(local_store, tmp_path, [[7, 8]] * 300)
    assert len(crowd) <= 20 * 300
    assert {(number + 1, DAYS[0], number) for number in range(299)} <= set(crowd)
