"""The definitions of a simulation: the crawl, the domain store and automation."""

import os
from pathlib import Path

import dagster as dg

from news_platform.defs import alerts, ccnews, ccnews_checks, domain_store, plots
from news_platform.defs.checks import nightly_definitions
from news_platform.defs.graph import dagster_resources
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform_tests.year.simulated import FOLDER_VARIABLE, Place

# A quarter of the time goes into pictures otherwise, at which nobody looks here.
plots._picture = lambda figure, name: dg.MetadataValue.md(name)
PLACE = Place(Path(os.environ[FOLDER_VARIABLE]))
RESOURCES = PLACE.resources()
CHECKS = (*ccnews_checks.CHECKS, *domain_store.CHECKS)
RULES: tuple[RebuildRule, ...] = (
    *ccnews.RULES,
    *domain_store.RULES,
)
defs = dg.Definitions.merge(
    ccnews.defs,
    domain_store.defs,
    alerts.defs,
    nightly_definitions(CHECKS),
    dg.Definitions(resources=dagster_resources(RESOURCES), executor=dg.in_process_executor),
)
