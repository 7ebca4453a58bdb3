"""A worker target for tests: real segmentation, except for snapshots that are made to hang."""

import time

from news_platform.source_records.segment import SegmentJob, SnapshotResult
from news_platform.source_records.worker import segment_job


def sleep_over_slow(job: SegmentJob) -> SnapshotResult:
    """Segment a snapshot; hang if its path contains "slow"."""
    if "slow" in job.snapshot.path:
        time.sleep(60)
    return segment_job(job)
