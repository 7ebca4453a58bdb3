"""Working: how the response of a page changes the ledger and the full-text store."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from news_platform.articles.article import EXTRACTOR_VERSION
from news_platform.errors import FetchError
from news_platform.rss.ledger.article_queue import WorkOptions
from news_platform.rss.ledger.tables import ARTICLES_INDEX, DIAGNOSTICS, LINKS, RAW, REVISIONS
from news_platform.rss.robots_gate import RobotsFile
from news_platform.web.fetch import Response
from news_platform.web.robots import Robots
from news_platform.web.urls import url_hash
from news_platform_tests.fakes import response
from news_platform_tests.rss.ledger_rows import read_full_text
from news_platform_tests.rss.stages import FEED, NOW, SITE, WorkerHarness, add_pending, rows
from news_platform_tests.rss.web import page
from news_platform_tests.web.site import body, status


def surveyed(body: bytes, *, read_at: datetime = NOW) -> RobotsFile:
    """Return a robots.txt as the survey stored it."""
    return RobotsFile(Robots.parse(body), "prod/post.example/robots.txt", read_at)


def test_work_on_pending_stores_the_article_with_its_fields_filled(harness: WorkerHarness) -> None:
    """The seed's functional test: `work` on pending gives `stored`, fields filled."""
    url = f"{SITE}/politics/bridge"
    add_pending(harness.engine, url, published_at=NOW)
    link = '<p>See <a href="https://other.example/x?utm_source=a">the other report</a> too.</p>'
    report = harness.work({url: page("the bridge", extra=link)})
    assert report.outcomes == {"stored": 1}
    (counted,) = rows(harness.engine, DIAGNOSTICS)
    assert (counted.stage, counted.metric, counted.value) == ("work", "stored", 1.0)
    (row,) = rows(harness.engine)
    assert row.status == "stored"
    assert row.title == "News of the bridge"
    assert row.authors == ("Ada Writer",)
    assert row.published_at == datetime(2025, 11, 3, 8, tzinfo=UTC)
    assert (row.language, row.section, row.article_type) == ("en", "Local", "news")
    assert row.category_guess == "politics"
    assert row.clean_text.startswith("On the bridge, part 1")
    assert (row.clean_text_len, row.retries, row.error_msg) == (len(row.clean_text), 0, "")
    assert row.word_count > 50
    assert (row.extractor_version, row.published_at_source) == (EXTRACTOR_VERSION, "meta")
    assert 0.9 <= row.confidence <= 1
    assert row.out_links == ("https://other.example/x?utm_source=a",)
    assert (row.lock_owner, row.lock_at, row.fetched_at) == ("", None, NOW)
    path = f"{row.url_hash[:2]}/{row.url_hash}.txt.gz"
    assert row.full_text_ref == f"articles/full_text/{path}"
    text = read_full_text(harness.full_texts, row.url_hash)
    assert (len(text), text.splitlines()[0]) == (row.full_text_len, "News of the bridge")
    (index,) = rows(harness.engine, ARTICLES_INDEX)
    assert (index.text_hash, index.language, index.is_duplicate) == (row.text_hash, "en", False)
    assert index.category_guess == "politics"
    assert [r.target_url_hash for r in rows(harness.engine, LINKS)] == [
        url_hash("https://other.example/x")
    ]


def test_a_second_poll_and_work_of_the_same_news_makes_no_duplicate(harness: WorkerHarness) -> None:
    """The seed's functional test: repeated poll/work of one and the same news."""
    url = f"{SITE}/bridge"
    for _ in range(2):
        add_pending(harness.engine, url)
        harness.work({url: page("the bridge")})
    assert [row.status for row in rows(harness.engine)] == ["stored"]
    assert len(rows(harness.engine, ARTICLES_INDEX)) == 1


def test_a_redirect_changes_article_url_canon(harness: WorkerHarness) -> None:
    """The seed's edge case: a redirect changes article_url_canon."""
    short, final = f"{SITE}/s/1", f"{SITE}/2025/bridge?utm_campaign=x"
    add_pending(harness.engine, short)
    answer = Response(short, final, 200, {}, page("the bridge"), redirects=(short,))
    assert harness.work({short: answer}).stored == 1
    (row,) = rows(harness.engine)
    assert row.article_url_canon == f"{SITE}/2025/bridge"
    assert row.url_hash == url_hash(final)
    assert row.aliases == (short,)
    index = {entry.url_hash: entry for entry in rows(harness.engine, ARTICLES_INDEX)}
    assert index[url_hash(short)].reason == "redirect"
    assert {entry.row_id_raw for entry in index.values()} == {row.row_id}
    add_pending(harness.engine, short, final)
    assert len(rows(harness.engine)) == 1, "both addresses are known now"


def test_a_redirect_to_a_known_article_is_a_duplicate_by_url(harness: WorkerHarness) -> None:
    first, short = f"{SITE}/bridge", f"{SITE}/s/1"
    add_pending(harness.engine, first)
    harness.work({first: page("the bridge")})
    add_pending(harness.engine, short, feed="https://wire.example/rss")
    answer = Response(short, first, 200, {}, page("the bridge"), redirects=(short,))
    assert harness.work({short: answer}).outcomes == {"duplicate_url": 1}
    main, copy = rows(harness.engine)
    assert (main.status, copy.status) == ("stored", "duplicate")
    assert main.aliases == (short,)
    assert main.sources_list == (FEED, "https://wire.example/rss")


def test_two_urls_with_the_same_content_are_a_duplicate_by_text_hash(
    harness: WorkerHarness,
) -> None:
    """The seed's edge case: two URLs, one content."""
    first, second = f"{SITE}/bridge", "https://mirror.example/bridge"
    add_pending(harness.engine, first)
    harness.work({first: page("the bridge")})
    add_pending(harness.engine, second, feed="https://mirror.example/rss")
    report = harness.work({second: page("the bridge"), "https://mirror.example/robots.txt": b""})
    assert report.outcomes == {"duplicate_text": 1}
    main, copy = rows(harness.engine)
    assert (main.status, copy.status) == ("stored", "duplicate")
    assert (main.aliases, main.sources_list) == ((second,), (FEED, "https://mirror.example/rss"))
    index = {entry.url_hash: entry for entry in rows(harness.engine, ARTICLES_INDEX)}
    copied = index[url_hash(second)]
    assert (copied.is_duplicate, copied.reason, copied.row_id_raw) == (True, "text", main.row_id)


def test_a_host_that_asks_us_to_wait_is_not_asked_for_its_other_articles(
    sqlite_harness: WorkerHarness,
) -> None:
    engine = sqlite_harness.engine
    add_pending(engine, *(f"{SITE}/{number}" for number in range(40)), "https://b.example/a")
    sites = {f"post.example/{n}": status(429, Retry_After="7200") for n in range(40)}
    sites |= {"b.example/a": body(page("b"), Content_Type="text/html")}
    report, site = sqlite_harness.work_site(sites)
    assert report.outcomes == {"stored": 1, "retry": 2, "deferred": 38}
    pages = [path for host, path in site.requests if host == "post.example"]
    assert len(pages) == 3, "robots.txt, and as many pages as a host may have at once"
    waiting = [row for row in rows(engine) if row.status == "pending"]
    assert sorted(row.retries for row in waiting) == [0] * 38 + [1] * 2
    assert all(row.next_try_at - NOW > timedelta(hours=1.9) for row in waiting)


@pytest.mark.parametrize(
    ("of_feed", "kept"),
    [
        pytest.param(None, None, id="neither knows it: empty"),
        pytest.param(NOW - timedelta(days=1), NOW - timedelta(days=1), id="the feed knows it"),
    ],
)
def test_without_a_publication_date_it_stays_empty_or_comes_from_rss(
    sqlite_harness: WorkerHarness, of_feed: datetime | None, kept: datetime | None
) -> None:
    """The seed's edge case: no publication date."""
    url = f"{SITE}/bridge"
    add_pending(sqlite_harness.engine, url, published_at=of_feed)
    sqlite_harness.work({url: page("the bridge", published=None)})
    assert [row.published_at for row in rows(sqlite_harness.engine)] == [kept]


def test_a_changed_text_is_a_revision_with_a_delta(harness: WorkerHarness) -> None:
    url = f"{SITE}/bridge"
    add_pending(harness.engine, url)
    harness.work({url: page("the bridge")})
    before = rows(harness.engine)[0]
    _look_again(harness.engine)
    harness.now = NOW + timedelta(hours=1)
    changed = page("the bridge", extra="<p>Update: the vote was repeated on Wednesday.</p>")
    assert harness.work({url: changed}).outcomes == {"revised": 1}
    (row,) = rows(harness.engine)
    (revision,) = rows(harness.engine, REVISIONS)
    assert (row.status, row.stored_at, row.fetched_at) == ("stored", NOW, harness.now)
    assert revision.old_text_hash == before.text_hash
    assert revision.new_text_hash == row.text_hash
    assert "+Update: the vote was repeated on Wednesday." in revision.delta
    assert rows(harness.engine, ARTICLES_INDEX)[0].rev_n == 1
    _look_again(harness.engine)
    assert harness.work({url: changed}).outcomes == {"unchanged": 1}
    assert len(rows(harness.engine, REVISIONS)) == 1


def test_a_silently_changed_headline_is_a_revision_without_the_text(harness: WorkerHarness) -> None:
    url = f"{SITE}/bridge"
    add_pending(harness.engine, url)
    harness.work({url: page("the bridge")})
    before = rows(harness.engine)[0]
    _look_again(harness.engine)
    changed = page("the bridge").replace(b"News of", b"Bad news of")
    assert harness.work({url: changed}).outcomes == {"revised": 1}
    (row,) = rows(harness.engine)
    (revision,) = rows(harness.engine, REVISIONS)
    assert row.title == "Bad news of the bridge"
    assert revision.old_text_hash == revision.new_text_hash == before.text_hash
    assert revision.delta == "--- News of the bridge\n+++ Bad news of the bridge"
    assert rows(harness.engine, ARTICLES_INDEX)[0].rev_n == 1
    _look_again(harness.engine)
    assert harness.work({url: changed}).outcomes == {"unchanged": 1}
    assert len(rows(harness.engine, REVISIONS)) == 1


def test_a_failed_second_fetch_leaves_the_article_stored(sqlite_harness: WorkerHarness) -> None:
    url = f"{SITE}/bridge"
    add_pending(sqlite_harness.engine, url)
    sqlite_harness.work({url: page("the bridge")})
    _look_again(sqlite_harness.engine)
    sqlite_harness.work({url: response(url, status=404)})
    (row,) = rows(sqlite_harness.engine)
    assert (row.status, row.error_msg) == ("stored", "status 404")
    assert row.clean_text


def test_robots_txt_is_fetched_once_per_day_and_its_delay_is_respected(
    sqlite_harness: WorkerHarness,
) -> None:
    robots = {f"{SITE}/robots.txt": b"User-agent: *\nCrawl-delay: 7\nDisallow:"}
    first, second = f"{SITE}/one", f"{SITE}/two"
    add_pending(sqlite_harness.engine, first)
    sqlite_harness.work({**robots, first: page("one")})
    assert sqlite_harness.web.delays == {"post.example": 7.0}
    add_pending(sqlite_harness.engine, second)
    sqlite_harness.work({second: page("two")})
    assert sqlite_harness.web.requests == [second]
    assert sqlite_harness.web.delays == {"post.example": 7.0}


def test_a_soft_error_is_retried_with_growing_waits_and_then_given_up(
    sqlite_harness: WorkerHarness,
) -> None:
    url = f"{SITE}/bridge"
    add_pending(sqlite_harness.engine, url)
    waits = []
    for _ in range(5):
        sqlite_harness.work({url: FetchError("slow", reason="timeout")})
        (row,) = rows(sqlite_harness.engine)
        assert row.status == "pending"
        waits.append((row.next_try_at - sqlite_harness.now).total_seconds())
        sqlite_harness.now = row.next_try_at
    assert waits == [600, 1200, 2400, 4800, 9600]
    assert sqlite_harness.work({url: FetchError("slow", reason="timeout")}).outcomes == {"error": 1}
    (row,) = rows(sqlite_harness.engine)
    assert (row.status, row.error_msg, row.retries) == ("error", "timeout", 6)


@pytest.mark.parametrize(
    ("answer", "status", "message"),
    [
        pytest.param(response("", status=404), "error", "status 404", id="missing"),
        pytest.param(
            response("", body=b"%PDF", headers={"content-type": "application/pdf"}),
            "skipped",
            "content type application/pdf",
            id="no page at all",
        ),
        pytest.param(
            response("", body=b"<html><body><div id=app></div></body></html>"),
            "error",
            "no article text found",
            id="text only by script",
        ),
        pytest.param(
            FetchError("private", reason="blocked_address"), "error", "blocked_address", id="ssrf"
        ),
    ],
)
def test_a_final_error_is_not_retried(
    sqlite_harness: WorkerHarness, answer: object, status: str, message: str
) -> None:
    url = f"{SITE}/bridge"
    if isinstance(answer, Response):
        answer = response(url, status=answer.status, body=answer.body, headers=answer.headers)
    add_pending(sqlite_harness.engine, url)
    sqlite_harness.work({url: answer})
    (row,) = rows(sqlite_harness.engine)
    assert (row.status, row.error_msg) == (status, message)
    assert sqlite_harness.work({}).claimed == 0


def test_the_charset_of_the_http_header_is_used(sqlite_harness: WorkerHarness) -> None:
    url = f"{SITE}/bridge"
    add_pending(sqlite_harness.engine, url)
    body = page("the bridge").replace(b"News of", b"\xb3\xe2 of")  # valid in other charsets too
    headers = {"content-type": "text/html; charset=euc-kr"}
    sqlite_harness.work({url: response(url, body=body, headers=headers)})
    (row,) = rows(sqlite_harness.engine)
    assert row.title == "년 of the bridge"


def test_a_worker_stops_after_the_given_number_of_articles(sqlite_harness: WorkerHarness) -> None:
    urls = [f"{SITE}/{n}" for n in range(5)]
    add_pending(sqlite_harness.engine, *urls)
    options = WorkOptions(pending_batch_size=2, max_articles=3)
    report = sqlite_harness.work({url: page(url) for url in urls}, options=options)
    assert (report.claimed, report.stored) == (3, 3)


def _look_again(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(RAW).values(status="pending"))
