"""Dagster's storage stays small, and learns from the root what exists."""

from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa
from dagster._utils.schedules import cron_string_iterator

from news_platform.definitions import build_definitions
from news_platform.defs.housekeeping import adopt, delete_old_runs
from news_platform.defs.runs import PERMANENT_TAG
from news_platform.resources import Resources, workbook_options
from news_platform.rss.ledger.tables import FEEDS
from news_platform.rss.sheets.workbook import write_workbook
from news_platform.settings import Settings
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.commit.markers import write_marker
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.collected import MARKER
from news_platform_tests.defs.over import SteppedClock

DAY = MARKER.day.isoformat()
START = datetime(2026, 3, 2, tzinfo=UTC)
BY_SCHEDULE = {"dagster/schedule_name": "run_toy"}


@pytest.fixture
def resources(local_store: ObjectStore) -> Resources:
    claim_root(local_store, sample=False)
    return Resources(Settings(root=local_store.url))


@pytest.fixture
def home(tmp_path: Path) -> Iterator[dg.DagsterInstance]:
    with dg.instance_for_test(temp_dir=str(tmp_path)) as instance:
        yield instance


def test_a_new_home_learns_what_is_built(resources: Resources, home: dg.DagsterInstance) -> None:
    store = resources.data_root.store
    write_collected(store, MARKER)
    write_marker(store, "crawl_articles", DAY, inputs="0123456789abcdef", report={})
    write_marker(store, "domain_catalog", "all", inputs="0123456789abcdef", report={})
    done = adopt(resources, home)
    for asset in ("raw_news", "captures", "crawl_articles"):
        assert home.get_materialized_partitions(dg.AssetKey(asset)) == {DAY}
    assert home.get_latest_materialization_event(dg.AssetKey("domain_catalog")) is not None
    # A backfill of all assets on a new root needs the ranges before the first day is staged.
    assert len(home.get_dynamic_partitions("domain_store_ranges")) == done.partitions == 63
    again = adopt(resources, home)
    assert (again.materializations, again.partitions) == (0, 0)


@dg.asset(name="feeds")
def toy() -> None:
    """Build nothing, under the name of an asset without partitions."""


def test_old_runs_of_schedules_are_deleted_with_their_files(
    home: dg.DagsterInstance, tmp_path: Path
) -> None:
    def run(tags: dict[str, str]) -> str:
        return dg.materialize([toy], instance=home, tags=tags).run_id

    old = [run(BY_SCHEDULE) for _ in range(3)]
    by_hand, stopped = run({}), run({**BY_SCHEDULE, PERMANENT_TAG: "toy"})
    latest = run(BY_SCHEDULE)
    assert delete_old_runs(home, before=datetime.now(UTC) - timedelta(hours=1)) == 0
    assert delete_old_runs(home, before=datetime.now(UTC) + timedelta(hours=1)) == len(old)
    assert {run.run_id for run in home.get_runs()} == {by_hand, stopped, latest}
    left = [path for path in tmp_path.rglob("*") if any(one in str(path) for one in old)]
    assert left == []


@pytest.mark.soak
def test_a_quiet_day_with_300_feeds_has_few_runs(
    resources: Resources, home: dg.DagsterInstance
) -> None:
    """All schedules of the platform are evaluated for a day; a run polls the feeds that are due."""
    from news_platform.rss import pipeline

    engine = resources.ledger.engine
    pipeline.ensure(engine, now=START)
    with engine.begin() as connection:
        for number in range(300):
            url, wait = f"https://n{number}.example/feed", 3 * 3600 + 36 * number
            connection.execute(
                sa.insert(FEEDS).values(
                    feed_url=url,
                    feed_url_canon=url,
                    status="active",
                    interval_seconds=wait,
                    changed_seq=1,
                    next_poll_at=START + timedelta(seconds=wait * number / 300),
                )
            )
    schedules = build_definitions(resources).get_repository_def().schedule_defs
    ticks = sorted(
        (at, one.name, one) for one in schedules for at in _ticks(str(one.cron_schedule))
    )
    runs = Counter[str]()
    for at, name, schedule in ticks:
        resources.__dict__["clock"] = SteppedClock(at)
        with dg.build_schedule_context(
            instance=home, scheduled_execution_time=at, resources={"platform": resources}
        ) as context:
            found = schedule(context)
        if isinstance(found, dg.RunRequest):
            runs[name] += 1
            if name == "run_pending_articles":
                _poll(engine, at)
            elif name == "run_article_sheets":
                options = workbook_options(resources.settings)
                write_workbook(engine, resources.data_root.store, options)
    assert runs.total() <= 60, runs
    # Of 300 feeds that are polled every three to six hours none waits for more than an hour.
    assert 20 <= runs["run_pending_articles"] <= 40


def _ticks(cron: str) -> Iterator[datetime]:
    for at in cron_string_iterator(START.timestamp(), cron, "UTC"):
        if at >= START + timedelta(days=1):
            return
        yield at


def _poll(engine: sa.Engine, now: datetime) -> None:
    """Move the feeds that are due on by their interval, as a poll without news does."""
    due = sa.select(FEEDS.c.feed_url, FEEDS.c.interval_seconds).where(FEEDS.c.next_poll_at <= now)
    with engine.begin() as connection:
        for url, wait in connection.execute(due).all():
            connection.execute(
                sa.update(FEEDS)
                .where(FEEDS.c.feed_url == url)
                .values(next_poll_at=now + timedelta(seconds=wait))
            )
