"""What a run will do and cost, and from what settings."""

from dataclasses import replace
from pathlib import Path

import pytest

from news_platform.ccnews.pipeline import outdated, plan_day, version_key
from news_platform.ccnews.pool import CollectOptions, estimate, require_free_space
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import read_collected, write_collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.crawl import DAY, warc_name, warc_path, write_listings
from news_platform_tests.collected import MARKER

WARC_MARKER = replace(MARKER, warc=warc_name(DAY, 1), rows=1, bytes=1)


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    write_listings(tmp_path / "crawl", [warc_path(DAY, number) for number in (1, 2, 3, 4)])
    return open_store(str(tmp_path / "crawl"))


def test_a_day_lacks_what_is_listed_and_has_no_marker(
    crawl: ObjectStore, local_store: ObjectStore
) -> None:
    write_collected(local_store, WARC_MARKER)
    plan = plan_day(DAY, crawl=crawl, root=local_store, options=CollectOptions())
    assert len(plan.listed) == 4
    assert [warc.name for warc in plan.missing] == [warc_name(DAY, number) for number in (2, 3, 4)]
    assert [warc.name for warc in plan.again] == [warc_name(DAY, 1)]  # of extractor version 1
    assert read_collected(local_store, [DAY]) == [WARC_MARKER]


@pytest.mark.parametrize(("cap", "count"), [(None, 3), (1, 0), (3, 2)])
def test_a_cap_counts_what_is_collected_already(
    cap: int | None, count: int, crawl: ObjectStore, local_store: ObjectStore
) -> None:
    write_collected(local_store, WARC_MARKER)
    plan = plan_day(DAY, crawl=crawl, root=local_store, options=CollectOptions(max_warcs=cap))
    assert len(plan.missing) == count


def test_a_cap_does_not_keep_out_what_must_be_collected_again(
    crawl: ObjectStore, local_store: ObjectStore
) -> None:
    for number in (3, 4):
        languages = {"en": 1} if number == 4 else {}
        write_collected(
            local_store, replace(WARC_MARKER, warc=warc_name(DAY, number), languages=languages)
        )
    plan = plan_day(DAY, crawl=crawl, root=local_store, options=CollectOptions(max_warcs=2))
    assert [warc.name for warc in plan.missing] == [warc_name(DAY, 4)]


def test_a_warc_that_lost_a_file_counts_as_not_collected(
    crawl: ObjectStore, local_store: ObjectStore
) -> None:
    lost = replace(WARC_MARKER, languages={"en": 1})
    write_collected(local_store, lost)
    assert len(plan_day(DAY, crawl=crawl, root=local_store, options=CollectOptions()).missing) == 4
    local_store.put(lost.news_paths()["en"], b"")
    assert len(plan_day(DAY, crawl=crawl, root=local_store, options=CollectOptions()).missing) == 3


def test_markers_of_older_extractors_are_outdated() -> None:
    markers = [
        replace(WARC_MARKER, extractor_version=version) for version in ("0.9", "1", "1.10", "4")
    ]
    assert [one.extractor_version for one in outdated(markers, older_than="1.9")] == ["0.9", "1"]
    assert version_key("1.x.3") == (1, 0, 3)


def test_an_estimate_adds_up_and_can_be_read() -> None:
    cost = estimate([1_000_000_000, None], workers=2)
    assert cost.download_bytes == 2_070_000_000
    assert cost.output_bytes == int(2_070_000_000 * 1.1)
    assert cost.seconds == 207
    assert str(cost) == "2 WARCs, 2.1 GB to read, 2.3 GB to write, about 3 min"
    assert estimate([], workers=4).scratch_bytes == 0


def test_room_is_asked_of_every_disk_that_is_written_to(
    tmp_path: Path, local_store: ObjectStore, s3_store: ObjectStore
) -> None:
    cost = estimate([1_000_000], workers=1)
    require_free_space(cost, scratch=tmp_path, root=local_store)
    with pytest.raises(StorageError, match="limit the WARCs per day"):
        require_free_space(
            cost, scratch=tmp_path, root=local_store, free_bytes=lambda folder: 1_500_000
        )
    require_free_space(cost, scratch=tmp_path, root=s3_store, free_bytes=lambda folder: 1_500_000)
