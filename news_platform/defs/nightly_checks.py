"""Evaluate every check for every partition at night, without building anything.

A partition that was red stays red until its own evaluation is green. Red partitions come first,
then those whose last evaluation is the longest ago: what one night has no time for is first in the
next.
"""

import time
from collections.abc import Callable, Iterable, Sequence

import dagster as dg

from news_platform.defs.checks import Check, Reporter, red_partitions
from news_platform.errors import NewsPlatformError
from news_platform.resources import Resources

CHECKING = "check_newest_data"


def evaluation_order(
    check: Check, keys: Iterable[str], *, red: frozenset[str], evaluated: dict[str | None, int]
) -> list[str]:
    """Return the partitions of a check in the order of evaluation; `evaluated` grows with time."""

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
                # Its last verdict stays: a crawl that cannot be reached proves nothing.
                failures.append(f"{one.asset} {key}, {one.name}: {error}")
            done += 1
        log(f"{one.asset}, {one.name}: evaluated {done} of {len(keys)} partitions")
    return failures


def nightly_definitions(checks: Sequence[Check]) -> dg.Definitions:
    """Build the job that evaluates these checks, and its schedule."""

    @dg.op(name="evaluate_checks")
    def evaluate(context: dg.OpExecutionContext, platform: dg.ResourceParam[Resources]) -> None:
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
