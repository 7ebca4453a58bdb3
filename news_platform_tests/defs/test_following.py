"""The reconciling sensor against a real Dagster instance, storage and runs."""

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.test_utils import freeze_time

from news_platform.datasets.dataset import SAME, window
from news_platform.defs.ccnews import maintain_crawl_every_night
from news_platform.defs.checks import BLOCKING, Check, Reporter
from news_platform.defs.planning import Limits, State
from news_platform.defs.rebuild_rules import Parent, Platform, RebuildRule
from news_platform.defs.retry_requests import read_retry_requests, request_retry
from news_platform.defs.runs import (
    ATTEMPT_TAG,
    INPUTS_TAG,
    RANGE_END_TAG,
    RANGE_START_TAG,
    REASON_TAG,
    REQUEST_TAG,
    Build,
    Work,
)
from news_platform.defs.sensor_state import SensorState, dump_state, load_state
from news_platform.defs.sensors import (
    plan_of,
    reconciling_sensor,
)
from news_platform.errors import FetchError, InputError, StorageError, StoreUnavailable
from news_platform.resources import DataRoot, Resources, open_resources
from news_platform.setting_sections.platform import AlertSettings
from news_platform.settings import Settings
from news_platform.storage.commit.markers import (
    fingerprint_of,
    read_markers,
    stale_partitions,
    write_marker,
)
from news_platform.storage.commit.root import pause
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.defs.over import over, resumed
from news_platform_tests.servers.webhook import Webhook, serve_webhook
from news_platform_tests.year.simulated import FrozenClock, switched

KEYS = dg.DynamicPartitionsDefinition(name="toy_keys")
START = datetime(2026, 1, 1, tzinfo=UTC)
ERRORS = {
    b"poison": InputError,
    b"storm": FetchError,
    b"rot": StorageError,
    b"gone": StoreUnavailable,
}


def _wanted(store: ObjectStore) -> Mapping[str, str]:
    return {info.path.split("/")[1]: fingerprint_of([info]) for info in store.list("in")}


def _built(store: ObjectStore) -> Mapping[str, str]:
    return {key: marker.inputs for key, marker in read_markers(store, "toy").items()}


@dg.asset(partitions_def=KEYS, backfill_policy=dg.BackfillPolicy.multi_run(3))
def toy(context: dg.AssetExecutionContext, platform: Platform) -> None:
    """A follower that fails where its input says so."""
    store = platform.data_root.store
    for key in context.partition_keys:
        inputs, body = _wanted(store)[key], store.read(f"in/{key}")
        if body in ERRORS:
            raise ERRORS[body](f"{key} is bad")
        write_marker(store, "toy", key, inputs=inputs, report={})


@dg.asset(partitions_def=KEYS)
def parent() -> None:
    """The asset that the toy follows."""


SOUND = Check(
    "parent",
    "is_sound",
    "Sound. If red: build it again.",
    lambda _resources, _key: dg.AssetCheckResult(passed=True),
    lambda _resources: (),
    KEYS,
    blocking=True,
)
BLOCKING["parent"] = [SOUND]
TOY = RebuildRule(
    "toy",
    lambda it: stale_partitions(_wanted(it.data_root.store), _built(it.data_root.store)),
    sensor="follow_toy",
    parents=(Parent("parent", SAME),),
    partitions=KEYS,
    limits=lambda _: Limits(runs=2, per_run=3),
)
SENSOR = reconciling_sensor(TOY)


@dataclass
class Shell:
    """A sensor with its instance; `tick` evaluates it as the daemon does."""

    data_root: DataRoot
    instance: dg.DagsterInstance
    now: datetime = START
    cursor: str | None = None
    text: str | None = None

    @property
    def platform(self) -> Resources:
        resources = open_resources(self.data_root.settings)
        resources.__dict__["clock"] = FrozenClock()
        return resources

    def wait(self, **span: float) -> None:
        self.now += timedelta(**span)

    def tick(self) -> list[dg.RunRequest]:
        context = dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, resources={"platform": self.platform}
        )
        with freeze_time(self.now):
            result = SENSOR(context)
        if isinstance(result, dg.SkipReason):
            self.text = result.skip_message
            return []
        assert isinstance(result, dg.SensorResult)
        for added in result.dynamic_partitions_requests or ():
            assert isinstance(added, dg.AddDynamicPartitionsRequest)
            self.instance.add_dynamic_partitions("toy_keys", list(added.partition_keys))
        self.cursor = result.cursor
        self.text = result.skip_reason.skip_message if result.skip_reason else None
        return list(result.run_requests or ())

    def run(self, request: dg.RunRequest) -> bool:
        defs = dg.Definitions(assets=[toy, parent], resources={"platform": self.platform})
        with freeze_time(self.now):
            done = defs.resolve_implicit_global_asset_job_def().execute_in_process(
                partition_key=request.partition_key,
                asset_selection=list(request.asset_selection or ()),
                tags=dict(request.tags),
                instance=self.instance,
                raise_on_error=False,
            )
        return done.success

    def started(self, asset: str, tags: Mapping[str, str]) -> dg.DagsterRun:
        """Create a run that has not finished, as a person or a backfill does."""
        defs = dg.Definitions(assets=[toy, parent], resources={"platform": self.platform})
        return self.instance.create_run_for_job(
            defs.resolve_implicit_global_asset_job_def(),
            asset_selection=frozenset({dg.AssetKey(asset)}),
            tags=dict(tags),
            status=dg.DagsterRunStatus.STARTING,
        )


@pytest.fixture
def shell(local_store: ObjectStore) -> Iterator[Shell]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Shell(DataRoot(Settings(root=resumed(local_store.url))), instance)


def _parts(request: dg.RunRequest) -> str:
    first = request.tags.get(RANGE_START_TAG)
    return f"{first}-{request.tags[RANGE_END_TAG]}" if first else str(request.partition_key)


def test_history_is_worked_off_in_ranges_until_nothing_is_stale(shell: Shell) -> None:
    store = shell.data_root.store
    for day in range(1, 11):
        store.put(f"in/2025-11-{day:02}", b"x")
    order = []
    while requests := shell.tick():
        order += [_parts(request) for request in requests]
        assert all(shell.run(request) for request in requests)
    assert order == [
        "2025-11-08-2025-11-10",
        "2025-11-05-2025-11-07",
        "2025-11-02-2025-11-04",
        "2025-11-01",
    ]
    assert TOY.stale(over(store)) == {}
    assert shell.text == "nothing is stale"


@pytest.mark.parametrize(
    ("body", "kind"), [(b"poison", "InputError"), (b"rot", "StorageError")], ids=["input", "stored"]
)
def test_a_permanent_failure_runs_once_and_says_why(shell: Shell, body: bytes, kind: str) -> None:
    shell.data_root.store.put("in/bad", body)
    (request,) = shell.tick()
    assert not shell.run(request)
    for hours in (0, 1, 25, 1_000):
        shell.wait(hours=hours)
        assert shell.tick() == []
    assert shell.text == f"1 stale: 1 stopped (bad): {kind}: bad is bad"
    shell.data_root.store.put("in/bad", b"mended")
    (request,) = shell.tick()
    assert shell.run(request) and shell.tick() == []


@pytest.mark.parametrize("body", [b"storm", b"gone"], ids=["crawl", "store"])
def test_a_transient_failure_is_retried_until_it_heals(shell: Shell, body: bytes) -> None:
    store = shell.data_root.store
    store.put("in/a", body)
    for minutes in (1, 5, 15, *[60] * 4):
        (request,) = shell.tick()
        assert not shell.run(request)
        assert shell.tick() == [], "not before its pause is over"
        shell.wait(minutes=minutes)
    assert request.tags[ATTEMPT_TAG] == "7"
    store.put("in/a", b"x")
    shell.wait(hours=1)
    (request,) = shell.tick()
    assert shell.run(request)


def test_every_kind_of_failure_is_reported_when_it_begins_and_when_it_heals(
    local_store: ObjectStore,
) -> None:
    local_store.put("in/a", b"storm")
    with serve_webhook(Webhook()) as webhook, dg.DagsterInstance.ephemeral() as instance:
        alerts = AlertSettings(webhook_url=webhook.url)
        shell = Shell(DataRoot(Settings(root=resumed(local_store.url), alerts=alerts)), instance)
        # The second attempt fails in another way, the third in the same one.
        for body in (b"storm", b"gone", b"gone", b"x"):
            local_store.put("in/a", body)
            (request,) = shell.tick()
            shell.run(request)
            shell.tick()
            shell.wait(hours=1)
    texts = [body["text"].removesuffix(" (see docs/runbook.md)") for body in webhook.bodies]
    assert [" ".join(text.split()[:4]) for text in texts] == [
        "toy a failed in",
        "toy a failed in",
        "toy has healed: nothing",
        "toy has healed: nothing",
    ]
    assert texts[0].endswith(": FetchError: a is bad")
    assert texts[1].endswith(": StoreUnavailable: a is bad")
    assert texts[2].endswith("with FetchError any more")
    assert texts[3].endswith("with StoreUnavailable any more")
    assert [body["partition"] for body in webhook.bodies] == ["a", "a", "", ""]
    assert all(body["run_id"] for body in webhook.bodies[:2])


def test_an_operator_requests_a_stopped_partition(shell: Shell) -> None:
    store = shell.data_root.store
    store.put("in/a", b"poison")
    (request,) = shell.tick()
    shell.run(request)
    shell.wait(minutes=1)
    assert shell.tick() == []
    shell.wait(minutes=1)
    request_retry(store, "toy", "a", now=shell.now)
    (request,) = shell.tick()
    assert _parts(request) == "a"
    assert read_retry_requests(store, "toy"), "kept until the run exists: a daemon may be killed"
    shell.run(request)
    assert shell.tick() == []
    assert read_retry_requests(store, "toy") == {}


def test_runs_of_others_for_a_partition_or_its_parent_are_waited_for(shell: Shell) -> None:
    store = shell.data_root.store
    shell.instance.add_dynamic_partitions("toy_keys", list("abcde"))
    for key in "abcde":
        store.put(f"in/{key}", b"x")
    ranged = {RANGE_START_TAG: "a", RANGE_END_TAG: "c", "dagster/backfill": "x"}
    backfill = shell.started("toy", ranged)
    shell.started("parent", {"dagster/partition": "d"})
    assert [_parts(request) for request in shell.tick()] == ["e"]
    shell.instance.delete_run(backfill.run_id)
    store.delete(["in/e"])
    assert [_parts(request) for request in shell.tick()] == ["a-c"]


def test_a_run_that_ends_while_a_tick_reads_still_counts_as_running(shell: Shell) -> None:
    """Otherwise its partition, read as stale before the run ended, would look built in vain."""
    store = shell.data_root.store
    store.put("in/a", b"x")
    (request,) = shell.tick()
    run = shell.started("toy", {**request.tags, "dagster/partition": "a"})
    work, stale = Work.read(shell.instance), TOY.stale(over(store))
    shell.instance.report_run_canceled(run)
    state = load_state(shell.cursor)
    plan = plan_of(
        TOY, shell.platform, stale=stale, state=state, work=work, instance=shell.instance
    )
    assert plan.text() == "1 stale: 1 running"
    for body in (b"x", b"y"):
        store.put("in/a", body)
        shell.wait(days=2)
        assert shell.tick() == [], "canceled means canceled, also for new inputs"
        assert "1 stopped (a): Canceled" in str(shell.text)
    shell.now = datetime.now(UTC)  # the run was created now
    request_retry(store, "toy", "a", now=shell.now)
    assert [_parts(request) for request in shell.tick()] == ["a"]


def test_what_a_red_blocking_check_calls_damaged_is_not_built_on_until_it_is_green(
    shell: Shell,
) -> None:
    store = shell.data_root.store
    for key in "ab":
        store.put(f"in/{key}", b"x")
    reporter = Reporter(shell.instance, uuid4().hex)
    reporter.report(SOUND, "a", dg.AssetCheckResult(passed=False))
    assert [_parts(request) for request in shell.tick()] == ["b"]
    store.delete(["in/b"])
    request_retry(store, "toy", "a", now=shell.now)
    assert shell.tick() == [], "not even if an operator asks: the damage would spread"
    assert shell.text == "1 stale: 1 waiting (the check is_sound of parent a is red)"
    Reporter(shell.instance, uuid4().hex).report(SOUND, "a", dg.AssetCheckResult(passed=True))
    assert [_parts(request) for request in shell.tick()] == ["a"]


def test_each_run_names_its_asset_its_reason_and_that_the_instance_must_not_retry(
    shell: Shell,
) -> None:
    shell.data_root.store.put("in/a", b"x")
    (request,) = shell.tick()
    assert list(request.asset_selection or ()) == [dg.AssetKey("toy")]
    assert request.tags[REQUEST_TAG] == "toy"
    assert request.tags[REASON_TAG] == "1 stale since 00:00"
    assert str(request.run_key).startswith("a@")
    assert list(json.loads(request.tags[INPUTS_TAG])) == ["a"]
    assert request.tags["dagster/max_retries"] == "0"


def test_a_tick_that_cannot_read_the_store_says_so_and_the_next_one_looks_again(
    shell: Shell,
) -> None:
    store = shell.data_root.store
    store.put("in/a", b"x")
    store.put("markers/toy/not a marker", b"")
    assert shell.tick() == []
    assert "toy: cannot read what is stale: StorageError: not a marker" in str(shell.text)
    store.delete(["markers/toy/not a marker"])
    assert [_parts(request) for request in shell.tick()] == ["a"]


@pytest.mark.parametrize(
    "cursor",
    ["{", "[]", '{"since": 3}', '{"since": {"x": ["a"]}}', '{"alarms": {"a": {}}}'],
)
def test_a_cursor_that_cannot_be_read_counts_as_none_and_is_reported(
    local_store: ObjectStore, cursor: str
) -> None:
    local_store.put("in/a", b"x")
    with serve_webhook(Webhook()) as webhook, dg.DagsterInstance.ephemeral() as instance:
        alerts = AlertSettings(webhook_url=webhook.url)
        shell = Shell(DataRoot(Settings(root=resumed(local_store.url), alerts=alerts)), instance)
        shell.cursor = cursor
        assert [_parts(request) for request in shell.tick()] == ["a"]
        shell.tick()
    (body,) = webhook.bodies
    assert body["text"].startswith("the cursor of follow_toy cannot be read")


def test_the_cursor_stays_small_and_a_quiet_tick_writes_no_log(shell: Shell) -> None:
    days = [str(date(2016, 8, 26) + timedelta(days=number)) for number in range(3_736)]
    state = SensorState({day: START.timestamp() for day in days})
    assert load_state(dump_state(state)) == state
    # Days that became stale one by one, with gaps.
    scattered = {day: START.timestamp() + number for number, day in enumerate(days[::2])}
    cursor = dump_state(SensorState(scattered))
    assert len(cursor) < 20_000
    kept = load_state(cursor).stale_since
    assert kept.items() <= scattered.items() and len(kept) > 500
    assert min(kept.values()) == START.timestamp(), "the longest waiting are kept"
    shell.tick()
    context = dg.build_sensor_context(
        instance=shell.instance, cursor=shell.cursor, resources={"platform": shell.platform}
    )
    SENSOR(context)
    assert context._logger is None, "a logger leaves a file behind"


def test_a_nightly_schedule_whose_root_does_not_answer_says_so_instead_of_failing(
    local_store: ObjectStore,
) -> None:
    """Dagster does not evaluate a failed tick again."""
    is_down = [True]
    resources = over(local_store)
    resources.data_root.__dict__["store"] = switched(local_store, lambda: is_down[0])
    with dg.build_schedule_context(resources={"platform": resources}) as context:
        skipped = maintain_crawl_every_night(context)
        assert isinstance(skipped, dg.SkipReason)
        assert "cannot read the root: " in str(skipped.skip_message)
        is_down[0] = False
        assert isinstance(maintain_crawl_every_night(context), dg.RunRequest)


def test_a_paused_root_requests_nothing(shell: Shell) -> None:
    shell.data_root.store.put("in/a", b"x")
    pause(shell.data_root.store)
    assert shell.tick() == []
    assert "paused" in str(shell.text)


def test_a_tick_over_many_stale_days_does_not_look_at_every_run_for_each(
    local_store: ObjectStore,
) -> None:
    """Four times the days and four times the runs cost four times as much, not sixteen."""

    def seconds(days: int) -> float:
        keys = [str(date(2016, 9, 1) + timedelta(days=number)) for number in range(days)]
        rule = RebuildRule(
            "child",
            lambda _resources: dict.fromkeys(keys, "f"),
            parents=(Parent("parent", SAME), Parent("parent", window(14))),
            partitions=dg.DailyPartitionsDefinition("2016-09-01"),
        )
        assets = ("parent", "child")
        runs = [Build(key, frozenset({assets[n % 2]}), key, key) for n, key in enumerate(keys[:-9])]
        began = time.process_time()
        plan = plan_of(
            rule,
            over(local_store),
            stale=dict.fromkeys(keys, "f"),
            state=SensorState(),
            work=Work(tuple(runs)),
            instance=None,
        )
        assert plan.partitions[keys[1]].state is State.RUNNING
        assert plan.partitions[keys[0]].reason == "parent is being built"
        return time.process_time() - began

    seconds(100)  # what is loaded once
    small, large = (min(seconds(days) for _ in range(3)) for days in (800, 3200))
    assert large < 8 * small
