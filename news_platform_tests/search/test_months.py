"""Old days are joined into months, and every day is found in exactly one index at any time."""

import multiprocessing
import random
import tempfile
import time
from datetime import UTC, datetime, timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from news_platform.datasets.corpus import CRAWL_ARTICLES, SEARCH_INDEX
from news_platform.search.index_engine import IndexEngine
from news_platform.search.pipeline import (
    MONTHS_DATASET,
    build_day,
    build_month,
    index_facets,
    index_problems,
    wanted_months,
)
from news_platform.search.publish import (
    DATASET,
    delete_unused_builds,
    index_folder,
    place_of,
    stored_builds,
)
from news_platform.search.reading import read_current
from news_platform.storage.commit.markers import delete_marker, read_markers
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.units import stale_units
from news_platform_tests.search.indexes import (
    DAYS,
    MONTH,
    NOW,
    articles_of,
    build_stale,
    cache,
    counts,
    fill,
    join,
    open_indexes,
    write_day,
)

SHORT_KILLS, LONG_KILLS = 2, 60
# Every builder to be killed is a fork of a process that has imported its work.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([__name__])


def test_a_month_that_is_over_becomes_one_index(local_store: ObjectStore, tmp_path: Path) -> None:
    fill(local_store, tmp_path)
    before = counts(local_store, tmp_path)
    # A month is joined when so many days of the next are over.
    assert list(wanted_months(local_store, after_days=31)) == []
    assert list(wanted_months(local_store, after_days=0)) == []
    assert list(wanted_months(local_store, after_days=30)) == join(local_store) == [MONTH]
    assert join(local_store) == []
    assert counts(local_store, tmp_path) == before == dict.fromkeys(DAYS, 6)
    assert open_indexes(local_store, tmp_path) == 2
    assert stale_units(local_store, SEARCH_INDEX) == {}
    assert [list(index_problems(local_store, day)) for day in DAYS] == [[]] * len(DAYS)
    assert sum(index_facets(local_store, DAYS[1], "domain").values()) == 6


def test_a_day_that_changes_is_found_in_its_own_index_until_the_month_follows(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    fill(local_store, tmp_path)
    join(local_store)
    changed = articles_of(DAYS[1], count=9, seed=50)
    write_day(local_store, CRAWL_ARTICLES, changed, tmp_path / "scratch", day=DAYS[1])
    assert build_stale(local_store) == [DAYS[1]]
    expected = dict.fromkeys(DAYS, 6) | {DAYS[1]: 9}
    assert counts(local_store, tmp_path) == expected
    assert open_indexes(local_store, tmp_path) == 3
    assert join(local_store) == [MONTH]
    assert counts(local_store, tmp_path) == expected
    places = {place_of(one).key for one in read_markers(local_store, DATASET).values()}
    assert places == {MONTH, DAYS[-1]}


def test_a_day_that_is_removed_is_not_found_in_the_month(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    fill(local_store, tmp_path)
    join(local_store)
    delete_marker(local_store, CRAWL_ARTICLES.name, DAYS[1])
    engine = IndexEngine(local_store, NOW)
    engine.delete([DAYS[1]])
    expected = {day: 6 for day in DAYS if day != DAYS[1]}
    assert counts(local_store, tmp_path) == expected
    assert join(local_store) == [MONTH]
    assert counts(local_store, tmp_path) == expected
    # With its last day the month goes, too.
    engine.delete([day for day in expected if day.startswith(MONTH)])
    assert counts(local_store, tmp_path) == {DAYS[-1]: 6}
    assert list(local_store.list(index_folder(MONTH))) == []
    assert read_markers(local_store, MONTHS_DATASET) == {}


def test_builds_that_no_day_names_go_after_the_grace_period(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    fill(local_store, tmp_path)
    join(local_store)
    assert len(stored_builds(local_store)) == len(DAYS) + 1
    assert delete_unused_builds(local_store, now=NOW) == 0
    assert delete_unused_builds(local_store, now=NOW + timedelta(hours=2)) == len(DAYS) - 1
    assert {one.key for one in stored_builds(local_store)} == {MONTH, DAYS[-1]}
    assert counts(local_store, tmp_path) == dict.fromkeys(DAYS, 6)


def test_an_index_deleted_under_an_open_reader_is_looked_up_again(
    s3_store: ObjectStore, tmp_path: Path
) -> None:
    fill(s3_store, tmp_path)
    opened = cache(s3_store, tmp_path)
    readers = read_current(opened, opened.days())
    next(readers)
    join(s3_store)
    for day in DAYS[:-1]:
        s3_store.delete([info.path for info in s3_store.list(index_folder(day))])
    assert [len(reader) for reader in readers] == [6, 6, 6]


def run_kills(store: ObjectStore, folder: Path, *, kills: int, seed: int) -> None:
    """Kill builders of the day and the month; every day is found whole, as it was or as it is."""
    fill(store, folder)
    join(store)
    chance = random.Random(seed)
    for kill in range(kills):
        size = 6 + 3 * (kill % 2)
        before = counts(store, folder)
        changed = articles_of(DAYS[1], count=size, seed=kill)
        write_day(store, CRAWL_ARTICLES, changed, folder / "scratch", day=DAYS[1])
        _kill_builder(store, folder, after_seconds=chance.uniform(0, 0.6))
        found = counts(store, folder)
        assert found[DAYS[1]] in (before[DAYS[1]], size), (seed, kill)
        assert found | {DAYS[1]: 0} == before | {DAYS[1]: 0}, (seed, kill)
        build_stale(store)
        join(store)
        assert counts(store, folder) == before | {DAYS[1]: size}
    # A killed builder may have built the day once more after its month; the next change joins both.
    changed = articles_of(DAYS[1], count=7, seed=kills)
    write_day(store, CRAWL_ARTICLES, changed, folder / "scratch", day=DAYS[1])
    build_stale(store)
    join(store)
    delete_unused_builds(store, now=NOW + timedelta(hours=2))
    assert {one.key for one in stored_builds(store)} == {MONTH, DAYS[-1]}


def build_without_end(told: Connection, root: str, scratch: str) -> None:
    """Build the day and the month again and again, until the process is killed."""
    # What a killed builder leaves in its scratch folder must not fill the system's.
    tempfile.tempdir = scratch
    store = open_store(root)
    told.send("ready")
    while True:
        build_day(store, DAYS[1], now=datetime.now(UTC))
        for month in wanted_months(store, after_days=7):
            build_month(store, month, now=datetime.now(UTC))


def _kill_builder(store: ObjectStore, folder: Path, *, after_seconds: float) -> None:
    words, told = FORKS.Pipe(duplex=False)
    process = FORKS.Process(target=build_without_end, args=(told, store.url, str(folder)))
    process.start()
    assert words.recv() == "ready"
    time.sleep(after_seconds)
    process.kill()
    process.join()


def test_a_builder_killed_anywhere_leaves_every_day_whole(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    run_kills(local_store, tmp_path, kills=SHORT_KILLS, seed=1)


@pytest.mark.soak
def test_a_builder_killed_60_times_leaves_every_day_whole(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    run_kills(local_store, tmp_path, kills=LONG_KILLS, seed=2)
