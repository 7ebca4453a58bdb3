"""The news crawl in Dagster: a day materialises, the sensor follows, the checks see red."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from pathlib import Path

import dagster as dg
import pytest

from news_platform.ccnews.scan import scan_news
from news_platform.datasets.collected import collected_path, dump_collected
from news_platform.datasets.raw_news import raw_news_path
from news_platform.defs import ccnews
from news_platform.resources import Crawl, DataRoot
from news_platform.sample.resources import SampleResources
from news_platform.settings import CcnewsSettings, Settings
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.commit.root import pause, resume
from news_platform_tests.ccnews.crawl import (
    NOW,
    mixed_pages,
    warc_name,
    warc_path,
    write_crawl,
    write_listings,
)

DAYS = [date(2025, 11, 1), date(2025, 11, 2), date(2025, 11, 3)]
NEWEST = DAYS[-1].isoformat()


@dataclass(frozen=True)
class FixedClock:
    """A clock that stands still."""

    moment: datetime = NOW

    def now(self) -> datetime:
        return self.moment


@dataclass
class Shell:
    """The feature with its resources and an instance; `tick` evaluates the sensor."""

    folder: Path
    instance: dg.DagsterInstance
    settings: Settings
    cursor: str | None = None
    observed: list[dg.AssetObservation] = field(default_factory=list)

    @property
    def data_root(self) -> DataRoot:
        return DataRoot(self.settings)

    @property
    def resources(self) -> Mapping[str, object]:
        root = self.data_root
        return {"data_root": root, "crawl": Crawl(root), "clock": FixedClock()}

    def tick(self) -> list[dg.RunRequest]:
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources=self.resources
        )
        result = ccnews.new_warc_paths(context)
        if isinstance(result, dg.SkipReason):
            return []
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        self.observed += [
            event for event in result.asset_events if isinstance(event, dg.AssetObservation)
        ]
        return list(result.run_requests or ())

    def run(self, day: str, tags: Mapping[str, str] | None = None) -> dg.ExecuteInProcessResult:
        defs = dg.Definitions.merge(
            ccnews.defs, dg.Definitions(resources=self.resources, executor=dg.in_process_executor)
        )
        return defs.resolve_implicit_global_asset_job_def().execute_in_process(
            partition_key=day,
            tags=dict(tags or {}),
            instance=self.instance,
            raise_on_error=False,
            asset_selection=[dg.AssetKey("raw_news")],
        )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "crawl"
    write_crawl(folder, {warc_path(day): mixed_pages(3) for day in DAYS})
    given = CcnewsSettings(source=str(folder), workers=1)
    settings = Settings(root=str(tmp_path / "root"), ccnews=given)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Shell(folder, instance, settings)


def _metadata(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    events = result.get_asset_materialization_events()
    (event,) = [event for event in events if event.asset_key == dg.AssetKey("raw_news")]
    return {name: value.value for name, value in event.materialization.metadata.items()}


def _passed(result: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {one.check_name: one.passed for one in result.get_asset_check_evaluations()}


ALL_GREEN = {
    "rows_equal_markers": True,
    "schema_is_exact": True,
    "no_page_twice": True,
    "listed_warcs_collected": True,
}


def test_a_day_materialises_with_its_metadata_and_checks(shell: Shell) -> None:
    result = shell.run("2025-11-01")
    assert result.success
    found = _metadata(result)
    assert found["dagster/partition_row_count"] == 3
    assert found["warcs"] == found["warcs_listed"] == 1
    assert str(found["dagster/uri"]).endswith("news/raw/year=2025/month=11/day=01")
    assert float(str(found["pages_per_second"])) > 0
    assert "| en | 1 |" in str(found["languages"])
    assert "https://news0.example.com/a/0" in str(found["preview"])
    assert _passed(result) == ALL_GREEN
    assert scan_news(shell.settings.root).collect().height == 3


def test_a_complete_day_costs_nothing_and_keeps_its_rows(shell: Shell) -> None:
    shell.run("2025-11-01")
    before = read_collected(shell.data_root.store, [DAYS[0]])
    found = _metadata(shell.run("2025-11-01"))
    assert (found["dagster/partition_row_count"], found["rows_added"]) == (3, 0)
    assert read_collected(shell.data_root.store, [DAYS[0]]) == before


def test_a_day_without_warcs_materialises_empty(shell: Shell) -> None:
    found = _metadata(shell.run("2020-02-02"))
    assert (found["dagster/partition_row_count"], found["warcs_listed"]) == (0, 0)


def test_an_altered_marker_and_an_altered_file_turn_the_check_red(shell: Shell) -> None:
    shell.run("2025-11-01")
    store, name = shell.data_root.store, warc_name(DAYS[0])
    (marker,) = read_collected(store, [DAYS[0]])
    store.put(
        collected_path(DAYS[0], name),
        dump_collected(replace(marker, languages={"en": 2, "nl": 1, "fr": 1})),
    )
    assert _passed(shell.run("2025-11-01")) == {**ALL_GREEN, "rows_equal_markers": False}
    store.put(collected_path(DAYS[0], name), dump_collected(marker))
    dutch = raw_news_path(DAYS[0], "nl", filename=name)
    store.put(dutch, store.read(raw_news_path(DAYS[0], "en", filename=name))[:-9])
    red = _passed(shell.run("2025-11-01"))
    assert not red["rows_equal_markers"]
    assert not red["schema_is_exact"]


def test_a_bad_warc_fails_the_run_after_the_others_are_done(shell: Shell) -> None:
    bad = shell.folder / warc_path(DAYS[0], 2)
    bad.write_bytes(b"<html>not found</html>")
    write_listings(shell.folder, [warc_path(DAYS[0], number) for number in (1, 2)])
    result = shell.run("2025-11-01")
    assert not result.success
    (event,) = result.get_step_failure_events()
    assert event.step_failure_data.error is not None
    assert "not a WARC" in str(event.step_failure_data.user_failure_data)
    assert len(read_collected(shell.data_root.store, [DAYS[0]])) == 1


def test_the_sensor_starts_with_the_newest_day_and_tells_of_the_listing(shell: Shell) -> None:
    (request,) = shell.tick()
    assert request.partition_key == NEWEST
    assert request.run_key is not None
    assert request.run_key.startswith(f"{NEWEST}@")
    (observation,) = shell.observed
    assert observation.metadata["warcs"].value == 3
    again = shell.tick()  # no run came of it, so it is requested again under the same key
    assert [one.run_key for one in again] == [request.run_key]
    assert len(shell.observed) == 1


def test_the_sensor_asks_once_more_when_a_warc_is_added_to_an_old_day(shell: Shell) -> None:
    shell.tick()
    for day in ("2025-11-01", NEWEST):
        assert shell.run(day).success
    assert shell.tick() == []
    late = shell.folder / warc_path(DAYS[0], 2)
    late.write_bytes((shell.folder / warc_path(DAYS[0], 1)).read_bytes())
    write_listings(shell.folder, [*(warc_path(day) for day in DAYS), warc_path(DAYS[0], 2)])
    (request,) = shell.tick()
    assert request.partition_key == "2025-11-01"
    assert shell.run("2025-11-01", request.tags).success
    assert shell.tick() == []
    assert len(read_collected(shell.data_root.store, [DAYS[0]])) == 2


def test_a_day_that_failed_comes_back_with_another_run_key(shell: Shell) -> None:
    (shell.folder / warc_path(DAYS[2])).write_bytes(b"")
    (first,) = shell.tick()
    assert not shell.run(NEWEST, first.tags).success
    assert shell.tick() == []  # it waits before it tries again
    assert shell.cursor is not None
    pending = '"retry_at": '
    start = shell.cursor.index(pending) + len(pending)
    shell.cursor = shell.cursor[:start] + "0" + shell.cursor[shell.cursor.index("}", start) :]
    (second,) = shell.tick()
    assert second.partition_key == NEWEST
    assert second.run_key != first.run_key


def test_a_paused_root_asks_for_nothing(shell: Shell) -> None:
    pause(shell.data_root.store)
    assert shell.tick() == []
    resume(shell.data_root.store)
    assert len(shell.tick()) == 1


def test_a_cap_limits_the_warcs_of_a_day(shell: Shell) -> None:
    write_crawl(shell.folder, {warc_path(DAYS[2], number): mixed_pages(2) for number in (1, 2, 3)})
    two = shell.settings.ccnews.model_copy(update={"max_warcs": 2})
    shell.settings = shell.settings.model_copy(update={"ccnews": two})
    assert shell.run(NEWEST).success
    assert len(read_collected(shell.data_root.store, [DAYS[2]])) == 2
    assert shell.tick() == []


def test_the_demo_step_lists_every_day_that_lacks_a_warc(
    sample_world: Path, tmp_path: Path
) -> None:
    settings = Settings(root=str(tmp_path / "root"), sample=True, sample_world=str(sample_world))
    resources = SampleResources(settings, frozen_clock=True)
    (staleness,) = ccnews.STALENESS
    assert sorted(staleness.stale(resources)) == ["2025-11-01", "2025-11-02", "2025-11-03"]


def test_every_asset_has_group_owner_and_description() -> None:
    for spec in (ccnews.warc_paths, *ccnews.raw_news.specs):
        assert spec.group_name == "ccnews"
        assert spec.owners == ["team:ccnews"]
        assert spec.description
        assert "dagster/column_schema" in spec.metadata
