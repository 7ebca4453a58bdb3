"""A takedown leaves tables, their logs and their markers without the rows, and checks green."""

from datetime import UTC, datetime

import pytest

from news_platform.ccnews.takedown import clean_day as clean_crawl
from news_platform.corpus.checks import count_problems, source_pages
from news_platform.corpus.crawl_pages import Covers
from news_platform.corpus.pipeline import (
    CorpusDay,
    build_crawl_day,
    crawl_dataset,
    obeying_build,
)
from news_platform.corpus.takedown import clean_day, find_days
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.verify import verify_store
from news_platform_tests.corpus.pages import DAY, collect_pages
from news_platform_tests.corpus.test_pipeline import OPTIONS, pages, rows
from news_platform_tests.takedowns.asked import ask, asked

NOW = datetime(2025, 12, 1, tzinfo=UTC)


@pytest.mark.parametrize("kind", ["local", "s3"])
def test_a_domain_leaves_the_table_its_log_and_its_marker(
    kind: str, request: pytest.FixtureRequest
) -> None:
    store: ObjectStore = request.getfixturevalue(f"{kind}_store")
    collect_pages(store, pages())
    build_crawl_day(store, DAY, options=OPTIONS)
    dataset, down = crawl_dataset(store), Takedowns.of([asked("domain", "alpha.example")])
    before = rows(store).height
    gone = find_days(dataset, down)[DAY]
    # The domain is the first of the day: the log, the marker and the file have it.
    places = {one.place.partition("/")[0] for one in verify_store(store, down).findings}
    assert {"crawl_articles", "markers"} <= places
    clean_crawl(store, DAY, down)
    for _ in range(2):
        clean_day(dataset, DAY, down)
        assert rows(store).height == before - gone
    assert verify_store(store, down).findings == ()
    left = source_pages(store, DAY, OPTIONS)
    assert list(count_problems(dataset, DAY, pages=left, may_lack_pages=True)) == []
    assert list(count_problems(dataset, DAY, pages=left)) != []
    report = read_report(store, read_markers(store, "crawl_articles")[DAY])
    assert (report["articles"], report["top_domains"]) == (before - gone, {"zeta.example": 1})
    assert wanted_inputs(store, CRAWL_ARTICLES, OPTIONS) == built_inputs(store, CRAWL_ARTICLES)
    # The table is still written to.
    build_crawl_day(store, DAY, options=OPTIONS, covers=down.covers)
    assert rows(store).height == before - gone


def test_files_that_no_version_names_are_found_and_deleted(local_store: ObjectStore) -> None:
    """A writer that died before its commit leaves such a file."""
    collect_pages(local_store, pages())
    build_crawl_day(local_store, DAY, options=OPTIONS)
    dataset, down = crawl_dataset(local_store), Takedowns.of([asked("domain", "alpha.example")])
    (live,) = dataset.files()
    left = f"crawl_articles/day={DAY}/left.parquet"
    local_store.put(left, local_store.read(live.path))
    found = find_days(dataset, down)[DAY]
    clean_day(dataset, DAY, down)
    assert not local_store.exists(left) and rows(local_store).height > 0
    # Again with nothing but the file.
    local_store.put(left, (local_store.read(dataset.files()[0].path)))
    zeta = Takedowns.of([asked("domain", "zeta.example")])
    assert find_days(dataset, down) == {} and find_days(dataset, zeta)[DAY] == 2 and found > 1


def test_a_request_that_comes_during_a_build_is_obeyed(local_store: ObjectStore) -> None:
    collect_pages(local_store, pages())
    dataset = crawl_dataset(local_store)

    def build(covers: Covers) -> CorpusDay | None:
        report = build_crawl_day(local_store, DAY, options=OPTIONS, covers=covers)
        # Only the first time is it new.
        ask(local_store, "domain", "alpha.example")
        return report

    report = obeying_build(dataset, build)
    assert report is not None and report.top_domains == {"zeta.example": 1}
    down = Takedowns.read(local_store, use="removal")
    assert find_days(dataset, down) == {}
