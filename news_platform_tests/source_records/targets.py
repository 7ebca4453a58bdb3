"""What workers run in tests: the real thing, but for snapshots that misbehave by name."""

import time

from news_platform.source_records.snapshot import PageResult, SegmentJob
from news_platform.source_records.worker import segment_job


def sleep_over_slow(job: SegmentJob) -> PageResult:
    """Cut a snapshot; hang over one whose path says slow."""
    if "slow" in job.snapshot.path:
        time.sleep(60)
    return segment_job(job)
