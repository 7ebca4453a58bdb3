"""One batch end to end on a bucket of each kind, with the queue in PostgreSQL."""

from collections.abc import Iterator

import pytest

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.generated_research import write_resurvey_files
from news_platform.domain_metadata.pipeline import queue_batch
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.results import iter_broken
from news_platform.domain_metadata.table import (
    build_changes,
    build_table,
    read_changes,
    read_facts,
)
from news_platform.errors import FetchError
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform_tests.domain_metadata.test_pipeline import (
    NOW,
    PROD,
    names,
    research,
    site,
    survey,
)
from news_platform_tests.domain_metadata.test_resurvey import LATER, NEXT

WEB = (
    site("a.example", b"User-agent: GPTBot\nDisallow: /\n")
    | site("b.example", b"User-agent: *\nAllow: /\n")
    | {"https://slow.example/robots.txt": FetchError("slow", reason="timeout")}
)


@pytest.fixture
def postgres_queue(postgres_url: str) -> Iterator[DomainQueue]:
    """Return an empty queue in PostgreSQL."""
    engine = open_engine(postgres_url)
    migrate(engine)
    yield DomainQueue(engine)
    engine.dispose()


@pytest.fixture(params=["s3", "gs"])
def bucket_store(request: pytest.FixtureRequest) -> ObjectStore:
    """Return an empty bucket of each kind in turn."""
    store = request.getfixturevalue(f"{request.param}_store")
    assert isinstance(store, ObjectStore) and store.local_folder is None
    return store


def test_a_batch_goes_from_research_to_table_and_comparison_in_a_bucket(
    bucket_store: ObjectStore, postgres_queue: DomainQueue, batch: PartitionInfo
) -> None:
    store, queue = bucket_store, postgres_queue
    body = research("a.example", "b.example", "slow.example")
    import_file(store, batch, name="x", body=body)
    assert queue_batch(batch, store=store, queue=queue, now=NOW).new_domains == 3
    report, _ = survey(batch, WEB, store=store, queue=queue)
    assert report.outcomes == {"ok": 2, "timeout": 1}
    assert names(store, f"{PROD}/a.example") == [
        "domain_metadata.json",
        "domain_metadata.json.success",
        "robots.txt",
        "sitemap.xml",
    ]
    assert names(store, f"{PROD}/slow.example") == ["domain_metadata.json"]
    assert list(iter_broken(store, batch)) == []

    again, fetcher = survey(batch, WEB, store=store, queue=queue)
    assert again.surveyed == 1 and not any("a.example" in url for url in fetcher.requests)

    assert build_table(str(batch.date), store=store).rows == 3
    table = read_facts(store, str(batch.date))
    assert table["outcome"].to_list() == ["ok", "ok", "timeout"]

    write_resurvey_files(queue.messages(batch.key), day=LATER, store=store)
    queue_batch(NEXT, store=store, queue=queue, now=NOW)
    opened = WEB | site("a.example", b"User-agent: *\nAllow: /\n")
    survey(NEXT, opened, store=store, queue=queue)
    build_table(str(LATER), store=store)
    build_changes(str(LATER), store=store)
    changes = read_changes(store, str(LATER)).filter(bot="GPTBot")
    assert changes.select("domain", "change").rows() == [("a.example", "opened")]
