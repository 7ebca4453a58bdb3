"""kill -9 anywhere in build, maintenance and export: readers see the old or the new version."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

from news_platform.corpus.pipeline import build_crawl_day, crawl_dataset
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.corpus.kill_target import OPTIONS
from news_platform_tests.corpus.pages import DAY, StoredPage, article_html, collect_pages

SHORT_KILLS = 2
LONG_KILLS = 60
# From the first instruction of a round to some rounds later.
LONGEST_SECONDS = 1.5


def stored_pages(version: int) -> list[StoredPage]:
    return [
        StoredPage(f"https://site{number}.example/news/{number}", article_html(number + version))
        for number in range(40)
    ]


def rows(store: ObjectStore) -> pl.DataFrame:
    return crawl_dataset(store).scan().filter(pl.col("day") == DAY).collect()


def kill_during(arguments: Sequence[str], *, after_seconds: float) -> None:
    """Start the work, kill it with its workers after a while, and wait for its end."""
    command = [sys.executable, "-m", "news_platform_tests.corpus.kill_target", *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        time.sleep(after_seconds)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL


def run_kills(store: ObjectStore, scratch: Path, *, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    versions: list[pl.DataFrame] = []
    for version in (0, 100):
        collect_pages(store, stored_pages(version))
        build_crawl_day(store, DAY, options=OPTIONS)
        versions.append(rows(store))
    assert not versions[0].equals(versions[1])
    for kill in range(kills):
        collect_pages(store, stored_pages(100 * (kill % 2)))
        for work in ("build", "maintain", "export"):
            wait = chance.uniform(0, LONGEST_SECONDS)
            kill_during([store.url, str(scratch), work], after_seconds=wait)
            assert any(rows(store).equals(one) for one in versions), (seed, kill, work)
            assert _is_whole(scratch / "export")
        build_crawl_day(store, DAY, options=OPTIONS)
        assert rows(store).equals(versions[kill % 2])
    # What the dead left behind goes with the next vacuum, and no row with it.
    crawl_dataset(store).maintain(timedelta(0))
    assert rows(store).equals(versions[(kills - 1) % 2])
    files = {file.path for file in crawl_dataset(store).files()}
    left = {info.path for info in store.list("crawl_articles", name_prefix="day=")}
    assert left == files


def _is_whole(export: Path) -> bool:
    if not export.exists():
        return True
    manifest = json.loads((export / "manifest.json").read_text())
    return all(
        (export / shard["path"]).stat().st_size == shard["bytes"] for shard in manifest["shards"]
    )


def test_kills_leave_the_old_or_the_new_version(local_store: ObjectStore, tmp_path: Path) -> None:
    run_kills(local_store, tmp_path, kills=SHORT_KILLS, seed=1)


@pytest.mark.soak
def test_many_kills_leave_the_old_or_the_new_version(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    run_kills(local_store, tmp_path, kills=LONG_KILLS, seed=2)
