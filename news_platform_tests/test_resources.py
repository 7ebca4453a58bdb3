"""From settings to opened resources."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from news_platform.errors import ConfigError
from news_platform.resources import Resources
from news_platform.sample.inputs import place_inputs
from news_platform.sample.world import WORLD_NOW
from news_platform.settings import Settings
from news_platform.storage.commit.root import read_world
from news_platform.web.fetch import WebFetcher


@pytest.fixture
def sample_doors(tmp_path: Path, sample_world: Path) -> Resources:
    return Resources(
        Settings(root=str(tmp_path / "root"), sample=True, sample_world=str(sample_world)),
        frozen_clock=True,
    )


def test_opening_nothing_touches_nothing(tmp_path: Path) -> None:
    Resources(Settings(root=str(tmp_path / "root")))
    assert not (tmp_path / "root").exists()


def test_a_sample_root_reads_the_sample_crawl(sample_doors: Resources) -> None:
    listing = "crawl-data/CC-NEWS/2025/11/warc.paths.gz"
    assert sample_doors.crawl.store.exists(listing)
    assert read_world(sample_doors.data_root.store) == "sample"


def test_a_sample_root_reaches_the_sample_sites_and_nothing_else(sample_doors: Resources) -> None:
    options = sample_doors.web.fetch_options
    host = min(options.host_map)

    async def status() -> int:
        async with WebFetcher(options) as fetcher:
            return (await fetcher.fetch(f"https://{host}/robots.txt")).status

    assert asyncio.run(status()) in (200, 404)
    assert all(host.endswith(".example") for host in options.host_map)


def test_a_real_root_maps_no_host(tmp_path: Path) -> None:
    assert Resources(Settings(root=str(tmp_path))).web.fetch_options.host_map == {}


def test_a_frozen_sample_clock_stands_and_a_running_one_goes_on(sample_doors: Resources) -> None:
    assert sample_doors.clock.now() == WORLD_NOW
    running = Resources(sample_doors.settings).clock
    assert WORLD_NOW <= running.now() < WORLD_NOW + timedelta(minutes=10)


def test_the_ledger_lies_under_a_local_root_with_its_tables(sample_doors: Resources) -> None:
    with sample_doors.ledger.engine.connect() as connection:
        assert connection.dialect.name == "sqlite"
    assert list((Path(sample_doors.settings.root)).glob("ledger.sqlite*"))


def test_a_remote_root_needs_a_place_for_the_sample_world() -> None:
    with pytest.raises(ConfigError, match="NEWS_PLATFORM_SAMPLE_WORLD"):
        Resources(Settings(root="s3://bucket/x", sample=True)).data_root.world_folder()


def test_inputs_are_placed_once(sample_doors: Resources) -> None:
    store, world = sample_doors.data_root.store, sample_doors.data_root.world
    assert place_inputs(world, store) > 0
    assert place_inputs(world, store) == 0
    assert store.exists("feeds.opml")
    assert list(store.list("raw")) and list(store.list("snapshots"))
