"""Definitions in which only what an operator asks for runs."""

import dagster as dg


def without_automation(whole: dg.Definitions) -> dg.Definitions:
    """Return the same assets, checks and resources without sensors and schedules."""
    return dg.Definitions(
        assets=whole.assets,
        asset_checks=whole.asset_checks,
        resources=whole.resources,
        executor=whole.executor,
    )
