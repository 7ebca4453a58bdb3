"""Damaged domains of a finished batch are surveyed again, and no others."""

import pytest

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.pipeline import queue_batch
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.results import iter_broken
from news_platform.domain_metadata.table import build_table
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_metadata.test_pipeline import (
    NOW,
    PROD,
    names,
    research,
    site,
    survey,
)

WEB = {**site("a.example", b"User-agent: *\n"), **site("b.example")}


@pytest.fixture
def surveyed(local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo) -> None:
    """Survey two domains to a final outcome."""
    import_file(local_store, batch, name="x", body=research("a.example", "b.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    survey(batch, WEB, store=local_store, queue=queue)


FILES = ("robots.txt", "sitemap.xml", "domain_metadata.json", "domain_metadata.json.success")


@pytest.mark.usefixtures("surveyed")
@pytest.mark.parametrize("name", FILES)
def test_a_lost_file_is_fetched_again_alone(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo, name: str
) -> None:
    before = names(local_store, PROD)
    other = local_store.head(f"{PROD}/b.example/{name}").etag
    local_store.delete([f"{PROD}/a.example/{name}"])
    report, fetcher = survey(batch, WEB, store=local_store, queue=queue)
    assert names(local_store, PROD) == before
    assert list(iter_broken(local_store, batch)) == []
    assert local_store.head(f"{PROD}/b.example/{name}").etag == other
    assert {url.split("/")[2] for url in fetcher.requests} == {"a.example"}
    assert report.outcomes == {"ok": 2}


@pytest.mark.usefixtures("surveyed")
def test_facts_that_cannot_be_read_are_named_and_fetched_again(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    path = f"{PROD}/a.example/domain_metadata.json"
    local_store.put(path, b"{")
    assert list(iter_broken(local_store, batch)) == [f"{path}: invalid domain metadata"]
    with pytest.raises(StorageError, match=r"a\.example.*materialize its batch"):
        build_table("2025-11-01", store=local_store)
    _, fetcher = survey(batch, WEB, store=local_store, queue=queue)
    assert {url.split("/")[2] for url in fetcher.requests} == {"a.example"}
    assert build_table("2025-11-01", store=local_store) == 2


@pytest.mark.usefixtures("surveyed")
@pytest.mark.parametrize("left", [None, b"{"])
def test_a_marker_without_facts_does_not_stand_for_a_survey(
    left: bytes | None, local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    path = f"{PROD}/a.example/domain_metadata.json"
    local_store.delete([path])
    if left is not None:
        local_store.put(path, left)
    queue.reopen_finished(batch.key, ["a.example"], now=0)
    report, fetcher = survey(batch, WEB, store=local_store, queue=queue)
    assert (report.surveyed, report.finished_before) == (1, 0) and fetcher.requests
    assert list(iter_broken(local_store, batch)) == []
