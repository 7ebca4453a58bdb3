"""Takedowns in Dagster: the asset that serves requests, its sensor and its check."""

from collections.abc import Iterable
from datetime import datetime

import dagster as dg

from news_platform.composition.takedown_parts import apply_root, has_work
from news_platform.composition.takedown_verification import verify_root
from news_platform.datasets.takedowns import TAKEDOWNS
from news_platform.defs.assets import Metadata, dataset_asset
from news_platform.defs.checks import check
from news_platform.defs.metadata import markdown_table
from news_platform.defs.rebuild_rules import Platform, RebuildRule
from news_platform.defs.runs import run_under_way
from news_platform.defs.sensors import skip_reason
from news_platform.errors import StorageError, hide_addresses
from news_platform.resources import Resources
from news_platform.takedowns.removal import ApplyReport
from news_platform.takedowns.requests import TakedownState, read_states

ASSET = TAKEDOWNS.name
# Files that one nightly evaluation reads; a smaller root is read whole.
_SAMPLED_FILES = 5_000


@dataset_asset(TAKEDOWNS)
def takedowns(context: dg.AssetExecutionContext, platform: Platform) -> Metadata:
    """Remove what is stored of all requests."""
    report = apply_root(platform)
    for note in report.notes:
        context.log.warning(note)
    for place, cause in report.left.items():
        context.log.warning(hide_addresses(f"{place} could not be rewritten: {cause}"))
    if report.left:
        raise StorageError(
            f"{len(report.left)} places still hold what is taken down; the sensor tries again: "
            f"{min(report.left.values())}"
        )
    states, now = read_states(platform.data_root.store), platform.clock.now()
    return _metadata(report, states, now=now)


def _metadata(report: ApplyReport, states: list[TakedownState], *, now: datetime) -> Metadata:
    # Not the addresses: the event log would keep what a later request asks to forget.
    rows = [
        (one.request.id, one.request.kind, len(one.request.values), one.status(now))
        for one in states
    ]
    removed = [
        (dataset, one.rows, one.bytes_removed, one.bytes_written)
        for dataset, one in report.removed.items()
    ]
    return {
        "dagster/row_count": len(states),
        "served": len(report.served),
        "rows_removed": report.total("rows"),
        "bytes_written": report.total("bytes_written"),
        "requests": markdown_table(("id", "kind", "values", "status"), rows),
        "removed": markdown_table(("dataset", "rows", "bytes removed", "bytes written"), removed),
    }


@check(TAKEDOWNS)
def nothing_taken_down_is_stored(resources: Resources, _key: str) -> Iterable[str]:
    """Nothing that is taken down is stored: a sample of the files of a large root, all of others.

    If red: run `news-platform takedown apply --all`, then `news-platform takedown verify`, which
    reads everything and names each place.
    """
    store = resources.data_root.store
    files = sum(1 for _ in store.list())
    share = None if files <= _SAMPLED_FILES else _SAMPLED_FILES / files
    found = verify_root(resources, share=share)
    # The places alone: the addresses must not reach the event log.
    return [*(one.place for one in found.findings), *found.unreadable]


TAKEDOWNS_RULE = RebuildRule.when(ASSET, has_work)


@dg.sensor(
    name="finish_takedowns",
    target=dg.AssetSelection.assets(ASSET),
    minimum_interval_seconds=60,
    description="Serves new requests for removal, and finishes what was interrupted.",
    default_status=dg.DefaultSensorStatus.RUNNING,
)
def finish_takedowns(
    context: dg.SensorEvaluationContext, platform: Platform
) -> dg.RunRequest | dg.SkipReason:
    """Request a run while something stored is still to be removed."""
    store = platform.data_root.store
    if reason := skip_reason(store):
        return reason
    if not has_work(platform):
        return dg.SkipReason("nothing is to be removed")
    if running := run_under_way(context.instance, ASSET):
        return dg.SkipReason(f"run {running} has not finished")
    return dg.RunRequest(asset_selection=[dg.AssetKey(ASSET)])
