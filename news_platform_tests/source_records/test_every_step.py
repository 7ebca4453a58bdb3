"""An exception at any step of one snapshot leaves the records of the others as they are."""

import logging
import random
import re
from dataclasses import replace

import pytest

from news_platform.datasets.source_records import (
    SOURCE_RECORDS,
    SOURCE_RECORDS_QUARANTINE,
    quarantine_path,
    records_path,
)
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.pipeline import build_institution
from news_platform.source_records.segment import SegmentJob, SnapshotResult, segment_job
from news_platform.source_records.snapshots import Snapshot
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform_tests.isolation.injection import (
    Injected,
    Step,
    Victim,
    clear_caches,
    failing_step,
    traced_steps,
)
from news_platform_tests.source_records.pages import DEPARTMENTS, FULL_PAGE
from news_platform_tests.source_records.test_pipeline import FOLDER, OPTIONS, put_page

MARKDOWN = b"# Staff\n\nThe office is open daily.\n\n- Ann Smith\n- Bob Jones\n"
FAILING: list[Step] = []
"""The steps at which the snapshots `victim0`, `victim1`, … fail."""


def fail_at_step(job: SegmentJob) -> SnapshotResult:
    """Segment a snapshot, or raise at its step, once."""
    victim = re.search(r"victim(\d+)", job.snapshot.path)
    if victim is None:
        return segment_job(job)
    clear_caches()
    step = FAILING[int(victim[1])]
    with failing_step(Victim(victim[0], ()), step, lambda: Injected("planted"), once=True):
        return segment_job(job)


def put_victim(store: ObjectStore, kind: str, number: int) -> str:
    """Store the snapshot `victimN` and return its path."""
    if kind == "markdown":
        path = f"{FOLDER}/victim{number}.md"
        store.put(path, MARKDOWN)
        return path
    put_page(store, f"victim{number}", FULL_PAGE)
    return f"{FOLDER}/victim{number}.json"


def steps_of(store: ObjectStore, path: str) -> list[Step]:
    """Return the steps of segmenting a stored snapshot."""
    job = SegmentJob(Snapshot(path, "u1", store.read(path)), SegmentOptions())
    clear_caches()
    with traced_steps(Victim(path, ())) as steps:
        segment_job(job)
    return sorted(steps)


def neighbour_rows(store: ObjectStore) -> list[dict[str, object]]:
    rows = read_table(store, records_path("u1"), SOURCE_RECORDS).to_dicts()
    return [row for row in rows if "victim" not in row["snapshot"]]


@pytest.mark.parametrize("most", [8, pytest.param(None, marks=pytest.mark.soak)])
@pytest.mark.parametrize("kind", ["json", "markdown"])
def test_an_exception_at_any_step_of_a_snapshot_leaves_the_others(
    kind: str,
    most: int | None,
    local_store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    put_page(local_store, "departments", DEPARTMENTS)
    put_page(local_store, "staff", FULL_PAGE)
    steps = steps_of(local_store, put_victim(local_store, kind, 0))
    assert len(steps) > 10
    steps = random.Random(kind).sample(steps, most or len(steps))
    undisturbed = build_institution("u1", store=local_store, options=OPTIONS)
    expected = neighbour_rows(local_store)
    assert undisturbed.pages_failed == 0 and expected
    # One snapshot per step, so that one build covers them all.
    paths = [put_victim(local_store, kind, number) for number in range(len(steps))]
    FAILING[:] = steps
    options = replace(OPTIONS, target=f"{__name__}:{fail_at_step.__name__}")
    report = build_institution("u1", store=local_store, options=options)
    assert neighbour_rows(local_store) == expected
    assert (report.pages_seen, report.pages_failed) == (2 + len(steps), len(steps))
    lost = read_table(local_store, quarantine_path("u1"), SOURCE_RECORDS_QUARANTINE)
    causes = dict(zip(lost["snapshot"], lost["error"], strict=True))
    raised = {path: causes[path] for path in paths if "planted" in causes[path]}
    assert raised.keys() == set(paths)
    logged = [record.getMessage() for record in caplog.records]
    assert all(any(path in line and "planted" in line for line in logged) for path in paths)
