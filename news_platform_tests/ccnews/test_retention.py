"""raw_news that is deleted while the domain store keeps its rows."""

import logging
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime
from functools import partial

import polars as pl
import pytest

from news_platform.ccnews.checks import read_footers, row_problems
from news_platform.ccnews.pipeline import damaged_warcs, outdated_days
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.retention import expiring_days
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.domain_store.fragments import iter_warc_frames, rows_by_warc
from news_platform.domain_store.retention import stored_days
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import stage_input
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import (
    collected_names,
    combine_month,
    followed_days,
    read_collected,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.retention import Expiry, apply_retention
from news_platform.storage.units import built_inputs, stale_units
from news_platform_tests.domain_store.faults import Crash, DyingStore, Fuse
from news_platform_tests.domain_store.pages import (
    SMALL,
    build,
    collect,
    collect_late,
    news_rows,
    uncollect,
    urls,
)

DAYS = {
    "2025-11-01": ["uk.co.bbc", "org.a", "uk.co.bbc"],
    "2025-11-02": ["org.a", "com.c"],
}
OLD, NEW = (date.fromisoformat(day) for day in DAYS)
DOMAINS = ("bbc.co.uk", "a.org", "c.com")
# Ten days keep the second of the two days, but not the first.
NOW = datetime(2025, 11, 12, 3, tzinfo=UTC)


def _stage(root: ObjectStore) -> list[str]:
    stale = sorted(stale_units(root, DOMAIN_BUCKETS))
    for day in stale:
        stage_input(day_input(root, day), store=root, batch=day, options=SMALL)
    return stale


@pytest.fixture
def root(local_store: ObjectStore) -> ObjectStore:
    """Return a root with two collected days in the store."""
    collect(local_store, DAYS)
    _stage(local_store)
    build(local_store)
    return local_store


def _expire(root: ObjectStore, rows: Callable[[str], Mapping[str, int]] | None = None) -> Expiry:
    units = expiring_days(
        root,
        keep_days=10,
        now=NOW,
        stored_days=partial(stored_days, root),
        rows_by_warc=rows or partial(rows_by_warc, root),
    )
    return apply_retention(root, "raw_news", units)


def _files(root: ObjectStore) -> list[str]:
    return [info.path for info in root.list("news/raw")]


def test_old_days_go_and_the_store_keeps_their_records(root: ObjectStore) -> None:
    before = urls(root, DOMAINS)
    done = _expire(root)
    assert sorted(done.objects) == ["2025-11-01"]
    assert done.bytes > 0
    assert all("day=02" in path for path in _files(root))
    assert urls(root, DOMAINS) == before
    assert _expire(root).objects == {}


def test_an_expired_day_is_neither_missing_nor_stale_nor_damaged(root: ObjectStore) -> None:
    _expire(root)
    (marker,) = read_collected(root, [OLD])
    assert marker.is_expired and marker.rows == 3
    assert collected_names(root, day=OLD) == {marker.warc}
    assert followed_days(root) == set(DAYS)
    assert damaged_warcs(root, day=OLD) == frozenset()
    assert row_problems(root, read_footers(root, day=OLD), day=OLD) == []
    assert _stage(root) == []
    assert sorted(outdated_days(root, CollectOptions())) == ["2025-11-02"]
    assert combine_month(root, OLD) == 0  # it was combined to record the days


def test_a_scan_says_that_rows_are_expired(
    root: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    _expire(root)
    with caplog.at_level(logging.WARNING):
        assert scan_news(root, columns=["uri"]).collect().height == 2
    assert "raw_news of 1 days from 2025-11-01 on is expired" in caplog.text


def test_a_day_that_the_store_does_not_hold_is_refused(root: ObjectStore) -> None:
    collect(root, {"2025-10-20": ["org.older"]})
    done = _expire(root)
    assert list(done.refused) == ["2025-10-20"]
    assert "the domain store does not hold it" in done.refused["2025-10-20"]
    assert any("month=10" in path for path in _files(root))
    _stage(root)  # staged, but not built
    assert list(_expire(root).refused) == ["2025-10-20"]
    build(root)
    assert sorted(_expire(root).objects) == ["2025-10-20"]


def test_a_day_of_which_rows_are_lost_is_kept(root: ObjectStore) -> None:
    (marker,) = read_collected(root, [OLD])

    def one_row_less(day: str) -> Mapping[str, int]:
        return {warc: rows - 1 for warc, rows in rows_by_warc(root, day).items()}

    before = _files(root)
    done = _expire(root, one_row_less)
    assert f"2 of 3 rows of {marker.warc!r}" in done.failed["2025-11-01"]
    assert _files(root) == before
    assert not read_collected(root, [OLD])[0].is_expired


def test_a_late_warc_of_an_expired_day_is_added_to_the_records_of_the_store(
    root: ObjectStore,
) -> None:
    before = urls(root, DOMAINS)
    rows = sorted(news_rows(DAYS["2025-11-01"]).iter_rows(), key=str)
    _expire(root)
    collect_late(root, "2025-11-01", ["org.a"])
    assert _stage(root) == ["2025-11-01"]
    build(root)
    late = "https://org.a/2025-11-01/0/late"
    expected = {**before, "a.org": [before["a.org"][0], late, before["a.org"][1]]}
    assert urls(root, DOMAINS) == expected
    (first, *_) = read_collected(root, [OLD])
    held = pl.concat(iter_warc_frames(root, "2025-11-01", {first.warc: 3}))
    assert sorted(held.iter_rows(), key=str) == rows
    # Once the late one is in the store, it expires, too.
    assert sum(_expire(root).objects.values()) == 1
    assert all("day=02" in path for path in _files(root))
    assert urls(root, DOMAINS) == expected


def test_a_late_warc_is_not_staged_over_records_that_the_store_has_lost(
    root: ObjectStore,
) -> None:
    _expire(root)
    collect_late(root, "2025-11-01", ["org.a"])
    root.delete([info.path for info in root.list("domain_store/data")])
    inputs = built_inputs(root, DOMAIN_BUCKETS)
    with pytest.raises(StorageError, match="domain_store/data"):
        _stage(root)
    assert built_inputs(root, DOMAIN_BUCKETS) == inputs


def test_a_warc_that_was_collected_again_is_not_expired(root: ObjectStore) -> None:
    _expire(root)
    (old,) = read_collected(root, [OLD])
    collect(root, {"2025-11-01": DAYS["2025-11-01"]})
    (marker,) = read_collected(root, [OLD])
    assert not marker.is_expired and marker.fingerprint == old.fingerprint
    assert sum(_expire(root).objects.values()) == 3


def test_a_process_that_dies_at_any_step_loses_nothing_and_the_next_call_finishes(
    local_store: ObjectStore,
) -> None:
    root = local_store
    for at in range(1, 400, 2):
        for day in DAYS:
            uncollect(root, day)
        root.delete([info.path for info in root.list("news/collected")])
        collect(root, DAYS)
        _stage(root)
        build(root)
        expected = urls(root, DOMAINS)
        is_done = True
        try:
            _expire(DyingStore(root, Fuse(at, is_after=False)))
        except Crash:
            is_done = False
        # Files may be missing only where the record says so.
        assert damaged_warcs(root, day=OLD) == frozenset()
        assert _expire(root).failed == {}
        assert all("day=02" in path for path in _files(root))
        assert read_collected(root, [OLD])[0].is_expired
        assert urls(root, DOMAINS) == expected
        if is_done:
            return
    raise AssertionError("it never came to an end")
