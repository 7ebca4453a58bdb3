"""Paths, batch names and bucket ranges."""

import pytest

from news_platform.domain_store.layout import (
    data_path,
    data_path_of,
    facts_path,
    range_buckets,
    range_keys,
    staged_path,
    validated_batch,
    view_path,
)
from news_platform.errors import InputError


def test_paths_have_the_form_of_the_source_design() -> None:
    staged = staged_path(7, "CC-MAIN-2013-20", name="67fa76d24112", number=1)
    assert staged == "domain_buckets/7/CC-MAIN-2013-20/1/part-67fa76d24112-000002.jsonl.gz"
    assert facts_path(staged).endswith("/1/part-67fa76d24112-000002.parquet")
    assert data_path(7, "67fa76d24112", number=0) == (
        "domain_store/data/7/0/part-67fa76d24112-000001.jsonl.gz"
    )
    assert view_path(7) == "domain_store/metadata/0007.jsonl"


@pytest.mark.parametrize(
    "filepath",
    [
        "s3://bucket/root/domain_store/data/7/0/part-a-000001.jsonl.gz",
        "/home/domain_store/data/x/domain_store/data/7/0/part-a-000001.jsonl.gz",
        "domain_store/data/7/0/part-a-000001.jsonl.gz",
    ],
)
def test_a_filepath_is_resolved_against_the_readers_root(filepath: str) -> None:
    assert data_path_of(filepath) == "domain_store/data/7/0/part-a-000001.jsonl.gz"


def test_a_filepath_of_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="is not a data file"):
        data_path_of("s3://bucket/elsewhere/part.gz")


@pytest.mark.parametrize(
    "batch",
    ["", ".hidden", "a/b", "..", "a@b", "a*", "a|b", "x#1", " ", "a ", "a\nb", "x" * 201, "é" * 34],
)
def test_a_batch_that_cannot_name_a_folder_is_refused(batch: str) -> None:
    with pytest.raises(InputError, match="invalid batch name"):
        validated_batch(batch)


@pytest.mark.parametrize(
    "batch", ["2025-11-01", "CC-MAIN-2013-20", "my_crawl.1", "a b", "été", "x" * 200]
)
def test_a_day_or_a_crawl_names_a_batch(batch: str) -> None:
    assert validated_batch(batch) == batch


def test_ranges_cover_every_bucket_once() -> None:
    keys = range_keys(1000)
    assert len(keys) == 63
    assert keys[0] == "0000-0015"
    covered = [bucket for key in keys for bucket in range_buckets(key, 1000)]
    assert covered == list(range(1000))


@pytest.mark.parametrize("key", ["0064-0079", "x", "all"])
def test_a_range_outside_the_store_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="invalid bucket range"):
        range_buckets(key, 64)
