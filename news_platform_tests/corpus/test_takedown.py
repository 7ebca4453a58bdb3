"""A takedown leaves tables, their logs and their markers without the rows, and checks green."""

from news_platform.ccnews.maintenance import recount_day as recount_collected
from news_platform.corpus.checks import count_problems, source_pages
from news_platform.corpus.crawl_pages import Covers
from news_platform.corpus.pipeline import (
    CorpusDay,
    build_crawl_day,
    crawl_dataset,
    obeying_build,
    recount_day,
)
from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.rows import TakedownTarget
from news_platform.takedowns.verify import VerificationReport, verify_objects
from news_platform_tests.corpus.pages import DAY, collect_pages
from news_platform_tests.corpus.test_pipeline import OPTIONS, pages, rows
from news_platform_tests.takedowns.asked import ask, target

DOWN = target("domain", "alpha.example")


def _engine(store: ObjectStore) -> DeltaEngine:
    return DeltaEngine(store, CRAWL_ARTICLES)


def _places(store: ObjectStore) -> set[str]:
    report = VerificationReport(DOWN.takedowns)
    verify_objects(store, report)
    return {one.place.partition("/")[0] for one in report.findings}


def test_a_domain_leaves_the_table_its_log_and_its_marker(local_store: ObjectStore) -> None:
    store = local_store
    collect_pages(store, pages())
    build_crawl_day(store, DAY, options=OPTIONS)
    before, gone = rows(store).height, _engine(store).find(DOWN)[DAY]
    # The domain is the first of the day: the log, the marker and the file have it.
    assert {"crawl_articles", "markers"} <= _places(store)
    for table in (RAW_NEWS, CAPTURES):
        ParquetEngine(store, table).remove_rows(DAY, DOWN)
    recount_collected(store, DAY)
    for _ in range(2):
        _engine(store).remove_rows(DAY, DOWN)
        recount_day(_engine(store), DAY)
        assert rows(store).height == before - gone
    assert _places(store) == set()
    left = source_pages(store, DAY, OPTIONS)
    dataset = crawl_dataset(store)
    assert list(count_problems(dataset, DAY, pages=left, may_lack_pages=True)) == []
    assert list(count_problems(dataset, DAY, pages=left)) != []
    report = read_report(store, read_markers(store, "crawl_articles")[DAY])
    assert (report["articles"], report["top_domains"]) == (before - gone, {"zeta.example": 1})
    assert wanted_inputs(store, CRAWL_ARTICLES, OPTIONS) == built_inputs(store, CRAWL_ARTICLES)
    # The table is still written to.
    build_crawl_day(store, DAY, options=OPTIONS, covers=DOWN.takedowns.covers)
    assert rows(store).height == before - gone


def test_files_that_no_version_names_are_found_and_deleted(local_store: ObjectStore) -> None:
    """A writer that died before its commit leaves such a file."""
    collect_pages(local_store, pages())
    build_crawl_day(local_store, DAY, options=OPTIONS)
    engine = _engine(local_store)
    (live,) = engine.table.files()
    left = f"crawl_articles/day={DAY}/left.parquet"
    local_store.put(left, local_store.read(live.path))
    found = engine.find(DOWN)[DAY]
    engine.remove_rows(DAY, DOWN)
    assert not local_store.exists(left) and rows(local_store).height > 0
    # Again with nothing but the file.
    local_store.put(left, local_store.read(engine.table.files()[0].path))
    assert engine.find(DOWN) == {} and found > 1
    assert engine.find(target("domain", "zeta.example")) == {DAY: 2}


def test_a_request_that_comes_during_a_build_is_obeyed(local_store: ObjectStore) -> None:
    collect_pages(local_store, pages())

    def build(covers: Covers) -> CorpusDay | None:
        report = build_crawl_day(local_store, DAY, options=OPTIONS, covers=covers)
        # Only the first time is it new.
        ask(local_store, "domain", "alpha.example")
        return report

    report = obeying_build(crawl_dataset(local_store), build)
    assert report is not None and report.top_domains == {"zeta.example": 1}
    down = TakedownTarget(Takedowns.read(local_store, use="removal"))
    assert _engine(local_store).find(down) == {}
