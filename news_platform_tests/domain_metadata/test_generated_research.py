"""Research files written for new domains of the crawl, one per day."""

import json
from datetime import date

import polars as pl

from news_platform.datasets.research_datasets import EnhancedResearchDataset, PartitionInfo
from news_platform.domain_metadata.generated_research import (
    catalog_file,
    estimate_catalog,
    newly_seen,
    seed_from_catalog,
)
from news_platform.storage.objects.store import ObjectStore

BATCH = PartitionInfo.of("zz", "ccnews", "2025-11-01")


def catalog(*rows: tuple[str, int, int]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "domain": [domain for domain, _, _ in rows],
            "records": [records for _, records, _ in rows],
            "first_seen": [date(2025, 11, day) for _, _, day in rows],
        },
        schema={"domain": pl.String, "records": pl.UInt64, "first_seen": pl.Date},
    )


def offered(store: ObjectStore, path: str) -> list[str]:
    return [one["normalized_domain"] for one in json.loads(store.read(path))["records"]]


def test_days_offer_their_new_domains_most_records_first() -> None:
    found = newly_seen(catalog(("a.test", 1, 1), ("b.test", 5, 1), ("c.test", 2, 2)), per_day=9)
    assert found == {"2025-11-01": ["b.test", "a.test"], "2025-11-02": ["c.test"]}
    assert newly_seen(catalog(("a.test", 1, 1)), per_day=0) == {}


def test_a_day_is_offered_once_and_late_domains_in_a_second_file(local_store: ObjectStore) -> None:
    first = catalog(("a.test", 1, 1), ("b.test", 5, 1))
    report = seed_from_catalog(first, store=local_store, per_day=10)
    folder = f"raw/{PartitionInfo.of('zz', 'ccnews', '2025-11-01').folder}"
    assert report.files == (f"{folder}/raw_0001.json",) and report.domains == 2
    assert seed_from_catalog(first, store=local_store, per_day=10).files == ()
    late = catalog(("a.test", 1, 1), ("b.test", 5, 1), ("late.test", 1, 1))
    assert seed_from_catalog(late, store=local_store, per_day=10).files == (
        f"{folder}/raw_0002.json",
    )
    assert offered(local_store, f"{folder}/raw_0002.json") == ["late.test"]


def test_the_limit_of_a_day_holds_over_several_catalogs(local_store: ObjectStore) -> None:
    seed_from_catalog(catalog(("a.test", 1, 1), ("b.test", 5, 1)), store=local_store, per_day=1)
    more = catalog(("a.test", 1, 1), ("b.test", 5, 1), ("c.test", 9, 1))
    assert seed_from_catalog(more, store=local_store, per_day=1).domains == 0


def test_our_own_research_files_follow_the_schema() -> None:
    dataset = EnhancedResearchDataset.model_validate_json(catalog_file(BATCH, ["a.test"]))
    assert (dataset.meta.record_count, dataset.meta.country) == (1, "zz")
    assert dataset.records[0].normalized_domain == "a.test"


def test_an_estimate_says_what_would_be_written_and_writes_nothing(
    local_store: ObjectStore,
) -> None:
    domains = catalog(("a.test", 1, 1), ("b.test", 5, 1), ("c.test", 2, 1), ("d.test", 2, 2))
    found = estimate_catalog(domains, store=local_store, per_day=2, concurrency=8)
    assert not list(local_store.list("raw"))
    written = seed_from_catalog(domains, store=local_store, per_day=2)
    assert (found.domains, found.batches) == (written.domains, len(written.files))
    assert found.requests == 8 * found.domains and found.files == 4 * found.domains
    assert found.hours == round(found.requests * 0.5 / 8 / 3600, 2)
    after = estimate_catalog(domains, store=local_store, per_day=2, concurrency=8)
    assert (after.domains, after.requests) == (0, 0)
