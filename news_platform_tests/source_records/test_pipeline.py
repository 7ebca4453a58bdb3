"""Snapshots of an institution, segmented by worker processes, to Parquet and quarantine."""

import json
from dataclasses import replace
from pathlib import Path

import polars as pl

from news_platform.composition.takedown_verification import verify_root
from news_platform.datasets.source_records import (
    SOURCE_RECORDS,
    SOURCE_RECORDS_QUARANTINE,
    quarantine_path,
    records_path,
)
from news_platform.resources import Resources
from news_platform.sample.world import place_inputs
from news_platform.settings import Settings
from news_platform.source_records.options import with_rules
from news_platform.source_records.pipeline import (
    RecordsOptions,
    build_institution,
    declare_options,
    wanted_institutions,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.storage.units import built_inputs
from news_platform_tests.source_records.pages import DEPARTMENTS, FULL_PAGE
from news_platform_tests.takedowns.asked import ask, served

FOLDER = "snapshots/institution=u1"
# In this process: starting workers would take most of the time.
OPTIONS = RecordsOptions(workers=0, target="news_platform.source_records.segment:segment_job")


def put_page(store: ObjectStore, name: str, html: str) -> None:
    metadata = {"url": f"https://u1.edu/{name}", "cachedAt": "2025-10-01T08:00:00Z"}
    document = {"success": True, "data": {"rawHtml": html, "metadata": metadata}}
    store.put(f"{FOLDER}/{name}.json", json.dumps(document).encode())


def test_pages_become_rows_and_failures_go_to_quarantine(local_store: ObjectStore) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    put_page(local_store, "faculty", FULL_PAGE)
    put_page(local_store, "deep", "<div>" * 20_000)
    local_store.put(f"{FOLDER}/failed.json", b'{"success": false, "error": "blocked"}')
    local_store.put(f"{FOLDER}/notes.pdf", b"no snapshot")
    report = build_institution("u1", store=local_store, options=OPTIONS)
    assert (report.pages_seen, report.pages_failed, report.failed_share) == (4, 2, 0.5)
    assert report.blocks_kept == 6
    assert report.blocks_total == report.blocks_kept + sum(report.dropped.values())
    assert report.dropped["footer"] == 2 and report.dropped["navigation_item"] == 1
    rows = read_table(local_store, records_path("u1"), SOURCE_RECORDS)
    assert rows.height == 6
    assert rows["text"][0] == "Computer Science"
    assert rows.row(0, named=True)["section"] == "Departments"
    assert set(rows["snapshot"]) == {f"{FOLDER}/departments.json", f"{FOLDER}/faculty.json"}
    assert set(rows["institution"]) == {"u1"}
    assert rows.select(pl.col("fetched_at").is_null().any()).item() is False
    lost = read_table(local_store, quarantine_path("u1"), SOURCE_RECORDS_QUARANTINE)
    assert lost["text"].to_list() == ["", ""]
    assert sorted(lost["error"]) == [
        "nested deeper than 2048 elements",
        "the crawler failed: blocked",
    ]
    assert dict(report.failures)[f"{FOLDER}/failed.json"] == "the crawler failed: blocked"


def test_a_takedown_of_one_page_of_a_crawl_leaves_its_other_pages(
    local_store: ObjectStore,
) -> None:
    pages = [
        {"rawHtml": DEPARTMENTS, "metadata": {"sourceURL": f"https://u1.edu/{name}"}}
        for name in ("kept", "gone")
    ]
    local_store.put(f"{FOLDER}/crawl.json", json.dumps({"success": True, "data": pages}).encode())
    local_store.put(f"{FOLDER}/page.json", json.dumps({"data": pages[1]}).encode())
    ask(local_store, "url", "https://u1.edu/gone")
    # Before anything is removed, a build leaves the page out already.
    report = build_institution("u1", store=local_store, options=OPTIONS)
    assert (report.pages_seen, report.dropped["taken_down"]) == (1, 2)
    served(local_store)
    stored = json.loads(local_store.read(f"{FOLDER}/crawl.json"))
    assert stored == {"success": True, "data": pages[:1]}
    assert not local_store.exists(f"{FOLDER}/page.json")
    rows = read_table(local_store, records_path("u1"), SOURCE_RECORDS)
    assert set(rows["url"]) == {"https://u1.edu/kept"}
    assert not verify_root(Resources(Settings(root=local_store.url))).findings


def test_a_worker_that_hangs_costs_one_page(local_store: ObjectStore) -> None:
    put_page(local_store, "departments", DEPARTMENTS)
    put_page(local_store, "slow", FULL_PAGE)
    target = "news_platform_tests.source_records.targets:sleep_over_slow"
    options = RecordsOptions(workers=1, deadline_seconds=3, target=target)
    report = build_institution("u1", store=local_store, options=options)
    assert (report.pages_seen, report.pages_failed) == (2, 1)
    (lost,) = read_table(local_store, quarantine_path("u1"), SOURCE_RECORDS_QUARANTINE).to_dicts()
    assert lost["error"].startswith("timeout: ")
    assert lost["snapshot"] == f"{FOLDER}/slow.json"


def test_the_same_snapshots_give_the_same_bytes_and_a_mended_page_leaves_quarantine(
    local_store: ObjectStore,
) -> None:
    put_page(local_store, "faculty", FULL_PAGE)
    put_page(local_store, "other", "")
    build_institution("u1", store=local_store, options=OPTIONS)
    before = {info.path: local_store.read(info.path) for info in local_store.list()}
    build_institution("u1", store=local_store, options=OPTIONS)
    assert {info.path: local_store.read(info.path) for info in local_store.list()} == before
    assert quarantine_path("u1") in before
    put_page(local_store, "other", DEPARTMENTS)
    build_institution("u1", store=local_store, options=OPTIONS)
    assert not local_store.exists(quarantine_path("u1"))


def test_what_is_wanted_and_built_agree_after_a_build_and_differ_after_a_change(
    local_store: ObjectStore,
) -> None:
    put_page(local_store, "faculty", FULL_PAGE)
    local_store.put("snapshots/README.txt", b"no institution")
    wanted = wanted_institutions(local_store)
    assert wanted.keys() == {"u1"} and built_inputs(local_store, SOURCE_RECORDS) == {}
    build_institution("u1", store=local_store, options=OPTIONS)
    assert built_inputs(local_store, SOURCE_RECORDS) == wanted
    put_page(local_store, "more", DEPARTMENTS)
    assert wanted_institutions(local_store) != built_inputs(local_store, SOURCE_RECORDS)
    build_institution("u1", store=local_store, options=OPTIONS)
    declare_options(local_store, OPTIONS.segment)
    assert wanted_institutions(local_store) == built_inputs(local_store, SOURCE_RECORDS)
    declare_options(local_store, with_rules(OPTIONS.segment, "[sections]\ncall_words = 9"))
    assert wanted_institutions(local_store) != built_inputs(local_store, SOURCE_RECORDS)


def test_samples_are_spread_over_all_records(local_store: ObjectStore) -> None:
    items = "".join(f"<li>Department number {number}</li>" for number in range(20))
    put_page(local_store, "list", f"<h2>Departments</h2><ul>{items}</ul>")
    options = replace(OPTIONS, samples=4)
    report = build_institution("u1", store=local_store, options=options)
    assert [text for _, text in report.samples] == [
        f"Department number {number}" for number in (0, 5, 10, 15)
    ]
    (first, *_) = json.loads(local_store.read("samples/source_records/u1.json"))
    assert first["text"] == "Department number 0"
    assert first["provenance"]["url"] == "https://u1.edu/list" and len(first["id"]) == 16


def test_an_oversized_snapshot_is_not_even_read(local_store: ObjectStore, tmp_path: Path) -> None:
    large = tmp_path / "large.html"
    with large.open("wb") as file:
        file.truncate(64_000_001)
    local_store.put(f"{FOLDER}/large.html", large)
    report = build_institution("u1", store=local_store, options=OPTIONS)
    assert (report.pages_seen, report.pages_failed) == (1, 1)


def test_the_sample_institutions_are_all_built(
    local_store: ObjectStore, sample_world: Path
) -> None:
    place_inputs(sample_world, local_store)
    wanted = wanted_institutions(local_store)
    assert len(wanted) >= 4
    reports = [build_institution(key, store=local_store, options=OPTIONS) for key in wanted]
    assert all(report.blocks_kept for report in reports)
    assert sum(report.pages_failed for report in reports) == 2


def test_a_change_of_rules_changes_exactly_the_institutions_it_touches(
    local_store: ObjectStore,
) -> None:
    for name, item in (
        ("u1", "Marine Physics"),
        ("u2", "Port Architecture"),
        ("u3", "Sea Law School"),
    ):
        page = f"<h2>Departments</h2><ul><li>{item}</li><li>Marine Biology</li></ul>"
        local_store.put(f"snapshots/institution={name}/page.html", page.encode())
    touched = with_rules(OPTIONS.segment, '[sections]\nnavigation_items = ["port architecture"]')
    before = {name: built(local_store, name, OPTIONS) for name in ("u1", "u2", "u3")}
    after = {name: built(local_store, name, replace(OPTIONS, segment=touched)) for name in before}
    assert [name for name in before if before[name] != after[name]] == ["u2"]


def built(store: ObjectStore, institution: str, options: RecordsOptions) -> tuple[object, ...]:
    build_institution(institution, store=store, options=options)
    info = store.head(records_path(institution))
    return info.modified_at, info.etag, store.read(records_path(institution))
