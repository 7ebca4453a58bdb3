"""The definitions of a month of backfills: every daily asset of the crawl, with its automation.

The first evaluation of the check of one day finds a file that was cut in half just before.
"""

import os
from dataclasses import replace
from pathlib import Path

import dagster as dg

from news_platform.defs import (
    alerts,
    ccnews,
    ccnews_checks,
    corpus,
    domain_store,
    metadata,
    near_duplicates,
    search,
)
from news_platform.defs.checks import BLOCKING
from news_platform.defs.graph import BUILD_ORDER, definitions_of
from news_platform.resources import Resources
from news_platform_tests.year.simulated import FOLDER_VARIABLE, Place

metadata._picture = lambda figure, name: dg.MetadataValue.md(name)
PLACE = Place(Path(os.environ[FOLDER_VARIABLE]))
RESOURCES = PLACE.resources()
ASSETS = (
    *("raw_news", "captures", "feed_candidates", "domain_buckets"),
    *("crawl_articles", "near_duplicates", "search_index"),
)
RULES = [rule for rule in BUILD_ORDER if rule.asset in (*ASSETS, "domain_store", "domain_catalog")]
DAMAGED = str(PLACE.plan.history[1])
_CUT = PLACE.folder / "cut"


def _cut_one_file(resources: Resources, key: str) -> dg.AssetCheckResult:
    if key == DAMAGED and not _CUT.exists():
        year, month, day = key.split("-")
        folder = PLACE.root / f"news/raw/year={year}/month={month}/day={day}"
        file = max(folder.rglob("*.parquet"))
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
        _CUT.touch()
    return _evaluate(resources, key)


_evaluate = ccnews_checks.rows_equal_markers.evaluate
CHECK = replace(ccnews_checks.rows_equal_markers, evaluate=_cut_one_file)
ccnews_checks.rows_equal_markers = CHECK
BLOCKING["raw_news"] = [CHECK if one.name == CHECK.name else one for one in BLOCKING["raw_news"]]
defs = dg.Definitions.merge(
    definitions_of(alerts, ccnews, ccnews_checks, domain_store, corpus, near_duplicates, search),
    dg.Definitions(resources={"platform": RESOURCES}, executor=dg.in_process_executor),
)
