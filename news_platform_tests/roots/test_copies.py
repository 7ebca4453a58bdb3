"""A copied root is not stale anywhere, whichever release wrote it and wherever it is copied to."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from news_platform.defs.graph import BUILD_ORDER
from news_platform.domain_metadata.pipeline import QUEUE_DATASET
from news_platform.resources import Resources, adopt_markers
from news_platform.settings import Settings
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.commit.upgrade import upgrade_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.roots.test_roots import RELEASES, unpack

# The sample world has more than the kept root, so the assets that ask it are left out.
FOLLOWERS = [one for one in BUILD_ORDER if one.sensor.startswith("follow_")]


def _stale(store: ObjectStore) -> dict[str, list[str]]:
    """Return the stale partitions of every asset that follows files of the root.

    The kept root of 0.1 has no marker of ai_policy_changes: it was never built there.
    """
    opened = SimpleNamespace(data_root=SimpleNamespace(store=store), settings=Settings())
    resources = cast(Resources, opened)
    found = {one.asset: sorted(one.stale(resources)) for one in FOLLOWERS}
    return {asset: keys for asset, keys in found.items() if keys and read_markers(store, asset)}


def _upgraded(folder: Path) -> ObjectStore:
    store = open_store(str(folder))
    upgrade_root(store, adopters=(adopt_markers,))
    return store


def _copy(store: ObjectStore, target: ObjectStore) -> None:
    for info in store.list():
        target.put(info.path, store.read(info.path))


@pytest.fixture(params=RELEASES)
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of a kept root; unpacking an archive already gives new inodes."""
    return unpack(request.param, tmp_path)


def test_every_asset_of_files_is_looked_at() -> None:
    assert {one.asset for one in FOLLOWERS} >= {
        "domain_buckets",
        "domain_store",
        "domain_catalog",
        "domain_queue",
        "domain_metadata",
        "domain_surveys",
        "usage_signals",
        "ai_policy_changes",
        "near_duplicates",
        "source_records",
    }


def test_a_copy_is_not_stale_and_neither_is_a_copy_of_it(copied: Path, tmp_path: Path) -> None:
    assert _stale(_upgraded(copied)) == {}
    shutil.copytree(copied, tmp_path / "second")
    assert _stale(_upgraded(tmp_path / "second")) == {}


def test_a_copy_in_a_bucket_is_not_stale(copied: Path, s3_store: ObjectStore) -> None:
    _copy(open_store(str(copied)), s3_store)
    upgrade_root(s3_store, adopters=(adopt_markers,))
    assert _stale(s3_store) == {}


def test_an_upgraded_root_copied_to_a_bucket_and_back_is_not_stale(
    copied: Path, s3_store: ObjectStore, tmp_path: Path
) -> None:
    _copy(_upgraded(copied), s3_store)
    assert _stale(s3_store) == {}
    back = open_store(str(tmp_path / "back"))
    _copy(s3_store, back)
    assert _stale(back) == {}


def test_inputs_that_changed_before_the_upgrade_are_stale_after_it(copied: Path) -> None:
    is_first_release = "world" in json.loads((copied / "root.json").read_text(encoding="utf-8"))
    batch = next((copied / "raw").rglob("raw_0001.json"))
    shutil.copy(batch, batch.with_name("raw_0002.json"))
    page = next((copied / "snapshots").rglob("*.json"))
    shutil.copy(page, page.with_name("another.json"))
    facts = next((copied / "prod").rglob("domain_metadata.json"))
    document = json.loads(facts.read_text(encoding="utf-8"))
    facts.write_text(json.dumps(document | {"collected_at": "2024-01-02T03:04:05Z"}))
    stale = _stale(_upgraded(copied))
    assert {"domain_queue", "source_records"} <= stale.keys()
    # Since format 2 the table follows the markers of surveys, not the files beside them.
    assert ("domain_surveys" in stale) is is_first_release


def test_inputs_that_change_after_the_upgrade_are_stale(copied: Path) -> None:
    store = _upgraded(copied)
    for path in ("raw", "snapshots"):
        file = next((copied / path).rglob("*.json"))
        file.write_bytes(file.read_bytes() + b" ")
    assert _stale(store).keys() == {"domain_queue", "source_records"}
    [key] = read_markers(store, QUEUE_DATASET)
    assert _stale(store)["domain_queue"] == [key]
