"""The standing of all domains over time: refusals by purpose, crawler and country, llms.txt."""

import polars as pl
import pytest

from news_platform.datasets.domain_metadata import DomainMetadata, UsageFacts, UsageFileFacts
from news_platform.domain_metadata.history import (
    by_country,
    newly_refusing,
    read_surveys,
    standing,
    trend,
)
from news_platform.domain_metadata.table import build_changes, build_table, read_changes
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_metadata.test_table import NOW, facts, put

DAYS = ("2025-11-01", "2025-11-02", "2025-11-08")


def survey(domain: str, day: str, *, train: str, gptbot: str, llms: bool = False) -> DomainMetadata:
    one = facts(domain, policies={"GPTBot": gptbot, "CCBot": "allow"}, day=day)
    file = UsageFileFacts(name="llms.txt", url="u", exists=llms, read_at=NOW)
    one.usage = UsageFacts(verdicts={"ai_train": train, "index": "allow"}, files=[file])
    return one


@pytest.fixture
def store(local_store: ObjectStore) -> ObjectStore:
    """Return a root where a.test is surveyed on two days, and another domain on each day."""
    put(local_store, survey("a.test", DAYS[0], train="allow", gptbot="allow"))
    put(local_store, survey("b.test", DAYS[1], train="conflicting", gptbot="disallow_all"))
    put(local_store, survey("a.test", DAYS[2], train="refuse", gptbot="disallow_all", llms=True))
    put(local_store, facts("silent.test", day=DAYS[2]))
    for day in DAYS:
        build_table(day, store=local_store)
    return local_store


def test_a_domain_keeps_its_last_survey_until_the_next(store: ObjectStore) -> None:
    found = trend(read_surveys(store, DAYS[2]))
    assert found.days == DAYS
    assert found.purposes["ai_train"] == [0.0, 0.5, 1.0] and found.purposes["index"] == [0, 0, 0]
    assert found.bots == {"GPTBot": [0.0, 0.5, 1.0]}
    assert found.llms_txt == [0.0, 0.0, 0.5]


def test_countries_are_counted_by_purpose(store: ObjectStore) -> None:
    rows = by_country(standing(read_surveys(store, DAYS[2]), DAYS[2]))
    assert rows.to_dicts() == [
        {
            "country": "de",
            "domains": 2,
            "index": 0,
            "search": 0,
            "ai_input": 0,
            "ai_train": 2,
            "llms_txt": 1,
        }
    ]


def test_a_domain_that_began_to_refuse_is_named_with_what_it_refuses(store: ObjectStore) -> None:
    build_changes(DAYS[2], store=store)
    rows = newly_refusing(read_changes(store, DAYS[2]))
    assert rows.to_dicts() == [
        {"domain": "a.test", "country": "de", "signal": "robots", "refused": "GPTBot"}
    ]
    assert newly_refusing(pl.DataFrame(schema=rows_schema(store))).height == 0


def rows_schema(store: ObjectStore) -> pl.Schema:
    return read_changes(store, DAYS[2]).schema
