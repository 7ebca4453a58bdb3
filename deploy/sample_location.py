"""The code location of the cluster demo: all assets over the sample, with a frozen clock.

It has no sensors and schedules, so that only the demo launches runs.
"""

import os

import dagster as dg

from news_platform.definitions import build_definitions
from news_platform.sample.resources import SampleResources
from news_platform.settings import load_settings


def without_automation(whole: dg.Definitions) -> dg.Definitions:
    """Return the same assets, checks and resources without sensors and schedules."""
    return dg.Definitions(
        assets=whole.assets,
        asset_checks=whole.asset_checks,
        resources=whole.resources,
        executor=whole.executor,
    )


defs = without_automation(
    build_definitions(SampleResources(load_settings(os.environ), frozen_clock=True))
)
