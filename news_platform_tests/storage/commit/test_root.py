"""The files of a root: its world, and whether automation is paused."""

import pytest

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.commit.root import claim_root, is_paused, pause, read_world, resume
from news_platform.storage.objects.store import ObjectStore


@pytest.mark.parametrize(("sample", "world"), [(True, "sample"), (False, "real"), (None, "real")])
def test_a_fresh_root_takes_the_world_it_is_claimed_for(
    local_store: ObjectStore, sample: bool | None, world: str
) -> None:
    assert read_world(local_store) is None
    assert claim_root(local_store, sample=sample) == world
    assert read_world(local_store) == world
    assert claim_root(local_store, sample=None) == world  # when nothing is said


@pytest.mark.parametrize("first", [True, False], ids=["sample first", "real first"])
def test_fiction_and_real_data_never_share_a_root(local_store: ObjectStore, first: bool) -> None:
    claim_root(local_store, sample=first)
    with pytest.raises(ConfigError, match="set NEWS_PLATFORM_ROOT to another folder"):
        claim_root(local_store, sample=not first)


def test_a_broken_root_file_is_named(local_store: ObjectStore) -> None:
    local_store.put("root.json", b"{half")
    with pytest.raises(StorageError, match=r"root\.json"):
        claim_root(local_store, sample=None)


def test_pause_and_resume_are_one_switch(local_store: ObjectStore) -> None:
    assert not is_paused(local_store)
    pause(local_store)
    pause(local_store)
    assert is_paused(local_store)
    resume(local_store)
    assert not is_paused(local_store)


@pytest.mark.parametrize("body", [b'{"world": "real"}', b'{"format": 4, "holds": "real"}'])
def test_a_root_of_another_format_is_one_clear_line(local_store: ObjectStore, body: bytes) -> None:
    local_store.put("root.json", body)
    with pytest.raises(ConfigError, match=r"has format .*, this version reads format 3: use the"):
        claim_root(local_store, sample=None)


def test_unknown_fields_of_the_root_file_are_ignored(local_store: ObjectStore) -> None:
    local_store.put("root.json", b'{"format": 3, "contents": "real", "colour": "red"}')
    assert read_world(local_store) == "real"
