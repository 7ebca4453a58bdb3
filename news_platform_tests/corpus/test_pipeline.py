"""A day of crawl_articles: what becomes a row, what is counted, and when a day is built again."""

import gzip
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from news_platform.corpus.checks import count_problems, day_report, row_problems, source_pages
from news_platform.corpus.crawl_pages import CorpusOptions, CrawlPages
from news_platform.corpus.pipeline import build_crawl_day, crawl_dataset
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER, raw_news_path
from news_platform.errors import StorageError
from news_platform.storage.commit.collected import list_collected_day, parse_listed
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import parquet_bytes, read_table
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform_tests.ccnews.archive import page as page_record
from news_platform_tests.ccnews.crawl import collect_here, warc_path, write_crawl
from news_platform_tests.corpus.hostile import QUICK
from news_platform_tests.corpus.pages import (
    DAY,
    StoredPage,
    article_html,
    collect_pages,
    list_html,
)

# The real extractor takes seconds to load; what is not about it needs it not.
REAL = CorpusOptions(workers=1)
# In this process: starting workers would take most of the time.
OPTIONS = replace(REAL, target=QUICK, workers=0)
WARC = "CC-NEWS-20251101000000-00001.warc.gz"


def pages() -> list[StoredPage]:
    return [
        StoredPage("https://www.zeta.example/news/bridge?utm_source=x", article_html(1)),
        StoredPage("https://alpha.example/", list_html(1)),
        StoredPage("https://alpha.example/2025/11/01/budget-vote", article_html(2)),
        StoredPage("https://alpha.example/empty", ""),
        StoredPage(
            "https://alpha.example/2025/11/01/budget-vote",
            article_html(3),
            "2025-11-01T12:00:00+00:00",
        ),
    ]


def rows(store: ObjectStore, day: str = DAY) -> pl.DataFrame:
    return crawl_dataset(store).scan().filter(pl.col("day") == day).collect()


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> ObjectStore:
    store = open_store(str(tmp_path_factory.mktemp("corpus") / "root"))
    collect_pages(store, pages())
    build_crawl_day(store, DAY, options=REAL)
    return store


def test_articles_become_rows_sorted_by_domain_with_their_place(built: ObjectStore) -> None:
    found = rows(built)
    assert found.schema == pl.Schema(CRAWL_ARTICLES.full_schema)
    assert found["domain"].to_list() == ["alpha.example", "zeta.example"]
    first, last = found.to_dicts()
    assert last["canonical_url"] == "https://www.zeta.example/news/bridge"
    assert last["url"] == "https://www.zeta.example/news/bridge?utm_source=x"
    assert last["title"] == "Riverton closes its old bridge, report 1"
    assert last["authors"] == ["Ben Marsh"]
    assert last["published_at"] == datetime(2025, 11, 1, 8, tzinfo=UTC)
    assert (last["language"], last["source"], last["warc"]) == ("en", "crawl", WARC)
    assert (last["record_offset"], last["record_length"]) == (0, 1000)
    assert last["quality_flags"] == []
    # Of an address that was fetched twice, the last one counts.
    assert first["record_offset"] == 4000
    assert "report 3" in first["title"]


def test_every_page_is_a_row_or_counted_with_its_reason(built: ObjectStore) -> None:
    dataset = crawl_dataset(built)
    assert source_pages(built, DAY, OPTIONS) == 5
    assert list(count_problems(dataset, DAY, pages=5)) == []
    assert list(row_problems(dataset, DAY)) == []
    assert list(count_problems(dataset, DAY, pages=6)) == [
        f"{DAY}: 5 pages were read, and the source has 6"
    ]
    report = day_report(dataset, DAY)
    assert report is not None
    assert (report["pages"], report["articles"]) == (5, 2)
    assert report["dropped"] == {"duplicate_address": 1, "no_text": 1, "not_an_article": 1}
    assert report["languages"] == {"en": 2}
    assert report["top_domains"] == {"alpha.example": 1, "zeta.example": 1}


def test_a_day_is_wanted_until_it_is_built_and_again_when_it_changes(
    local_store: ObjectStore,
) -> None:
    collect_pages(local_store, pages()[:1])
    assert wanted_inputs(local_store, CRAWL_ARTICLES, OPTIONS).keys() == {DAY}
    build_crawl_day(local_store, DAY, options=OPTIONS)
    assert wanted_inputs(local_store, CRAWL_ARTICLES, OPTIONS) == built_inputs(
        local_store, CRAWL_ARTICLES
    )
    only_german = replace(OPTIONS, languages=frozenset({"de"}))
    assert wanted_inputs(local_store, CRAWL_ARTICLES, only_german) != built_inputs(
        local_store, CRAWL_ARTICLES
    )
    later = StoredPage("https://beta.example/news/story", article_html(5))
    collect_pages(local_store, [later], warc="CC-NEWS-20251101120000-00002.warc.gz")
    assert wanted_inputs(local_store, CRAWL_ARTICLES, OPTIONS) != built_inputs(
        local_store, CRAWL_ARTICLES
    )
    build_crawl_day(local_store, DAY, options=OPTIONS)
    assert rows(local_store)["domain"].to_list() == ["beta.example", "zeta.example"]


def test_a_day_extracted_again_replaces_exactly_that_day(local_store: ObjectStore) -> None:
    other = "2025-11-02"
    collect_pages(local_store, pages()[:1])
    collect_pages(local_store, pages()[2:3], day=other, warc="CC-NEWS-20251102000000-1.warc.gz")
    for day in (DAY, other):
        build_crawl_day(local_store, day, options=OPTIONS)
    before, untouched = rows(local_store), rows(local_store, other)
    files = [file for file in crawl_dataset(local_store).files() if file.partition == other]
    build_crawl_day(local_store, DAY, options=OPTIONS)
    assert rows(local_store).equals(before)
    assert rows(local_store, other).equals(untouched)
    assert files == [file for file in crawl_dataset(local_store).files() if file.partition == other]


def test_a_day_whose_pages_are_gone_is_removed(local_store: ObjectStore) -> None:
    collect_pages(local_store, pages()[:1])
    build_crawl_day(local_store, DAY, options=OPTIONS)
    local_store.delete([info.path for info in local_store.list("news/collected")])
    assert wanted_inputs(local_store, CRAWL_ARTICLES, OPTIONS) == {DAY: "removed"}
    assert build_crawl_day(local_store, DAY, options=OPTIONS) is None
    assert not rows(local_store).is_empty()
    DeltaEngine(local_store, CRAWL_ARTICLES).delete([DAY])
    assert rows(local_store).is_empty()
    assert built_inputs(local_store, CRAWL_ARTICLES) == {}


def test_settings_and_takedowns_leave_pages_out(local_store: ObjectStore) -> None:
    collect_pages(local_store, pages()[:3])
    report = build_crawl_day(
        local_store,
        DAY,
        options=replace(OPTIONS, domains=frozenset({"alpha.example"})),
        covers=lambda url: url.endswith("/budget-vote"),
    )
    assert report is not None
    assert report.articles == 0
    assert report.dropped == {"not_an_article": 1, "other_domain": 1, "taken_down": 1}
    assert list(count_problems(crawl_dataset(local_store), DAY, pages=3)) == []


def test_a_page_that_hangs_or_crashes_costs_itself(local_store: ObjectStore) -> None:
    target = "news_platform_tests.corpus.hostile:judge_or_die"
    stored = pages()[:3:2]
    hostile = [
        StoredPage(f"https://bad.example/{kind}", kind) for kind in ("hang", "crash", "raise")
    ]
    plain = [StoredPage("https://list.example/", list_html(1))]
    collect_pages(local_store, [hostile[0], stored[0], *hostile[1:], stored[1], *plain])
    options = replace(REAL, target=target, page_seconds=3.0)
    report = build_crawl_day(local_store, DAY, options=options)
    assert report is not None
    assert report.articles == 2
    assert sum(report.dropped.values()) == 4
    kept = rows(local_store)
    assert kept["domain"].to_list() == ["alpha.example", "zeta.example"]
    # Most pages fail: something else is wrong than single pages, and nothing is replaced.
    collect_pages(local_store, [*hostile[1:], stored[1]])
    with pytest.raises(StorageError, match=r"most pages of 2025-11-01 failed \(.* of 3\): nothing"):
        build_crawl_day(local_store, DAY, options=options)
    assert rows(local_store).equals(kept)


def test_a_build_that_loses_most_articles_of_the_one_before_is_reported(
    local_store: ObjectStore,
) -> None:
    good = [StoredPage(f"https://a.example/{number}", article_html(number)) for number in range(4)]
    collect_pages(local_store, good)
    build_crawl_day(local_store, DAY, options=OPTIONS)
    # The same addresses without their articles: counts alone add up.
    collect_pages(local_store, [replace(page, html="<html></html>") for page in good])
    build_crawl_day(local_store, DAY, options=OPTIONS)
    dataset = crawl_dataset(local_store)
    assert list(count_problems(dataset, DAY, pages=4)) == [
        "2025-11-01: 0 articles of 4 pages; before there were 4 of 4"
    ]
    build_crawl_day(local_store, DAY, options=OPTIONS)
    assert list(count_problems(dataset, DAY, pages=4)) == []


def test_pages_of_expired_warcs_come_from_elsewhere(local_store: ObjectStore) -> None:
    stored = pages()[0]
    collect_pages(local_store, [stored])
    (marker,) = parse_listed(local_store, list_collected_day(local_store, date(2025, 11, 1)))
    expired = replace(marker, expired_at="2025-12-01T00:00:00")

    def expired_rows(day: str, warcs: Mapping[str, int]) -> Iterator[pl.DataFrame]:
        assert (day, dict(warcs)) == (DAY, {WARC: 1})
        values = {"uri": stored.uri, "tree": stored.html, "host": "example.zeta", "filename": WARC}
        schema = {name: RAW_NEWS.full_schema[name] for name in RAW_NEWS_ORDER}
        yield pl.DataFrame([values], schema=schema)

    crawled = CrawlPages(
        local_store, [expired], options=OPTIONS, covers=lambda _: False, expired_rows=expired_rows
    )
    ((page, place),) = crawled
    assert (page.url, place.record_offset) == (stored.uri, 0)


def test_an_address_fetched_twice_in_a_warc_gets_each_page_with_its_own_record(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    texts = ("Deze pagina is tijdelijk niet beschikbaar, probeer het later nog eens.", "The mayor.")
    same = "https://twice.example/news/bridge"
    records = [replace(page_record(1, text=text), uri=same) for text in texts]
    path = warc_path(date(2025, 11, 1))
    crawl = write_crawl(tmp_path / "crawl", {path: records})
    marker = collect_here(path, source=crawl, root=local_store, scratch=tmp_path / "scratch")
    crawled = CrawlPages(
        local_store, [marker], options=OPTIONS, covers=lambda _: False, expired_rows=None
    )
    found = list(crawled)
    assert len(found) == 2
    for page, place in found:
        assert place.record_offset is not None
        assert place.record_length is not None
        archived = crawl.read_range(path, place.record_offset, place.record_length)
        assert page.html.encode() in gzip.decompress(archived)


def test_a_row_without_an_offset_has_a_place_only_if_its_address_has_one(
    local_store: ObjectStore,
) -> None:
    first, *_, second = pages()
    collect_pages(local_store, [first, second, replace(second, html=article_html(9))])
    path = raw_news_path(date(2025, 11, 1), "en", filename=WARC)
    columns = tuple(one for one in RAW_NEWS.columns if one.name != "warc_record_offset")
    older = replace(RAW_NEWS, columns=columns)
    local_store.put(path, parquet_bytes(read_table(local_store, path, RAW_NEWS), older))
    markers = parse_listed(local_store, list_collected_day(local_store, date(2025, 11, 1)))
    crawled = CrawlPages(
        local_store, markers, options=OPTIONS, covers=lambda _: False, expired_rows=None
    )
    assert [place.record_offset for _, place in crawled] == [0, None, None]


def test_a_root_on_s3_behaves_as_a_local_one(
    local_store: ObjectStore, s3_store: ObjectStore
) -> None:
    for store in (local_store, s3_store):
        collect_pages(store, pages())
        report = build_crawl_day(store, DAY, options=OPTIONS)
        assert report is not None
        assert report.articles == 2
    assert rows(s3_store).equals(rows(local_store))
    assert built_inputs(s3_store, CRAWL_ARTICLES) == built_inputs(local_store, CRAWL_ARTICLES)
