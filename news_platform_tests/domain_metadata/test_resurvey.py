"""A survey repeated on a later day: the earlier one stays, and the two can be compared."""

import json
from datetime import date

import pytest

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.generated_research import write_resurvey_files
from news_platform.domain_metadata.pipeline import queue_batch
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.table import build_changes, build_table, read_changes
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_metadata.test_pipeline import (
    NOW,
    PROD,
    facts,
    names,
    research,
    site,
    survey,
)

LATER = date(2025, 11, 3)
NEXT = PartitionInfo.of("de", "media", LATER)
OPEN, CLOSED = b"User-agent: *\nAllow: /\n", b"User-agent: GPTBot\nDisallow: /\n"


def surveyed(store: ObjectStore, queue: DomainQueue, batch: PartitionInfo, robots: bytes) -> None:
    """Queue and survey a batch in which every site answers with this robots.txt."""
    queue_batch(batch, store=store, queue=queue, now=NOW)
    web = site("a.example", robots) | site("b.example", robots)
    survey(batch, web, store=store, queue=queue)


@pytest.fixture
def finished(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> dict[str, bytes]:
    """Survey two domains and return the stored files of their batch."""
    import_file(local_store, batch, name="x", body=research("b.example", "a.example"))
    surveyed(local_store, queue, batch, OPEN)
    return {name: local_store.read(f"{PROD}/{name}") for name in names(local_store, PROD)}


def test_a_batch_is_surveyed_again_beside_its_earlier_results_and_compared_with_them(
    local_store: ObjectStore,
    queue: DomainQueue,
    batch: PartitionInfo,
    finished: dict[str, bytes],
) -> None:
    offered = write_resurvey_files(queue.messages(batch.key), day=LATER, store=local_store)
    path = "raw/country=de/category=media/date=2025-11-03/raw_0001.json"
    assert offered == {NEXT.key: path}
    surveyed(local_store, queue, NEXT, CLOSED)
    assert {name: local_store.read(f"{PROD}/{name}") for name in names(local_store, PROD)} == (
        finished
    )
    assert facts(local_store, NEXT, "a.example").final
    assert facts(local_store, NEXT, "a.example").source.raw_file_path == path
    for day in (str(batch.date), str(LATER)):
        build_table(day, store=local_store)
    assert build_changes(str(batch.date), store=local_store) == 0
    build_changes(str(LATER), store=local_store)
    changes = read_changes(local_store, str(LATER)).filter(bot="GPTBot")
    assert changes.select("domain", "before", "after", "change").rows() == [
        ("a.example", "allow", "refuse", "blocked"),
        ("b.example", "allow", "refuse", "blocked"),
    ]


def test_a_domain_keeps_its_address_and_its_source_class(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    records = [
        {"raw_url": "https://www.a.example/news", "source_type": "Gov"},
        {"normalized_domain": "b.example"},
    ]
    import_file(local_store, batch, name="x", body=json.dumps({"records": records}).encode())
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    write_resurvey_files(queue.messages(batch.key), day=LATER, store=local_store)
    queue_batch(NEXT, store=local_store, queue=queue, now=NOW)
    keys = ("domain_id", "domain_url", "registrable_domain", "authority")
    old, new = (
        [[getattr(message, key) for key in keys] for message in queue.messages(one.key)]
        for one in (batch, NEXT)
    )
    assert new == old


def test_a_survey_is_not_dated_back(
    local_store: ObjectStore,
    queue: DomainQueue,
    batch: PartitionInfo,
    finished: dict[str, bytes],
) -> None:
    with pytest.raises(InputError, match="a later day"):
        write_resurvey_files(queue.messages(batch.key), day=batch.date, store=local_store)
