"""The reconciling sensor against a real Dagster instance, storage and runs."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import dagster as dg
import pytest

from news_platform.defs.reconcile import REQUEST_TAG, Limits, reconciling_sensor
from news_platform.defs.staleness import Staleness
from news_platform.resources import DataRoot
from news_platform.settings import Settings
from news_platform.storage.commit.markers import fingerprint_of, read_markers, write_marker
from news_platform.storage.commit.root import pause
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.defs.over import over

KEYS = dg.DynamicPartitionsDefinition(name="toy_keys")


def _wanted(store: ObjectStore) -> Mapping[str, str]:
    return {info.path.split("/")[1]: fingerprint_of([info]) for info in store.list("in")}


def _built(store: ObjectStore) -> Mapping[str, str]:
    return {key: marker.inputs for key, marker in read_markers(store, "toy").items()}


@dg.asset(partitions_def=KEYS)
def toy(context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]) -> None:
    """A follower that fails where its input says so."""
    store, key = data_root.store, context.partition_key
    inputs = _wanted(store)[key]
    if store.read(f"in/{key}") == b"poison":
        raise dg.Failure(f"{key} is poisoned", allow_retries=False)
    write_marker(store, "toy", key, inputs=inputs, report={})


TOY = Staleness.by_fingerprint("toy", _wanted, _built)
SENSOR = reconciling_sensor(
    TOY, dynamic_partitions=KEYS, limits=Limits(outstanding=4, attempts=2, backoff_seconds=0)
)


@dataclass
class Shell:
    """A sensor with its instance; `tick` evaluates it as the daemon does."""

    data_root: DataRoot
    instance: dg.DagsterInstance
    cursor: str | None = None

    @property
    def job(self) -> dg.JobDefinition:
        defs = dg.Definitions(assets=[toy], resources={"data_root": self.data_root})
        return defs.resolve_implicit_global_asset_job_def()

    def tick(self) -> list[dg.RunRequest]:
        context = dg.build_sensor_context(
            instance=self.instance,
            cursor=self.cursor,
            resources={"platform": over(self.data_root.store)},
        )
        result = SENSOR(context)
        if isinstance(result, dg.SkipReason):
            return []
        assert isinstance(result, dg.SensorResult)
        for added in result.dynamic_partitions_requests or ():
            assert isinstance(added, dg.AddDynamicPartitionsRequest)
            self.instance.add_dynamic_partitions("toy_keys", list(added.partition_keys))
        self.cursor = result.cursor
        return list(result.run_requests or ())

    def run(self, request: dg.RunRequest) -> bool:
        return self.job.execute_in_process(
            partition_key=request.partition_key,
            tags=dict(request.tags),
            instance=self.instance,
            raise_on_error=False,
        ).success


@pytest.fixture
def shell(local_store: ObjectStore) -> Iterator[Shell]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Shell(DataRoot(Settings(root=local_store.url)), instance)


def test_history_is_worked_off_newest_first_until_nothing_is_stale(shell: Shell) -> None:
    store = shell.data_root.store
    for day in range(1, 11):
        store.put(f"in/2025-11-{day:02}", b"x")
    order = []
    while requests := shell.tick():
        order += [request.partition_key for request in requests]
        assert all(shell.run(request) for request in requests)
    assert order == [f"2025-11-{day:02}" for day in range(10, 0, -1)]
    assert TOY.stale(over(store)) == {}


def test_an_input_replaced_during_its_run_is_built_again(shell: Shell) -> None:
    store = shell.data_root.store
    store.put("in/a", b"one")
    (request,) = shell.tick()
    store.put("in/a", b"two, right after the request")
    assert shell.run(request), "this run may see the old bytes or the new"
    store.put("in/a", b"three, right after the run")
    (again,) = shell.tick()
    assert shell.run(again)
    assert shell.tick() == []
    assert TOY.stale(over(store)) == {}


def test_a_failing_partition_is_tried_twice_and_then_left_alone(shell: Shell) -> None:
    shell.data_root.store.put("in/bad", b"poison")
    shell.data_root.store.put("in/good", b"x")
    made = 0
    for _ in range(10):
        for request in shell.tick():
            shell.run(request)
            made += request.partition_key == "bad"
    assert made == 2
    assert set(TOY.stale(over(shell.data_root.store))) == {"bad"}


def test_a_mended_input_brings_a_given_up_partition_back(shell: Shell) -> None:
    store = shell.data_root.store
    store.put("in/bad", b"poison")
    for _ in range(5):
        for request in shell.tick():
            shell.run(request)
    store.put("in/bad", b"mended")
    (request,) = shell.tick()
    assert shell.run(request)
    assert TOY.stale(over(store)) == {}


def test_each_run_says_what_it_was_requested_for(shell: Shell) -> None:
    shell.data_root.store.put("in/a", b"x")
    (request,) = shell.tick()
    assert request.tags[REQUEST_TAG].startswith("toy|a@")
    assert request.run_key == f"{request.tags[REQUEST_TAG].removeprefix('toy|')}#1"
    assert json.loads(shell.cursor or "{}").keys() == {"a"}


def test_a_paused_root_requests_nothing(shell: Shell) -> None:
    shell.data_root.store.put("in/a", b"x")
    pause(shell.data_root.store)
    assert shell.tick() == []
