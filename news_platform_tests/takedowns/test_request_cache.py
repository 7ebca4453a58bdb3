"""Many requests are read with few reads, and the listing decides which of them count."""

import logging

import pytest

from news_platform.datasets.takedowns import CACHE, REQUESTS
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import add_aliases, read_states, update_cache
from news_platform_tests.takedowns.asked import NOW, ask


class _CountingStore(ObjectStore):
    """Counts the objects that are read."""

    reads = 0

    def read(self, path: str, *, expected_size: int | None = None) -> bytes:
        self.reads += 1
        return super().read(path, expected_size=expected_size)


def _ask_for(store: ObjectStore, first: int, last: int) -> None:
    for number in range(first, last):
        ask(store, "url", f"https://harbour.example/{number}")


def _counting(store: ObjectStore) -> _CountingStore:
    return _CountingStore(store._backend)


def _read(store: ObjectStore) -> tuple[Takedowns, int]:
    counting = _counting(store)
    takedowns = Takedowns.read(counting)
    return takedowns, counting.reads


def test_cached_requests_are_read_at_once_and_new_ones_beside_them(
    local_store: ObjectStore,
) -> None:
    _ask_for(local_store, 0, 40)
    add_aliases(local_store, ["https://harbour.example/3", "https://short.example/3"], now=NOW)
    before, reads = _read(local_store)
    assert reads == 41
    assert update_cache(local_store, most_single=20)
    after, reads = _read(local_store)
    # The few aliases are read one by one.
    assert reads == 2 and after == before
    assert after.covers("https://short.example/3")
    _ask_for(local_store, 40, 43)
    newest, reads = _read(local_store)
    assert reads == 5 and newest.covers("https://harbour.example/42")
    assert not update_cache(local_store, most_single=20)


def test_every_request_stays_readable_by_itself(local_store: ObjectStore) -> None:
    _ask_for(local_store, 0, 30)
    update_cache(local_store, most_single=20)
    assert len(list(local_store.list(REQUESTS))) == 30 and len(read_states(local_store)) == 30


def test_a_request_whose_file_is_gone_does_not_count(local_store: ObjectStore) -> None:
    _ask_for(local_store, 0, 30)
    update_cache(local_store, most_single=20)
    info = next(iter(local_store.list(REQUESTS)))
    local_store.delete([info.path])
    assert len(read_states(_counting(local_store))) == 29


def test_a_damaged_cache_costs_reads_and_nothing_else(
    local_store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    _ask_for(local_store, 0, 30)
    update_cache(local_store, most_single=20)
    local_store.put(CACHE, local_store.read(CACHE)[:50])
    with caplog.at_level(logging.WARNING):
        takedowns, _ = _read(local_store)
    assert len(takedowns.pages) == 30 and CACHE in caplog.text
    assert update_cache(_counting(local_store), most_single=20)
    caplog.clear()
    assert len(_read(local_store)[0].pages) == 30 and caplog.text == ""
