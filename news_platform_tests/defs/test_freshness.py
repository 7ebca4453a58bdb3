"""Which data may be how old, and that a world which stands still is never late."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from news_platform.definitions import build_definitions
from news_platform.defs.graph import CHECKS
from news_platform.resources import Resources, open_resources
from news_platform.settings import Settings
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.defs.over import SteppedClock

HOUR = timedelta(hours=1)


def _policies(settings: Settings) -> dict[str, dg.FreshnessPolicy]:
    specs = build_definitions(open_resources(settings, may_connect=False)).resolve_all_asset_specs()
    found = {spec.key.to_user_string(): spec.freshness_policy for spec in specs}
    return {name: policy for name, policy in found.items() if policy is not None}


@pytest.mark.parametrize("sample", [True, None], ids=["by setting", "by what the root says"])
def test_the_sample_world_stands_still_and_is_never_late(
    tmp_path: Path, sample: bool | None
) -> None:
    (tmp_path / "root.json").write_text('{"format": 3, "contents": "sample"}')
    assert _policies(Settings(root=str(tmp_path), sample=sample)) == {}


def test_a_sample_root_offers_its_own_days_and_a_real_one_all_of_them(tmp_path: Path) -> None:
    keys = {}
    for name, sample in (("fiction", True), ("real", False)):
        defs = build_definitions(open_resources(Settings(root=str(tmp_path / name), sample=sample)))
        partitions = defs.resolve_asset_graph().get(dg.AssetKey("raw_news")).partitions_def
        assert partitions is not None
        keys[name] = partitions.get_partition_keys()
    assert keys["fiction"] == ["2025-11-01", "2025-11-02", "2025-11-03"]
    assert keys["real"][0] == "2016-08-26"
    assert len(keys["real"]) > 3_000


@pytest.mark.parametrize(("hours", "passed"), [(20, True), (29, True), (31, False), (90, False)])
def test_an_old_backfill_does_not_hide_that_the_newest_day_is_missing(
    local_store: ObjectStore, hours: int, passed: bool
) -> None:
    resources = Resources(Settings(root=local_store.url))
    resources.__dict__["clock"] = SteppedClock(datetime(2025, 11, 3, tzinfo=UTC) + hours * HOUR)
    (late,) = [
        it for it in CHECKS if (it.asset, it.name) == ("crawl_articles", "newest_day_is_built")
    ]
    assert late.evaluate(resources, "all").passed, "before the first day nothing is late"
    for day in ("2025-11-02", "2016-09-01"):  # the old one last
        write_marker(local_store, "crawl_articles", day, inputs="0123456789abcdef", report={})
    assert late.evaluate(resources, "all").passed is passed
