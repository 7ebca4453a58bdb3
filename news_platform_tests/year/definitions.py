"""The definitions of a simulation: the crawl, the domain store and automation."""

import os
from pathlib import Path

import dagster as dg

from news_platform.defs import alerts, ccnews, ccnews_checks, domain_store, metadata
from news_platform.defs.checks import nightly_definitions
from news_platform.defs.graph import CHECKS, definitions_of
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform_tests.year.simulated import FOLDER_VARIABLE, Place

# A quarter of the time goes into pictures otherwise, at which nobody looks here.
metadata._picture = lambda figure, name: dg.MetadataValue.md(name)
PLACE = Place(Path(os.environ[FOLDER_VARIABLE]))
RESOURCES = PLACE.resources()
RULES: tuple[RebuildRule, ...] = (
    ccnews.NEWS_RULE,
    domain_store.BUCKETS_RULE,
    domain_store.STORE_RULE,
    domain_store.CATALOG_RULE,
)
defs = dg.Definitions.merge(
    definitions_of(alerts, ccnews, ccnews_checks, domain_store),
    nightly_definitions([one for one in CHECKS if one.asset in ("raw_news", "domain_store")]),
    dg.Definitions(resources={"platform": RESOURCES}, executor=dg.in_process_executor),
)
