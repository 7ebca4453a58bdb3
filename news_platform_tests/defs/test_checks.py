"""Checks keep one result per partition; the night evaluates all of them again."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import dagster as dg
import pytest
from dagster._core.loader import LoadingContextForTest

from news_platform.definitions import defs as DEFS
from news_platform.defs.checks import (
    CHECKING,
    Check,
    Reporter,
    evaluate_all,
    nightly_definitions,
    red_partitions,
)
from news_platform.defs.graph import CHECKS
from news_platform.errors import FetchError
from news_platform.resources import Resources
from news_platform.setting_sections.platform import CheckSettings
from news_platform.settings import Settings
from news_platform_tests.defs.over import SteppedClock

NIGHT = datetime(2025, 11, 5, 4, 15, tzinfo=UTC)
KEYS = ("2025-11-01", "2025-11-02", "2025-11-03")
DAYS = dg.StaticPartitionsDefinition(list(KEYS))


@dataclass
class World:
    """Which partitions are wrong or out of reach, and which ones were looked at."""

    wrong: set[str] = field(default_factory=set)
    unreachable: set[str] = field(default_factory=set)
    seen: list[str] = field(default_factory=list)

    def evaluate(self, _resources: Resources, key: str) -> dg.AssetCheckResult:
        self.seen.append(key)
        if key in self.unreachable:
            raise FetchError(f"no answer for {key!r}")
        return dg.AssetCheckResult(passed=key not in self.wrong, metadata={"key": key})


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def toy(world: World) -> Check:
    return Check("toy", "is_right", "Right. If red: mend it.", world.evaluate, lambda _: KEYS, DAYS)


@pytest.fixture
def resources(tmp_path: object) -> Resources:
    return Resources(Settings(root=str(tmp_path)))


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


@dg.asset(name="toy", partitions_def=DAYS, backfill_policy=dg.BackfillPolicy.multi_run(3))
def toy_asset() -> None:
    """Build nothing."""


def _run(
    toy: Check, instance: dg.DagsterInstance, resources: Resources, first: str, last: str = ""
) -> dg.ExecuteInProcessResult:
    defs = dg.Definitions(
        assets=[toy_asset], asset_checks=[toy.definition], resources={"platform": resources}
    )
    job = defs.resolve_implicit_global_asset_job_def()
    if not last:
        return job.execute_in_process(partition_key=first, instance=instance, raise_on_error=False)
    tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
    return job.execute_in_process(tags=tags, instance=instance)


def _red(toy: Check, instance: dg.DagsterInstance) -> set[str]:
    return set(red_partitions(instance, [toy])[toy.key])


def _reporter(instance: dg.DagsterInstance) -> Reporter:
    return Reporter(instance, uuid4().hex)


def _night(toy: Check, instance: dg.DagsterInstance, resources: Resources) -> list[str]:
    return evaluate_all(
        [toy], resources, _reporter(instance), is_time_left=lambda: True, log=lambda _text: None
    )


def test_a_green_partition_does_not_hide_a_red_one(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    world.wrong = {KEYS[0]}
    for key in KEYS:
        _run(toy, instance, resources, key)
    assert _red(toy, instance) == {KEYS[0]}
    world.wrong = set()
    _run(toy, instance, resources, KEYS[1])
    assert _red(toy, instance) == {KEYS[0]}
    _run(toy, instance, resources, KEYS[0])
    assert _red(toy, instance) == set()


def test_several_partitions_in_one_run_are_judged_each_for_itself(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    world.wrong = {KEYS[1]}
    result = _run(toy, instance, resources, KEYS[0], KEYS[2])
    (whole,) = result.get_asset_check_evaluations()
    assert (whole.passed, whole.metadata["red"].value) == (False, KEYS[1])
    assert _red(toy, instance) == {KEYS[1]}
    found = instance.event_log_storage.get_asset_check_partition_info([toy.key])
    assert {info.partition_key for info in found} >= set(KEYS)


@pytest.mark.parametrize("last", [KEYS[0], KEYS[1]], ids=["one", "two"])
def test_a_backfill_run_keeps_the_partition_of_each_result(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources, last: str
) -> None:
    world.wrong = {KEYS[0]}
    _run(toy, instance, resources, KEYS[0], last)
    assert _red(toy, instance) == {KEYS[0]}
    assert _badge(toy, instance) == "red"


def _badge(toy: Check, instance: dg.DagsterInstance) -> str:
    """Return what the UI shows next to the name of the check."""
    storage = instance.event_log_storage
    newest = storage.get_latest_asset_check_execution_by_key([toy.key])[toy.key]
    is_current = asyncio.run(newest.targets_latest_materialization(LoadingContextForTest(instance)))
    if not is_current:
        return "not evaluated"
    assert newest.evaluation is not None
    return "green" if newest.evaluation.passed else "red"


def test_the_night_keeps_results_current_and_the_badge_red(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    for key in KEYS:
        _run(toy, instance, resources, key)
    world.wrong = {KEYS[1]}
    for _ in range(2):  # the second night looks at the red one first
        _night(toy, instance, resources)
        infos = instance.event_log_storage.get_asset_check_partition_info([toy.key])
        assert {info.partition_key for info in infos if info.is_current} == set(KEYS)
        assert _badge(toy, instance) == "red"
    world.wrong = set()
    _night(toy, instance, resources)
    assert _badge(toy, instance) == "green"
    before = instance.event_log_storage.get_asset_check_execution_history(toy.key, limit=100)
    _night(toy, instance, resources)
    after = instance.event_log_storage.get_asset_check_execution_history(toy.key, limit=100)
    assert len(after) == len(before), "what is known is not stored again every night"


def test_the_night_turns_red_what_broke_and_green_what_was_mended(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    world.wrong = {KEYS[0], KEYS[1]}
    assert _night(toy, instance, resources) == []
    assert _red(toy, instance) == {KEYS[0], KEYS[1]}
    world.wrong = {KEYS[2]}
    world.seen.clear()
    _night(toy, instance, resources)
    # The red ones come first: they are what somebody waits for.
    assert set(world.seen[:2]) == {KEYS[0], KEYS[1]} and world.seen[2:] == [KEYS[2]]
    assert _red(toy, instance) == {KEYS[2]}


def test_a_partition_that_cannot_be_judged_keeps_its_result(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    world.wrong = {KEYS[0]}
    _night(toy, instance, resources)
    world.wrong, world.unreachable = set(), {KEYS[0]}
    assert _night(toy, instance, resources) == [
        f"toy {KEYS[0]}, is_right: no answer for {KEYS[0]!r}"
    ]
    assert _red(toy, instance) == {KEYS[0]}


def test_nights_that_have_time_for_one_partition_reach_all_of_all_checks(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    other = replace(toy, name="is_right_too")
    lines: list[str] = []
    for number in range(40):
        resources.__dict__["clock"] = SteppedClock(NIGHT + timedelta(days=number))
        left = iter([True, False])
        evaluate_all(
            [toy, other],
            resources,
            _reporter(instance),
            is_time_left=left.__next__,
            log=lines.append,
        )
    evaluated = {line.partition(":")[0] for line in lines if "evaluated 1 of 3" in line}
    assert evaluated == {"toy, is_right", "toy, is_right_too"}
    assert set(world.seen) == set(KEYS)


def test_the_job_judges_all_partitions_and_reports_what_it_could_not_judge(
    toy: Check, world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    defs = dg.Definitions.merge(
        nightly_definitions([toy]), dg.Definitions(resources={"platform": resources})
    )
    job = defs.resolve_job_def(CHECKING)
    assert job.execute_in_process(instance=instance).success
    assert sorted(world.seen) == list(KEYS)
    world.unreachable = {KEYS[1]}
    failed = job.execute_in_process(instance=instance, raise_on_error=False)
    assert not failed.success


def test_a_blocking_check_fails_its_run(
    world: World, instance: dg.DagsterInstance, resources: Resources
) -> None:
    world.wrong = {KEYS[0]}

    must_hold = Check(
        "toy", "must_hold", "If red: mend it.", world.evaluate, lambda _: KEYS, DAYS, blocking=True
    )
    assert not _run(must_hold, instance, resources, KEYS[0]).success
    assert _run(must_hold, instance, resources, KEYS[1]).success
    assert _red(must_hold, instance) == {KEYS[0]}


# They judge all partitions together: no batch is red because others are late.
_OF_THE_WHOLE_ASSET = {"domains_are_surveyed_in_time", "newest_day_is_built"}


def test_every_check_of_the_graph_is_judged_at_night_with_its_partitions() -> None:
    graph = DEFS.resolve_asset_graph()
    assert {one.key for one in CHECKS} == graph.asset_check_keys
    for one in CHECKS:
        if one.name in _OF_THE_WHOLE_ASSET:
            continue
        assert one.partitions_def == graph.get(dg.AssetKey(one.asset)).partitions_def, one.name


def test_a_night_without_time_judges_nothing(toy: Check, world: World, tmp_path: object) -> None:
    hasty = Resources(Settings(root=str(tmp_path), checks=CheckSettings(max_hours=0)))
    defs = dg.Definitions.merge(
        nightly_definitions([toy]), dg.Definitions(resources={"platform": hasty})
    )
    with dg.DagsterInstance.ephemeral() as instance:
        assert defs.resolve_job_def(CHECKING).execute_in_process(instance=instance).success
    assert world.seen == []
