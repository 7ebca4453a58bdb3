"""What Dagster calls the partitions of a dataset, and how those of parent and child belong."""

import warnings
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

import dagster as dg

from news_platform.datasets.dataset import Dataset, ParentDataset, PartitionKey
from news_platform.datasets.raw_news import FIRST_DAY
from news_platform.datasets.registry import DATASETS

# Dagster marks these parameters as beta; tests pin their behaviour, so users need no warning.
_BETA = "Parameter `(backfill_policy|allow_nonexistent_upstream_partitions)`|Virtual assets"
warnings.filterwarnings("ignore", message=_BETA)

# The day that has begun counts too: the crawl publishes WARCs during the day.
DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY.isoformat(), end_offset=1)
MONTHS = dg.MonthlyPartitionsDefinition(start_date=f"{FIRST_DAY:%Y-%m}", fmt="%Y-%m", end_offset=1)
RESEARCH_BATCHES = dg.DynamicPartitionsDefinition(name="research_batches")
SURVEY_DAYS = dg.DynamicPartitionsDefinition(name="survey_days")
INSTITUTIONS = dg.DynamicPartitionsDefinition(name="institutions")
# The number of ranges depends on the store's number of buckets, so the first build adds the keys.
RANGES = dg.DynamicPartitionsDefinition(name="domain_store_ranges")

PARTITIONS: Mapping[PartitionKey, dg.PartitionsDefinition[str] | None] = {
    "whole": None,
    "day": DAYS,
    "month": MONTHS,
    "batch": RESEARCH_BATCHES,
    "survey_day": SURVEY_DAYS,
    "institution": INSTITUTIONS,
    "range": RANGES,
}


def partition_mapping(dataset: Dataset, parent: ParentDataset) -> dg.PartitionMapping | None:
    """Return how the partitions of a parent map to those of a dataset; None: Dagster's default."""
    if "whole" in (dataset.partitions, DATASETS[parent.dataset].partitions):
        return None
    match parent.partitions.kind:
        case "window":
            return _time_window(start_offset=1 - parent.partitions.days)
        case "of_month":
            return _time_window()
        case "every" | "of_survey_day" | "known_in_month":
            # A survey day consists of several batches: without it, a backfill would look for
            # batches whose keys are days.
            return dg.AllPartitionMapping()
        case "same" | "all_before":
            return None


def _time_window(*, start_offset: int = 0) -> dg.TimeWindowPartitionMapping:
    # The first month of the crawl and the running one lack days.
    return dg.TimeWindowPartitionMapping(
        start_offset=start_offset, allow_nonexistent_upstream_partitions=True
    )


def within_days(spec: dg.AssetSpec, days: Sequence[date] | None) -> dg.AssetSpec:
    """Narrow a daily asset to consecutive days; None keeps all."""
    if days is None or not isinstance(spec.partitions_def, dg.DailyPartitionsDefinition):
        return spec
    after = days[-1] + timedelta(days=1)
    return spec.replace_attributes(
        partitions_def=dg.DailyPartitionsDefinition(
            start_date=days[0].isoformat(), end_date=after.isoformat()
        )
    )
