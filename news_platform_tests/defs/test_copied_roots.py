"""A copied root is not stale anywhere, in a folder or, but for feed_articles, in a bucket."""

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from news_platform.defs.graph import BUILD_ORDER
from news_platform.resources import Resources
from news_platform.settings import load_settings
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.servers.demo import Demo

# The crawl and the feeds of the sample world are not part of a root.
FOLLOWERS = [one for one in BUILD_ORDER if one.sensor.startswith("follow_")]


@pytest.fixture
def copied(finished_demo: Demo, tmp_path: Path) -> Path:
    """Return a copy of the finished demo, whose files have other inodes."""
    return finished_demo.copy(tmp_path / "copy").root


def _stale(store: ObjectStore) -> dict[str, list[str]]:
    """Return the stale partitions of every asset that follows files of the root."""
    data_root = SimpleNamespace(store=store)
    opened = SimpleNamespace(data_root=data_root, settings=load_settings({}))
    found = {one.asset: sorted(one.stale(cast(Resources, opened))) for one in FOLLOWERS}
    return {asset: keys for asset, keys in found.items() if keys}


def _copy(store: ObjectStore, target: ObjectStore) -> None:
    for info in store.list():
        if not info.path.startswith("world/"):
            target.put(info.path, store.read(info.path))


def test_a_copy_is_not_stale(copied: Path) -> None:
    assert _stale(open_store(str(copied))) == {}


def test_a_copy_in_a_bucket_is_not_stale(copied: Path, s3_store: ObjectStore) -> None:
    _copy(open_store(str(copied)), s3_store)
    # A local day of articles is compared without the columns that every poll changes; of an object
    # in a bucket only the ETag is known, so these days are built once more.
    assert _stale(s3_store).keys() == {"feed_articles"}


def test_inputs_that_changed_are_stale_in_a_copy(copied: Path) -> None:
    batch = next((copied / "raw").rglob("raw_0001.json"))
    shutil.copy(batch, batch.with_name("raw_0002.json"))
    page = next((copied / "snapshots").rglob("*.json"))
    document = json.loads(page.read_text(encoding="utf-8"))
    page.unlink()  # a link, shared with other copies of the demo
    page.write_text(json.dumps(document, indent=3))
    assert _stale(open_store(str(copied))).keys() == {"domain_queue", "source_records"}
