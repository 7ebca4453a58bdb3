"""The whole graph: every room's definitions, and every asset's step in the order of the graph."""

import dagster as dg

from news_platform.defs import (
    alerts,
    ccnews,
    domain_metadata,
    domain_store,
    near_duplicates,
    rss,
    sheets,
    side_tables,
    source_records,
)
from news_platform.defs.jobs import job_definitions
from news_platform.defs.steps import Step, step_of

ROOMS = (
    ccnews.defs,
    side_tables.defs,
    domain_store.defs,
    domain_metadata.defs,
    rss.defs,
    sheets.defs,
    near_duplicates.defs,
    source_records.defs,
)

AUTOMATION = (
    alerts.defs,
    job_definitions(
        check
        for room in ROOMS
        for check in room.asset_checks or ()
        if isinstance(check, dg.AssetChecksDefinition)
    ),
)

STEPS: tuple[Step, ...] = (
    ccnews.STEP,
    *(step_of(edge) for edge in domain_store.EDGES),
    *(step_of(edge) for edge in domain_metadata.EDGES),
    *(Step(asset, stale) for asset, stale in rss.STALE.items()),
    *(step_of(edge) for edge in near_duplicates.EDGES),
    *(Step(asset, stale) for asset, stale in sheets.STALE.items()),
    *(step_of(edge) for edge in source_records.EDGES),
)
