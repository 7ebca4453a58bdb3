"""A code location for the scheduler's side alone: ten years of days, and nothing to do in them."""

import dagster as dg

FIRST_DAY, END_DAY = "2016-08-26", "2026-08-25"
DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY, end_date=END_DAY)


@dg.asset(partitions_def=DAYS)
def raw_news() -> None:
    """Stand for the crawl's days."""


@dg.asset(partitions_def=DAYS, deps=[raw_news])
def domain_buckets() -> None:
    """Stand for what follows them."""


defs = dg.Definitions([raw_news, domain_buckets])
