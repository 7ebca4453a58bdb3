"""Mutations of real snapshots hurt the records of no other snapshot."""

import json
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest

from news_platform.datasets.source_records import SOURCE_RECORDS, records_path
from news_platform.source_records.pipeline import RecordsOptions, build_institution
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform_tests.isolation.mutations import (
    MemoryGrowth,
    check_log,
    mutated,
    mutated_one,
    real_samples,
)
from news_platform_tests.source_records.pages import DEPARTMENTS, FULL_PAGE
from news_platform_tests.source_records.test_pipeline import FOLDER, OPTIONS, put_page

# The soak needs workers that can be killed; long enough for a good page on a busy machine.
PATIENT = RecordsOptions(workers=1, deadline_seconds=60)


def snapshots(count: int, seed: int) -> Iterator[dict[str, bytes]]:
    """Yield groups of mutated snapshots by name: HTML, Markdown, and JSON in and around a page."""
    dice = random.Random(seed)
    pages = [DEPARTMENTS.encode(), FULL_PAGE.encode(), *real_samples("pages/html")]
    for start in range(0, count, 100):
        group = {}
        for number in range(start, min(start + 100, count)):
            suffix = dice.choice(("json", "json", "html", "md"))
            page = mutated_one(pages, dice)
            group[f"bad{number}.{suffix}"] = wrapped(page, dice) if suffix == "json" else page
        yield group


def wrapped(page: bytes, dice: random.Random) -> bytes:
    metadata = {"url": "https://u1.edu/bad", "cachedAt": "2025-10-01T08:00:00Z", "statusCode": 200}
    data = {"rawHtml": page.decode("utf-8", "surrogateescape"), "metadata": metadata}
    document = json.dumps({"success": True, "data": data}).encode()
    return mutated(document, dice) if dice.random() < 0.5 else document


def build_group(
    store: ObjectStore, bad: dict[str, bytes], options: RecordsOptions
) -> list[dict[str, Any]]:
    """Build an institution with good and bad snapshots; return the rows of the good ones."""
    store.delete([info.path for info in store.list(FOLDER)])
    put_page(store, "departments", DEPARTMENTS)
    put_page(store, "faculty", FULL_PAGE)
    for name, body in bad.items():
        store.put(f"{FOLDER}/{name}", body)
    report = build_institution("u1", store=store, options=options)
    assert report.pages_seen == 2 + len(bad)
    rows = read_table(store, records_path("u1"), SOURCE_RECORDS).to_dicts()
    return [row for row in rows if "/bad" not in row["snapshot"]]


def build_mutations(
    store: ObjectStore,
    caplog: pytest.LogCaptureFixture,
    *,
    count: int,
    seed: int,
    options: RecordsOptions,
) -> None:
    memory, undisturbed = MemoryGrowth(), build_group(store, {}, options)
    assert len(undisturbed) == 6
    for bad in snapshots(count, seed):
        assert build_group(store, bad, options) == undisturbed
        check_log(caplog)
        memory.sample()
    memory.check()


def test_forty_mutated_snapshots_hurt_no_other(
    local_store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    build_mutations(local_store, caplog, count=40, seed=7, options=OPTIONS)


@pytest.mark.soak
def test_three_thousand_mutated_snapshots_hurt_no_other(
    local_store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    build_mutations(local_store, caplog, count=3_000, seed=8, options=PATIENT)
