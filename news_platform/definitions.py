"""The one Definitions object: every room's assets, checks and automation, with their resources."""

import os
from collections.abc import Callable

import dagster as dg

from news_platform.defs.asset_metadata import with_card, with_freshness
from news_platform.defs.graph import AUTOMATION, FEATURES, dagster_resources
from news_platform.defs.partitions import within_days
from news_platform.resources import Resources, open_resources
from news_platform.settings import load_settings


def build_definitions(resources: Resources) -> dg.Definitions:
    """Join all rooms over these resources."""
    dress = _dress(resources)
    shell = dg.Definitions(resources=dagster_resources(resources), executor=dg.in_process_executor)
    return dg.Definitions.merge(
        *(_dressed(feature, dress) for feature in FEATURES), *AUTOMATION, shell
    )


def _dress(resources: Resources) -> Callable[[dg.AssetSpec], dg.AssetSpec]:
    def dress(spec: dg.AssetSpec) -> dg.AssetSpec:
        carded = with_card(spec, docs_url=resources.settings.docs_url)
        narrowed = within_days(carded, resources.partition_days)
        return with_freshness(narrowed) if resources.is_live else narrowed

    return dress


def _dressed(
    feature: dg.Definitions, dress: Callable[[dg.AssetSpec], dg.AssetSpec]
) -> dg.Definitions:
    ours = [
        asset
        for asset in feature.assets or ()
        if isinstance(asset, dg.AssetSpec | dg.AssetsDefinition)
    ]
    return dg.Definitions(
        assets=dg.map_asset_specs(dress, ours),
        asset_checks=feature.asset_checks,
        schedules=feature.schedules,
        sensors=feature.sensors,
        jobs=feature.jobs,
    )


defs = build_definitions(open_resources(load_settings(os.environ), may_connect=False))
