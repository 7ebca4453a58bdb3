"""A takedown leaves tables, their logs and their markers without the rows, and checks green."""

from datetime import UTC, datetime

import pytest

from news_platform.ccnews.takedown import clean_day as clean_crawl
from news_platform.corpus.checks import count_problems, source_pages
from news_platform.corpus.pipeline import build_crawl_day, crawl_dataset, wanted_crawl_days
from news_platform.corpus.pipeline import built_crawl_days as built
from news_platform.corpus.takedown import clean_day, find_days
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.verify import verify_store
from news_platform_tests.corpus.pages import DAY, collect_pages
from news_platform_tests.corpus.test_pipeline import OPTIONS, pages, rows
from news_platform_tests.takedowns.asked import asked

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
    assert list(count_problems(dataset, DAY, pages=source_pages(store, DAY, OPTIONS))) == []
    report = read_report(store, read_markers(store, "crawl_articles")[DAY])
    assert (report["articles"], report["top_domains"]) == (before - gone, {"zeta.example": 1})
    assert wanted_crawl_days(store, options=OPTIONS) == built(store)
    # The table is still written to.
    build_crawl_day(store, DAY, options=OPTIONS, covers=down.covers)
    assert rows(store).height == before - gone
