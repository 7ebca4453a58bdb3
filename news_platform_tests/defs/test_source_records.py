"""The assets of source records on small inputs."""

import json
from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from click.testing import CliRunner

from news_platform.cli.main import main
from news_platform.datasets.source_records import SOURCE_RECORDS, records_path
from news_platform.defs.source_records import (
    RECORDS_RULE,
    few_pages_fail,
    records_are_sound,
    source_records,
    watch_page_snapshots,
)
from news_platform.resources import Resources
from news_platform.setting_sections.features import SourceRecordsSettings
from news_platform.settings import Settings
from news_platform.source_records.pipeline import outdated_institutions, record_problems
from news_platform.storage.commit.markers import read_markers, read_report, write_marker
from news_platform.storage.commit.root import pause
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import parquet_bytes, read_table
from news_platform_tests.defs.over import over, resumed
from news_platform_tests.source_records.pages import DEPARTMENTS, FULL_PAGE
from news_platform_tests.source_records.test_pipeline import put_page


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        opened.add_dynamic_partitions("institutions", ["u1"])
        yield opened


def run(
    store: ObjectStore, instance: dg.DagsterInstance, rules: Path | None = None
) -> dg.ExecuteInProcessResult:
    resources = {"platform": Resources(settings(store, rules))}
    return dg.materialize(
        [source_records, records_are_sound.definition, few_pages_fail.definition],
        resources=resources,
        partition_key="u1",
        instance=instance,
    )


def redone(store: ObjectStore, instance: dg.DagsterInstance, redo: str) -> bool:
    """Return whether a run with this choice segments the institution."""
    done = dg.materialize(
        [source_records],
        resources={"platform": Resources(settings(store, None))},
        partition_key="u1",
        instance=instance,
        run_config={"ops": {"source_records": {"config": {"redo": redo}}}},
    )
    (made,) = done.asset_materializations_for_node("source_records")
    return "unchanged" not in made.metadata


def outdate(store: ObjectStore) -> None:
    """Mark the institution as made by another version of the segmenter."""
    [marker] = read_markers(store, "source_records").values()
    write_marker(
        store,
        "source_records",
        marker.partition,
        inputs=marker.inputs,
        report=read_report(store, marker),
        scope="0",
    )


def settings(store: ObjectStore, rules: Path | None) -> Settings:
    records = SourceRecordsSettings(rules=str(rules) if rules else None, workers=0)
    return Settings(root=resumed(store.url), source_records=records)


def checks(done: dg.ExecuteInProcessResult) -> dict[str, bool]:
    return {check.check_name: check.passed for check in done.get_asset_check_evaluations()}


def test_an_institution_is_cut_checked_and_then_rests(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    put_page(local_store, "faculty", FULL_PAGE)
    assert RECORDS_RULE.stale(over(local_store)).keys() == {"u1"}
    done = run(local_store, instance)
    (materialization,) = done.asset_materializations_for_node("source_records")
    metadata = materialization.metadata
    assert metadata["dagster/partition_row_count"].value == 6
    assert metadata["pages_seen"].value == 2
    assert "Computer Science" not in str(metadata), "texts stay in the root"
    assert "| footer | 2 |" in str(metadata["dropped"].value)
    assert checks(done) == {"records_are_sound": True, "few_pages_fail": True}
    assert RECORDS_RULE.stale(over(local_store)) == {}


def test_an_edited_rule_file_makes_the_sensor_ask_for_the_institution_again(
    local_store: ObjectStore, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    rules = tmp_path / "rules.toml"
    rules.write_text('[sections]\nnavigation_items = ["computer science"]')
    assert kept(run(local_store, instance, rules)) == 1
    assert stale_after_a_tick(local_store, instance, rules) == set()
    rules.write_text("[sections]\nnavigation_items = []")
    assert stale_after_a_tick(local_store, instance, rules) == {"u1"}
    assert kept(run(local_store, instance, rules)) == 2
    assert stale_after_a_tick(local_store, instance, rules) == set()


def test_a_run_segments_what_its_redo_says(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    assert redone(local_store, instance, "missing"), "it was never built"
    assert redone(local_store, instance, "all")
    outdate(local_store)
    assert not redone(local_store, instance, "missing")
    assert redone(local_store, instance, "outdated"), "another version made it"
    local_store.delete([records_path("u1")])
    assert redone(local_store, instance, "missing"), "its file is gone"
    with pytest.raises(dg.DagsterInvalidConfigError, match="redo"):
        redone(local_store, instance, "everything")


def test_the_command_makes_outdated_records_again(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    run(local_store, instance)
    outdate(local_store)
    words = ["records", "build", "--redo", "outdated", "--root", local_store.url, "--json"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    assert len(json.loads(done.stdout)) == 1
    assert outdated_institutions(local_store) == []


def kept(done: dg.ExecuteInProcessResult) -> object:
    (materialization,) = done.asset_materializations_for_node("source_records")
    return materialization.metadata["blocks_kept"].value


def stale_after_a_tick(
    store: ObjectStore, instance: dg.DagsterInstance, rules: Path
) -> AbstractSet[str]:
    resources = {"platform": Resources(settings(store, rules))}
    with dg.build_sensor_context(instance=instance, resources=resources) as context:
        watch_page_snapshots(context)
    return RECORDS_RULE.stale(over(store)).keys()


def test_too_many_failed_pages_fail_their_check(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    put_page(local_store, "empty", "")
    assert checks(run(local_store, instance)) == {
        "records_are_sound": True,
        "few_pages_fail": False,
    }


def test_a_sensor_adds_institutions_and_observes_their_snapshots(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    local_store.put("snapshots/institution=u2/page.md", b"# Page of the second institution")
    resources = {"platform": over(local_store)}
    with dg.build_sensor_context(instance=instance, resources=resources) as context:
        result = watch_page_snapshots(context)
    assert isinstance(result, dg.SensorResult)
    assert [event.partition for event in result.asset_events] == ["u1", "u2"]
    assert result.dynamic_partitions_requests is not None
    (request,) = result.dynamic_partitions_requests
    assert request.partition_keys == ["u2"]
    with dg.build_sensor_context(
        instance=instance, resources=resources, cursor=result.cursor
    ) as context:
        again = watch_page_snapshots(context)
    assert isinstance(again, dg.SensorResult) and not again.asset_events
    pause(local_store)
    with dg.build_sensor_context(instance=instance, resources=resources) as context:
        assert isinstance(watch_page_snapshots(context), dg.SkipReason)


def test_what_another_segmenter_made_is_counted_and_made_again_only_if_asked_for(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    run(local_store, instance)
    outdate(local_store)
    assert outdated_institutions(local_store) == ["u1"]
    assert RECORDS_RULE.stale(over(local_store)) == {}
    asking = Settings(
        root=resumed(local_store.url),
        source_records=SourceRecordsSettings(redo_outdated=True, workers=0),
    )
    assert RECORDS_RULE.stale(Resources(asking)).keys() == {"u1"}
    (made,) = run(local_store, instance).asset_materializations_for_node("source_records")
    assert made.metadata["institutions_outdated"].value == 0
    assert RECORDS_RULE.stale(Resources(asking)) == {}


def test_rows_with_problems_are_reported(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    run(local_store, instance)
    rows = read_table(local_store, records_path("u1"), SOURCE_RECORDS)
    broken = rows.reverse().with_columns(text=pl.lit(" "))
    local_store.put(records_path("u1"), parquet_bytes(broken, SOURCE_RECORDS))
    told = record_problems("u1", store=local_store)
    assert told == ["u1: 2 records without text", "u1: 1 records out of order"]
