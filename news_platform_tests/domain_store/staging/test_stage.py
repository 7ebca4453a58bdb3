"""The files and markers of staged batches."""

import gzip
import json
from dataclasses import replace

import pytest

from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.domain_store.layout import bucket_of
from news_platform.domain_store.staging.engine import StagedEngine
from news_platform.domain_store.staging.stage import (
    read_staged,
    stage_batch,
)
from news_platform.errors import InputError, StorageError
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform_tests.domain_store.pages import SMALL, build, news_rows, stage

GONE = "/no/such/folder"
HOSTS = ["org.b", "org.a", "org.b", "uk.co.bbc", "org.a", "org.c"]


def _data(store: ObjectStore) -> dict[str, list[dict[str, object]]]:
    """Return the rows of every staged file."""
    return {
        info.path: [
            json.loads(line) for line in gzip.decompress(store.read(info.path)).splitlines()
        ]
        for info in store.list("domain_buckets")
        if info.path.endswith(".gz")
    }


def test_every_row_lies_in_the_bucket_of_its_domain_sorted_by_domain(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": HOSTS})
    found = _data(root)
    for path, rows in found.items():
        domains = [str(row["domain"]) for row in rows]
        assert domains == sorted(domains)
        assert {bucket_of(domain, SMALL.buckets) for domain in domains} == {int(path.split("/")[1])}
    assert sorted(str(row["host"]) for rows in found.values() for row in rows) == sorted(HOSTS)


def test_the_description_beside_a_file_says_where_each_domain_lies(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": HOSTS})
    for path, rows in _data(root).items():
        facts = read_table(root, path.replace(".jsonl.gz", ".parquet"), DOMAIN_BUCKETS)
        assert facts["url"].to_list() == [row["uri"] for row in rows]
        assert facts["domain"].to_list() == [row["domain"] for row in rows]
        for domain, part in facts.group_by("domain"):
            start, length = part["run_offset"][0], part["run_length"][0]
            body = gzip.decompress(root.read_range(path, start, length))
            found = [json.loads(line)["domain"] for line in body.splitlines()]
            assert found == [domain[0]] * part.height


def test_a_day_with_no_rows_is_staged_as_empty(root: ObjectStore) -> None:
    report = stage_batch([], store=root, batch="2025-11-01", inputs="x", options=SMALL)
    assert report.records == 0
    assert list(read_markers(root, "domain_buckets")) == ["2025-11-01"]
    build(root)
    assert read_staged(root, SMALL.buckets).files("2025-11-01", 0) == 0


def test_unstaging_leaves_nothing_and_may_be_repeated(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": HOSTS, "2025-11-02": ["org.a"]})
    for _ in range(2):
        StagedEngine(root).delete(["2025-11-01"])
        assert list(read_markers(root, "domain_buckets")) == ["2025-11-02"]
        assert all("2025-11-01" not in info.path for info in root.list("domain_buckets"))


def test_a_failing_input_leaves_the_old_batch_as_it_was(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": HOSTS})
    before = {info.path for info in root.list()}

    def frames() -> object:
        yield news_rows(["org.z"])
        raise InputError("the input ends here")

    with pytest.raises(InputError):
        stage_batch(frames(), store=root, batch="2025-11-01", inputs="y", options=SMALL)  # type: ignore[arg-type] # a generator
    assert {info.path for info in root.list()} == before


def test_a_marker_without_its_buckets_is_named(root: ObjectStore) -> None:
    stage(root, {"2025-11-01": HOSTS})
    staged = read_staged(root, SMALL.buckets)
    root.put(staged.markers["2025-11-01"].path, b"{}")
    with pytest.raises(StorageError, match="has no buckets: stage"):
        staged.files("2025-11-01", 0)


def test_a_scratch_folder_that_is_not_there_is_told_in_one_line(root: ObjectStore) -> None:
    options = replace(SMALL, scratch=GONE, memory_bytes=1000)
    with pytest.raises(StorageError, match=f"cannot write to the scratch folder '{GONE}'"):
        stage_batch([news_rows(HOSTS)], store=root, batch="x", inputs="x", options=options)
