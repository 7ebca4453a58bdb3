"""Parquet files to frames, and which files there are."""

from pathlib import Path

import polars as pl
import pytest

from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.domain_store.staging.rows import (
    day_input,
    iter_rows,
    matching_input,
)
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.errors import InputError
from news_platform.storage.commit.collected import REMOVED
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform_tests.domain_store.pages import SMALL, collect, news_rows, stage


def test_columns_of_the_path_are_added_as_strings(root: ObjectStore) -> None:
    collect(root, {"2025-11-01": ["org.a", "org.b", "org.c", "org.d"]})
    rows = day_input(root, "2025-11-01")
    assert rows is not None
    found = pl.concat(iter_rows(rows.store, rows.paths)).sort("uri")
    assert found.equals(news_rows(["org.a", "org.b", "org.c", "org.d"]).sort("uri"))


def test_rows_come_in_frames_of_bounded_size(root: ObjectStore, tmp_path: Path) -> None:
    news_rows(["org.a"] * 40, trees=[f"{n:>10000}" for n in range(40)]).write_parquet(
        tmp_path / "rows.parquet", row_group_size=16, compression="uncompressed"
    )
    store = open_store(str(tmp_path))
    frames = list(iter_rows(store, ["rows.parquet"], frame_bytes=50_000))
    assert max(frame.height for frame in frames) <= 6
    assert [int(tree) for frame in frames for tree in frame["tree"]] == list(range(40))


def test_pages_that_a_file_holds_once_for_many_rows_come_in_small_frames(
    root: ObjectStore, tmp_path: Path
) -> None:
    path = tmp_path / "rows.parquet"
    rows = news_rows(["org.a"] * 500, trees=["the same page"] * 500)
    rows.write_parquet(path)
    root.put("rows.parquet", path.read_bytes())
    frames = list(iter_rows(root, ["rows.parquet"]))
    assert max(frame.height for frame in frames) <= 64
    assert pl.concat(frames).equals(rows)


def test_a_file_that_is_no_parquet_is_named(root: ObjectStore) -> None:
    root.put("rows.parquet", b"PAR1 is not enough")
    with pytest.raises(InputError, match=r"rows\.parquet"):
        list(iter_rows(root, ["rows.parquet"]))


@pytest.mark.parametrize(
    "wrong",
    [
        pl.lit("abc").alias("confs"),
        pl.struct("uri", "host").alias("langs"),
        pl.lit(b"\xff\xfe").alias("tree"),
    ],
    ids=["text for numbers", "struct for a list", "bytes that are no text"],
)
def test_columns_of_another_type_are_told_with_their_file(
    root: ObjectStore, tmp_path: Path, wrong: pl.Expr
) -> None:
    path = tmp_path / "rows.parquet"
    news_rows(["org.a"]).with_columns(wrong).write_parquet(path)
    root.put("rows.parquet", path.read_bytes())
    with pytest.raises(InputError, match=r"rows\.parquet"):
        list(iter_rows(root, ["rows.parquet"]))


def test_a_damaged_page_is_told_with_its_file(root: ObjectStore, tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    news_rows(["org.a"] * 50).write_parquet(path)
    body = bytearray(path.read_bytes())
    body[60:500] = bytes(byte ^ 0x5A for byte in body[60:500])
    root.put("rows.parquet", bytes(body))
    with pytest.raises(InputError, match=r"cannot read .*rows\.parquet"):
        list(iter_rows(root, ["rows.parquet"]))


def test_a_day_counts_once_a_warc_of_it_is_collected(root: ObjectStore) -> None:
    assert wanted_inputs(root, DOMAIN_BUCKETS) == {}
    collect(root, {"2025-11-01": ["org.a"]})
    assert list(wanted_inputs(root, DOMAIN_BUCKETS)) == ["2025-11-01"]
    assert day_input(root, "2025-11-02") is None


def test_a_staged_day_without_input_is_wanted_as_removed(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": ["org.a"]})
    rows = news_rows(["org.a"], day="2013-05-20")
    stage_batch([rows], store=root, batch="CC-MAIN-2013-20", inputs="x", options=SMALL)
    assert wanted_inputs(root, DOMAIN_BUCKETS) == {"2025-11-01": REMOVED}
    assert list(built_inputs(root, DOMAIN_BUCKETS)) == ["2025-11-01"]


@pytest.mark.parametrize(
    ("pattern", "names"),
    [
        ("*.parquet", ["a.parquet", "b.parquet"]),
        ("**/*.parquet", ["a.parquet", "b.parquet", "deep/er/c.parquet"]),
        ("a.parquet", ["a.parquet"]),
    ],
)
def test_a_pattern_names_files(tmp_path: Path, pattern: str, names: list[str]) -> None:
    store = open_store(str(tmp_path))
    for name in ("a.parquet", "b.parquet", "deep/er/c.parquet", "other.txt"):
        store.put(name, b"x")
    found = matching_input(f"{tmp_path}/{pattern}", options=StoreOptions())
    uris = [found.store.uri(path) for path in found.paths]
    assert uris == [f"{tmp_path}/{name}" for name in names]
