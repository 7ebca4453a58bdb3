"""An exception at any step of one snapshot leaves the records of the others as they are."""

import logging
from dataclasses import replace
from pathlib import Path

import pytest

from news_platform.datasets.source_records import (
    SOURCE_RECORDS,
    SOURCE_RECORDS_QUARANTINE,
    quarantine_path,
    records_path,
)
from news_platform.source_records.options import SegmentOptions
from news_platform.source_records.pipeline import build_institution
from news_platform.source_records.segment import SegmentJob, Snapshot, segment_job
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform_tests.isolation.injection import Step, Victim, clear_caches, traced_steps
from news_platform_tests.source_records.pages import DEPARTMENTS, FULL_PAGE
from news_platform_tests.source_records.test_pipeline import FOLDER, OPTIONS, put_page

MARKDOWN = b"# Staff\n\nThe office is open daily.\n\n- Ann Smith\n- Bob Jones\n"
# Module of the worker's target; written for each test, because a worker takes no arguments.
TARGET = (
    "from news_platform_tests.source_records.targets import fail_at\n\nrun = fail_at({steps!r})\n"
)


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


@pytest.mark.parametrize("kind", ["json", "markdown"])
def test_an_exception_at_any_step_of_a_snapshot_leaves_the_others(
    kind: str,
    local_store: ObjectStore,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    put_page(local_store, "departments", DEPARTMENTS)
    put_page(local_store, "staff", FULL_PAGE)
    steps = steps_of(local_store, put_victim(local_store, kind, 0))
    assert len(steps) > 10
    undisturbed = build_institution("u1", store=local_store, options=OPTIONS)
    expected = neighbour_rows(local_store)
    assert undisturbed.pages_failed == 0 and expected
    # One snapshot per step, so that one build covers them all.
    paths = [put_victim(local_store, kind, number) for number in range(len(steps))]
    (tmp_path / "failing_target.py").write_text(TARGET.format(steps=steps))
    monkeypatch.syspath_prepend(str(tmp_path))
    options = replace(OPTIONS, target="failing_target:run", deadline_seconds=60.0)
    report = build_institution("u1", store=local_store, options=options)
    assert neighbour_rows(local_store) == expected
    assert (report.pages_seen, report.pages_failed) == (2 + len(steps), len(steps))
    lost = read_table(local_store, quarantine_path("u1"), SOURCE_RECORDS_QUARANTINE)
    causes = dict(zip(lost["snapshot"], lost["error"], strict=True))
    raised = {path: causes[path] for path in paths if "planted" in causes[path]}
    assert raised.keys() == set(paths)
    logged = [record.getMessage() for record in caplog.records]
    assert all(any(path in line and "planted" in line for line in logged) for path in paths)
