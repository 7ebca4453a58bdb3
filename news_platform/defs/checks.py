"""Asset checks that keep one result per partition, in runs and in the nightly evaluation.

A check is a plain function of the resources and one partition key. A run of its asset evaluates it
for the partitions of the run, and a job evaluates all checks for all partitions at night, without
building anything. Without a result per partition, the green one of today would hide the red one of
yesterday: a partition that was red stays red until its own evaluation is green. Dagster's badges
show the result that was reported last, and only if it names the materialization it is about: so
each result names it, and the red ones are reported last.
"""

import hashlib
import inspect
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import takewhile

import dagster as dg
from dagster._core.definitions.asset_checks.asset_check_evaluation import (
    AssetCheckEvaluationTargetMaterializationData,
)
from dagster._core.storage.asset_check_execution_record import (
    AssetCheckExecutionRecordStatus as CheckStatus,
)
from dagster._core.storage.tags import PARTITION_NAME_TAG

from news_platform.datasets.dataset import WHOLE, Dataset
from news_platform.defs.metadata import markdown_table
from news_platform.defs.partitions import PARTITIONS
from news_platform.defs.planning import RED
from news_platform.defs.rebuild_rules import Platform
from news_platform.errors import NewsPlatformError
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

    def within(self, partitions_def: dg.PartitionsDefinition[str] | None) -> "Check":
        """Return the check with the partitions of its asset, unless it judges all of them."""
        return self if self.partitions_def is None else replace(self, partitions_def=partitions_def)

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


BLOCKING: dict[str, list[Check]] = {}
"""The blocking checks of each asset: whatever follows the asset waits while one is red."""


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

        made = Check(
            dataset.name,
            find.__name__,
            inspect.getdoc(find) or "",
            evaluate,
            keys,
            None if is_whole else PARTITIONS[dataset.partitions],
            blocking,
        )
        if blocking:
            BLOCKING.setdefault(dataset.name, []).append(made)
        return made

    return decorate


def evaluate_in_step(
    check: Check, context: dg.AssetCheckExecutionContext, resources: Resources
) -> dg.AssetCheckResult:
    """Evaluate a check for the partitions of a run; return the result of the step.

    Dagster records the partition of a run that was requested for one. The runs of a backfill name a
    range, even of one partition: for those it records none, so each result is reported by itself.
    """
    keys = [WHOLE] if check.partitions_def is None else context.partition_keys
    results = {key: check.evaluate(resources, key) for key in keys}
    if check.partitions_def is None or PARTITION_NAME_TAG in context.run.tags:
        (result,) = results.values()
        return result
    reporter = Reporter(context.instance, context.run.run_id)
    for key, result in sorted(results.items(), key=lambda it: not it[1].passed):
        reporter.report(check, key, result)
    red = [key for key, result in results.items() if not result.passed]
    return dg.AssetCheckResult(
        passed=not red, metadata={"partitions": len(results), "red": ", ".join(red)}
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
        """Record the result for one partition, about its latest materialization."""
        partition = None if check.partitions_def is None else key
        evaluation = dg.AssetCheckEvaluation(
            asset_key=check.key.asset_key,
            check_name=check.name,
            passed=result.passed,
            metadata=result.metadata or {},
            target_materialization_data=self._target(check.key.asset_key, partition),
            severity=result.severity,
            blocking=check.blocking,
            partition=partition,
        )
        event = dg.DagsterEvent(
            dg.DagsterEventType.ASSET_CHECK_EVALUATION.value,
            job_name="",
            event_specific_data=evaluation,
        )
        self.instance.report_dagster_event(event, run_id=self.run_id)

    def _target(
        self, asset: dg.AssetKey, partition: str | None
    ) -> AssetCheckEvaluationTargetMaterializationData | None:
        keys = None if partition is None else [partition]
        chosen = dg.AssetRecordsFilter(asset_key=asset, asset_partitions=keys)
        for one in self.instance.fetch_materializations(chosen, limit=1).records:
            return AssetCheckEvaluationTargetMaterializationData(
                storage_id=one.storage_id, run_id=one.run_id, timestamp=one.timestamp
            )
        return None


def check_result(problems: Sequence[str]) -> dg.AssetCheckResult:
    """Return a result that is red when there are problems, and shows the first of them."""
    shown = markdown_table(["problem"], [(text,) for text in problems[:_SHOWN_PROBLEMS]])
    return dg.AssetCheckResult(
        passed=not problems, metadata={"problems": len(problems), "first": shown}
    )


def red_reasons(asset: str, instance: dg.DagsterInstance) -> Mapping[str, str]:
    """Return the partitions of an asset for which a blocking check is red, and why."""
    blocking = BLOCKING.get(asset, ())
    red = red_partitions(instance, blocking)
    return {
        key: f"the check {one.name} of {asset} {key} {RED}"
        for one in blocking
        for key in red[one.key]
    }


def red_partitions(
    instance: dg.DagsterInstance, checks: Iterable[Check]
) -> Mapping[dg.AssetCheckKey, frozenset[str]]:
    """Return the partitions for which each of these checks was red when it last ended."""
    keys = {one.key: one for one in checks}
    red: dict[dg.AssetCheckKey, set[str]] = {key: set() for key in keys}
    for info in instance.event_log_storage.get_asset_check_partition_info(list(keys)):
        is_whole = keys[info.check_key].partitions_def is None
        if info.latest_execution_status == CheckStatus.FAILED and (is_whole or info.partition_key):
            red[info.check_key].add(info.partition_key or WHOLE)
    return {key: frozenset(found) for key, found in red.items()}


def evaluate_all(
    checks: Sequence[Check],
    resources: Resources,
    reporter: Reporter,
    *,
    is_time_left: Callable[[], bool],
    log: Callable[[str], None],
) -> list[str]:
    """Evaluate the checks while there is time; return what could not be evaluated, and why.

    Red partitions come first, then all others of all checks in another order every night: so none
    is left out for long when the time is short. A green result that is known and current is not
    reported again: ten years of days would add megabytes to Dagster's storage every night.
    """
    red = red_partitions(reporter.instance, checks)
    night = resources.clock.now().date()
    known = {one.key: _known_green(reporter.instance, one) for one in checks}
    keys = {one.key: {*one.built(resources), *red[one.key]} for one in checks}
    work = [(one, key) for one in checks for key in keys[one.key]]
    work.sort(key=lambda it: (it[1] not in red[it[0].key], _place(night, *it)))
    failures: list[str] = []
    found_red: list[tuple[Check, str, dg.AssetCheckResult]] = []
    done = Counter[dg.AssetCheckKey]()
    for one, key in takewhile(lambda _: is_time_left(), work):
        done[one.key] += 1
        try:
            result = one.evaluate(resources, key)
        except NewsPlatformError as error:
            # Its last result stays: a crawl that cannot be reached proves nothing.
            failures.append(f"{one.asset} {key}, {one.name}: {error}")
            continue
        if not result.passed:
            found_red.append((one, key, result))
        elif key not in known[one.key]:
            reporter.report(one, key, result)
    for red_one in found_red:
        reporter.report(*red_one)
    for one in checks:
        count = f"{done[one.key]} of {len(keys[one.key])}"
        log(f"{one.asset}, {one.name}: evaluated {count} partitions")
    return failures


def _place(night: date, check: Check, key: str) -> bytes:
    return hashlib.sha256(f"{night} {check.key} {key}".encode()).digest()


def _known_green(instance: dg.DagsterInstance, check: Check) -> frozenset[str]:
    """Return the partitions whose last result was green and is about what is stored now."""
    infos = instance.event_log_storage.get_asset_check_partition_info([check.key])
    return frozenset(
        info.partition_key or WHOLE
        for info in infos
        if info.is_current and info.latest_execution_status == CheckStatus.SUCCEEDED
    )


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
    def check_every_night(platform: Platform) -> dg.RunRequest | dg.SkipReason:
        """Request one evaluation of all checks."""
        # Imported here, because sensors ask for red checks.
        from news_platform.defs.sensors import skip_reason

        return skip_reason(platform.data_root.store) or dg.RunRequest()

    return dg.Definitions(jobs=[check_newest_data], schedules=[check_every_night])
