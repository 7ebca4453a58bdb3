"""One more day reads as much after 80 days as after 40, in every dataset by days."""

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from news_platform.ccnews.capture_index import build_index
from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.filtering import ExportSelection
from news_platform.corpus.export.pipeline import ExportOptions
from news_platform.corpus.export.publish import build_month
from news_platform.corpus.pipeline import build_crawl_day, build_feed_day
from news_platform.datasets.feeds import ARTICLES
from news_platform.datasets.registry import DATASETS
from news_platform.datasets.stories import STORY_DAYS
from news_platform.defs.graph import BUILD_ORDER
from news_platform.domain_metadata.table import build_changes, build_table, build_usage_signals
from news_platform.domain_store.staging.rows import day_input
from news_platform.domain_store.staging.stage import stage_input
from news_platform.near_duplicates import pipeline as clusters
from news_platform.search import pipeline as search
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import write_table
from news_platform.stories import pipeline as stories
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.corpus.hostile import QUICK
from news_platform_tests.corpus.pages import StoredPage, article_html, collect_pages
from news_platform_tests.domain_metadata.test_table import facts, put
from news_platform_tests.domain_store.pages import SMALL, build, collect, stage
from news_platform_tests.near_duplicates.stories import story
from news_platform_tests.storage.counted import Counted

# Early in its month, so that the month has as many days in every case.
LAST = date(2025, 12, 2)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
OPTIONS = CorpusOptions(target=QUICK, workers=1)
WINDOW = 5


@dataclass(frozen=True, slots=True)
class Case:
    """How a day of a dataset gets its inputs, and how it is built."""

    prepare: Callable[[ObjectStore, str, Path], None]
    build: Callable[[ObjectStore, str], object]
    # How many of the days before the last one are built; None for all.
    built: int | None = 0


def _page(store: ObjectStore, day: str, _: Path) -> None:
    warc = f"CC-NEWS-{day.replace('-', '')}000000-00001.warc.gz"
    collect_pages(store, [StoredPage("https://a.example/", article_html(1))], day=day, warc=warc)


def _article(store: ObjectStore, day: str, scratch: Path) -> None:
    store_articles(store, day, [article("https://a.example/", story(int(day[-2:])))], scratch)


def _export(store: ObjectStore, day: str) -> object:
    selection, options = ExportSelection(days=()), ExportOptions(require_languages=False)
    return build_month(store, day[:7], selection=selection, options=options)


def _surveyed(store: ObjectStore, day: str, _: Path) -> None:
    put(store, facts("a.test", policies={"GPTBot": "allow"}, day=day))
    build_table(day, store=store)
    build_usage_signals(day, store=store)


def _stage(store: ObjectStore, day: str) -> object:
    return stage_input(day_input(store, day), store=store, batch=day, options=SMALL, now=NOW)


CASES: Mapping[str, Case] = {
    "capture_index": Case(_page, build_index),
    "crawl_articles": Case(_page, lambda it, day: build_crawl_day(it, day, options=OPTIONS)),
    "feed_articles": Case(
        lambda it, day, _: write_table(
            it, ARTICLES.place.path(date=day), pl.DataFrame(schema=ARTICLES.schema), ARTICLES
        ),
        lambda it, day: build_feed_day(it, day),
    ),
    "domain_buckets": Case(lambda it, day, _: collect(it, {day: ["org.a"]}), _stage),
    "domain_store": Case(
        lambda it, day, _: stage(it, {day: ["org.a"]}), lambda it, _: build(it), built=None
    ),
    "near_duplicates": Case(
        _article, lambda it, day: clusters.build_day(it, day, days=WINDOW), built=WINDOW
    ),
    "stories": Case(_article, lambda it, day: stories.build_day(it, day), built=STORY_DAYS),
    "search_index": Case(_article, lambda it, day: search.build_day(it, day, now=NOW)),
    "training_export": Case(_article, _export),
    "domain_surveys": Case(_surveyed, lambda it, day: build_table(day, store=it)),
    "usage_signals": Case(_surveyed, lambda it, day: build_usage_signals(day, store=it)),
    "ai_policy_changes": Case(_surveyed, lambda it, day: build_changes(day, store=it)),
}


def reads(case: Case, folder: Path, days: int) -> int:
    """Return how many objects the last of so many days reads."""
    store = open_store(str(folder))
    keys = [(LAST - timedelta(days=back)).isoformat() for back in range(days - 1, -1, -1)]
    with tempfile.TemporaryDirectory() as scratch:
        for number, key in enumerate(keys):
            case.prepare(store, key, Path(scratch))
            is_built = case.built is None or days - 1 - number <= case.built
            if is_built and key != keys[-1]:
                case.build(store, key)
    counted = CountedBucket(store)
    case.build(counted, keys[-1])
    return len(counted.gets)


class CountedBucket(Counted):
    """Counts what is read from a store whose files nobody opens by themselves."""

    @property
    def local_folder(self) -> Path | None:
        return None


@pytest.mark.parametrize(
    "days", [(6, 9), pytest.param((40, 80), marks=pytest.mark.soak)], ids=["short", "long"]
)
@pytest.mark.parametrize("name", CASES)
def test_one_more_day_reads_no_more_after_twice_as_many_days(
    tmp_path: Path, name: str, days: tuple[int, int]
) -> None:
    # A window that is not full yet reads one day more every day.
    window = STORY_DAYS if name == "stories" else 0
    few, many = (reads(CASES[name], tmp_path / str(one), one + window) for one in days)
    # The store merges like a counter: a carry of one more digit reads a few segments more.
    assert 0 < many <= few + (16 if name == "domain_store" else 0), (few, many)


def test_every_dataset_by_days_is_counted() -> None:
    by_days = {
        rule.asset
        for rule in BUILD_ORDER
        if DATASETS[rule.asset].partitions in ("day", "month", "survey_day", "range")
    }
    # raw_news reads one WARC at a time, whatever is stored.
    assert by_days - {"raw_news"} == CASES.keys()
