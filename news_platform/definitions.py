"""The one Definitions object: every feature's assets, checks and automation, with resources."""

import os
from collections.abc import Callable

import dagster as dg

from news_platform.defs.asset_metadata import with_card, with_freshness
from news_platform.defs.graph import AUTOMATION, FEATURES, dagster_resources
from news_platform.defs.partitions import within_days
from news_platform.defs.run_logs import naming_runs
from news_platform.isolation.environment import forbid_core_dumps
from news_platform.logs import configure_logging, is_configured
from news_platform.resources import Resources, open_resources
from news_platform.settings import load_settings, log_options, secret_values


def build_definitions(resources: Resources) -> dg.Definitions:
    """Join the definitions of all features, with these resources."""
    describe = _describe(resources)
    shared = dg.Definitions(
        resources=naming_runs(dagster_resources(resources)), executor=dg.in_process_executor
    )
    features = (_described(feature, describe) for feature in FEATURES)
    return dg.Definitions.merge(*features, *AUTOMATION, shared)


def _describe(resources: Resources) -> Callable[[dg.AssetSpec], dg.AssetSpec]:
    """Return the function that adds what a spec needs beyond its feature's own definition."""

    def describe(spec: dg.AssetSpec) -> dg.AssetSpec:
        settings = resources.settings
        described = with_card(spec, docs_url=settings.docs_url, server_url=settings.server.url)
        narrowed = within_days(described, resources.partition_days)
        return with_freshness(narrowed) if resources.is_live else narrowed

    return describe


def _described(
    feature: dg.Definitions, describe: Callable[[dg.AssetSpec], dg.AssetSpec]
) -> dg.Definitions:
    assets = [
        asset
        for asset in feature.assets or ()
        if isinstance(asset, dg.AssetSpec | dg.AssetsDefinition)
    ]
    return dg.Definitions(
        assets=dg.map_asset_specs(describe, assets),
        asset_checks=feature.asset_checks,
        schedules=feature.schedules,
        sensors=feature.sensors,
        jobs=feature.jobs,
    )


# Dagster's code servers and runs start here, not at the command line.
forbid_core_dumps()
_settings = load_settings(os.environ)
if not is_configured():  # the command line has chosen for its own process
    configure_logging(log_options(_settings), secrets=secret_values(_settings), logger=__package__)
defs = build_definitions(open_resources(_settings, may_connect=False))
