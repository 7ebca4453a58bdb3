"""The one Definitions object: every room's assets, checks and automation, with their resources."""

import os
from collections.abc import Callable

import dagster as dg

from news_platform.defs.asset_metadata import with_card
from news_platform.defs.freshness import stands_still, with_freshness
from news_platform.defs.graph import AUTOMATION, ROOMS
from news_platform.defs.resources import dagster_resources
from news_platform.defs.sample_days import with_sample_days
from news_platform.resources import Resources
from news_platform.settings import Settings, load_settings


def build_definitions(resources: Resources) -> dg.Definitions:
    """Join all rooms over these resources."""
    dress = _dress(resources.settings)
    shell = dg.Definitions(resources=dagster_resources(resources), executor=dg.in_process_executor)
    return dg.Definitions.merge(*(_dressed(room, dress) for room in ROOMS), *AUTOMATION, shell)


def _dress(settings: Settings) -> Callable[[dg.AssetSpec], dg.AssetSpec]:
    is_still = stands_still(settings)

    def dress(spec: dg.AssetSpec) -> dg.AssetSpec:
        carded = with_card(spec, docs_url=settings.docs_url)
        return with_sample_days(carded) if is_still else with_freshness(carded)

    return dress


def _dressed(room: dg.Definitions, dress: Callable[[dg.AssetSpec], dg.AssetSpec]) -> dg.Definitions:
    ours = [
        asset
        for asset in room.assets or ()
        if isinstance(asset, dg.AssetSpec | dg.AssetsDefinition)
    ]
    return dg.Definitions(
        assets=dg.map_asset_specs(dress, ours),
        asset_checks=room.asset_checks,
        schedules=room.schedules,
        sensors=room.sensors,
        jobs=room.jobs,
    )


defs = build_definitions(Resources(load_settings(os.environ)))
