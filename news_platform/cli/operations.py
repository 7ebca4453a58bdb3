"""`news-platform status`, `retry`, `pause`, `resume`, `adopt` and `doctor`: the automation."""

import time
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from news_platform.cli.command import Output, command
from news_platform.composition.home import home_problem
from news_platform.errors import ConfigError, InputError, NewsPlatformError
from news_platform.operations.checks import Diagnosis, Health
from news_platform.resources import Resources
from news_platform.storage.commit import root as roots
from news_platform.storage.commit.root import RootAccess
from news_platform.text.readable import did_you_mean

_ADOPT_SECONDS = 300.0
# Dagster takes a second to load, which only commands that need it pay.
if TYPE_CHECKING:
    from news_platform.defs.rebuild_rules import RebuildRule
    from news_platform.defs.status import PlatformStatus


@command()
@click.option("--all", "shows_all", is_flag=True, help="Also show the assets that are fine.")
def status(resources: Resources, shows_all: bool) -> Output:
    """Show what is behind, running, waiting or stopped, and why."""
    from news_platform.defs.graph import BUILD_ORDER
    from news_platform.defs.status import platform_status

    found = platform_status(BUILD_ORDER, resources)
    return Output(found.document(), _status_text(found, shows_all=shows_all))


def _status_text(found: "PlatformStatus", *, shows_all: bool) -> str:
    lines = [found.pause] if found.pause else []
    if found.home_problem:
        lines.append(f"{found.home_problem}: runs and failed attempts are not known")
    shown = [
        one for one in found.assets if shows_all or one.partitions or one.error or one.outdated
    ]
    lines += [f"{one.asset:<22} {one.text}" for one in shown]
    if fine := len(found.assets) - len(shown):
        lines.append(f"{fine} assets are up to date: --all shows them")
    return "\n".join(lines)


@command(access=RootAccess.WRITE)
@click.argument("asset")
@click.argument("partition", required=False)
def retry(resources: Resources, asset: str, partition: str | None) -> Output:
    """Request stale partitions of an asset now.

    This ends a stop, a pause after a failure, and the wait for a day to settle. Without PARTITION
    all stale partitions of ASSET are requested. Its sensor starts them at its next tick.
    """
    from news_platform.defs.retry_requests import request_retry
    from news_platform.defs.status import iter_statuses, open_instance

    rule = _followed(asset)
    with open_instance(resources.settings) as instance:
        (found,) = iter_statuses([rule], resources, instance)
    keys = [key for key in found.partitions if partition in (None, key)]
    if not keys and not found.error:
        shown = f"{asset} {partition}" if partition else asset
        raise InputError(f"nothing to retry: {shown} does not differ from its inputs", thing=shown)
    request_retry(resources.data_root.store, asset, partition, now=resources.clock.now())
    wanted = ", ".join(keys) or asset
    text = f"recorded the request for {wanted}; {rule.sensor} starts it at its next tick"
    return Output({"asset": asset, "requested": keys}, text)


def _followed(asset: str) -> "RebuildRule":
    from news_platform.defs.graph import BUILD_ORDER

    followed = {one.asset: one for one in BUILD_ORDER if one.sensor}
    if asset not in followed:
        cure = did_you_mean(asset, followed)
        raise ConfigError(f"no sensor follows {asset!r}: {cure}", thing=asset)
    return followed[asset]


@command(access=RootAccess.CREATE)
def pause(resources: Resources) -> Output:
    """Pause all sensors of a root; runs in progress continue."""
    store = resources.data_root.store
    roots.pause(store)
    return Output({"root": store.url, "paused": True}, f"paused: {store.url}")


@command(access=RootAccess.CREATE)
def resume(resources: Resources) -> Output:
    """Start the paused sensors of a root again."""
    store = resources.data_root.store
    roots.resume(store)
    return Output({"root": store.url, "paused": False}, f"resumed: {store.url}")


@command()
def adopt(resources: Resources) -> Output:
    """Report what the root holds to a new DAGSTER_HOME.

    Partitions that are built become materialized in the UI. The checks are evaluated for a few
    minutes; what is left is evaluated at night.
    """
    from news_platform.defs import housekeeping
    from news_platform.defs.checks import Reporter, evaluate_all
    from news_platform.defs.graph import CHECKS
    from news_platform.defs.status import open_instance

    until = time.monotonic() + _ADOPT_SECONDS
    with open_instance(resources.settings) as instance:
        if instance is None:
            problem = home_problem(resources.settings)
            raise ConfigError(f"{problem}: set DAGSTER_HOME, or run `dev` once")
        done = housekeeping.adopt(resources, instance)
        failures = evaluate_all(
            CHECKS,
            resources,
            Reporter(instance, str(uuid.uuid4())),
            is_time_left=lambda: time.monotonic() < until,
            log=lambda text: click.echo(text, err=True),
        )
    text = f"reported {done.materializations} materializations, added {done.partitions} partitions"
    return Output({**asdict(done), "not_evaluated": failures}, text)


@command(must_exist=False)
def doctor(resources: Resources) -> Output:
    """Diagnose this installation.

    Every finding comes with what to do. The exit code is 1 if something is wrong. No secret is
    shown.
    """
    from news_platform.operations.doctor import examine

    found = list(examine(resources))
    counts = Counter(one.state for one in found)
    document = {
        "root": resources.settings.root,
        "is_healthy": not counts[Health.WRONG],
        "findings": [asdict(one) for one in found],
    }
    bad = [one for one in found if one.state is Health.WRONG]
    failure = None
    if bad:
        message = f"{len(bad)} of {len(found)} checks failed, first: {bad[0].check}"
        failure = NewsPlatformError(message)
    return Output(document, "\n".join(_finding_lines(found)), failure)


def _finding_lines(found: Sequence[Diagnosis]) -> Iterator[str]:
    for one in found:
        yield f"{one.state:<8} {one.check:<17} {one.meaning}"
        if one.action:
            yield f"{'':<26} -> {one.action}"
