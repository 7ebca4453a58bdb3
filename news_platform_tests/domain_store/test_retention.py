"""Staged batches and old generations that are deleted because the store holds their records."""

from datetime import timedelta

import pytest

from news_platform.domain_store.building.verify import (
    iter_count_problems,
    verify_bucket,
)
from news_platform.domain_store.layout import bucket_of
from news_platform.domain_store.manifest import read_current
from news_platform.domain_store.pipeline import repair_buckets
from news_platform.domain_store.retention import (
    expiring_batches,
    old_generations,
)
from news_platform.domain_store.staging.stage import built_ranges, read_staged, wanted_ranges
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.retention import Expiry, apply_retention, planned
from news_platform_tests.domain_store.faults import Crash, DyingStore, Fuse
from news_platform_tests.domain_store.pages import NOW, SMALL, build, stage, urls

DAYS = {
    "2025-11-01": ["uk.co.bbc", "org.a", "uk.co.bbc"],
    "2025-11-02": ["org.a", "com.c"],
}
DOMAINS = ("bbc.co.uk", "a.org", "c.com")
LATER = NOW + timedelta(days=10)
BUCKETS = range(SMALL.buckets)


@pytest.fixture
def built(root: ObjectStore) -> ObjectStore:
    """Return a root whose two staged days are in the store."""
    stage(root, DAYS)
    build(root)
    return root


def _expire(root: ObjectStore, *, keep_days: int = 7) -> Expiry:
    units = expiring_batches(root, keep_days=keep_days, now=LATER)
    return apply_retention(root, "domain_buckets", units)


def _staged_files(root: ObjectStore) -> list[str]:
    return [info.path for info in root.list("domain_buckets")]


def test_staged_batches_go_after_the_store_took_them_over_and_nothing_is_stale(
    built: ObjectStore,
) -> None:
    before, inputs = urls(built, DOMAINS), wanted_ranges(built)
    size = sum(info.size_bytes for info in built.list("domain_buckets"))
    done = _expire(built)
    assert sorted(done.objects) == sorted(DAYS)
    assert (done.bytes, _staged_files(built)) == (size, [])
    assert wanted_ranges(built) == inputs
    assert [report.bytes_written for report in build(built).buckets] == [0] * SMALL.buckets
    assert urls(built, DOMAINS) == before
    assert list(iter_count_problems(built, BUCKETS)) == []
    assert _expire(built).objects == {}


def test_a_batch_stays_as_long_as_the_policy_says_or_the_store_does_not_hold_it(
    built: ObjectStore,
) -> None:
    assert _expire(built, keep_days=30).objects == {}
    stage(built, {"2025-11-03": ["org.new"]})
    done = _expire(built)
    assert sorted(done.objects) == sorted(DAYS)
    assert "does not hold it yet" in done.waiting["2025-11-03"]
    assert {path.split("/")[2] for path in _staged_files(built)} == {"2025-11-03"}


def test_a_batch_of_which_the_store_has_other_bytes_is_kept(built: ObjectStore) -> None:
    manifest = read_current(built, bucket_of("bbc.co.uk", SMALL.buckets)).manifest
    assert manifest is not None
    path = manifest.segments[0].files[0].path
    body = bytearray(built.read(path))
    body[-20] ^= 1
    built.put(path, bytes(body))
    before = set(_staged_files(built))
    done = _expire(built)
    assert "differs from the staged batch" in next(iter(done.failed.values()))
    kept = {path for path in before if path.split("/")[2] in done.failed}
    assert set(_staged_files(built)) == kept
    assert kept


def test_a_process_that_dies_at_any_step_leaves_a_store_that_the_next_call_finishes(
    root: ObjectStore,
) -> None:
    for at in range(1, 200, 2):
        stage(root, DAYS)
        build(root)
        expected = urls(root, DOMAINS)
        is_done = True
        try:
            _expire(DyingStore(root, Fuse(at, is_after=False)), keep_days=0)
        except Crash:
            is_done = False
        # Files may be missing only where the marker says so.
        staged = read_staged(root, SMALL.buckets)
        held = {path.split("/")[2] for path in _staged_files(root)}
        assert all(batch in held or staged.is_expired(batch) for batch in DAYS)
        assert _expire(root, keep_days=0).failed == {}
        assert _staged_files(root) == []
        assert urls(root, DOMAINS) == expected
        if is_done:
            return
    raise AssertionError("it never came to an end")


def test_a_changed_day_is_staged_again_after_it_expired(built: ObjectStore) -> None:
    _expire(built)
    stage(built, {"2025-11-02": ["com.c", "com.d"]})
    assert not read_staged(built, SMALL.buckets).is_expired("2025-11-02")
    build(built)
    assert urls(built, ["a.org", "d.com"]) == {
        "a.org": ["https://org.a/2025-11-01/1"],
        "d.com": ["https://com.d/2025-11-02/1"],
    }


def _damaged(root: ObjectStore) -> int:
    """Delete a data file of the bucket of bbc.co.uk; return the bucket."""
    bucket = bucket_of("bbc.co.uk", SMALL.buckets)
    manifest = read_current(root, bucket).manifest
    assert manifest is not None
    root.delete([manifest.segments[0].files[0].path])
    return bucket


def test_repair_keeps_and_names_what_it_can_no_longer_rebuild(built: ObjectStore) -> None:
    _expire(built)
    bucket = _damaged(built)
    before = read_current(built, bucket).manifest
    report = repair_buckets(BUCKETS, store=built, options=SMALL, now=LATER)
    assert report.not_rebuilt["2025-11-01"] == [bucket]
    assert read_current(built, bucket).manifest == before
    # New days are built beside it.
    stage(built, {"2025-11-03": ["uk.co.bbc"]})
    build(built)
    after = read_current(built, bucket, with_batches=True).manifest
    assert after is not None and "2025-11-03" in after.batch_inputs


def test_a_lost_index_is_made_again_without_the_staged_files(built: ObjectStore) -> None:
    before = urls(built, DOMAINS)
    _expire(built)
    built.delete([info.path for info in built.list("domain_store/index/")])
    repair_buckets(BUCKETS, store=built, options=SMALL, now=LATER)
    assert urls(built, DOMAINS) == before
    assert [verify_bucket(built, bucket).problems for bucket in BUCKETS] == [()] * SMALL.buckets


def test_a_bucket_without_index_data_and_staged_files_is_a_clear_error(built: ObjectStore) -> None:
    _expire(built)
    bucket = _damaged(built)
    built.delete([info.path for info in built.list(f"domain_store/index/{bucket}/")])
    with pytest.raises(StorageError, match=r"cannot repair bucket .*'2025-11-01'.*expired"):
        repair_buckets([bucket], store=built, options=SMALL, now=LATER)


def test_a_bucket_that_lost_its_manifest_cannot_be_built_from_expired_files(
    built: ObjectStore,
) -> None:
    _expire(built)
    bucket = bucket_of("bbc.co.uk", SMALL.buckets)
    built.delete([f"domain_store/manifests/{bucket}/CURRENT"])
    expected = r"cannot rebuild batches '2025-11-01'.*stage these days"
    with pytest.raises(StorageError, match=expected):
        build(built)


def test_old_generations_are_planned_and_deleted(built: ObjectStore) -> None:
    stage(built, {"2025-11-02": ["com.c", "com.d"]})
    build(built)
    assert old_generations(built, options=SMALL, now=NOW) == {}
    units = old_generations(built, options=SMALL, now=LATER)
    plan = planned("domain_store", units)
    assert plan.bytes > 0
    before = {info.path for info in built.list("domain_store")}
    assert apply_retention(built, "domain_store", units) == plan
    gone = before - {info.path for info in built.list("domain_store")}
    assert len(gone) == sum(plan.objects.values())
    assert built_ranges(built) == {}
