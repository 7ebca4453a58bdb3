"""Domains and their buckets."""

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from news_platform.domain_store.layout import (
    bucket_column,
    bucket_of,
    validated_bucket_count,
)
from news_platform.domain_store.staging.rows import natural_domain
from news_platform.errors import InputError


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
        ("fyi.levels", "levels.fyi"),
        ("xn--p1ai.xn--e1afmkfd", "xn--e1afmkfd.xn--p1ai"),
        ("1.0.0.127", "127.0.0.1"),
        ("localhost", "localhost"),
        ("", ""),
        (None, ""),
    ],
)
def test_a_reversed_host_is_turned_to_natural_order(host: str | None, domain: str) -> None:
    frame = pl.DataFrame({"host": [host]}, schema={"host": pl.String})
    assert frame.select(natural_domain(pl.col("host"))).item() == domain


@pytest.mark.parametrize("buckets", [0, -1, 10_001])
def test_an_impossible_number_of_buckets_is_refused(buckets: int) -> None:
    with pytest.raises(InputError, match=f"invalid number of buckets {buckets}"):
        validated_bucket_count(buckets)
