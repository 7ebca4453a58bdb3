"""From a new WARC to a changed answer for a domain, by a live daemon and nobody's hand."""

import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest

from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_range
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import stage_input
from news_platform.storage.objects.store import open_store
from news_platform_tests.ccnews.crawl import (
    collect_here,
    mixed_pages,
    warc_path,
    write_crawl,
    write_listings,
)
from news_platform_tests.servers.dagster_ui import running_daemon

PATIENCE_SECONDS = 300
BUCKETS = 16
# The sensors of the platform, but for a shorter interval; one range of buckets makes one run.
DEFINITIONS = """
import os
import dagster as dg
from news_platform.defs import ccnews, domain_store
from news_platform.defs.sensors import reconciling_sensor
from news_platform.resources import Resources
from news_platform.settings import load_settings

defs = dg.Definitions(
    assets=[ccnews.warc_paths, ccnews.raw_news, domain_store.domain_buckets,
            domain_store.domain_store],
    sensors=[
        reconciling_sensor(ccnews.NEWS_RULE, interval_seconds=1),
        reconciling_sensor(domain_store.BUCKETS_RULE, interval_seconds=1),
        reconciling_sensor(domain_store.STORE_RULE, interval_seconds=1),
    ],
    resources={"platform": Resources(load_settings(os.environ))},
    executor=dg.in_process_executor,
)
"""
DOMAIN = "example.com"


def _build_by_hand(root: Path, crawl: Path, day: date) -> None:
    """Bring the root level with the crawl, as runs of an earlier day would have."""
    store, source = open_store(str(root)), open_store(str(crawl))
    collect_here(warc_path(day), source=source, root=store, scratch=root.parent / "scratch")
    options = BuildOptions(buckets=BUCKETS)
    stage_input(
        day_input(store, day.isoformat()), store=store, batch=day.isoformat(), options=options
    )
    build_range("0000-0015", store=store, options=options, now=datetime.now(UTC))


@pytest.fixture
def day() -> date:
    return datetime.now(UTC).date() - timedelta(days=1)


def test_a_new_warc_changes_the_lookup_of_its_domain_without_a_person(
    tmp_path: Path, day: date
) -> None:
    root, crawl = tmp_path / "root", tmp_path / "crawl"
    write_crawl(crawl, {warc_path(day): mixed_pages(3)})
    _build_by_hand(root, crawl, day)
    before = DomainStore(str(root)).count(DOMAIN)
    assert before == 3
    (tmp_path / "definitions.py").write_text(DEFINITIONS)
    environ = {
        "NEWS_PLATFORM_ROOT": str(root),
        "NEWS_PLATFORM_CRAWL_URL": str(crawl),
        "NEWS_PLATFORM_BUCKETS": str(BUCKETS),
        "NEWS_PLATFORM_WORKERS": "1",
        # Nothing waits for a day to settle.
        "NEWS_PLATFORM_SETTLED_HOURS": "0",
        "NEWS_PLATFORM_LATE_HOURS": "0",
    }
    with running_daemon(tmp_path / "home", environ, tmp_path / "definitions.py") as log:
        write_crawl(crawl, {warc_path(day, 2): mixed_pages(5)})
        write_listings(crawl, [warc_path(day), warc_path(day, 2)])
        deadline = time.monotonic() + PATIENCE_SECONDS
        while DomainStore(str(root)).count(DOMAIN) == before:
            assert time.monotonic() < deadline, log.read_text(errors="replace")[-3000:]
            time.sleep(0.5)
    assert DomainStore(str(root)).count(DOMAIN) == before + 5
