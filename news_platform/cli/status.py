"""`news-platform status` and `retry`: what the automation is doing, and asking it to go on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict

import click

from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.defs.asked import ask
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.planning import State
from news_platform.defs.staleness import Staleness
from news_platform.defs.status import AssetStatus, iter_statuses
from news_platform.errors import ConfigError, InputError
from news_platform.operations.automation import open_instance
from news_platform.storage.commit.root import RootAccess, is_paused

_SHOWN = (State.BEHIND, State.RUNNING, State.WAITING, State.RETRYING, State.STOPPED)


@click.command()
@root_option
@json_option
def status(root: str, as_json: bool) -> None:
    """Show what is behind, running, waiting or stopped in all rooms, and why."""
    resources = resources_for(root)
    with open_instance(resources.settings) as instance:
        found = list(iter_statuses(BUILD_ORDER, resources, instance))
    paused = is_paused(resources.data_root.store)
    emit(
        {
            "root": resources.data_root.store.url,
            "paused": paused,
            "dagster": instance is not None,
            "assets": [_document(one) for one in found],
        },
        as_json=as_json,
        text=_table(found, paused=paused, has_runs=instance is not None),
    )


@click.command()
@click.argument("asset")
@click.argument("partition", required=False)
@root_option
@json_option
def retry(asset: str, partition: str | None, root: str, as_json: bool) -> None:
    """Ask for stale partitions now: lifts a stop, a pause after a failure, and the wait for a day.

    Without PARTITION all stale partitions of ASSET are meant. Its sensor requests them at its next
    tick.
    """
    staleness = _followed(asset)
    resources = resources_for(root, RootAccess.WRITE)
    with open_instance(resources.settings) as instance:
        (found,) = iter_statuses([staleness], resources, instance)
    keys = [one.partition for one in found.partitions if partition in (None, one.partition)]
    if not keys and not found.error:
        shown = f"{asset} {partition}" if partition else asset
        raise InputError(f"nothing to retry: {shown} does not differ from its inputs", thing=shown)
    ask(resources.data_root.store, asset, partition, now=resources.clock.now())
    text = f"asked for {', '.join(keys) or asset}; {staleness.sensor} requests it at its next tick"
    emit({"asset": asset, "asked": keys}, as_json=as_json, text=text)


def _followed(asset: str) -> Staleness:
    followed = {one.asset: one for one in BUILD_ORDER if one.sensor}
    if asset not in followed:
        names = ", ".join(sorted(followed))
        raise ConfigError(f"no sensor follows {asset!r}: expected one of {names}", thing=asset)
    return followed[asset]


def _document(one: AssetStatus) -> Mapping[str, object]:
    counts = {str(state): one.count(state) for state in _SHOWN}
    return {
        "asset": one.asset,
        "stale": len(one.partitions),
        **counts,
        "next_attempt": one.next_attempt,
        "text": one.text,
        "error": one.error,
        "partitions": [asdict(partition) for partition in one.partitions],
    }


def _table(found: Sequence[AssetStatus], *, paused: bool, has_runs: bool) -> str:
    lines = ["paused: `news-platform resume` starts all sensors again"] if paused else []
    if not has_runs:
        lines.append("DAGSTER_HOME is not set: runs and failed attempts are not known")
    return "\n".join([*lines, *(f"{one.asset:<22} {one.text}" for one in found)])
