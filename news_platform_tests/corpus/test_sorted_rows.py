"""Sorting more rows than fit into memory."""

import random
from pathlib import Path

import polars as pl
import pytest

from news_platform.corpus.sorted_rows import KeyOrder, iter_runs, merge_runs

KEYS = ("domain", "url")


def frames(count: int, *, keys: int, seed: int = 1) -> list[pl.DataFrame]:
    chance = random.Random(seed)
    rows = [
        (f"d{chance.randrange(30):02}", f"u{chance.randrange(keys)}", number)
        for number in range(count)
    ]
    schema = ["domain", "url", "number"]
    return [
        pl.DataFrame(rows[at : at + 500], schema=schema, orient="row")
        for at in range(0, count, 500)
    ]


@pytest.mark.parametrize("keys", [9_000, 3], ids=["many keys", "few keys"])
def test_runs_are_merged_in_the_order_of_keys_and_arrival(tmp_path: Path, keys: int) -> None:
    given = frames(20_000, keys=keys)
    runs = list(iter_runs(given, tmp_path, keys=KEYS, run_bytes=100_000))
    assert len(runs) > 2
    merged = list(merge_runs(runs, keys=KEYS))
    assert len(merged) > 2
    expected = pl.concat(given).sort(KEYS, maintain_order=True)
    assert pl.concat(merged).equals(expected)
    # No key is split between two frames.
    each = [set(frame.select(KEYS).rows()) for frame in merged]
    assert sum(map(len, each)) == len(set().union(*each))


def test_one_key_may_fill_several_batches(tmp_path: Path) -> None:
    same = pl.DataFrame({"domain": ["a"] * 5_000, "url": ["u"] * 5_000, "number": range(5_000)})
    runs = list(iter_runs([same, same], tmp_path, keys=KEYS, run_bytes=1))
    (merged,) = merge_runs(runs, keys=KEYS)
    assert merged.height == 10_000


@pytest.mark.parametrize(
    ("rows", "holds"),
    [
        ([[("a", "1"), ("a", "2")], [], [("a", "2"), ("b", "1")]], True),
        ([[("a", "2"), ("a", "1")]], False),
        ([[("a", "1"), ("b", "1")], [("a", "2")]], False),
        ([[(None, "1"), ("a", "é")], [("a", "é"), ("a", "中")]], True),
    ],
    ids=[
        "in order",
        "not within a frame",
        "not between frames",
        "null and Unicode",
    ],
)
def test_the_order_of_frames_is_found_out(rows: list[list[tuple[str, str]]], holds: bool) -> None:
    order = KeyOrder(KEYS)
    for one in rows:
        order.add(pl.DataFrame(one, schema=dict.fromkeys(KEYS, pl.String()), orient="row"))
    assert order.holds == holds
