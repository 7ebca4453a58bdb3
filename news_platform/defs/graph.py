"""The whole graph: every feature's definitions, the build order and the Dagster resources."""

from collections.abc import Mapping

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
from news_platform.defs.staleness import Staleness
from news_platform.resources import Resources

FEATURES = (
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
        for feature in FEATURES
        for check in feature.asset_checks or ()
        if isinstance(check, dg.AssetChecksDefinition)
    ),
)

BUILD_ORDER: tuple[Staleness, ...] = (
    *ccnews.STALENESS,
    *domain_store.STALENESS,
    *domain_metadata.STALENESS,
    *rss.STALENESS,
    *near_duplicates.STALENESS,
    *sheets.STALENESS,
    *source_records.STALENESS,
)
"""Every asset that is built, with its staleness, parents before children."""


def dagster_resources(resources: Resources) -> Mapping[str, object]:
    """Return the resources by the parameter names of assets and sensors.

    `platform` is all of them, for sensors and schedules that compute staleness.
    """
    return {
        "platform": resources,
        "data_root": resources.data_root,
        "crawl": resources.crawl,
        "web": resources.web,
        "ledger": resources.ledger,
        "clock": resources.clock,
    }
