"""Taken-down articles leave their stories; the id of a removed root leads on as a bare hash."""

from pathlib import Path

import pytest

from news_platform.datasets.stories import STORY_MEMBERS, STORY_TERMS
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.stories.reading import resolve_story
from news_platform_tests.stories.events import (
    BRIDGE,
    BRIDGE_AGAIN,
    BRIDGE_LATER,
    CHESS,
    Events,
    hash_of,
)
from news_platform_tests.takedowns.asked import AskedDuringBuild, ask, served, target


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path / "root"))


def test_links_to_a_removed_root_are_computed_again(store: ObjectStore, tmp_path: Path) -> None:
    events = Events(store, tmp_path)
    events.add(0, {"gone": BRIDGE, "chess": CHESS})
    events.add(1, {"again": BRIDGE_AGAIN})
    events.add(2, {"later": BRIDGE_LATER})
    events.settle()
    assert events.members(2)["story_id"].to_list() == [hash_of("gone")]
    ask(store, "url", "https://gone.example/")
    served(store)
    assert events.members(0)["url_hash"].to_list() == [hash_of("chess")]
    assert events.members(1)["linked_to"].to_list() == [None]
    assert events.members(2)["story_id"].to_list() == [hash_of("again")]
    (row,) = events.stories(2).to_dicts()
    assert row["articles"] == 2 and row["title"] in (BRIDGE_AGAIN[1], BRIDGE_LATER[1])
    assert resolve_story(store, hash_of("gone")) == hash_of("again")
    for dataset in (STORY_MEMBERS, STORY_TERMS):
        assert ParquetEngine(store, dataset).find(target("url", "https://gone.example/")) == {}


def test_a_request_that_comes_during_a_build_is_obeyed(store: ObjectStore, tmp_path: Path) -> None:
    during = AskedDuringBuild(store, "story_members", "url", "https://gone.example/")
    events = Events(during, tmp_path)
    events.add(0, {"gone": BRIDGE, "again": BRIDGE_AGAIN})
    events.settle()
    assert events.members(0)["url_hash"].to_list() == [hash_of("again")]
