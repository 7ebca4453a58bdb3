"""The partitions of daily assets, and how many of them one run of a backfill builds."""

import warnings
from collections.abc import Sequence
from datetime import date, timedelta

import dagster as dg

from news_platform.datasets.warc_paths import FIRST_DAY

# The day that has begun counts too: the crawl publishes WARCs during the day.
DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY.isoformat(), end_offset=1)


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


# Dagster marks these parameters as beta; tests pin their behaviour, so users need no warning.
_BETA = "Parameter `(backfill_policy|allow_nonexistent_upstream_partitions)`"
warnings.filterwarnings("ignore", message=_BETA)

ONE_A_RUN = dg.BackfillPolicy.multi_run(1)
FOUR_A_RUN = dg.BackfillPolicy.multi_run(4)
SEVEN_A_RUN = dg.BackfillPolicy.multi_run(7)
# The first month of the crawl and the running one lack days.
DAYS_OF_MONTH = dg.TimeWindowPartitionMapping(allow_nonexistent_upstream_partitions=True)
