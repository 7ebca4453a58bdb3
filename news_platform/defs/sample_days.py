"""The days that a sample root offers: its own three, not ten years of empty ones."""

from datetime import timedelta

import dagster as dg

from news_platform.sample.world import DAYS

SAMPLE_DAYS = dg.DailyPartitionsDefinition(
    start_date=DAYS[0].isoformat(), end_date=(DAYS[-1] + timedelta(days=1)).isoformat()
)


def with_sample_days(spec: dg.AssetSpec) -> dg.AssetSpec:
    """Narrow a daily asset to the days of the sample world, so that a backfill of all is small."""
    if not isinstance(spec.partitions_def, dg.DailyPartitionsDefinition):
        return spec
    return spec.replace_attributes(partitions_def=SAMPLE_DAYS)
