"""The brake on mass removal: what is refused, what passes, and that a refusal changes nothing."""

from dataclasses import replace
from datetime import date

import pytest

from news_platform.datasets.collected import collected_prefix
from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.domain_store.building.builder import (
    Removal,
    require_allowed,
    staging_removal,
)
from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.pipeline import build_range, repair_buckets
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import stage_input
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform_tests.domain_store.pages import (
    NOW,
    SMALL,
    build,
    collect,
    stage,
    uncollect,
    urls,
)

BRAKED = replace(SMALL, allow_removal=False)
DAYS = {f"2025-11-{number:02d}": ["org.a", "org.b"] for number in range(1, 12)}


def _listing(store: ObjectStore) -> list[tuple[str, str]]:
    return [(info.path, info.etag) for info in store.list()]


@pytest.mark.parametrize(
    ("gone", "held", "share", "is_refused"),
    [(0, 0, 0.1, False), (1, 10, 0.1, False), (2, 10, 0.1, True), (9, 10, 1.0, False)],
    ids=["nothing", "a tenth", "a fifth", "no limit"],
)
def test_more_than_the_share_is_refused(
    gone: int, held: int, share: float, is_refused: bool
) -> None:
    removal = Removal({"2025-11-01": gone} if gone else {}, held)
    options = BuildOptions(removal_share=share)
    if not is_refused:
        require_allowed(removal, options)
        return
    with pytest.raises(StorageError, match=f"refused to remove {gone} of {held} records"):
        require_allowed(removal, options)
    require_allowed(removal, replace(options, allow_removal=True))


def test_a_refusal_names_the_largest_batches_and_counts_the_rest() -> None:
    removal = Removal({f"2025-11-{day:02d}": day for day in range(1, 9)}, 40)
    with pytest.raises(StorageError) as caught:
        require_allowed(removal, BuildOptions())
    assert "(90%): 8 of '2025-11-08', 7 of" in str(caught.value)
    assert "and 3 more; restore their inputs" in str(caught.value)
    assert "--allow-removal" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_store_whose_stage_1_is_gone_is_not_emptied(root: ObjectStore) -> None:
    stage(root, DAYS)
    build(root)
    before = urls(root, ["a.org", "b.org"])
    root.delete([info.path for info in root.list("markers/domain_buckets")])
    stored = _listing(root)
    for key in ("0000-0003",):
        with pytest.raises(StorageError, match="refused to remove 22 of 22 records"):
            build_range(key, store=root, options=BRAKED, now=NOW)
    with pytest.raises(StorageError, match="refused to remove"):
        repair_buckets(range(4), store=root, options=BRAKED, now=NOW)
    assert _listing(root) == stored
    assert urls(root, ["a.org", "b.org"]) == before


def test_the_share_is_that_of_the_whole_store_not_of_the_range(root: ObjectStore) -> None:
    # `a.org` and `b.org` lie in different buckets; one of them loses everything.
    wide = replace(BRAKED, buckets=32)
    many = {"2025-11-01": ["org.a"], "2025-11-02": ["org.b"] * 20}
    stage(root, many, options=wide)
    build(root, options=wide)
    stage(root, {"2025-11-01": []}, options=wide)
    build(root, options=wide)
    assert urls(root, ["a.org"]) == {"a.org": []}


def test_a_batch_replaced_by_fewer_records_counts_as_removal(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": ["org.a"] * 10})
    build(root)
    stage(root, {"2025-11-01": ["org.a"] * 5})
    with pytest.raises(StorageError, match="refused to remove 5 of 10 records"):
        build(root, options=BRAKED)
    stage(root, {"2025-11-01": ["org.a"] * 11})
    build(root, options=BRAKED)
    assert len(urls(root, ["a.org"])["a.org"]) == 11


def _stage_all(root: ObjectStore) -> None:
    for day in wanted_inputs(root, DOMAIN_BUCKETS):
        stage_input(day_input(root, day), store=root, batch=day, options=SMALL)


def test_staging_counts_all_days_that_wait_for_removal(root: ObjectStore) -> None:
    collect(root, DAYS)
    _stage_all(root)
    assert staging_removal(root) == Removal({}, 0)
    for day in sorted(DAYS)[:4]:
        uncollect(root, day)
    # One day alone would be within a tenth: each run of Dagster stages one.
    removal = staging_removal(root, ["2025-11-01"])
    assert (removal.records, removal.held) == (8, 22)
    assert staging_removal(root) == removal
    # A run that stages other days is not held up.
    assert staging_removal(root, ["2025-11-09"]).records == 0
    assert len(built_inputs(root, DOMAIN_BUCKETS)) == len(DAYS)


def test_a_day_that_grew_does_not_count_as_removal(root: ObjectStore) -> None:
    collect(root, {"2025-11-01": ["org.a"]})
    _stage_all(root)
    root.delete([info.path for info in root.list(collected_prefix(date(2025, 11, 1)))])
    collect(root, {"2025-11-01": ["org.a", "org.b"]})
    assert staging_removal(root, ["2025-11-01"]).records == 0
