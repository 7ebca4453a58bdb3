"""The whole graph: every feature's definitions, jobs, the build order and Dagster resources.

A job builds its assets in the order of the graph for one set of partitions. Sensors do the same
automatically; jobs are for backfills, for builds that should not wait, and for a look at one part
of the graph.
"""

from collections.abc import Mapping

import dagster as dg

from news_platform.defs import (
    alerts,
    ccnews,
    ccnews_checks,
    corpus,
    domain_metadata,
    domain_store,
    near_duplicates,
    newsroom_checks,
    rss,
    rss_checks,
    search,
    sheets,
    sitemap_articles,
    source_records,
    takedowns,
)
from news_platform.defs.checks import Check, nightly_definitions
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.tasks import TASKS
from news_platform.resources import Resources

FEATURES = (
    ccnews.defs,
    domain_store.defs,
    domain_metadata.defs,
    rss.defs,
    newsroom_checks.defs,
    sheets.defs,
    near_duplicates.defs,
    corpus.defs,
    search.defs,
    source_records.defs,
    sitemap_articles.defs,
    takedowns.defs,
)


VIEWS: Mapping[str, str] = {
    "one feature": 'group:"ccnews"',
    "everything that depends on the crawl": 'key:"warc_paths"+',
    "sources of the editors' sheet": '+key:"article_sheets"',
    "neighbours of the robots survey": '1+key:"domain_metadata"+1',
    "tables for analysts": 'kind:"parquet"',
    "third-party texts, to be handled with care": 'tag:"sensitivity"="third-party-text"',
    "assets that cost hours or gigabytes": 'tag:"cost"="high"',
    "what one team is responsible for": 'owner:"team:rss"',
}
"""Selections for the filter field above the lineage graph and the catalog."""


def job_definitions() -> dg.Definitions:
    """Build one job per task."""
    building = [
        dg.define_asset_job(
            name, selection=dg.AssetSelection.assets(*task.assets), description=task.purpose
        )
        for name, task in TASKS.items()
    ]
    return dg.Definitions(jobs=building)


CHECKS: tuple[Check, ...] = (
    *ccnews_checks.CHECKS,
    *domain_store.CHECKS,
    *domain_metadata.CHECKS,
    *rss_checks.CHECKS,
    *newsroom_checks.CHECKS,
    *near_duplicates.CHECKS,
    *corpus.CHECKS,
    *search.CHECKS,
    *source_records.CHECKS,
    *takedowns.CHECKS,
)
"""Every check, also those that assets evaluate in their own step."""

AUTOMATION = (alerts.defs, job_definitions(), nightly_definitions(CHECKS))

BUILD_ORDER: tuple[RebuildRule, ...] = (
    *ccnews.RULES,
    *domain_store.RULES,
    *domain_metadata.RULES,
    *rss.RULES,
    *corpus.RULES,
    *search.RULES,
    *sheets.RULES,
    *source_records.RULES,
    *takedowns.RULES,
)
"""Every asset that is built, with its rebuild rule, parents before children."""


def dagster_resources(resources: Resources) -> Mapping[str, object]:
    """Return the resources by the parameter names of assets and sensors.

    `platform` is all of them, for sensors and schedules that look for stale partitions.
    """
    return {
        "platform": resources,
        "data_root": resources.data_root,
        "crawl": resources.crawl,
        "web": resources.web,
        "ledger": resources.ledger,
        "clock": resources.clock,
    }
