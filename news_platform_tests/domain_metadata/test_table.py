"""The daily table of survey facts and the changes of AI policies."""

from datetime import UTC, datetime

import polars as pl
import pytest

from news_platform.datasets.domain_metadata import (
    AiPolicyFacts,
    DomainMetadata,
    RobotsFacts,
    SitemapFacts,
    SourceFacts,
)
from news_platform.datasets.domain_surveys import AI_POLICY_CHANGES, DOMAIN_SURVEYS
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.changes import compared_files, policies_of, policy_changes
from news_platform.domain_metadata.table import (
    CHANGES_DATASET,
    TABLE_DATASET,
    USAGE_DATASET,
    build_changes,
    build_table,
    build_usage_signals,
    facts_frame,
    policy_counts,
    read_changes,
    read_facts,
    tabled_days,
)
from news_platform.storage.commit.markers import (
    read_inputs,
    read_markers,
    stale_partitions,
    write_marker,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import wanted_inputs
from news_platform.takedowns.requests import list_pending
from news_platform_tests.takedowns.asked import ask

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
DAYS = ("2025-11-01", "2025-11-02", "2025-11-03")


def facts(
    domain: str,
    *,
    policies: dict[str, str] | None = None,
    day: str = "2025-11-01",
    version: str = "1",
) -> DomainMetadata:
    read_at = NOW if policies else None
    return DomainMetadata(
        domain_id=f"media:de:{domain}",
        registrable_domain=domain,
        **PartitionInfo.of("de", "media", day).model_dump(),
        collected_at=NOW,
        outcome="ok",
        final=True,
        robots=RobotsFacts(
            host=domain, url="u", fetched_at=NOW, status_code=200, exists=True, read_at=read_at
        ),
        sitemap=SitemapFacts(fetched_at=NOW),
        ai_policy=AiPolicyFacts(list_version=version, own=policies) if policies else None,
        source=SourceFacts(domain_url="u", authority="media"),
    )


def day_of(frame: pl.DataFrame, day: str) -> pl.DataFrame:
    return frame.with_columns(date=pl.lit(day))


def put(store: ObjectStore, one: DomainMetadata) -> None:
    batch = PartitionInfo.of("de", "media", one.date)
    path = f"prod/{batch.folder}/{one.registrable_domain}/domain_metadata.json"
    store.put(path, one.model_dump_json().encode())
    write_marker(store, "domain_metadata", batch.key, inputs="x", report={})


def test_facts_become_rows_of_the_declared_schema() -> None:
    frame = facts_frame([facts("b.test"), facts("a.test", policies={"GPTBot": "allow"})])
    assert dict(frame.schema) == dict(DOMAIN_SURVEYS.schema)
    assert frame["domain"].to_list() == ["a.test", "b.test"]
    assert [row[0] for row in frame.select("ai_policies").rows()][1] is None
    own = policies_of(day_of(frame, DAYS[0])).filter("own").select("domain", "bot", "policy")
    assert own.rows() == [("a.test", "GPTBot", "allow")]
    assert frame["collected_at"][0] == NOW


def test_a_change_is_named_by_what_it_does() -> None:
    before = [
        facts("a.test", policies={"GPTBot": "allow", "CCBot": "disallow_all"}),
        facts("b.test", policies={"GPTBot": "partial"}),
        facts("gone.test", policies={"GPTBot": "partial"}),
    ]
    after = [
        facts("a.test", policies={"GPTBot": "disallow_all", "CCBot": "allow"}),
        facts("b.test", policies={"GPTBot": "allow"}),
        facts("new.test", policies={"GPTBot": "disallow_all"}),
    ]
    today, earlier = (
        day_of(facts_frame(frames), day) for frames, day in ((after, DAYS[1]), (before, DAYS[0]))
    )
    found = policy_changes(today, earlier, compared_files(today, earlier))
    columns = ("domain", "bot", "operator", "change", "before_date")
    assert found.select(columns).rows() == [
        ("a.test", "CCBot", "Common Crawl", "opened", "2025-11-01"),
        ("a.test", "GPTBot", "OpenAI", "blocked", "2025-11-01"),
        ("b.test", "GPTBot", "OpenAI", "changed", "2025-11-01"),
    ]
    assert found.schema.items() <= AI_POLICY_CHANGES.schema.items()
    assert set(found["read_at"]) == set(found["before_read_at"]) == {NOW}


def test_a_change_for_everybody_is_one_row() -> None:
    before, after = facts("a.test", policies={"GPTBot": "allow"}), facts("a.test")
    after.ai_policy = AiPolicyFacts(list_version="1", everyone="disallow_all")
    after.robots.read_at = NOW
    today, earlier = day_of(facts_frame([after]), DAYS[1]), day_of(facts_frame([before]), DAYS[0])
    found = policy_changes(today, earlier, compared_files(today, earlier))
    assert found.select("bot", "before", "after").rows() == [
        ("*", "unspecified", "refuse"),
        ("GPTBot", "allow", "refuse"),
    ]


def test_a_domain_is_compared_with_its_last_survey_under_the_same_list() -> None:
    older = day_of(facts_frame([facts("a.test", policies={"GPTBot": "allow"})]), "2025-11-01")
    newer = day_of(
        facts_frame([facts("a.test", policies={"GPTBot": "partial"}, version="2")]), "2025-11-02"
    )
    today = day_of(facts_frame([facts("a.test", policies={"GPTBot": "partial"})]), "2025-11-03")
    earlier = pl.concat([older, newer])
    found = policy_changes(today, earlier, compared_files(today, earlier))
    assert found.select("before", "after", "before_date").rows() == [
        ("allow", "partial", "2025-11-01")
    ]


def test_policies_are_counted_by_crawler_the_most_blocked_first() -> None:
    frame = facts_frame(
        [
            facts("a.test", policies={"GPTBot": "disallow_all", "CCBot": "allow"}),
            facts("b.test", policies={"GPTBot": "disallow_all", "CCBot": "partial"}),
        ]
    )
    counts = policy_counts(day_of(frame, "2025-11-01"))
    assert counts.columns == ["bot", "disallow_all", "partial", "allow", "unspecified"]
    assert counts.rows()[:2] == [("GPTBot", 2, 0, 0, 0), ("AI2Bot", 0, 0, 0, 2)]
    assert ("CCBot", 0, 1, 1, 0) in counts.rows()


def test_tables_are_written_with_markers_and_read_back(local_store: ObjectStore) -> None:
    put(local_store, facts("a.test", policies={"GPTBot": "allow"}))
    put(local_store, facts("a.test", policies={"GPTBot": "disallow_all"}, day="2025-11-02"))
    for day in ("2025-11-01", "2025-11-02"):
        assert build_table(day, store=local_store) == 1
        build_changes(day, store=local_store)
    assert read_changes(local_store, "2025-11-01").height == 0
    [row] = read_changes(local_store, "2025-11-02").to_dicts()
    assert (row["domain"], row["change"], row["date"]) == ("a.test", "blocked", "2025-11-02")
    assert read_facts(local_store, "2025-11-01")["date"].to_list() == ["2025-11-01"]


def tabled(store: ObjectStore, *surveys: DomainMetadata) -> None:
    """Build the tables of surveys that have just been made."""
    for one in surveys:
        put(store, one)
    for day in sorted({str(one.date) for one in surveys}):
        build_table(day, store=store)
        build_usage_signals(day, store=store)


def followed(store: ObjectStore) -> list[str]:
    """Build the changes that are stale; return their days."""
    stale = sorted(stale_partitions(tabled_days(store), read_inputs(store, CHANGES_DATASET)))
    for day in stale:
        build_changes(day, store=store)
    return stale


def test_a_day_depends_on_its_surveys(local_store: ObjectStore) -> None:
    tabled(local_store, *(facts("a.test", day=day) for day in DAYS))
    surveys = wanted_inputs(local_store, DOMAIN_SURVEYS)
    assert set(surveys) == set(tabled_days(local_store)) == set(DAYS)
    write_marker(local_store, "domain_metadata", f"de|media|{DAYS[0]}", inputs="y", report={})
    assert wanted_inputs(local_store, DOMAIN_SURVEYS)[DAYS[0]] != surveys[DAYS[0]]


def test_a_retry_of_an_old_batch_that_finds_nothing_new_makes_no_later_day_stale(
    local_store: ObjectStore,
) -> None:
    tabled(local_store, facts("dead.test", day=DAYS[0]))
    tabled(local_store, *(facts("a.test", policies={"GPTBot": "allow"}, day=day) for day in DAYS))
    tabled(local_store, facts("dead.test", day=DAYS[2]))
    assert followed(local_store) == list(DAYS)
    late = facts("dead.test", day=DAYS[0]).model_copy(update={"collected_at": datetime.now(UTC)})
    put(local_store, late)
    write_marker(local_store, "domain_metadata", f"de|media|{DAYS[0]}", inputs="y", report={})
    tabled_before = tabled_days(local_store)
    build_table(DAYS[0], store=local_store)
    build_usage_signals(DAYS[0], store=local_store)
    assert tabled_days(local_store)[DAYS[0]] != tabled_before[DAYS[0]]
    assert followed(local_store) == [DAYS[0]]


def test_a_late_answer_makes_the_later_days_stale(
    local_store: ObjectStore,
) -> None:
    opened, closed = {"GPTBot": "allow"}, {"GPTBot": "disallow_all"}
    tabled(local_store, facts("a.test", policies=opened, day=DAYS[0]))
    tabled(local_store, *(facts("b.test", policies=opened, day=day) for day in DAYS[:2]))
    tabled(local_store, facts("a.test", policies=closed, day=DAYS[2]))
    assert followed(local_store) == list(DAYS)
    assert read_changes(local_store, DAYS[2])["before_date"].to_list() == [DAYS[0]]
    # The batch of the second day had not reached this domain before.
    put(local_store, facts("a.test", policies=closed, day=DAYS[1]))
    write_marker(local_store, "domain_metadata", f"de|media|{DAYS[1]}", inputs="y", report={})
    build_table(DAYS[1], store=local_store)
    assert followed(local_store) == [DAYS[1], DAYS[2]]
    assert read_changes(local_store, DAYS[2]).height == 0
    assert read_changes(local_store, DAYS[1])["domain"].to_list() == ["a.test"]
    build_table(DAYS[1], store=local_store)
    assert followed(local_store) == [], "the same table once more changes nothing"


def test_an_old_day_that_is_surveyed_for_the_first_time_corrects_later_days(
    local_store: ObjectStore,
) -> None:
    opened, closed = {"GPTBot": "allow"}, {"GPTBot": "disallow_all"}
    tabled(local_store, facts("b.test", policies=opened, day=DAYS[1]))
    tabled(local_store, facts("a.test", policies=closed, day=DAYS[2]))
    assert followed(local_store) == list(DAYS[1:])
    tabled(local_store, facts("a.test", policies=opened, day=DAYS[0]))
    assert followed(local_store) == list(DAYS)
    assert read_changes(local_store, DAYS[2])["change"].to_list() == ["blocked"]


@pytest.mark.parametrize(
    "lost", [(TABLE_DATASET,), (USAGE_DATASET,), (TABLE_DATASET, USAGE_DATASET)]
)
def test_tables_that_are_lost_with_their_markers_come_back_without_building_later_days(
    local_store: ObjectStore, lost: tuple[str, ...]
) -> None:
    tabled(local_store, *(facts("a.test", policies={"GPTBot": "allow"}, day=day) for day in DAYS))
    assert followed(local_store) == list(DAYS)
    for name in lost:
        marker = read_markers(local_store, name)[DAYS[0]].path
        local_store.delete([marker, f"{name}/date={DAYS[0]}/part-0.parquet"])
    build_table(DAYS[0], store=local_store)
    build_usage_signals(DAYS[0], store=local_store)
    assert followed(local_store) == []


def test_tables_that_are_built_before_a_request_is_served_are_cleaned_later(
    local_store: ObjectStore,
) -> None:
    ask(local_store, "domain", "a.example")
    tabled(local_store, facts("a.example"))
    build_changes(DAYS[0], store=local_store)
    names = sorted((TABLE_DATASET, USAGE_DATASET, CHANGES_DATASET))
    assert list_pending(local_store) == [(name, DAYS[0]) for name in names]


def test_a_day_without_facts_has_an_empty_table(local_store: ObjectStore) -> None:
    assert build_table("2025-11-05", store=local_store) == 0
    assert build_changes("2025-11-05", store=local_store) == 0
