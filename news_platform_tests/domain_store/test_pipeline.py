"""Both stages, from rows to records by domain."""

import gzip
import json
import subprocess
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from news_platform.domain_store.layout import bucket_of, range_keys
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import claim_bucket_count
from news_platform.domain_store.pipeline import (
    StagedFilesGone,
    build_range,
    compact_buckets,
    compact_store,
)
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import (
    built_ranges,
    stage_batch,
    stage_input,
    wanted_ranges,
)
from news_platform.errors import ConfigError
from news_platform.storage.commit.markers import stale_partitions
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_store.pages import (
    NOW,
    SMALL,
    build,
    collect,
    news_rows,
    stage,
    urls,
)
from news_platform_tests.storage.counted import Counted

DAYS = {
    "2025-11-01": ["uk.co.bbc", "org.a", "uk.co.bbc"],
    "2025-11-02": ["org.a", "com.c"],
    "2025-11-03": ["uk.co.bbc", "com.c", "com.d"],
}
DOMAINS = ("bbc.co.uk", "a.org", "c.com", "d.com")
EXPECTED = {
    "bbc.co.uk": [
        "https://uk.co.bbc/2025-11-01/0",
        "https://uk.co.bbc/2025-11-01/2",
        "https://uk.co.bbc/2025-11-03/0",
    ],
    "a.org": ["https://org.a/2025-11-01/1", "https://org.a/2025-11-02/0"],
    "c.com": ["https://com.c/2025-11-02/1", "https://com.c/2025-11-03/1"],
    "d.com": ["https://com.d/2025-11-03/2"],
}


def _paths(store: ObjectStore, folder: str) -> list[str]:
    return [info.path for info in store.list(folder)]


def test_every_record_is_found_by_its_domain(root: ObjectStore) -> None:
    stage(root, DAYS)
    report = build(root)
    assert urls(root, DOMAINS) == EXPECTED
    assert sum(bucket.batches_added for bucket in report.buckets) == 3 * SMALL.buckets
    # A second build changes nothing.
    before = {info.path: info.etag for info in root.list("domain_store/data")}
    assert sum(bucket.bytes_written for bucket in build(root).buckets) == 0
    assert {info.path: info.etag for info in root.list("domain_store/data")} == before


def test_a_changed_day_is_replaced_and_no_other(root: ObjectStore) -> None:
    stage(root, DAYS)
    build(root)
    stage(root, {"2025-11-02": ["com.d", "com.d"]})
    build(root)
    assert urls(root, DOMAINS) == {
        **EXPECTED,
        "a.org": ["https://org.a/2025-11-01/1"],
        "c.com": ["https://com.c/2025-11-03/1"],
        "d.com": [
            "https://com.d/2025-11-02/0",
            "https://com.d/2025-11-02/1",
            "https://com.d/2025-11-03/2",
        ],
    }


def test_a_removed_day_is_gone_and_a_domain_that_had_no_other_too(root: ObjectStore) -> None:
    stage(root, DAYS)
    build(root)
    stage(root, {"2025-11-03": []})
    build(root)
    reader = DomainStore(root)
    assert reader.count("d.com") == 0
    assert list(reader.records("d.com")) == []
    assert sorted(reader.domains()) == ["a.org", "bbc.co.uk", "c.com"]
    assert _paths(root, "domain_buckets") == [
        path for path in _paths(root, "domain_buckets") if "2025-11-03" not in path
    ]


def test_files_are_cut_at_the_number_of_records_asked_for(root: ObjectStore) -> None:
    options = replace(SMALL, records_per_file=3)
    stage(root, {"2025-11-01": ["org.a"] * 7 + ["org.b"]}, options=options)
    build(root, options=options)
    bucket = bucket_of("a.org", options.buckets)
    found = [p for p in _paths(root, f"domain_buckets/{bucket}") if p.endswith(".gz")]
    lines = [gzip.decompress(root.read(path)).count(b"\n") for path in sorted(found)]
    assert max(lines) == 3
    assert sum(lines) in (7, 8)
    assert [path.split("/")[3] for path in sorted(found)] == [str(n) for n in range(len(found))]
    assert DomainStore(root).count("a.org") == 7
    assert len(list(DomainStore(root).records("a.org"))) == 7
    entry = DomainStore(root).entry("a.org")
    assert entry is not None
    assert len(entry.fragments) == 1


def test_the_index_line_leads_tail_head_and_zcat_to_exactly_the_records(
    root: ObjectStore, tmp_path: Path
) -> None:
    stage(root, DAYS)
    build(root)
    for view in root.list("domain_store/metadata"):
        for line in root.read(view.path).splitlines():
            entry = json.loads(line)
            assert view.path.endswith(f"/{int(entry['domain_hash_id']):04d}.jsonl")
            assert entry["count"] == sum(file["record_count"] for file in entry["files"])
            for file in entry["files"]:
                command = (
                    f"tail -c +{file['offset'] + 1} '{file['filepath']}' "
                    f"| head -c {file['length']} | zcat"
                )
                shown = subprocess.run(command, shell=True, capture_output=True, check=True).stdout
                rows = [json.loads(row) for row in shown.splitlines()]
                assert len(rows) == file["record_count"]
                assert {row["domain"] for row in rows} == {entry["domain"]}


def test_eight_days_become_one_fragment_and_each_stays_replaceable(root: ObjectStore) -> None:
    days = {f"2025-11-{n:02d}": ["org.a", "org.b"] for n in range(1, 9)}
    for day in days:
        stage(root, {day: days[day]})
        build(root)
    entry = DomainStore(root).entry("a.org")
    assert entry is not None
    assert len(entry.fragments) == 1
    stage(root, {"2025-11-04": ["org.b"]})
    build(root)
    found = urls(root, ["a.org", "b.org"])
    assert found["a.org"] == [f"https://org.a/{d}/0" for d in days if d != "2025-11-04"]
    assert sorted(found["b.org"]) == sorted(
        "https://org.b/2025-11-04/0" if d == "2025-11-04" else f"https://org.b/{d}/1" for d in days
    )


def test_compaction_leaves_one_segment_with_the_same_records(root: ObjectStore) -> None:
    for day, hosts in DAYS.items():
        stage(root, {day: hosts})
        build(root)
    stage(root, {"2025-11-01": ["uk.co.bbc"]})
    build(root)
    before = {domain: sorted(found) for domain, found in urls(root, DOMAINS).items()}
    report = compact_buckets(range(4), store=root, options=SMALL, now=NOW)
    for bucket in report.buckets:
        assert bucket.manifest is not None
        assert len(bucket.manifest.segments) <= 1
    assert {domain: sorted(found) for domain, found in urls(root, DOMAINS).items()} == before
    assert sum(b.bytes_written for b in build(root).buckets) == 0


def test_the_whole_store_is_compacted_with_one_list_of_the_staged_batches(
    local_store: ObjectStore,
) -> None:
    options = replace(SMALL, buckets=20)
    for day, hosts in DAYS.items():
        stage(local_store, {day: hosts}, options=options)
        build(local_store, options=options)
    counted = Counted(local_store)
    done = list(compact_store(counted, options=options, now=NOW))
    assert len(done) == 2
    assert sum(written for written, _ in done) > 0
    assert counted.lists.count("markers/domain_buckets") == 1
    assert urls(local_store, DOMAINS) == EXPECTED


def test_old_files_outlive_their_generation_by_the_grace_period(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": ["org.a"]})
    build(root)
    old = set(_paths(root, "domain_store/data"))
    stage(root, {"2025-11-01": ["org.a", "org.a"]})
    build(root, now=NOW)
    assert old <= set(_paths(root, "domain_store/data"))
    stage(root, {"2025-11-02": ["org.b"]})
    build(root, now=NOW + SMALL.grace + timedelta(seconds=1))
    assert not old & set(_paths(root, "domain_store/data"))
    assert urls(root, ["a.org"])["a.org"] == [f"https://org.a/2025-11-01/{n}" for n in (0, 1)]


def test_a_reader_of_the_old_generation_reads_on(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": ["org.a"] * 5})
    build(root)
    reader = DomainStore(root)
    assert reader.count("a.org") == 5
    stage(root, {"2025-11-01": ["org.a"]})
    build(root)
    assert len(list(reader.records("a.org"))) == 5
    reader.refresh()
    assert len(list(reader.records("a.org"))) == 1


def test_another_number_of_buckets_is_a_clear_error(root: ObjectStore) -> None:
    stage(root, DAYS)
    build(root)
    other = replace(SMALL, buckets=8)
    with pytest.raises(ConfigError, match="has 4 buckets, expected 8"):
        stage(root, {"2025-11-04": ["org.a"]}, options=other)
    with pytest.raises(ConfigError, match="has 4 buckets, expected 8"):
        build(root, options=other)
    assert DomainStore(root).count("a.org") == 2


def _delete_by_hand(store: ObjectStore, *folders: str) -> None:
    """Delete files as a person does: the markers, which are elsewhere, stay."""
    store.delete([info.path for folder in folders for info in store.list(folder)])


@pytest.mark.parametrize("folders", [("domain_store",), ("domain_store", "domain_buckets")])
def test_a_store_that_was_deleted_by_hand_is_built_again(
    local_store: ObjectStore, folders: tuple[str, ...]
) -> None:
    collect(local_store, {"2025-11-01": ("org.a", "org.b"), "2025-11-02": ("org.a",)})
    for day in ("2025-11-01", "2025-11-02"):
        stage_input(day_input(local_store, day), store=local_store, batch=day, options=SMALL)
    _build_stale_ranges(local_store)
    before = urls(local_store, ["a.org", "b.org"])
    _delete_by_hand(local_store, *folders)
    claim_bucket_count(local_store, SMALL.buckets)
    _build_stale_ranges(local_store)
    assert urls(local_store, ["a.org", "b.org"]) == before
    assert stale_partitions(wanted_ranges(local_store), built_ranges(local_store)) == {}


def _build_stale_ranges(store: ObjectStore) -> None:
    for key in stale_partitions(wanted_ranges(store), built_ranges(store)):
        build_range(key, store=store, options=SMALL, now=NOW)


def test_a_named_crawl_whose_staged_files_are_gone_is_named(local_store: ObjectStore) -> None:
    rows, name = news_rows(("org.a",)), "CC-MAIN-2013-20"
    stage_batch([rows], store=local_store, batch=name, inputs="x", options=SMALL)
    _delete_by_hand(local_store, "domain_buckets")
    with pytest.raises(StagedFilesGone, match="staged files of batches 'CC-MAIN-2013-20' are gone"):
        build_range(range_keys(SMALL.buckets)[0], store=local_store, options=SMALL, now=NOW)
