"""kill -9 in build, maintenance, clusters and export: readers see the old or the new version."""

import json
import multiprocessing
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from multiprocessing.connection import Connection
from pathlib import Path

import polars as pl
import pytest

from news_platform.corpus.pipeline import build_crawl_day, crawl_dataset
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.near_duplicates.pipeline import build_day
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform_tests.corpus import kill_target
from news_platform_tests.corpus.kill_target import OPTIONS, WINDOW
from news_platform_tests.corpus.pages import DAY, StoredPage, article_html, collect_pages

SHORT_WORKS: tuple[tuple[str, ...], ...] = (("build",), ("vacuum",), ("export",))
# Two builders of one day, of which one goes on when the other is killed.
LONG_WORKS = (
    ("build",),
    ("optimize",),
    ("vacuum",),
    ("export",),
    ("cluster",),
    ("build", "build"),
    ("build", "optimize"),
    ("cluster", "cluster"),
)
# 64 kills on a local folder and 24 on an object store, in parts that can run side by side.
LOCAL_KILLS, LOCAL_SEEDS = 16, (2, 4, 5, 6)
REMOTE_KILLS, REMOTE_SEEDS = 12, (3, 7)
# A kill comes somewhere in the first two rounds of its work.
ROUNDS = 2
# Every process to be killed is a fork of one that has imported its work: to start an interpreter
# takes longer than most of the works.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload([kill_target.__name__])


def stored_pages(version: int) -> list[StoredPage]:
    return [
        StoredPage(f"https://site{number}.example/news/{number}", article_html(number + version))
        for number in range(40)
    ]


class Days:
    """A day in two versions, one of which is stored, and processes that work on it."""

    def __init__(self, store: ObjectStore, scratch: Path) -> None:
        self.store, self.scratch = store, scratch
        self.versions = [self.finished(version) for version in (0, 1)]
        assert not self.versions[0][0].equals(self.versions[1][0])
        self._seconds: dict[str, float] = {}

    def finished(self, version: int) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Collect a version, build everything undisturbed, and return what is read then."""
        self.collect(version)
        build_crawl_day(self.store, DAY, options=replace(OPTIONS, workers=0))
        build_day(self.store, DAY, days=WINDOW)
        return self.rows(), self.clusters()

    def collect(self, version: int) -> None:
        collect_pages(self.store, stored_pages(100 * version))

    def rows(self) -> pl.DataFrame:
        return crawl_dataset(self.store).scan().filter(pl.col("day") == DAY).collect()

    def clusters(self) -> pl.DataFrame:
        return read_table(self.store, NEAR_DUPLICATES.place.path(date=DAY), NEAR_DUPLICATES)

    @contextmanager
    def working(self, work: str) -> Iterator[Connection]:
        """Start a process that is ready to work, and kill it at the latest with the block."""
        words, told = FORKS.Pipe(duplex=False)
        process = FORKS.Process(
            target=kill_target.repeat_work,
            args=(told, self.store.url, self.store.options),
            kwargs={"scratch": str(self.scratch), "work": work},
        )
        process.start()
        told.close()
        try:
            assert words.recv() == "ready"
            yield words
        finally:
            process.kill()
            process.join()
            words.close()

    def seconds(self, work: str) -> float:
        """Return how long the work takes once, on this machine and at this load."""
        if work not in self._seconds:
            with self.working(work) as words:
                started = time.monotonic()
                assert words.recv() == "done"
                self._seconds[work] = time.monotonic() - started
        return self._seconds[work]

    def kill_during(self, works: Sequence[str], *, at: float) -> None:
        """Start the works, and kill them one after the other, at a share of their time."""
        if len(works) > 1:
            with self.working(works[0]):
                self.kill_during(works[1:], at=at)
                time.sleep(self.seconds(works[0]) / 2)
            return
        wait = at * ROUNDS * self.seconds(works[0])
        with self.working(works[0]):
            time.sleep(wait)


def run_kills(
    store: ObjectStore, scratch: Path, works: Sequence[Sequence[str]], *, kills: int, seed: int
) -> Mapping[str, int]:
    chance, counts = random.Random(seed), dict.fromkeys(("old", "new"), 0)
    days = Days(store, scratch)
    for kill in range(kills):
        work, version = works[kill % len(works)], kill % 2
        # The other version is stored, and this one is to come.
        days.collect(version)
        days.kill_during(work, at=chance.random())
        found = [days.rows().equals(rows) for rows, _ in days.versions]
        assert any(found), (seed, kill, work)
        counts["new" if found[version] else "old"] += 1
        assert any(days.clusters().equals(it) for _, it in days.versions), (seed, kill, work)
        assert _is_whole(scratch / "export"), (seed, kill, work)
        rows, clusters = days.finished(version)
        assert rows.equals(days.versions[version][0]), (seed, kill, work)
        assert clusters.equals(days.versions[version][1]), (seed, kill, work)
    # What the dead left behind goes with the next vacuum, and no row with it.
    crawl_dataset(store).maintain(timedelta(0))
    assert days.rows().equals(days.versions[(kills - 1) % 2][0])
    files = {file.path for file in crawl_dataset(store).files()}
    left = {info.path for info in store.list("crawl_articles", name_prefix="day=")}
    assert left == files
    return counts


def _is_whole(export: Path) -> bool:
    if not export.exists():
        return True
    manifest = json.loads((export / "manifest.json").read_text())
    return all(
        (export / shard["path"]).stat().st_size == shard["bytes"] for shard in manifest["shards"]
    )


def test_kills_leave_the_old_or_the_new_version(local_store: ObjectStore, tmp_path: Path) -> None:
    run_kills(local_store, tmp_path, SHORT_WORKS, kills=len(SHORT_WORKS), seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", LOCAL_SEEDS)
def test_many_kills_leave_the_old_or_the_new_version(
    local_store: ObjectStore, tmp_path: Path, seed: int
) -> None:
    counts = run_kills(local_store, tmp_path, LONG_WORKS, kills=LOCAL_KILLS, seed=seed)
    # The kills came before and after the commit.
    assert min(counts.values()) > 0


@pytest.mark.soak
@pytest.mark.parametrize("seed", REMOTE_SEEDS)
def test_kills_on_an_object_store_leave_the_old_or_the_new_version(
    s3_store: ObjectStore, tmp_path: Path, seed: int
) -> None:
    counts = run_kills(s3_store, tmp_path, LONG_WORKS, kills=REMOTE_KILLS, seed=seed)
    assert min(counts.values()) > 0
