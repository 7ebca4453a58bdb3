"""Asset checks that keep one result per partition, in runs and in the nightly evaluation.

A check is a plain function of the resources and one partition key. A run of its asset evaluates it
for the partitions of the run, and a job evaluates all checks for all partitions at night, without
building anything. Without a result per partition, the green one of today would hide the red one of
yesterday: a partition that was red stays red until its own evaluation is green.
"""

import inspect
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import dagster as dg

from news_platform.datasets.dataset import WHOLE, Dataset
from news_platform.defs.metadata import markdown_table
from news_platform.defs.partitions import PARTITIONS
from news_platform.defs.rebuild_rules import Platform
from news_platform.errors import InputError, NewsPlatformError
from news_platform.resources import Resources
from news_platform.storage.units import built_inputs

# Dagster marks this parameter as a preview; tests pin its behaviour, so users need no warning.
warnings.filterwarnings("ignore", message="Specifying a partitions_def on an AssetCheckSpec")
_SHOWN_PROBLEMS = 20
CHECKING = "check_newest_data"

FindProblems = Callable[[Resources, str], Iterable[str] | dg.AssetCheckResult]
Evaluate = Callable[[Resources, str], dg.AssetCheckResult]
Keys = Callable[[Resources], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Check:
    """What must hold for a partition of an asset; `built` returns the partitions that exist.

    A `blocking` check fails its run, and the sensors do not follow a partition while it is red:
    what it finds would be copied into everything that is built from the partition.
    """

    asset: str
    name: str
    description: str
    evaluate: Evaluate
    built: Keys
    partitions_def: dg.PartitionsDefinition[str] | None = None
    blocking: bool = False

    @property
    def key(self) -> dg.AssetCheckKey:
        """Return Dagster's key of the check."""
        return dg.AssetCheckKey(dg.AssetKey(self.asset), self.name)

    @property
    def spec(self) -> dg.AssetCheckSpec:
        """Return the spec, for an asset that evaluates the check in its own step."""
        return dg.AssetCheckSpec(
            self.name,
            asset=self.asset,
            description=self.description,
            blocking=self.blocking,
            partitions_def=self.partitions_def,
        )

    @property
    def definition(self) -> dg.AssetChecksDefinition:
        """Return the check as a step of its own, which also runs without its asset."""

        @dg.asset_check(
            asset=self.asset,
            name=self.name,
            description=self.description,
            blocking=self.blocking,
            partitions_def=self.partitions_def,
        )
        def evaluated(
            context: dg.AssetCheckExecutionContext, platform: Platform
        ) -> dg.AssetCheckResult:
            return evaluate_in_step(self, context, platform)

        return evaluated


def check(
    dataset: Dataset,
    *,
    built: Keys | None = None,
    newest: int | None = None,
    blocking: bool = False,
    is_whole: bool = False,
) -> Callable[[FindProblems], Check]:
    """Make a function that finds problems a check of its name and docstring.

    The night evaluates the partitions that `built` returns, by default those that are built, or the
    `newest` of them. A check that `is_whole` has one result for all partitions of its dataset.
    """

    def keys(resources: Resources) -> Iterable[str]:
        if is_whole or dataset.partitions == "whole":
            return [WHOLE]
        found = built(resources) if built else built_inputs(resources.data_root.store, dataset)
        return found if newest is None else sorted(found)[-newest:]

    def decorate(find: FindProblems) -> Check:
        def evaluate(resources: Resources, key: str) -> dg.AssetCheckResult:
            found = find(resources, key)
            return found if isinstance(found, dg.AssetCheckResult) else check_result(list(found))

        return Check(
            dataset.name,
            find.__name__,
            inspect.getdoc(find) or "",
            evaluate,
            keys,
            None if is_whole else PARTITIONS[dataset.partitions],
            blocking,
        )

    return decorate


def evaluate_in_step(
    check: Check,
    context: dg.AssetCheckExecutionContext | dg.AssetExecutionContext,
    resources: Resources,
) -> dg.AssetCheckResult:
    """Evaluate a check for the partitions of a run; return the result of the step.

    Dagster records the partition of a step that has one. With several it records none, so each
    result is reported by itself.
    """
    keys = [WHOLE] if check.partitions_def is None else context.partition_keys
    results = {key: check.evaluate(resources, key) for key in keys}
    if len(results) == 1:
        (result,) = results.values()
        return result._replace(check_name=check.name, asset_key=dg.AssetKey(check.asset))
    reporter = Reporter(context.instance, context.run.run_id)
    for key, result in results.items():
        reporter.report(check, key, result)
    red = [key for key, result in results.items() if not result.passed]
    return dg.AssetCheckResult(
        check_name=check.name,
        asset_key=check.asset,
        passed=not red,
        metadata={"partitions": len(results), "red": ", ".join(red)},
    )


@dataclass(frozen=True, slots=True)
class Reporter:
    """Records results of single partitions as events of a run.

    Without a run, Dagster accepts one result per check and partition, ever: its index of the runs
    of a check has no run id to tell two of them apart.
    """

    instance: dg.DagsterInstance
    run_id: str

    def report(self, check: Check, key: str, result: dg.AssetCheckResult) -> None:
        """Record the result for one partition."""
        evaluation = dg.AssetCheckEvaluation(
            asset_key=dg.AssetKey(check.asset),
            check_name=check.name,
            passed=result.passed,
            metadata=result.metadata or {},
            blocking=check.blocking,
            partition=None if check.partitions_def is None else key,
        )
        event = dg.DagsterEvent(
            dg.DagsterEventType.ASSET_CHECK_EVALUATION.value,
            job_name="",
            event_specific_data=evaluation,
        )
        self.instance.report_dagster_event(event, run_id=self.run_id)


def check_result(problems: Sequence[str]) -> dg.AssetCheckResult:
    """Return a result that is red when there are problems, and shows the first of them."""
    shown = markdown_table(["problem"], [(text,) for text in problems[:_SHOWN_PROBLEMS]])
    return dg.AssetCheckResult(
        passed=not problems, metadata={"problems": len(problems), "first": shown}
    )


def require_green(
    instance: dg.DagsterInstance, checks: Iterable[Check], keys: Iterable[str]
) -> None:
    """Raise InputError when a blocking check of a parent is red for one of these partitions.

    Dagster itself only keeps a run from going on; followers run in runs of their own.
    """
    blocking = [one for one in checks if one.blocking]
    red = red_partitions(instance, blocking)
    found = [(key, one) for key in keys for one in blocking if key in red[one.key]]
    if found:
        key, one = found[0]
        raise InputError(
            f"refused to build from {one.asset} {key}: its check {one.name} is red, and the damage "
            "would spread; repair the partition and run the check again",
            thing=key,
        )


def red_reasons(checks: Iterable[Check]) -> Callable[[dg.DagsterInstance], Mapping[str, str]]:
    """Return the function that finds the partitions for which a blocking check is red, and why."""
    blocking = [one for one in checks if one.blocking]

    def find(instance: dg.DagsterInstance) -> Mapping[str, str]:
        red = red_partitions(instance, blocking)
        return {
            key: f"the check {one.name} of {one.asset} {key} is red"
            for one in blocking
            for key in red[one.key]
        }

    return find


def red_partitions(
    instance: dg.DagsterInstance, checks: Iterable[Check]
) -> Mapping[dg.AssetCheckKey, frozenset[str]]:
    """Return the partitions for which each of these checks was red when it last ended."""
    from dagster._core.storage.asset_check_execution_record import (
        AssetCheckExecutionRecordStatus as Status,
    )

    keys = {one.key: one for one in checks}
    red: dict[dg.AssetCheckKey, set[str]] = {key: set() for key in keys}
    for info in instance.event_log_storage.get_asset_check_partition_info(list(keys)):
        is_whole = keys[info.check_key].partitions_def is None
        if info.latest_execution_status == Status.FAILED and (is_whole or info.partition_key):
            red[info.check_key].add(info.partition_key or WHOLE)
    return {key: frozenset(found) for key, found in red.items()}


def evaluation_order(
    check: Check, keys: Iterable[str], *, red: frozenset[str], evaluated: dict[str | None, int]
) -> list[str]:
    """Return the partitions of a check in the order of evaluation; `evaluated` grows with time.

    Red partitions come first, then those whose last evaluation is the longest ago: what one night
    has no time for is first in the next.
    """

    def order(key: str) -> tuple[bool, int, str]:
        return key not in red, evaluated.get(key if check.partitions_def else None, 0), key

    return sorted({*keys, *red}, key=order)


def evaluate_all(
    checks: Sequence[Check],
    resources: Resources,
    reporter: Reporter,
    *,
    is_time_left: Callable[[], bool],
    log: Callable[[str], None],
) -> list[str]:
    """Evaluate the checks while there is time; return what could not be evaluated, and why."""
    storage = reporter.instance.event_log_storage
    red = red_partitions(reporter.instance, checks)
    failures: list[str] = []
    for one in checks:
        found = storage.get_asset_check_partition_info([one.key])
        evaluated = {info.partition_key: info.latest_check_event_storage_id for info in found}
        keys = evaluation_order(
            one, one.built(resources), red=red[one.key], evaluated=dict(evaluated)
        )
        done = 0
        for key in keys:
            if not is_time_left():
                break
            try:
                reporter.report(one, key, one.evaluate(resources, key))
            except NewsPlatformError as error:
                # Its last result stays: a crawl that cannot be reached proves nothing.
                failures.append(f"{one.asset} {key}, {one.name}: {error}")
            done += 1
        log(f"{one.asset}, {one.name}: evaluated {done} of {len(keys)} partitions")
    return failures


def nightly_definitions(checks: Sequence[Check]) -> dg.Definitions:
    """Build the job that evaluates these checks, and its schedule."""

    @dg.op(name="evaluate_checks")
    def evaluate(context: dg.OpExecutionContext, platform: Platform) -> None:
        until = time.monotonic() + platform.settings.checks.max_hours * 3600
        failures = evaluate_all(
            checks,
            platform,
            Reporter(context.instance, context.run.run_id),
            is_time_left=lambda: time.monotonic() < until,
            log=context.log.info,
        )
        if failures:
            raise dg.Failure(f"{len(failures)} checks could not be evaluated: {failures[0]}")

    @dg.job(
        name=CHECKING,
        description="Evaluate all checks of all partitions, without building anything.",
    )
    def check_newest_data() -> None:
        evaluate()

    @dg.schedule(
        job=check_newest_data,
        cron_schedule="15 4 * * *",
        description="Evaluates all checks of all partitions every night.",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    def check_every_night() -> dg.RunRequest:
        """Request one evaluation of all checks."""
        return dg.RunRequest()

    return dg.Definitions(jobs=[check_newest_data], schedules=[check_every_night])
