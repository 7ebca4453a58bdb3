"""Worker targets for tests: real segmentation, except for snapshots that are made to fail."""

import re
import time
from collections.abc import Callable, Sequence

from news_platform.source_records.segment import PageResult, SegmentJob
from news_platform.source_records.worker import segment_job
from news_platform_tests.isolation.injection import (
    Injected,
    Step,
    Victim,
    clear_caches,
    failing_step,
)


def sleep_over_slow(job: SegmentJob) -> PageResult:
    """Segment a snapshot; hang if its path contains "slow"."""
    if "slow" in job.snapshot.path:
        time.sleep(60)
    return segment_job(job)


def fail_at(steps: Sequence[Step]) -> Callable[[SegmentJob], PageResult]:
    """Return a target that raises at the n-th step of the snapshot `victimN`, once."""

    def run(job: SegmentJob) -> PageResult:
        victim = re.search(r"victim(\d+)", job.snapshot.path)
        if victim is None:
            return segment_job(job)
        clear_caches()
        step = steps[int(victim[1])]
        with failing_step(Victim(victim[0], ()), step, lambda: Injected("planted"), once=True):
            return segment_job(job)

    return run
