"""Working: what a page's answer does to the ledger and to the store of full texts."""

import asyncio
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.isolation.pool import Pool
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.article_queue import claim_articles
from news_platform.rss.ledger.entries import add_entries, entries_by_url_hash
from news_platform.rss.ledger.tables import ARTICLES_INDEX, LINKS, RAW, REVISIONS
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.worker import WorkerContext, WorkOptions, WorkReport, work_articles
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.web.fetch import Response
from news_platform.web.robots import Robots
from news_platform.web.urls import url_hash
from news_platform_tests.fakes import FakeFetcher, response
from news_platform_tests.rss.ledger_rows import read_full_text
from news_platform_tests.rss.web import page
from news_platform_tests.web.test_retry_after import HOSTILE_HEADERS

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
FEED = "https://post.example/rss"
SITE = "https://post.example"
OPEN = {f"{SITE}/robots.txt": b""}


def add_pending(
    engine: sa.Engine,
    *urls: str,
    feed: str = FEED,
    published_at: datetime | None = None,
    title: str = "",
) -> None:
    seen = entries_by_url_hash(FeedEntry(url, title, published_at, "", "") for url in urls)
    with write_transaction(engine) as transaction:
        add_entries(transaction, feed, seen, max_new=10_000, now=NOW)


def rows(engine: sa.Engine, table: sa.Table = RAW) -> list[sa.Row[Any]]:
    with read_transaction(engine) as connection:
        return list(connection.execute(sa.select(table).order_by(*table.primary_key)))


class Desk:
    """A worker with its context, for tests."""

    def __init__(self, engine: sa.Engine, pool: Pool, full_texts: ObjectStore) -> None:
        self.engine = engine
        self.pool = pool
        self.full_texts = full_texts
        self.now = NOW
        self.web = FakeFetcher({})
        self.surveyed: dict[str, Robots] = {}

    def work(
        self, answers: Mapping[str, object], *, options: WorkOptions | None = None
    ) -> WorkReport:
        self.web = FakeFetcher({**OPEN, **answers})
        context = WorkerContext(
            engine=self.engine,
            fetcher=self.web,
            pool=self.pool,
            full_texts=self.full_texts,
            user_agent="NewsPlatformBot/0.1",
            known_robots=self.surveyed.get,
            clock=lambda: self.now,
        )
        return asyncio.run(work_articles(context, worker_id="w1", options=options or WorkOptions()))


@pytest.fixture
def desk(ledger: sa.Engine, extract_pool: Pool, local_store: ObjectStore) -> Desk:
    return Desk(ledger, extract_pool, local_store)


@pytest.fixture
def quick_desk(sqlite_ledger: sa.Engine, extract_pool: Pool, local_store: ObjectStore) -> Desk:
    return Desk(sqlite_ledger, extract_pool, local_store)


def test_work_on_pending_stores_the_article_with_its_fields_filled(desk: Desk) -> None:
    """The seed's functional test: `work` on pending gives `stored`, fields filled."""
    url = f"{SITE}/bridge"
    add_pending(desk.engine, url)
    link = '<p>See <a href="https://other.example/x?utm_source=a">the other report</a> too.</p>'
    report = desk.work({url: page("the bridge", extra=link)})
    assert report.outcomes == {"stored": 1}
    (row,) = rows(desk.engine)
    assert row.status == "stored"
    assert row.title == "News of the bridge"
    assert row.authors == ("Ada Writer",)
    assert row.published_at == datetime(2025, 11, 3, 8, tzinfo=UTC)
    assert (row.language, row.section, row.article_type) == ("en", "Local", "news")
    assert row.category_guess == "other"
    assert row.clean_text.startswith("On the bridge, part 1")
    assert (row.clean_text_len, row.retries, row.error_msg) == (len(row.clean_text), 0, "")
    assert row.word_count > 50
    assert row.out_links == ("https://other.example/x?utm_source=a",)
    assert (row.lock_owner, row.lock_at, row.fetched_at) == ("", None, NOW)
    assert row.full_text_ref == desk.full_texts.uri(f"{row.url_hash[:2]}/{row.url_hash}.txt.gz")
    text = read_full_text(desk.full_texts, row.url_hash)
    assert (len(text), text.splitlines()[0]) == (row.full_text_len, "News of the bridge")
    (index,) = rows(desk.engine, ARTICLES_INDEX)
    assert (index.text_hash, index.language, index.is_duplicate) == (row.text_hash, "en", False)
    assert [r.target_url_hash for r in rows(desk.engine, LINKS)] == [
        url_hash("https://other.example/x")
    ]


def test_the_guessed_category_is_stored_in_the_row_and_in_the_index(quick_desk: Desk) -> None:
    url = f"{SITE}/politics/bridge"
    add_pending(quick_desk.engine, url)
    quick_desk.work({url: page("the bridge")})
    for table in (RAW, ARTICLES_INDEX):
        assert [row.category_guess for row in rows(quick_desk.engine, table)] == ["politics"]


def test_a_second_poll_and_work_of_the_same_news_makes_no_duplicate(desk: Desk) -> None:
    """The seed's functional test: repeated poll/work of one and the same news."""
    url = f"{SITE}/bridge"
    for _ in range(2):
        add_pending(desk.engine, url)
        desk.work({url: page("the bridge")})
    assert [row.status for row in rows(desk.engine)] == ["stored"]
    assert len(rows(desk.engine, ARTICLES_INDEX)) == 1


def test_a_redirect_changes_article_url_canon(desk: Desk) -> None:
    """The seed's edge case: a redirect changes article_url_canon."""
    short, final = f"{SITE}/s/1", f"{SITE}/2025/bridge?utm_campaign=x"
    add_pending(desk.engine, short)
    answer = Response(short, final, 200, {}, page("the bridge"), redirects=(short,))
    assert desk.work({short: answer}).stored == 1
    (row,) = rows(desk.engine)
    assert row.article_url_canon == f"{SITE}/2025/bridge"
    assert row.url_hash == url_hash(final)
    assert row.aliases == (short,)
    index = {entry.url_hash: entry for entry in rows(desk.engine, ARTICLES_INDEX)}
    assert index[url_hash(short)].reason == "redirect"
    assert {entry.row_id_raw for entry in index.values()} == {row.row_id}
    add_pending(desk.engine, short, final)
    assert len(rows(desk.engine)) == 1, "both addresses are known now"


def test_a_redirect_to_a_known_article_is_a_duplicate_by_url(desk: Desk) -> None:
    first, short = f"{SITE}/bridge", f"{SITE}/s/1"
    add_pending(desk.engine, first)
    desk.work({first: page("the bridge")})
    add_pending(desk.engine, short, feed="https://wire.example/rss")
    answer = Response(short, first, 200, {}, page("the bridge"), redirects=(short,))
    assert desk.work({short: answer}).outcomes == {"duplicate_url": 1}
    main, copy = rows(desk.engine)
    assert (main.status, copy.status) == ("stored", "duplicate")
    assert main.aliases == (short,)
    assert main.sources_list == (FEED, "https://wire.example/rss")


def test_two_urls_with_the_same_content_are_a_duplicate_by_text_hash(desk: Desk) -> None:
    """The seed's edge case: two URLs, one content."""
    first, second = f"{SITE}/bridge", "https://mirror.example/bridge"
    add_pending(desk.engine, first)
    desk.work({first: page("the bridge")})
    add_pending(desk.engine, second, feed="https://mirror.example/rss")
    report = desk.work({second: page("the bridge"), "https://mirror.example/robots.txt": b""})
    assert report.outcomes == {"duplicate_text": 1}
    main, copy = rows(desk.engine)
    assert (main.status, copy.status) == ("stored", "duplicate")
    assert (main.aliases, main.sources_list) == ((second,), (FEED, "https://mirror.example/rss"))
    index = {entry.url_hash: entry for entry in rows(desk.engine, ARTICLES_INDEX)}
    copied = index[url_hash(second)]
    assert (copied.is_duplicate, copied.reason, copied.row_id_raw) == (True, "text", main.row_id)


@pytest.mark.parametrize(
    ("of_feed", "kept"),
    [
        pytest.param(None, None, id="neither knows it: empty"),
        pytest.param(NOW - timedelta(days=1), NOW - timedelta(days=1), id="the feed knows it"),
    ],
)
def test_without_a_publication_date_it_stays_empty_or_comes_from_rss(
    quick_desk: Desk, of_feed: datetime | None, kept: datetime | None
) -> None:
    """The seed's edge case: no publication date."""
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url, published_at=of_feed)
    quick_desk.work({url: page("the bridge", published=None)})
    assert [row.published_at for row in rows(quick_desk.engine)] == [kept]


def test_the_pages_own_date_wins_over_the_feeds(quick_desk: Desk) -> None:
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url, published_at=NOW)
    quick_desk.work({url: page("the bridge")})
    assert rows(quick_desk.engine)[0].published_at == datetime(2025, 11, 3, 8, tzinfo=UTC)


def test_a_changed_text_is_a_revision_with_a_delta(desk: Desk) -> None:
    url = f"{SITE}/bridge"
    add_pending(desk.engine, url)
    desk.work({url: page("the bridge")})
    before = rows(desk.engine)[0]
    _look_again(desk.engine)
    desk.now = NOW + timedelta(hours=1)
    changed = page("the bridge", extra="<p>Update: the vote was repeated on Wednesday.</p>")
    assert desk.work({url: changed}).outcomes == {"revised": 1}
    (row,) = rows(desk.engine)
    (revision,) = rows(desk.engine, REVISIONS)
    assert (row.status, row.stored_at, row.fetched_at) == ("stored", NOW, desk.now)
    assert revision.old_text_hash == before.text_hash
    assert revision.new_text_hash == row.text_hash
    assert "+Update: the vote was repeated on Wednesday." in revision.delta
    assert rows(desk.engine, ARTICLES_INDEX)[0].rev_n == 1


def test_a_second_look_at_the_same_text_is_no_revision(quick_desk: Desk) -> None:
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url)
    quick_desk.work({url: page("the bridge")})
    _look_again(quick_desk.engine)
    assert quick_desk.work({url: page("the bridge")}).outcomes == {"unchanged": 1}
    assert rows(quick_desk.engine, REVISIONS) == []


def test_a_second_look_that_fails_leaves_the_article_stored(quick_desk: Desk) -> None:
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url)
    quick_desk.work({url: page("the bridge")})
    _look_again(quick_desk.engine)
    quick_desk.work({url: response(url, status=404)})
    (row,) = rows(quick_desk.engine)
    assert (row.status, row.error_msg) == ("stored", "status 404")
    assert row.clean_text


def test_a_stated_disallow_is_skipped_with_its_reason(quick_desk: Desk) -> None:
    url = f"{SITE}/private/x"
    add_pending(quick_desk.engine, url)
    robots = b"User-agent: *\nDisallow: /private/"
    report = quick_desk.work({f"{SITE}/robots.txt": robots})
    assert report.outcomes == {"skipped": 1}
    (row,) = rows(quick_desk.engine)
    assert (row.status, row.error_msg) == ("skipped", "robots.txt disallows it")


def test_the_surveys_rules_are_used_without_asking_again(quick_desk: Desk) -> None:
    url = f"{SITE}/private/x"
    add_pending(quick_desk.engine, url)
    quick_desk.surveyed["post.example"] = Robots.parse(b"User-agent: *\nDisallow: /private/")
    assert quick_desk.work({}).outcomes == {"skipped": 1}
    assert quick_desk.web.requests == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(response(f"{SITE}/robots.txt", status=503), id="server error"),
        pytest.param(FetchError("no answer", reason="timeout"), id="no answer"),
    ],
)
def test_unreachable_robots_leave_the_article_pending_with_backoff(
    quick_desk: Desk, answer: object
) -> None:
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url)
    assert quick_desk.work({f"{SITE}/robots.txt": answer}).outcomes == {"deferred": 1}
    (row,) = rows(quick_desk.engine)
    assert (row.status, row.retries) == ("pending", 0)
    assert row.next_try_at == NOW + timedelta(minutes=10)
    quick_desk.now = NOW + timedelta(minutes=9)
    assert quick_desk.work({}).claimed == 0
    quick_desk.now = NOW + timedelta(minutes=10)
    assert quick_desk.work({url: page("the bridge")}).stored == 1


def test_robots_are_asked_once_a_day_and_their_delay_is_kept(quick_desk: Desk) -> None:
    robots = {f"{SITE}/robots.txt": b"User-agent: *\nCrawl-delay: 7\nDisallow:"}
    first, second = f"{SITE}/one", f"{SITE}/two"
    add_pending(quick_desk.engine, first)
    quick_desk.work({**robots, first: page("one")})
    assert quick_desk.web.delays == {"post.example": 7.0}
    add_pending(quick_desk.engine, second)
    quick_desk.work({second: page("two")})
    assert quick_desk.web.requests == [second]
    assert quick_desk.web.delays == {"post.example": 7.0}


def test_a_soft_error_is_tried_again_with_growing_patience_and_then_given_up(
    quick_desk: Desk,
) -> None:
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url)
    waits = []
    for _ in range(5):
        quick_desk.work({url: FetchError("slow", reason="timeout")})
        (row,) = rows(quick_desk.engine)
        assert row.status == "pending"
        waits.append((row.next_try_at - quick_desk.now).total_seconds())
        quick_desk.now = row.next_try_at
    assert waits == [600, 1200, 2400, 4800, 9600]
    assert quick_desk.work({url: FetchError("slow", reason="timeout")}).outcomes == {"error": 1}
    (row,) = rows(quick_desk.engine)
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
def test_what_will_not_get_better_is_closed_at_once(
    quick_desk: Desk, answer: object, status: str, message: str
) -> None:
    url = f"{SITE}/bridge"
    if isinstance(answer, Response):
        answer = response(url, status=answer.status, body=answer.body, headers=answer.headers)
    add_pending(quick_desk.engine, url)
    quick_desk.work({url: answer})
    (row,) = rows(quick_desk.engine)
    assert (row.status, row.error_msg) == (status, message)
    assert quick_desk.work({}).claimed == 0


def test_the_charset_of_the_http_header_is_used(quick_desk: Desk) -> None:
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url)
    body = page("the bridge").replace(b"News of", b"\xb3\xe2 of")  # valid in other charsets too
    headers = {"content-type": "text/html; charset=euc-kr"}
    quick_desk.work({url: response(url, body=body, headers=headers)})
    (row,) = rows(quick_desk.engine)
    assert row.title == "년 of the bridge"


@pytest.mark.parametrize("headers", HOSTILE_HEADERS)
def test_a_hostile_wait_header_leaves_the_other_articles_alone(
    quick_desk: Desk, headers: dict[str, str]
) -> None:
    hostile, good = f"{SITE}/hostile", f"{SITE}/bridge"
    add_pending(quick_desk.engine, hostile, good)
    answers = {hostile: response(hostile, status=503, headers=headers), good: page("the bridge")}
    assert quick_desk.work(answers).outcomes == {"retry": 1, "stored": 1}
    (retried,) = (row for row in rows(quick_desk.engine) if row.status == "pending")
    assert timedelta(0) < retried.next_try_at - NOW <= timedelta(days=1)


def test_clean_text_is_cut_at_a_word_end_but_hash_and_length_are_of_all(
    quick_desk: Desk,
) -> None:
    url = f"{SITE}/bridge"
    add_pending(quick_desk.engine, url)
    quick_desk.work({url: page("the bridge")}, options=WorkOptions(clean_text_limit=100))
    (row,) = rows(quick_desk.engine)
    assert len(row.clean_text) <= 100 < row.clean_text_len
    assert read_full_text(quick_desk.full_texts, row.url_hash).find(row.clean_text[-30:]) > 0


def test_a_worker_whose_lease_was_taken_over_changes_nothing(desk: Desk) -> None:
    url = f"{SITE}/bridge"
    add_pending(desk.engine, url)
    taken = claim_articles(desk.engine, "slow", limit=1, lease_seconds=600, now=NOW)
    desk.now = NOW + timedelta(seconds=601)
    assert desk.work({url: page("the bridge")}).stored == 1
    from news_platform.rss.ledger.article_queue import fail_article, skip_article

    with write_transaction(desk.engine) as transaction:
        assert not fail_article(transaction, taken[0], "late", retry_at=None, now=NOW)
        assert not skip_article(transaction, taken[0], "late", now=NOW)
    assert [row.status for row in rows(desk.engine)] == ["stored"]


def test_no_more_than_asked_for_are_worked(quick_desk: Desk) -> None:
    urls = [f"{SITE}/{n}" for n in range(5)]
    add_pending(quick_desk.engine, *urls)
    context = WorkerContext(
        engine=quick_desk.engine,
        fetcher=FakeFetcher({**OPEN, **{url: page(url) for url in urls}}),
        pool=quick_desk.pool,
        full_texts=quick_desk.full_texts,
        user_agent="x",
        known_robots=lambda _: None,
        clock=lambda: NOW,
    )
    report = asyncio.run(
        work_articles(
            context, worker_id="w", options=WorkOptions(pending_batch_size=2, max_articles=3)
        )
    )
    assert (report.claimed, report.stored) == (3, 3)


def _look_again(engine: sa.Engine) -> None:
    with engine.begin() as connection:
        connection.execute(sa.update(RAW).values(status="pending"))
