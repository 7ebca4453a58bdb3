"""The assets of the corpus on small inputs: runs, checks, and what the sensors hold back."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from news_platform.corpus.checks import is_damaged
from news_platform.corpus.pipeline import crawl_dataset, outdated_crawl_days
from news_platform.defs.corpus import (
    CRAWL_RULE,
    EXPORT_RULE,
    FEED_RULE,
    crawl_articles,
    every_article_has_text,
    every_page_is_counted,
    feed_articles,
    maintain_corpus,
    training_export,
)
from news_platform.defs.graph import CHECKS
from news_platform.defs.near_duplicates import RULE as CLUSTER_RULE
from news_platform.defs.near_duplicates import near_duplicates
from news_platform.defs.status import iter_statuses
from news_platform.resources import Resources
from news_platform.setting_sections.features import CcnewsSettings, CorpusSettings
from news_platform.settings import Settings
from news_platform.storage.commit.markers import read_markers, read_report, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.corpus.articles import small_corpus
from news_platform_tests.corpus.pages import DAY, StoredPage, article_html, collect_pages, list_html
from news_platform_tests.corpus.test_feed_articles import export_day
from news_platform_tests.defs.over import over


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def run(
    store: ObjectStore,
    instance: dg.DagsterInstance,
    asset: dg.AssetsDefinition,
    partition: str,
    **config: str,
) -> dg.ExecuteInProcessResult:
    # In this process: starting workers takes longer than all that they do here.
    settings = Settings(root=store.url, corpus=CorpusSettings(workers=0))
    resources = {"platform": Resources(settings)}
    name = asset.key.to_user_string()
    checks = [one.definition for one in CHECKS if one.asset == name]
    return dg.materialize(
        [asset, *checks],
        resources=resources,
        partition_key=partition,
        instance=instance,
        run_config={"ops": {name: {"config": config}}} if config else None,
    )


def redone(store: ObjectStore, instance: dg.DagsterInstance, redo: str) -> bool:
    """Return whether a run built the day."""
    done = run(store, instance, crawl_articles, DAY, redo=redo)
    (made,) = done.asset_materializations_for_node("crawl_articles")
    assert made.metadata["days_outdated"].value == len(outdated_crawl_days(store))
    return "unchanged" not in made.metadata


def test_a_run_builds_what_its_redo_says_and_outdated_days_are_counted(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    collect_pages(local_store, [StoredPage("https://a.example/news/1", article_html(1))])
    assert redone(local_store, instance, "missing"), "it was never built"
    [marker] = read_markers(local_store, "crawl_articles").values()
    write_marker(
        local_store,
        "crawl_articles",
        marker.partition,
        inputs=marker.inputs,
        report=read_report(local_store, marker),
        scope="0",
    )
    assert not redone(local_store, instance, "missing")
    # A version bump does not extract ten years again by itself.
    assert CRAWL_RULE.stale(over(local_store)) == {}
    (status,) = iter_statuses([CRAWL_RULE], over(local_store), None)
    assert status.outdated == 1 and status.text.endswith("; 1 outdated")
    settings = Settings(root=local_store.url, ccnews=CcnewsSettings(redo_newest_days=1))
    assert CRAWL_RULE.stale(Resources(settings)).keys() == {DAY}
    assert redone(local_store, instance, "outdated"), "another version made it"
    assert CRAWL_RULE.stale(Resources(settings)) == {}
    assert not redone(local_store, instance, "outdated")
    dataset = crawl_dataset(local_store)
    assert not is_damaged(dataset, DAY)
    local_store.delete([file.path for file in dataset.files()])
    assert is_damaged(dataset, DAY)


def test_days_and_their_month_are_built_checked_and_then_rest(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    long = article_html(1, paragraphs=12)
    pages = [
        StoredPage("https://a.example/news/1", long),
        StoredPage("https://b.example/news/1", long),
        StoredPage("https://a.example/", list_html(1)),
    ]
    collect_pages(local_store, pages)
    export_day(local_store)
    order = (
        (crawl_articles, CRAWL_RULE, DAY, 2),
        (feed_articles, FEED_RULE, DAY, 2),
        (near_duplicates, CLUSTER_RULE, DAY, 4),
        (training_export, EXPORT_RULE, DAY[:7], 1),
    )
    for asset, rule, key, rows in order:
        assert rule.stale(over(local_store)).keys() == {key}
        done = run(local_store, instance, asset, key)
        assert done.success
        (made,) = done.asset_materializations_for_node(asset.key.to_user_string())
        assert made.metadata["dagster/partition_row_count"].value == rows
        # The day is long over, which only the check of freshness says.
        passed = {one.check_name: one.passed for one in done.get_asset_check_evaluations()}
        passed.pop("newest_day_is_built", None)
        assert passed and all(passed.values()), asset.key
        assert rule.stale(over(local_store)) == {}


def test_a_damaged_day_is_red(local_store: ObjectStore, tmp_path: Path) -> None:
    small_corpus(local_store, tmp_path)
    day = "2025-11-01"
    resources = Resources(Settings(root=local_store.url))
    assert every_article_has_text.evaluate(resources, day).passed
    # No WARC of the day is collected: the pages cannot add up.
    assert not every_page_is_counted.evaluate(resources, day).passed
    rows = crawl_dataset(local_store).scan().filter(pl.col("day") == day).collect()
    twice = rows.with_columns(pl.col("canonical_url", "domain").first())
    crawl_dataset(local_store).replace(day, [twice], scratch=tmp_path)
    assert not every_article_has_text.evaluate(resources, day).passed


def test_a_running_month_and_a_fresh_day_wait(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    resources = Resources(Settings(root=local_store.url))
    assert EXPORT_RULE.holds is not None
    assert FEED_RULE.holds is not None
    before = datetime(2025, 11, 30, 23, tzinfo=UTC)
    held = EXPORT_RULE.holds(resources, {"2025-11": "x", "2025-10": "y"}, before)
    assert {key: hold.reason for key, hold in held.items()} == {"2025-11": "the month is not over"}
    after = datetime(2025, 12, 5, tzinfo=UTC)
    assert EXPORT_RULE.holds(resources, {"2025-11": "x"}, after) == {}
    export_day(local_store)
    assert run(local_store, instance, feed_articles, DAY).success
    now = datetime.now(UTC)
    held = FEED_RULE.holds(resources, {DAY: "x"}, now)
    assert held[DAY].reason == "built less than 15 minutes ago"
    assert FEED_RULE.holds(resources, {DAY: "x"}, now + timedelta(minutes=16)) == {}


def test_the_nightly_job_maintains_both_tables(
    local_store: ObjectStore, instance: dg.DagsterInstance, tmp_path: Path
) -> None:
    small_corpus(local_store, tmp_path)
    resources = {"platform": Resources(Settings(root=local_store.url))}
    assert maintain_corpus.execute_in_process(instance=instance, resources=resources).success
