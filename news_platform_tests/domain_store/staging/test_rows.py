"""Rows to JSON lines, sorted within a memory budget."""

import json
import random
from collections.abc import Sequence
from datetime import date
from pathlib import Path

import polars as pl
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.datasets.raw_news import RAW_NEWS_ORDER
from news_platform.domain_store.layout import bucket_of
from news_platform.domain_store.staging.rows import SortedRuns, cast_to_raw_news, encode_lines
from news_platform.errors import InputError
from news_platform_tests.domain_store.pages import news_rows


def test_a_line_is_the_whole_row_and_its_domain() -> None:
    rows = news_rows(["uk.co.bbc"])
    line = json.loads(encode_lines(rows, 10)["line"][0])
    assert line == {"domain": "bbc.co.uk", **rows.to_dicts()[0]}
    assert list(line) == ["domain", *RAW_NEWS_ORDER]


def test_the_facts_of_a_record_are_right() -> None:
    facts = encode_lines(news_rows(["uk.co.bbc"], trees=["<p>ж</p>"]), 10).to_dicts()[0]
    assert facts["url"] == "https://uk.co.bbc/2025-11-01/0"
    assert facts["day"] == date(2025, 11, 1)
    assert facts["language"] == "en"
    assert facts["length"] == len(facts["line"])
    assert facts["content_hash"] == xxhash.xxh64_intdigest("<p>ж</p>".encode())


def test_an_impossible_day_is_unknown_and_the_record_is_kept() -> None:
    rows = news_rows(["org.a"]).with_columns(day=pl.lit("99"))
    facts = encode_lines(rows, 10).to_dicts()[0]
    assert facts["day"] is None
    assert json.loads(facts["line"])["day"] == "99"


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_survives_on_one_line(text: str) -> None:
    line = encode_lines(news_rows(["org.a"], trees=[text]), 10)["line"][0]
    assert b"\n" not in line
    assert json.loads(line)["tree"] == text


def test_columns_come_in_their_types_and_order() -> None:
    rows = news_rows(["org.a"]).with_columns(year=pl.lit(2025), extra=pl.lit(1))
    fitted = cast_to_raw_news(rows.select(sorted(rows.columns)), "rows.parquet")
    assert fitted.columns == list(RAW_NEWS_ORDER)
    assert fitted["year"].to_list() == ["2025"]


def test_missing_columns_are_named() -> None:
    rows = news_rows(["org.a"]).drop("host", "text")
    with pytest.raises(InputError, match=r"'rows.parquet' has no columns text, host"):
        cast_to_raw_news(rows, "rows.parquet")


BUCKETS = 16


def _sorted(frames: Sequence[pl.DataFrame], memory_bytes: int) -> tuple[SortedRuns, list[bytes]]:
    runs = SortedRuns(memory_bytes)
    for frame in frames:
        runs.add(encode_lines(frame, BUCKETS))
    lines = [line for group in runs.domain_runs() for line in group.lines]
    runs.close()
    return runs, lines


def _frames(seed: int, count: int) -> list[pl.DataFrame]:
    rng = random.Random(seed)
    return [
        news_rows(
            [f"com.d{rng.randrange(30)}" for _ in range(rng.randrange(1, 40))],
            day=f"2025-11-{n + 1:02d}",
        )
        for n in range(count)
    ]


def test_spilled_runs_give_the_same_lines_as_a_sort_in_memory() -> None:
    frames = _frames(1, 20)
    in_memory, expected = _sorted(frames, 1 << 30)
    on_disk, found = _sorted(frames, 60_000)
    assert in_memory.spilled == 0
    assert on_disk.spilled > 3
    assert found == expected


def test_groups_come_by_bucket_and_domain_and_keep_the_order_of_rows() -> None:
    frames = _frames(7, 12)
    runs = SortedRuns(100_000)
    for frame in frames:
        runs.add(encode_lines(frame, BUCKETS))
    groups = list(runs.domain_runs())
    runs.close()
    keys = [(group.bucket, group.domain) for group in groups]
    assert keys == sorted(keys)
    assert all(group.bucket == bucket_of(group.domain, BUCKETS) for group in groups)
    found = [url for group in groups if group.domain == "d3.com" for url in group.facts[0]]
    rows = pl.concat(frames).filter(host="com.d3")
    assert found == rows["uri"].to_list()


def test_spilled_runs_leave_no_files_behind(tmp_path: Path) -> None:
    runs = SortedRuns(10_000, scratch=str(tmp_path))
    for frame in _frames(1, 5):
        runs.add(encode_lines(frame, BUCKETS))
    assert runs.spilled > 0
    assert list(tmp_path.iterdir()) == []
    runs.close()
