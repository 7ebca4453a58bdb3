"""The survey's assets on the sample world: each materializes, follows its parent, is checked."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from functools import cached_property
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
import sqlalchemy as sa
from dagster._core.test_utils import instance_for_test

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.defs import domain_metadata
from news_platform.defs.domain_automation import (
    plan_domain_resurveys,
    resurvey_due_domains,
    retry_unfinished_domains,
    seed_catalog_domains,
    survey_catalog_domains,
    watch_research_datasets,
)
from news_platform.defs.domain_metadata import (
    CHANGES_RULE,
    METADATA_RULE,
    QUEUE_RULE,
    SIGNALS_RULE,
    SURVEYS_RULE,
    domains_are_surveyed_in_time,
)
from news_platform.defs.graph import definitions_of
from news_platform.defs.partitions import RESEARCH_BATCHES
from news_platform.defs.runs import RANGE_END_TAG, RANGE_START_TAG
from news_platform.domain_metadata.generated_research import CATALOG_PATH
from news_platform.domain_metadata.pipeline import queue_batch
from news_platform.domain_metadata.queue import QUEUE, DomainQueue, SettledClaim
from news_platform.domain_metadata.raw_files import import_file, raw_batches
from news_platform.resources import Resources
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import Settings, load_settings
from news_platform.storage.commit.root import pause
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.defs.over import over, resumed

GB_NEWS = "gb|news|"
HOUR, DAY = 3_600.0, 86_400.0
RULES = (QUEUE_RULE, METADATA_RULE, SURVEYS_RULE, SIGNALS_RULE, CHANGES_RULE)


@dataclass(frozen=True)
class Shell:
    """The feature's definitions over one sample root."""

    resources: Resources
    instance: dg.DagsterInstance

    @property
    def store(self) -> ObjectStore:
        return self.resources.data_root.store

    @cached_property
    def definitions(self) -> dg.Definitions:
        shell = dg.Definitions(
            resources={"platform": self.resources},
            executor=dg.in_process_executor,
        )
        return dg.Definitions.merge(definitions_of(domain_metadata), shell)

    def build(self, asset: str, key: str) -> dg.ExecuteInProcessResult:
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            asset_selection=[dg.AssetKey(asset)], partition_key=key, instance=self.instance
        )

    def build_all(self) -> dict[str, list[dg.ExecuteInProcessResult]]:
        """Build whatever is out of date, asset by asset."""
        built: dict[str, list[dg.ExecuteInProcessResult]] = {}
        for rule in RULES:
            keys = sorted(rule.stale(over(self.store)))
            assert isinstance(rule.partitions, dg.DynamicPartitionsDefinition)
            self.instance.add_dynamic_partitions(str(rule.partitions.name), keys)
            built[rule.asset] = [self.build(rule.asset, key) for key in keys]
        return built


@pytest.fixture(scope="module")
def shell(sample_world: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shell]:
    """Return a sample root with its research files in place, nothing built yet."""
    root = tmp_path_factory.mktemp("survey") / "root"
    settings = Settings(root=str(root), sample=True, sample_world=str(sample_world))
    resources = SampleResources(settings, frozen_clock=True)
    place_inputs(sample_world, resources.data_root.store)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Shell(resources, instance)


@pytest.fixture(scope="module")
def built(shell: Shell) -> dict[str, list[dg.ExecuteInProcessResult]]:
    """Build all assets of the feature once."""
    return shell.build_all()


def metadata_of(result: dg.ExecuteInProcessResult) -> dict[str, object]:
    [event] = result.get_asset_materialization_events()
    return {name: value.value for name, value in event.materialization.metadata.items()}


def test_every_asset_materialises_and_its_checks_pass(
    built: dict[str, list[dg.ExecuteInProcessResult]], shell: Shell
) -> None:
    batches = len(raw_batches(shell.store))
    assert batches >= 4
    assert len(built["domain_queue"]) == len(built["domain_metadata"]) == batches
    for results in built.values():
        for result in results:
            assert result.success
            for event in result.get_asset_check_evaluations():
                assert event.passed, event
    assert all(not rule.stale(over(shell.store)) for rule in RULES), "nothing is left to do"


def test_the_queue_shows_what_came_with_a_batch(
    built: dict[str, list[dg.ExecuteInProcessResult]], shell: Shell
) -> None:
    shown = {
        info.path: json.loads(shell.store.read(info.path))
        for info in shell.store.list("raw/")
        if info.path.endswith("/raw_metadata.json")
    }
    queued = [metadata_of(result).get("raw_metadata") for result in built["domain_queue"]]
    assert len(shown) == 1 and queued.count(None) == len(queued) - 1
    assert [notes for notes in queued if notes is not None] == list(shown.values())


def test_the_survey_shows_outcomes_policies_and_slow_hosts(
    built: dict[str, list[dg.ExecuteInProcessResult]],
) -> None:
    shown = [metadata_of(result) for result in built["domain_metadata"]]
    assert sum(int(str(one.get("outcome_ok", 0))) for one in shown) >= 5
    for one in shown:
        assert "| outcome | domains |" in str(one["outcomes"])
        assert "slowest_hosts" in one


def test_the_table_counts_what_the_surveys_found_and_draws_it(
    built: dict[str, list[dg.ExecuteInProcessResult]], shell: Shell
) -> None:
    shown = [metadata_of(result) for result in built["domain_surveys"]]
    rows = sum(int(str(one["dagster/partition_row_count"])) for one in shown)
    queue = DomainQueue(shell.resources.ledger.engine)
    assert rows == sum(len(queue.messages(key)) for key in raw_batches(shell.store))
    pictures = ("ai_policies_plot", "refusals_by_purpose", "refusals_by_bot", "llms_txt")
    for one in shown:
        assert all("data:image/png;base64" in str(one[name]) for name in pictures)
        assert "| country | domains | index |" in str(one["by_country"])
        assert 0 <= float(str(one["refuse_ai_train_share"])) <= 1
    changed = [metadata_of(result) for result in built["ai_policy_changes"]]
    assert all("newly_refusing" in one for one in changed)


def test_a_new_file_makes_the_batch_and_its_followers_stale(
    built: dict[str, list[dg.ExecuteInProcessResult]], shell: Shell
) -> None:
    key = next(key for key in raw_batches(shell.store) if key.startswith(GB_NEWS))
    folder = PartitionInfo.parse(key).folder
    body = json.dumps({"records": [{"normalized_domain": "10.0.0.1"}]}).encode()
    shell.store.put(f"raw/{folder}/raw_0777.json", body)
    assert built and list(RULES[0].stale(over(shell.store))) == [key]
    again = shell.build_all()
    assert [len(again[rule.asset]) for rule in RULES[:3]] == [1, 1, 1]
    assert metadata_of(again["domain_metadata"][0])["outcome_blocked_address"] == 1


def test_the_watching_sensor_adds_batches_and_observes_once(shell: Shell) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        first = _tick(shell, instance, cursor=None)
        found = raw_batches(shell.store)
        [request] = first.dynamic_partitions_requests or []
        assert set(request.partition_keys) == set(found)
        assert len(first.asset_events) == len(found)
        instance.add_dynamic_partitions(str(RESEARCH_BATCHES.name), list(found))
        second = _tick(shell, instance, cursor=first.cursor)
        assert not second.asset_events and not second.dynamic_partitions_requests


def _tick(shell: Shell, instance: dg.DagsterInstance, cursor: str | None) -> dg.SensorResult:
    context = dg.build_sensor_context(
        instance=instance, cursor=cursor, resources={"platform": shell.resources}
    )
    found = watch_research_datasets(context)
    assert isinstance(found, dg.SensorResult)
    return found


def test_unfinished_batches_are_requested_again_once_a_day(
    built: dict[str, list[dg.ExecuteInProcessResult]], shell: Shell
) -> None:
    assert built
    key = min(raw_batches(shell.store))
    body = json.dumps({"records": [{"normalized_domain": "10.0.0.2"}]}).encode()
    shell.store.put(f"raw/{PartitionInfo.parse(key).folder}/raw_0888.json", body)
    assert shell.build("domain_queue", key).success and shell.build("domain_metadata", key).success
    queue = DomainQueue(shell.resources.ledger.engine)
    unfinished = {key for key, counts in queue.states().items() if counts["unfinished"]}
    with instance_for_test() as instance:
        context = dg.build_schedule_context(
            instance=instance,
            scheduled_execution_time=datetime(2025, 11, 4, tzinfo=UTC),
            resources={"platform": shell.resources},
        )
        assert retry_unfinished_domains(context) == []  # the sensor has not seen the files yet
        instance.add_dynamic_partitions(str(RESEARCH_BATCHES.name), list(queue.states()))
        requests = retry_unfinished_domains(context)
    assert isinstance(requests, list) and {one.partition_key for one in requests} == unfinished
    assert key in unfinished
    assert all(one.run_key == f"{one.partition_key}@2025-11-04" for one in requests)


@pytest.fixture
def real_root(tmp_path: Path) -> Resources:
    """Return an empty root without the sample, with catalog domains to survey."""
    limits = ("NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY", "NEWS_PLATFORM_RESURVEYS_PER_DAY")
    settings = load_settings(dict.fromkeys(limits, "2"))
    root = resumed(str(tmp_path / "real"))
    return Resources(settings.model_copy(update={"root": root, "sample": False}))


def put_catalog(store: ObjectStore, tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "domain": ["a.test", "b.test", "c.test", "d.test"],
            "records": [5, 9, 7, 1],
            "first_seen": [date(2025, 11, 1)] * 3 + [date(2025, 11, 2)],
        }
    )
    frame.write_parquet(tmp_path / "catalog.parquet")
    store.put(CATALOG_PATH, tmp_path / "catalog.parquet")


def test_a_new_catalog_adds_its_domains_if_enabled(real_root: Resources, tmp_path: Path) -> None:
    context = dg.build_sensor_context(resources={"platform": real_root})
    assert isinstance(survey_catalog_domains(context), dg.SkipReason)
    put_catalog(real_root.data_root.store, tmp_path)
    request = survey_catalog_domains(context)
    assert isinstance(request, dg.RunRequest)
    job = seed_catalog_domains.execute_in_process(resources={"platform": real_root})
    assert job.success
    assert set(raw_batches(real_root.data_root.store)) == {
        "zz|ccnews|2025-11-01",
        "zz|ccnews|2025-11-02",
    }


def test_due_domains_are_planned_within_the_budget_and_the_tick_says_what_it_saw(
    real_root: Resources,
) -> None:
    clock = real_root.clock
    store, queue = real_root.data_root.store, DomainQueue(real_root.ledger.engine)
    batch = PartitionInfo.of("de", "media", "2025-11-01")
    records = [{"normalized_domain": f"{name}.example"} for name in "abc"]
    import_file(store, batch, name="x", body=json.dumps({"records": records}).encode())
    old = datetime(2025, 11, 1, tzinfo=UTC)
    queue_batch(batch, store=store, queue=queue, now=old)
    resources = {"platform": real_root}

    def tick() -> dg.RunRequest | dg.SkipReason:
        with dg.build_schedule_context(resources=resources) as context:
            found = resurvey_due_domains(context)
        assert isinstance(found, dg.RunRequest | dg.SkipReason)
        return found

    assert "none of 3 domains is due" in str(tick())  # they still wait in the queue
    claims = queue.claim(batch.key, worker="w", limit=9, now=9e9, lease_seconds=1)
    queue.settle([SettledClaim(one, "ok", final=True) for one in claims], at=old.timestamp())
    assert isinstance(tick(), dg.RunRequest)
    assert plan_domain_resurveys.execute_in_process(resources=resources).success
    today = PartitionInfo.of("de", "media", clock.now().date())
    queue_batch(today, store=store, queue=queue, now=clock.now())
    assert len(queue.messages(today.key)) == 2  # the budget of this root
    assert "1 domains are due, but 2 were planned today already" in str(tick())
    pause(store)
    assert "paused" in str(tick())


def test_domains_that_are_not_surveyed_in_time_make_a_check_red(real_root: Resources) -> None:
    resources = real_root
    store, queue = resources.data_root.store, DomainQueue(resources.ledger.engine)
    assert domains_are_surveyed_in_time.evaluate(resources, "").passed  # nothing to survey
    batch = PartitionInfo.of("de", "media", "2025-11-01")
    import_file(store, batch, name="x", body=b'{"records": [{"normalized_domain": "a.example"}]}')
    queue_batch(batch, store=store, queue=queue, now=datetime.now(UTC))
    assert domains_are_surveyed_in_time.evaluate(resources, "").passed
    claims = queue.claim(batch.key, worker="w", limit=9, now=9e9, lease_seconds=1)
    queue.settle([SettledClaim(one, "ok", final=True) for one in claims], at=1.0)
    with resources.ledger.engine.begin() as connection:
        connection.execute(sa.update(QUEUE).values(accepted_at=1.0))
    found = domains_are_surveyed_in_time.evaluate(resources, "")
    assert not found.passed and found.severity == dg.AssetCheckSeverity.WARN
    assert found.metadata["late"].value == 1


@pytest.mark.parametrize("asset", ["domain_queue", "domain_metadata"])
def test_one_run_builds_adjacent_batches(
    asset: str, built: dict[str, list[dg.ExecuteInProcessResult]], shell: Shell
) -> None:
    first, *_, last = keys = shell.instance.get_dynamic_partitions("research_batches")[:3]
    assert built and len(keys) == 3
    done = shell.definitions.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey(asset)],
        tags={RANGE_START_TAG: first, RANGE_END_TAG: last},
        instance=shell.instance,
    )
    events = done.get_asset_materialization_events()
    assert {one.partition for one in events} == set(keys)
    for one in events:
        assert int(str(one.materialization.metadata["dagster/partition_row_count"].value)) > 0
