"""`news-platform status` and `retry`: what the automation is doing, and asking it to go on."""

import click

from news_platform.cli.options import emit, json_option, resources_for, root_option
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.retry_requests import request_retry
from news_platform.defs.status import (
    PlatformStatus,
    iter_statuses,
    open_instance,
    platform_status,
)
from news_platform.errors import ConfigError, InputError
from news_platform.storage.commit.root import RootAccess


@click.command()
@root_option
@json_option
def status(root: str, as_json: bool) -> None:
    """Show what is behind, running, waiting or stopped in every asset, and why."""
    found = platform_status(BUILD_ORDER, resources_for(root))
    emit(found.document(), as_json=as_json, text=_table(found))


@click.command()
@click.argument("asset")
@click.argument("partition", required=False)
@root_option
@json_option
def retry(asset: str, partition: str | None, root: str, as_json: bool) -> None:
    """Rebuild stale partitions now, even after a permanent failure or while they wait.

    Without PARTITION, all stale partitions of ASSET. The sensor starts them at its next tick.
    """
    rule = _followed(asset)
    resources = resources_for(root, RootAccess.WRITE)
    with open_instance(resources.settings) as instance:
        (found,) = iter_statuses([rule], resources, instance)
    keys = [key for key in found.partitions if partition in (None, key)]
    if not keys and not found.error:
        shown = f"{asset} {partition}" if partition else asset
        raise InputError(f"nothing to retry: {shown} does not differ from its inputs", thing=shown)
    request_retry(resources.data_root.store, asset, partition, now=resources.clock.now())
    text = f"requested {', '.join(keys) or asset}; {rule.sensor} starts it at its next tick"
    emit({"asset": asset, "requested": keys}, as_json=as_json, text=text)


def _followed(asset: str) -> RebuildRule:
    followed = {one.asset: one for one in BUILD_ORDER if one.sensor}
    if asset not in followed:
        names = ", ".join(sorted(followed))
        raise ConfigError(f"no sensor follows {asset!r}: expected one of {names}", thing=asset)
    return followed[asset]


def _table(found: PlatformStatus) -> str:
    lines = ["paused: `news-platform resume` starts all sensors again"] if found.is_paused else []
    if not found.has_runs:
        lines.append("DAGSTER_HOME is not set: runs and failed attempts are not known")
    return "\n".join([*lines, *(f"{one.asset:<22} {one.text}" for one in found.assets)])
