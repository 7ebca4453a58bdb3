"""What a merge and the next index start from."""

from dataclasses import replace
from datetime import date

import polars as pl
import pytest

from news_platform.datasets.domain_store import RANGES
from news_platform.domain_store.building.merge import (
    byte_ranges,
    iter_segment_sources,
    iter_staged_sources,
    read_entries,
    read_kept_ranges,
)
from news_platform.domain_store.layout import bucket_of
from news_platform.domain_store.manifest import Manifest, read_current
from news_platform.domain_store.staging.stage import read_staged
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform_tests.domain_store.pages import SMALL, build, stage

BUCKET = bucket_of("a.org", SMALL.buckets)
DAYS = {f"2025-11-0{day}": ["org.a", "org.a"] for day in (1, 2, 3)}


@pytest.fixture
def manifest(root: ObjectStore) -> Manifest:
    """Return the manifest of a bucket whose three days came in two builds."""
    stage(root, dict(list(DAYS.items())[:2]))
    build(root)
    stage(root, DAYS)
    build(root)
    found = read_current(root, BUCKET).manifest
    assert found is not None
    assert len(found.segments) == 2
    return found


def test_a_staged_batch_is_one_source_a_file(root: ObjectStore) -> None:
    options = replace(SMALL, records_per_file=2)
    stage(root, {"2025-11-01": ["org.a"] * 5}, options=options)
    staged = read_staged(root, SMALL.buckets)
    sources = list(
        iter_staged_sources(
            root,
            BUCKET,
            batch="2025-11-01",
            name=staged.name("2025-11-01", BUCKET),
            files=staged.files("2025-11-01", BUCKET),
        )
    )
    assert [source.entries["records"].to_list() for source in sources] == [[2], [2], [1]]
    assert [source.records.height for source in sources] == [2, 2, 1]
    for source in sources:
        assert root.head(source.path).size_bytes == source.size_bytes
        assert source.entries["first_seen"].to_list() == [date(2025, 11, 1)]


def test_a_segment_gives_its_live_batches_only(root: ObjectStore, manifest: Manifest) -> None:
    segment = next(part for part in manifest.segments if len(part.batches) == 2)
    reduced = replace(segment, dropped=("2025-11-01",))
    (source,) = iter_segment_sources(root, reduced)
    assert source.entries["batch"].to_list() == ["2025-11-02"]
    assert set(source.records["batch"]) == {"2025-11-02"}


def test_ranges_of_kept_segments_come_from_the_generation_before(
    root: ObjectStore, manifest: Manifest
) -> None:
    before = read_table(root, manifest.index.ranges_path, RANGES)
    (kept,) = read_kept_ranges(root, manifest, manifest.segments)
    assert kept.equals(before)
    (half,) = read_kept_ranges(root, manifest, manifest.segments[:1])
    assert set(half["segment"]) == {manifest.segments[0].name}


def test_ranges_are_computed_again_where_a_batch_was_dropped(
    root: ObjectStore, manifest: Manifest
) -> None:
    first, second = manifest.segments
    reduced = replace(first, dropped=("2025-11-01",))
    kept = pl.concat(read_kept_ranges(root, manifest, [reduced, second]))
    assert kept["records"].sum() == 4
    expected = byte_ranges(reduced, read_entries(root, first))
    assert kept.filter(segment=first.name).equals(expected)


def test_a_segment_whose_description_is_gone_is_named(
    root: ObjectStore, manifest: Manifest
) -> None:
    root.delete([info.path for info in root.list(f"domain_store/entries/{BUCKET}")])
    with pytest.raises(StorageError, match="domain_store/entries"):
        list(iter_segment_sources(root, manifest.segments[0]))
