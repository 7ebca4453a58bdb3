"""Many WARCs at once: a bad page or WARC costs only itself, and a kill leaves no trace."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import polars as pl
import psutil
import pytest

from news_platform.ccnews.pipeline import CollectReport, WarcSource, collect_day, collect_warcs
from news_platform.ccnews.pool import (
    CollectFailure,
    CollectListener,
    CollectOptions,
    Estimate,
    WarcProgress,
    scratch_folder,
)
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.collected import Collected
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.archive import Record, http
from news_platform_tests.ccnews.crawl import (
    DAY,
    NOW,
    collect_all,
    collect_here,
    mixed_pages,
    stored_paths,
    warc_name,
    warc_path,
    write_crawl,
    write_listings,
)
from news_platform_tests.emulators.fault_proxy import FaultProxy

PATHS = [warc_path(DAY, 1), warc_path(DAY, 2)]
PAGES = 6


def _hanging_page() -> Record:
    """Return a page whose deep nesting is where the guard does not check."""
    depth = 60_000
    html = f"<p>a</p><section>{'<div>' * depth}x{'</div>' * depth}</section><p>b</p>"
    return Record(http(f"<html><body>{html}</body></html>"), uri="https://hang.example.com/")


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    folder = tmp_path_factory.mktemp("pool") / "crawl"
    return write_crawl(folder, dict.fromkeys(PATHS, mixed_pages(PAGES)))


def _rows(store: ObjectStore) -> pl.DataFrame:
    return scan_news(store).sort("filename", "uri").collect()


@pytest.fixture(scope="module")
def expected(
    crawl: ObjectStore, tmp_path_factory: pytest.TempPathFactory
) -> tuple[pl.DataFrame, set[str]]:
    """Return the rows and paths of an undisturbed run."""
    folder = tmp_path_factory.mktemp("undisturbed")
    store = open_store(str(folder / "root"))
    for number, path in enumerate(PATHS):
        collect_here(path, source=crawl, root=store, scratch=folder / f"u{number}")
    return _rows(store), stored_paths(store)


class Recorder(CollectListener):
    """Keep what the run reports."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def start(self, estimate: Estimate) -> None:
        self.heard.append(f"{estimate.warcs} WARC")

    def advance(self, warc_name: str, progress: WarcProgress) -> None:
        self.heard.append(f"{warc_name} {progress.rows}")

    def finish(self, outcome: Collected | CollectFailure) -> None:
        self.heard.append(f"done {outcome.warc}")


def test_warcs_are_collected_side_by_side_and_the_listener_hears_of_it(
    crawl: ObjectStore, local_store: ObjectStore, expected: tuple[pl.DataFrame, set[str]]
) -> None:
    recorder = Recorder()
    report = collect_warcs(
        [WarcSource(path, (crawl,)) for path in PATHS],
        root=local_store,
        options=CollectOptions(workers=2),
        now=NOW,
        attempt="a",
        listener=recorder,
    )
    names = [warc_name(DAY, 1), warc_name(DAY, 2)]
    assert [marker.warc for marker in report.collected] == names
    assert report.failed == ()
    assert _rows(local_store).equals(expected[0])
    assert stored_paths(local_store) == expected[1]
    assert recorder.heard[0] == "2 WARC"
    assert {f"{name} {PAGES - 1}" for name in names} <= set(recorder.heard)
    assert recorder.heard[-1] in {f"done {name}" for name in names}


def test_a_day_is_collected_once_and_from_the_source_that_has_its_warcs(
    crawl: ObjectStore, local_store: ObjectStore, tmp_path: Path
) -> None:
    write_listings(tmp_path / "listing only", PATHS)
    collect = partial(
        collect_day,
        DAY,
        crawl=(open_store(str(tmp_path / "listing only")), crawl),
        root=local_store,
        now=NOW,
        attempt="a",
    )
    first = collect(options=CollectOptions(workers=0, max_warcs=1))
    assert [marker.warc for marker in first.collected] == [warc_name(DAY, 1)]
    second = collect(options=CollectOptions(workers=0))
    assert [marker.warc for marker in second.collected] == [warc_name(DAY, 2)]
    assert collect(options=CollectOptions()) == CollectReport((), (), listed=2)


def test_a_page_that_hangs_costs_itself_and_is_counted(
    tmp_path: Path, local_store: ObjectStore
) -> None:
    pages = [*mixed_pages(2), _hanging_page(), *mixed_pages(3)]
    crawl = write_crawl(tmp_path / "crawl", {PATHS[0]: pages})
    options = CollectOptions(workers=1, page_seconds=1.5)
    report = collect_all(PATHS[:1], source=crawl, root=local_store, options=options)
    assert report.failed == ()
    (collected,) = report.collected
    assert collected.dropped == {"extractor_timeout": 1}
    assert collected.rows == 5


def test_an_interrupted_run_ends_at_once_and_leaves_no_worker(
    tmp_path: Path, local_store: ObjectStore
) -> None:
    """Dagster raises an error in the main thread of a run that somebody cancels."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    crawl = write_crawl(tmp_path / "crawl", {path: [_hanging_page()] for path in PATHS})
    before, usual = set(psutil.Process().children()), signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    started = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):
            options = CollectOptions(workers=2, page_seconds=120.0)
            collect_all(PATHS, source=crawl, root=local_store, options=options)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, usual)
    assert time.monotonic() - started < 15
    assert set(psutil.Process().children()) <= before


def test_a_bad_warc_does_not_keep_the_others(tmp_path: Path, local_store: ObjectStore) -> None:
    crawl = write_crawl(tmp_path / "crawl", dict.fromkeys(PATHS, mixed_pages(2)))
    crawl.put(PATHS[0], crawl.read(PATHS[0])[:-100])
    paths = [*PATHS, warc_path(DAY, 9)]
    report = collect_all(paths, source=crawl, root=local_store)
    assert report.failed[0].is_broken and not report.failed[1].is_broken
    assert [marker.warc for marker in report.collected] == [warc_name(DAY, 2)]
    assert [failure.warc for failure in report.failed] == [warc_name(DAY, 1), warc_name(DAY, 9)]
    assert "is truncated" in report.failed[0].reason
    assert not report.failed[0].reason.startswith("InputError")
    assert [marker.warc for marker in read_collected(local_store)] == [warc_name(DAY, 2)]


def test_scratch_folders_of_dead_processes_are_removed() -> None:
    with scratch_folder() as scratch:
        dead = subprocess.Popen([sys.executable, "-c", ""])
        dead.wait()
        left = scratch.parent / f"news-platform-ccnews-{dead.pid}-left"
        left.mkdir()
        (left / "en.parquet").write_bytes(b"x")
        with scratch_folder() as another:
            assert another.exists()
            assert scratch.exists()
        assert not left.exists()
    assert not scratch.exists()


def test_a_source_that_drops_truncates_and_refuses_gives_the_same_rows(
    crawl: ObjectStore,
    s3_store: ObjectStore,
    s3_faults: tuple[FaultProxy, str],
    local_store: ObjectStore,
    expected: tuple[pl.DataFrame, set[str]],
) -> None:
    for path in PATHS:
        s3_store.put(path, crawl.read(path))
    proxy = s3_faults[0]
    proxy.inject("drop", "GET", times=2, match=".warc.gz")
    proxy.inject("slow_down", "GET", times=1, match=".warc.gz")
    proxy.inject("truncate", "GET", times=1, match=".warc.gz")
    options = CollectOptions(workers=0)
    report = collect_all(PATHS, source=s3_store, root=local_store, options=options)
    assert report.failed == ()
    assert _rows(local_store).equals(expected[0])


def test_two_runs_of_the_same_day_at_once_give_the_same_result(
    crawl: ObjectStore, local_store: ObjectStore, expected: tuple[pl.DataFrame, set[str]]
) -> None:
    collect = partial(
        collect_all, source=crawl, root=local_store, options=CollectOptions(workers=0)
    )
    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(collect, PATHS) for _ in range(2)]
        assert all(run.result().failed == () for run in runs)
    assert _rows(local_store).equals(expected[0])
    assert stored_paths(local_store) == expected[1]


_RUN = """
import sys
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.objects.store import open_store
from news_platform_tests.ccnews.crawl import collect_all
collect_all(sys.argv[3:], source=open_store(sys.argv[1]), root=open_store(sys.argv[2]))
"""


def _start_run(crawl: ObjectStore, store: ObjectStore) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-c", _RUN, crawl.url, store.url, *PATHS]
    return subprocess.Popen(command, start_new_session=True)


def _kill_and_run_again(
    run: "subprocess.Popen[bytes]",
    store: ObjectStore,
    crawl: ObjectStore,
    scratch: Path,
    expected: tuple[pl.DataFrame, set[str]],
) -> None:
    os.killpg(run.pid, signal.SIGKILL)
    run.wait()
    done = {marker.warc for marker in read_collected(store)}
    for path in PATHS:
        if path.rpartition("/")[2] not in done:
            collect_here(path, source=crawl, root=store, scratch=scratch / path[-20:])
    assert _rows(store).equals(expected[0])
    assert {path for path in stored_paths(store) if "tmp" not in path} == expected[1]


def test_kill_9_and_a_second_run_give_the_same_rows(
    crawl: ObjectStore, expected: tuple[pl.DataFrame, set[str]], tmp_path: Path
) -> None:
    store = open_store(str(tmp_path / "killed"))
    run = _start_run(crawl, store)
    while run.poll() is None and not stored_paths(store):
        time.sleep(0.01)
    assert run.poll() is None
    _kill_and_run_again(run, store, crawl, tmp_path, expected)


@pytest.mark.soak
def test_kill_9_at_thirty_moments_and_second_runs_give_the_same_rows(
    crawl: ObjectStore, expected: tuple[pl.DataFrame, set[str]], tmp_path: Path
) -> None:
    undisturbed = open_store(str(tmp_path / "timing"))
    started = time.monotonic()
    assert _start_run(crawl, undisturbed).wait() == 0
    longest = time.monotonic() - started
    chance = random.Random(11)
    for number in range(30):
        store = open_store(str(tmp_path / f"killed{number}"))
        run = _start_run(crawl, store)
        time.sleep(longest * chance.uniform(0.3, 1.0))
        _kill_and_run_again(run, store, crawl, tmp_path / str(number), expected)
