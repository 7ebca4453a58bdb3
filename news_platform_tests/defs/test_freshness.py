"""Which data may be how old, and that a world which stands still is never late."""

from pathlib import Path

import dagster as dg
import pytest

from news_platform.definitions import build_definitions
from news_platform.resources import open_resources
from news_platform.settings import Settings


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
