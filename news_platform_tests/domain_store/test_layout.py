"""Paths, batch names, domains and their buckets, and ranges of buckets."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.domain_store.layout import (
    bucket_column,
    bucket_of,
    data_path_of,
    range_buckets,
    range_keys,
    validated_batch,
    validated_bucket_count,
)
from news_platform.domain_store.staging.rows import natural_domain
from news_platform.errors import InputError


@pytest.mark.parametrize(
    "filepath",
    [
        "s3://bucket/root/domain_store/data/7/0/part-a-000001.jsonl.gz",
        "/home/domain_store/data/x/domain_store/data/7/0/part-a-000001.jsonl.gz",
    ],
)
def test_a_filepath_is_resolved_against_the_readers_root(filepath: str) -> None:
    assert data_path_of(filepath) == "domain_store/data/7/0/part-a-000001.jsonl.gz"


def test_a_filepath_of_something_else_is_refused() -> None:
    with pytest.raises(InputError, match="is not a data file"):
        data_path_of("s3://bucket/elsewhere/part.gz")


@pytest.mark.parametrize("batch", ["", "..", "a/b", "a@b", "x" * 201])
def test_a_batch_that_cannot_name_a_folder_is_refused(batch: str) -> None:
    with pytest.raises(InputError, match="invalid batch name"):
        validated_batch(batch)


@pytest.mark.parametrize("batch", ["CC-MAIN-2013-20", "a b", "été", "x" * 200])
def test_a_day_or_a_crawl_names_a_batch(batch: str) -> None:
    assert validated_batch(batch) == batch


def test_ranges_cover_every_bucket_once() -> None:
    keys = range_keys(1000)
    assert len(keys) == 63
    assert keys[0] == "0000-0015"
    covered = [bucket for key in keys for bucket in range_buckets(key, 1000)]
    assert covered == list(range(1000))


@pytest.mark.parametrize("key", ["0064-0079", "all"])
def test_a_range_outside_the_store_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="invalid bucket range"):
        range_buckets(key, 64)


def test_the_vector_of_the_source_design_holds() -> None:
    assert bucket_of("01-news.ru", 2**64) == 912053679618261696
    assert bucket_of("01-news.ru", 10_000) == 1696


@settings(deadline=None, max_examples=25)
@given(st.lists(st.text(), min_size=1, max_size=20), st.integers(1, 10_000))
def test_a_column_is_hashed_bit_for_bit_like_one_domain(domains: list[str], buckets: int) -> None:
    frame = pl.DataFrame({"domain": domains}, schema={"domain": pl.String})
    found = frame.select(bucket_column("domain", buckets)).to_series().to_list()
    assert found == [bucket_of(domain, buckets) for domain in domains]


@pytest.mark.parametrize(
    ("host", "domain"),
    [
        ("uk.co.bbc", "bbc.co.uk"),
        ("xn--p1ai.xn--e1afmkfd", "xn--e1afmkfd.xn--p1ai"),
        ("1.0.0.127", "127.0.0.1"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_reversed_host_is_turned_to_natural_order(host: str | None, domain: str) -> None:
    frame = pl.DataFrame({"host": [host]}, schema={"host": pl.String})
    assert frame.select(natural_domain(pl.col("host"))).item() == domain


@pytest.mark.parametrize("buckets", [0, 10_001])
def test_an_impossible_number_of_buckets_is_refused(buckets: int) -> None:
    with pytest.raises(InputError, match=f"invalid number of buckets {buckets}"):
        validated_bucket_count(buckets)
