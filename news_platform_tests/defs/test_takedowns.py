"""Takedowns in Dagster: the sensor, the asset and the check."""

from pathlib import Path

import dagster as dg
import pytest

from news_platform.defs.takedowns import finish_takedowns, nothing_taken_down_is_stored, takedowns
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform.storage.commit.root import pause
from news_platform.takedowns.requests import mark_pending, read_states
from news_platform_tests.ccnews.archive import page
from news_platform_tests.ccnews.crawl import DAY, collect_here, warc_path, write_crawl
from news_platform_tests.defs.over import resumed
from news_platform_tests.takedowns.asked import ask


@pytest.fixture
def resources(tmp_path: Path) -> Resources:
    found = Resources(Settings(root=resumed(str(tmp_path / "root"))))
    path = warc_path(DAY)
    crawl = write_crawl(tmp_path / "crawl", {path: [page(number) for number in range(4)]})
    collect_here(path, source=crawl, root=found.data_root.store, scratch=tmp_path / "scratch")
    return found


def _tick(resources: Resources) -> object:
    with dg.DagsterInstance.ephemeral() as instance:
        context = dg.build_sensor_context(instance=instance, resources={"platform": resources})
        return finish_takedowns(context)


def test_the_sensor_serves_requests_and_finishes_what_was_left(resources: Resources) -> None:
    store = resources.data_root.store
    assert isinstance(_tick(resources), dg.SkipReason)
    mark_pending(store, "raw_news", [str(DAY)])
    assert isinstance(_tick(resources), dg.RunRequest)
    pause(store)
    assert isinstance(_tick(resources), dg.SkipReason)


def test_the_asset_removes_and_names_no_address(resources: Resources) -> None:
    store = resources.data_root.store
    ask(store, "url", "https://news1.example.com/a/1")
    assert not nothing_taken_down_is_stored.evaluate(resources, "").passed
    with dg.DagsterInstance.ephemeral() as instance:
        done = dg.materialize([takedowns], instance=instance, resources={"platform": resources})
    (event,) = done.get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert metadata["rows_removed"].value == 3  # of raw_news, captures and page_metadata
    assert "news1" not in str({key: value.value for key, value in metadata.items()})
    assert all(state.is_applied for state in read_states(store))
    assert nothing_taken_down_is_stored.evaluate(resources, "").passed
    assert isinstance(_tick(resources), dg.SkipReason)
