"""The news crawl in Dagster: a day materialises, the sensor follows, the checks see red."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime, timedelta
from functools import cached_property
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.test_utils import freeze_time

from news_platform.ccnews.maintenance import maintain_crawl
from news_platform.ccnews.pipeline import RebuildMode
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.scan import scan_news
from news_platform.datasets.raw_news import raw_news_path
from news_platform.defs import ccnews, ccnews_checks
from news_platform.defs.graph import definitions_of
from news_platform.defs.runs import CRAWL_OUTPUTS
from news_platform.defs.sensors import reconciling_sensor
from news_platform.resources import Clock, Crawl, DataRoot, Resources
from news_platform.setting_sections.features import CcnewsSettings
from news_platform.settings import Settings
from news_platform.storage.commit.collected import read_collected, write_collected
from news_platform_tests.ccnews.crawl import (
    NOW,
    mixed_pages,
    warc_name,
    warc_path,
    write_crawl,
    write_listings,
)
from news_platform_tests.defs.over import resumed

DAYS = [date(2025, 11, 1), date(2025, 11, 2), date(2025, 11, 3)]
NEWEST = DAYS[-1].isoformat()
SENSOR = reconciling_sensor(ccnews.NEWS_RULE)


@dataclass(frozen=True)
class FixedClock(Clock):
    """A clock that stands still."""

    moment: datetime = NOW

    def now(self) -> datetime:
        return self.moment


class FixedResources(Resources):
    """Resources whose clock stands still."""

    @cached_property
    def clock(self) -> Clock:
        return FixedClock()


@dataclass
class Shell:
    """The feature with its resources and an instance; `tick` evaluates the sensor."""

    folder: Path
    instance: dg.DagsterInstance
    settings: Settings
    now: datetime = NOW
    cursor: str | None = None
    text: str = ""
    observed: list[dg.AssetObservation] = field(default_factory=list)

    def set(self, **given: object) -> None:
        """Change settings of the crawl."""
        changed = self.settings.ccnews.model_copy(update=given)
        self.settings = self.settings.model_copy(update={"ccnews": changed})

    @property
    def platform(self) -> Resources:
        resources = FixedResources(self.settings)
        resources.__dict__["clock"] = FixedClock(self.now)
        return resources

    @property
    def data_root(self) -> DataRoot:
        return self.platform.data_root

    @property
    def resources(self) -> Mapping[str, object]:
        return {"platform": self.platform}

    @property
    def defs(self) -> dg.Definitions:
        shared = dg.Definitions(resources=self.resources, executor=dg.in_process_executor)
        return dg.Definitions.merge(definitions_of(ccnews, ccnews_checks), shared)

    def tick(self) -> list[dg.RunRequest]:
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources=self.resources
        )
        result = SENSOR(context)
        if isinstance(result, dg.SkipReason):
            return []
        assert isinstance(result, dg.SensorResult)
        self.cursor = result.cursor
        self.text = str(result.skip_reason.skip_message) if result.skip_reason else ""
        self.observed += [
            event for event in result.asset_events if isinstance(event, dg.AssetObservation)
        ]
        return list(result.run_requests or ())

    def run(
        self,
        day: str,
        tags: Mapping[str, str] | None = None,
        *,
        redo: RebuildMode | None = None,
        assets: Sequence[str] = ("raw_news",),
    ) -> dg.ExecuteInProcessResult:
        # A sensor reads from Dagster when its runs were requested and ended.
        with freeze_time(self.now):
            return self.defs.resolve_implicit_global_asset_job_def().execute_in_process(
                partition_key=day,
                tags=dict(tags or {}),
                instance=self.instance,
                raise_on_error=False,
                asset_selection=list(map(dg.AssetKey, assets)),
                run_config=dict(ccnews.run_config(redo)) if redo else None,
            )


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    folder = tmp_path / "crawl"
    write_crawl(folder, {warc_path(day): mixed_pages(3) for day in DAYS})
    # In this process: starting a worker takes longer than all that it does here.
    given = CcnewsSettings(source=str(folder), workers=0)
    settings = Settings(root=resumed(str(tmp_path / "root")), ccnews=given)
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
    assert "com.example" in str(found["preview"]) and "/a/0" not in str(found["preview"])
    assert _passed(result) == ALL_GREEN
    assert scan_news(shell.settings.root).collect().height == 3
    empty = _metadata(shell.run("2020-02-02"))
    assert (empty["dagster/partition_row_count"], empty["warcs_listed"]) == (0, 0)


def test_an_altered_marker_and_an_altered_file_turn_the_check_red(shell: Shell) -> None:
    shell.run("2025-11-01")
    store, name = shell.data_root.store, warc_name(DAYS[0])
    (marker,) = read_collected(store, [DAYS[0]])
    write_collected(store, replace(marker, languages={"en": 2, "nl": 1, "fr": 1}))
    assert _passed(shell.run("2025-11-01")) == {**ALL_GREEN, "rows_equal_markers": False}
    write_collected(store, marker)
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
    again = shell.tick()  # no run came of it, so it is requested again
    assert [one.partition_key for one in again] == [NEWEST]
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


def test_a_crawl_that_does_not_answer_is_said_and_looked_at_again(shell: Shell) -> None:
    listing = shell.folder / "crawl-data/CC-NEWS/2025/11/warc.paths.gz"
    good = listing.read_bytes()
    listing.write_bytes(b"no gzip")
    assert shell.tick() == []
    assert "raw_news: cannot read what is stale: InputError" in shell.text
    assert "(since 20:00)" in shell.text
    listing.write_bytes(good)
    assert [request.partition_key for request in shell.tick()] == [NEWEST]


def test_the_tables_beside_the_pages_are_outputs_of_the_run(shell: Shell) -> None:
    graph = shell.defs.resolve_asset_graph()
    built_here = {key.to_user_string() for key in graph.materializable_asset_keys}
    assert built_here == {*CRAWL_OUTPUTS, "capture_index"}
    for assets in (CRAWL_OUTPUTS, ("raw_news",)):
        events = shell.run("2025-11-01", assets=assets).get_asset_materialization_events()
        built = {event.asset_key.to_user_string(): event for event in events if event.asset_key}
        assert built.keys() == set(CRAWL_OUTPUTS)
    captures = built["captures"].materialization.metadata
    assert captures["dagster/partition_row_count"].value == 3
    assert "example.com/" not in str(captures["preview"].value)
    assert str(captures["dagster/uri"].value).endswith("day=01")


def test_a_day_with_other_options_is_outdated_and_redone(shell: Shell) -> None:
    shell.set(languages=("nl",))
    assert _metadata(shell.run("2025-11-01"))["dagster/partition_row_count"] == 1
    shell.set(languages=())
    redone = _metadata(shell.run("2025-11-01"))
    assert (redone["dagster/partition_row_count"], redone["warcs_outdated"]) == (3, 0)
    assert redone["warcs_redone"] == 1
    kept = _metadata(shell.run("2025-11-01"))
    assert (kept["warcs_redone"], kept["rows_added"]) == (0, 0)


def test_a_wrong_redo_value_changes_nothing(shell: Shell) -> None:
    wrong = {"ops": {"raw_news": {"config": {"redo": "everything"}}}}
    with pytest.raises(dg.DagsterInvalidConfigError, match="everything"):
        shell.defs.resolve_implicit_global_asset_job_def().execute_in_process(
            partition_key="2025-11-01", run_config=wrong
        )
    assert list(shell.data_root.store.list("news")) == []


def test_no_sensor_redoes_an_outdated_day_unless_the_settings_say_so(shell: Shell) -> None:
    shell.tick()
    for day in DAYS:
        assert shell.run(str(day)).success
    shell.set(languages=("nl",))
    assert shell.tick() == []
    shell.set(redo_newest_days=2)
    shell.now += timedelta(hours=5)  # a day is requested at most every four hours
    requests = shell.tick()
    assert sorted(str(one.partition_key) for one in requests) == ["2025-11-02", NEWEST]
    assert all(one.run_config == ccnews.run_config(RebuildMode.outdated) for one in requests)


def test_a_failed_backfill_day_is_followed_without_dagsters_memory(shell: Shell) -> None:
    shell.tick()
    assert shell.run(NEWEST).success
    (shell.folder / warc_path(DAYS[0])).write_bytes(b"")
    assert not shell.run("2025-11-01").success
    shell.instance = dg.DagsterInstance.ephemeral()  # a lost DAGSTER_HOME
    (request,) = shell.tick()
    assert request.partition_key == "2025-11-01"
    assert request.run_config == ccnews.run_config(RebuildMode.missing)


def test_a_warc_that_was_published_again_is_redone(shell: Shell) -> None:
    shell.tick()
    for day in DAYS:
        assert shell.run(str(day)).success
    assert shell.tick() == []
    write_crawl(
        shell.folder,
        {warc_path(day): mixed_pages(3) for day in DAYS[1:]} | {warc_path(DAYS[0]): mixed_pages(6)},
    )
    assert shell.tick() == []  # the listing is the same
    _look_after(shell)
    (request,) = shell.tick()
    assert request.partition_key == "2025-11-01"
    found = _metadata(shell.run("2025-11-01", request.tags, redo=RebuildMode.missing))
    assert found["dagster/partition_row_count"] == 6
    assert shell.tick() == []
    _look_after(shell)
    assert shell.tick() == []


def _look_after(shell: Shell) -> None:
    job = shell.defs.resolve_job_def("maintain_crawl")
    assert job.execute_in_process().success


def test_a_broken_warc_is_published_after_equal_failures(shell: Shell) -> None:
    path = shell.folder / warc_path(DAYS[0])
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    assert not shell.run("2025-11-01").success
    path.write_bytes(whole[:-40])  # another version: the count starts anew
    for _ in range(CollectOptions().accept_after):
        assert not shell.run("2025-11-01").success
    result = shell.run("2025-11-01")
    assert result.success
    (marker,) = read_collected(shell.data_root.store, [DAYS[0]])
    assert marker.rows == 2
    assert marker.truncated_at is not None
    assert whole[marker.truncated_at :].startswith(b"\x1f\x8b")
    assert _metadata(result)["warcs_truncated"] == 1
    assert _passed(result) == ALL_GREEN
    path.write_bytes(whole)
    maintain_crawl(
        shell.data_root.store,
        crawl=Crawl(shell.data_root).sources,
        now=NOW,
        recheck_days=60,
        dropped_days=90,
    )
    assert shell.run("2025-11-01").success
    (marker,) = read_collected(shell.data_root.store, [DAYS[0]])
    assert (marker.rows, marker.truncated_at) == (3, None)
