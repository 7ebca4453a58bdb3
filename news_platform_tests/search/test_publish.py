"""Indexes are published under any root, opened there, and replaced without harm to readers."""

import os
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from news_platform.errors import StorageError
from news_platform.search.publish import (
    DATASET,
    delete_old_builds,
    index_folder,
    publish_index,
)
from news_platform.search.query import AllOf, parse_query
from news_platform.search.reading import IndexCache, read_current
from news_platform.storage.commit.markers import read_inputs
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.search.articles import made_articles

DAY = "2025-11-01"
NOW = datetime.now(UTC)


def cache(store: ObjectStore, folder: Path, *, max_bytes: int = 1 << 30) -> IndexCache:
    return IndexCache(store, folder / "cache", max_bytes=max_bytes)


def publish(store: ObjectStore, count: int, *, day: str = DAY, keep_old: bool = True) -> None:
    articles = made_articles(count, seed=count, days=1)
    inputs = f"{count:016x}"
    publish_index(store, day, articles, inputs=inputs, now=NOW, keep_old=keep_old)


def found(cache: IndexCache) -> list[int]:
    """Return the number of articles in every index, newest day first."""
    return [len(reader) for reader in read_current(cache, cache.days())]


def builds(store: ObjectStore) -> set[str]:
    return {info.path.split("/")[2] for info in store.list(index_folder(DAY))}


def test_a_published_index_is_searched(s3_store: ObjectStore, tmp_path: Path) -> None:
    publish(s3_store, 40)
    assert read_inputs(s3_store, DATASET) == {DAY: f"{40:016x}"}
    opened = cache(s3_store, tmp_path)
    (reader,) = read_current(opened, opened.days())
    assert len(reader) == 40
    condition = parse_query("bridge OR brucke OR 大桥 OR мост OR puente OR 橋")
    assert reader.search(condition, limit=9, newest_first=False).hits


def test_a_new_build_replaces_the_old_one_for_open_readers(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    publish(local_store, 30)
    opened = cache(local_store, tmp_path)
    assert found(opened) == [30]
    (old,) = read_current(opened, opened.days())
    publish(local_store, 31)
    assert found(opened) == [31]
    assert old.search(AllOf(()), limit=1, newest_first=False).count == 30
    kept = max(builds(local_store))
    assert len(builds(local_store)) == 2  # within the grace period
    delete_old_builds(local_store, DAY, keep=kept, before=NOW + timedelta(hours=1))
    assert builds(local_store) == {kept}


def test_the_cache_keeps_what_was_fetched_and_stays_below_its_size(
    s3_store: ObjectStore, tmp_path: Path
) -> None:
    days = [f"2025-11-0{number}" for number in range(1, 4)]
    for day in days:
        publish(s3_store, 30, day=day)
    opened = cache(s3_store, tmp_path)
    assert found(opened) == [30] * 3
    fetched = opened.fetched_bytes
    assert fetched > 0
    again = cache(s3_store, tmp_path)
    assert found(again) == [30] * 3
    assert again.fetched_bytes == 0
    small = cache(s3_store, tmp_path, max_bytes=fetched // 2)
    assert found(small) == [30] * 3
    assert 1 <= len(list((tmp_path / "cache").iterdir())) <= 2


def test_many_threads_share_a_cache_that_is_too_small(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    """Copies are made and deleted under each other; every answer is whole all the same."""
    for number in range(1, 4):
        publish(local_store, 20, day=f"2025-11-0{number}")

    def ask(_: int) -> list[int]:
        return found(cache(local_store, tmp_path, max_bytes=0))

    with ThreadPoolExecutor(6) as threads:
        assert list(threads.map(ask, range(12))) == [[20, 20, 20]] * 12


def test_an_index_that_is_cut_while_it_is_mapped_ends_no_reader(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    """The child stands for a server: SIGBUS, which a mapped file gives, cannot be caught."""
    publish(local_store, 30)
    opened = cache(local_store, tmp_path)
    (reader,) = read_current(opened, opened.days())
    assert local_store.local_folder is not None
    child = os.fork()
    if not child:
        for path in (local_store.local_folder / index_folder(DAY)).rglob("*.*"):
            os.truncate(path, 0)
        answer = reader.search(AllOf(()), limit=30, newest_first=False)
        os._exit(0 if len([one.read() for one in answer.ranked]) == 30 else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_damaged_copy_is_made_again(local_store: ObjectStore, tmp_path: Path) -> None:
    publish(local_store, 30)
    assert found(cache(local_store, tmp_path)) == [30]
    for path in (tmp_path / "cache").rglob("meta.json"):
        path.write_text("{")
    assert found(cache(local_store, tmp_path)) == [30]


def test_a_damaged_index_is_named_with_its_cure(local_store: ObjectStore, tmp_path: Path) -> None:
    publish(local_store, 10)
    assert local_store.local_folder is not None
    folder = next((local_store.local_folder / index_folder(DAY)).iterdir())
    (folder / "meta.json").write_text("no json")
    with pytest.raises(StorageError, match=r"is damaged.*delete its marker"):
        found(cache(local_store, tmp_path))
