"""Candidates of a day from the band keys of its window."""

from pathlib import Path

import polars as pl

from news_platform.datasets.near_duplicates import CLUSTER_BANDS, bands_path
from news_platform.near_duplicates.candidates import SketchOptions, find_candidates
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table

DAYS = ("2025-11-01", "2025-11-02")


def store_bands(store: ObjectStore, day: str, keys: list[list[int]], *, is_new: bool) -> None:
    rows = {"place": range(len(keys)), "bands": keys, "is_new": [is_new] * len(keys)}
    frame = pl.DataFrame(rows, schema=dict(CLUSTER_BANDS.schema))
    write_table(store, bands_path(day), frame, CLUSTER_BANDS)


def found(
    store: ObjectStore, scratch: Path, *days: list[list[int]], shared: int = 1
) -> list[tuple[int, str, int]]:
    for day, keys in zip(DAYS, days, strict=False):
        store_bands(store, day, keys, is_new=True)
    options = SketchOptions(min_shared_bands=shared)
    return find_candidates(store, DAYS[: len(days)], options, scratch)


def test_texts_of_a_day_that_share_a_key_meet_once(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    keys = [[1, 2], [3, 2], [1, 9]]
    assert found(local_store, tmp_path, keys) == [(1, DAYS[0], 0), (2, DAYS[0], 0)]


def test_a_text_meets_those_of_earlier_days(local_store: ObjectStore, tmp_path: Path) -> None:
    met = found(local_store, tmp_path, [[5, 6], [1, 2]], [[1, 9], [7, 8]])
    assert met == [(0, DAYS[0], 1)]


def test_texts_of_earlier_days_do_not_meet_again(local_store: ObjectStore, tmp_path: Path) -> None:
    assert found(local_store, tmp_path, [[1], [1]], [[9]]) == []


def test_as_many_shared_keys_as_asked_for_are_needed(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    keys = [[1, 2, 3], [1, 2, 4], [1, 5, 3]]
    assert found(local_store, tmp_path, keys, shared=2) == [(1, DAYS[0], 0), (2, DAYS[0], 0)]


def test_a_crowd_is_held_together_without_comparing_everybody(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    crowd = found(local_store, tmp_path, [[7]] * 300)
    assert len(crowd) <= 20 * 300
    assert {(number + 1, DAYS[0], number) for number in range(299)} <= set(crowd)
