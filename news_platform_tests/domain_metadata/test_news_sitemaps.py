"""News sitemaps of surveyed domains become article candidates, newest first and within limits."""

import asyncio
import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.news_sitemaps import (
    ArticleCandidate,
    CandidateOptions,
    CandidateReport,
    NewsSource,
    fetch_candidates,
    parse_news_sitemap,
    read_news_sources,
)
from news_platform.domain_metadata.pipeline import queue_batch
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.sitemaps import news_sitemap_urls
from news_platform.domain_metadata.table import build_table
from news_platform.errors import FetchError
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import add_sitemap_entries
from news_platform.rss.ledger.feed_rows import domains_with_feeds
from news_platform.rss.ledger.tables import FEEDS, RAW
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform_tests.domain_metadata.test_pipeline import NOW, research, site, survey
from news_platform_tests.fakes import FakeFetcher, response
from news_platform_tests.takedowns.asked import asked

NAMESPACES = (
    'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9" '
    'xmlns:news="http://www.google.com/schemas/sitemap-news/0.9" '
    'xmlns:image="http://www.google.com/schemas/sitemap-image/1.1"'
)
SOURCE = NewsSource("a.example", "https://a.example/news.xml")


def entry(
    path: str, published: datetime | str, title: str = "A title", host: str = "a.example"
) -> str:
    return (
        f"<url><loc>https://{host}/{path}</loc><news:news><news:publication><news:name>A"
        f"</news:name></news:publication><news:publication_date>{published}"
        f"</news:publication_date><news:title>{title}</news:title></news:news>"
        "<image:image><image:loc>https://a.example/i.jpg</image:loc>"
        "<image:title>Image</image:title></image:image></url>"
    )


def sitemap(*entries: str) -> bytes:
    return f'<?xml version="1.0"?><urlset {NAMESPACES}>{"".join(entries)}</urlset>'.encode()


def hours_ago(hours: float) -> str:
    return (NOW - timedelta(hours=hours)).isoformat()


def fetched(answers: dict[str, object], options: CandidateOptions | None = None) -> CandidateReport:
    sources = [NewsSource(url.split("/")[2], url) for url in answers]
    work = fetch_candidates(
        sources, fetcher=FakeFetcher(answers), now=NOW, options=options or CandidateOptions()
    )
    return asyncio.run(work)


@pytest.mark.parametrize(
    ("url", "is_news"),
    [
        ("https://a.example/news-sitemap.xml", True),
        ("https://a.example/sitemap_news.xml.gz", True),
        ("https://a.example/sitemaps/news/1.xml", True),
        ("https://a.example/googlenews.xml", True),
        ("https://a.example/newsletter.xml", False),
        ("https://news.example/sitemap.xml", False),
        ("https://a.example/post-sitemap.xml", False),
        ("https://[a.example/news.xml", False),
    ],
)
def test_a_news_sitemap_is_known_by_its_name(url: str, is_news: bool) -> None:
    assert news_sitemap_urls([url], body=None, url=None) == ([url] if is_news else [])


def test_a_news_sitemap_is_known_by_its_content() -> None:
    url, body = "https://a.example/sitemap.xml", sitemap(entry("1", "2025-11-03"))
    assert news_sitemap_urls([], body=body, url=url) == [url]
    assert news_sitemap_urls([], body=b"<urlset/>", url=url) == []


def test_an_entry_has_address_title_and_date_and_belongs_to_the_domain() -> None:
    body = sitemap(
        entry("1", "2025-11-03T10:00:00+01:00", "Caf&#233; &amp; more"),
        entry("2", "no date"),
        entry("3", "2025-11-03", host="b.example"),
        "<url><loc>https://www.a.example/4</loc><lastmod>2025-11-02</lastmod></url>",
    )
    expected = [
        ("https://a.example/1", "Café & more", datetime(2025, 11, 3, 9, tzinfo=UTC)),
        ("https://www.a.example/4", "", datetime(2025, 11, 2, tzinfo=UTC)),
    ]
    for sent in (body, gzip.compress(body), b"\xef\xbb\xbf\n" + body):
        found = parse_news_sitemap(sent, SOURCE)
        assert [(one.url, one.title, one.published_at) for one in found] == expected
    assert {one.source for one in found} == {"sitemap"}


def test_the_newest_come_first_within_all_limits() -> None:
    answers: dict[str, object] = {
        "https://a.example/news.xml": sitemap(
            *(entry(f"a{hours}", hours_ago(hours)) for hours in (30, 1, 5, 60, -48))
        ),
        "https://b.example/news.xml": sitemap(
            *(entry(f"b{hours}", hours_ago(hours), host="b.example") for hours in (2, 3))
        ),
    }
    found = fetched(answers)
    paths = [one.url.rpartition("/")[2] for one in found.candidates]
    assert paths == ["a1", "b2", "b3", "a5", "a30"] and found.outcomes == {"ok": 2}
    few = fetched(answers, CandidateOptions(per_sitemap=1))
    assert [one.url.rpartition("/")[2] for one in few.candidates] == ["a1", "b2"]
    assert len(fetched(answers, CandidateOptions(per_run=3)).candidates) == 3
    assert fetched(answers, CandidateOptions(max_sitemaps=1)).outcomes == {"ok": 1}


def test_a_sitemap_that_fails_costs_only_itself() -> None:
    good = "https://c.example/news.xml"
    answers: dict[str, object] = {
        "https://a.example/news.xml": FetchError("no answer", reason="timeout"),
        "https://b.example/news.xml": response("https://b.example/news.xml", status=503),
        good: sitemap(entry("1", hours_ago(1), host="c.example")),
    }
    found = fetched(answers)
    assert found.outcomes == {"timeout": 1, "http_503": 1, "ok": 1}
    assert [one.url for one in found.candidates] == ["https://c.example/1"]


def surveyed(
    store: ObjectStore, queue: DomainQueue, batch: PartitionInfo, robots: bytes
) -> list[NewsSource]:
    import_file(store, batch, name="x", body=research("a.example"))
    queue_batch(batch, store=store, queue=queue, now=NOW)
    web = site("a.example", robots) | {SOURCE.url: sitemap(entry("1", hours_ago(1)))}
    survey(batch, web, store=store, queue=queue)
    build_table(str(batch.date), store=store)
    return read_news_sources(store, since="2025-10-01")


def test_a_surveyed_domain_with_a_news_sitemap_is_a_source(
    local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    robots = f"User-agent: *\nDisallow: /private\nSitemap: {SOURCE.url}\n".encode()
    assert surveyed(local_store, queue, batch, robots) == [SOURCE]
    assert read_news_sources(local_store, since="2025-11-02") == []
    assert read_news_sources(local_store, since="2025-10-01", skip=frozenset({"a.example"})) == []


def _entry(one: ArticleCandidate) -> FeedEntry:
    return FeedEntry(one.url, one.title, one.published_at, one.url, "")


def test_candidates_wait_in_the_ledger_of_articles_once(engine: sa.Engine, tmp_path: Path) -> None:
    pages = [
        ArticleCandidate(f"https://a.example/{n}", f"Title {n}", NOW, "a.example", SOURCE.url)
        for n in range(3)
    ]
    gone = ArticleCandidate("https://a.example/gone", "Gone", NOW, "a.example", SOURCE.url)
    down = Takedowns.of([asked("url", gone.url)])
    listed = [(one.sitemap_url, _entry(one)) for one in (*pages, gone)]
    assert add_sitemap_entries(engine, listed, now=NOW, takedowns=down).new == 3
    again = add_sitemap_entries(engine, listed[:3], now=NOW)
    assert (again.new, again.known) == (0, 3)
    with engine.connect() as connection:
        rows = connection.execute(sa.select(RAW).order_by(RAW.c.article_url)).all()
    assert [(row.article_url, row.title, row.status) for row in rows] == [
        (page.url, page.title, "pending") for page in pages
    ]
    assert {row.feed_url for row in rows} == {f"sitemap:{SOURCE.url}"}
    assert {row.source for row in rows} == {"a.example"} and rows[0].published_at == NOW


def test_a_domain_with_a_feed_needs_no_sitemap(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        for number, status in enumerate(("active", "rejected")):
            url = f"https://www.s{number}.example/rss"
            values = {"feed_url": url, "feed_url_canon": url, "status": status, "changed_seq": 1}
            connection.execute(sa.insert(FEEDS).values(**values))
    assert domains_with_feeds(engine) == {"s0.example"}
