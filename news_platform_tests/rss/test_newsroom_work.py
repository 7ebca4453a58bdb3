"""Working: what robots rules, paywalls, feed texts and feed settings make of an article."""

import gzip
from datetime import timedelta
from itertools import pairwise

import pytest
import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.article_files import expire_pages, page_path, read_page
from news_platform.rss.feed_settings import FeedSettings, settings_text
from news_platform.rss.feeds import FeedContent, FeedEntry
from news_platform.rss.ledger.article_queue import claim_articles
from news_platform.rss.ledger.entries import add_entries, entries_by_url_hash
from news_platform.rss.ledger.feed_rows import upsert_feed
from news_platform.rss.ledger.tables import ARTICLES_INDEX
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.objects.store import ObjectStore
from news_platform.text.normalize import without_meter_lines
from news_platform_tests.fakes import response
from news_platform_tests.rss.stages import FEED, NOW, SITE, WorkerHarness, add_pending, rows
from news_platform_tests.rss.test_worker import surveyed
from news_platform_tests.rss.web import SENTENCES, page

URL = f"{SITE}/bridge"
DAY = timedelta(days=1)
TEXT = "\n".join(f"Paragraph {n}: {sentence}" for n, sentence in enumerate(SENTENCES))
EMPTY = b"<html><body><div id=app></div></body></html>"


@pytest.fixture
def harness(
    sqlite_ledger: sa.Engine, extract_pool: Pool, local_store: ObjectStore
) -> WorkerHarness:
    return WorkerHarness(sqlite_ledger, extract_pool, local_store)


def add_item(engine: sa.Engine, content: FeedContent, *, summary: str = "", url: str = URL) -> None:
    """Add a pending article with what its feed carries."""
    entry = FeedEntry(url, "The bridge", NOW, "", summary, content=content)
    with write_transaction(engine) as transaction:
        seen = entries_by_url_hash([entry])
        add_entries(transaction, FEED, seen, max_new=10, now=NOW)


def test_a_survey_is_trusted_for_a_day_and_then_the_site_is_asked(harness: WorkerHarness) -> None:
    add_pending(harness.engine, URL)
    harness.surveyed["post.example"] = surveyed(b"", read_at=NOW - DAY)
    closed = b"User-agent: *\nDisallow: /"
    assert harness.work({f"{SITE}/robots.txt": closed}).outcomes == {"skipped": 1}
    assert harness.web.requests == [f"{SITE}/robots.txt"]
    (row,) = rows(harness.engine)
    assert (row.robots_rule, row.robots_file) == ("Disallow: /", f"{SITE}/robots.txt")
    assert (row.robots_at, row.error_msg) == (NOW, "robots.txt disallows it")


def test_the_ledger_keeps_which_rule_of_which_file_allowed_an_article(
    harness: WorkerHarness,
) -> None:
    add_pending(harness.engine, URL)
    rules = b"User-agent: *\nDisallow: /b\nAllow: /bridge"
    harness.surveyed["post.example"] = surveyed(rules, read_at=NOW - DAY / 2)
    harness.work({URL: page("the bridge")})
    assert harness.web.requests == [URL]
    (row,) = rows(harness.engine)
    assert (row.status, row.robots_rule) == ("stored", "Allow: /bridge")
    assert row.robots_file == "prod/post.example/robots.txt"
    assert row.robots_at == NOW - DAY / 2


def test_a_robots_txt_that_stays_unreachable_ends_the_wait_after_a_week(
    harness: WorkerHarness,
) -> None:
    add_pending(harness.engine, URL)
    broken = {f"{SITE}/robots.txt": response(f"{SITE}/robots.txt", status=503)}
    tries = []
    for _ in range(40):
        (row,) = rows(harness.engine)
        if row.status != "pending":
            break
        harness.now = row.next_try_at or NOW
        tries.append(harness.now - NOW)
        harness.work(broken)
    assert (row.status, row.error_msg) == ("skipped", "robots.txt is unreachable for 7 days")
    assert tries[1] == timedelta(minutes=10)
    # The waits double up to a day: few requests, and none lost in between.
    assert len(tries) == 16
    assert max(later - earlier for earlier, later in pairwise(tries)) == DAY


@pytest.mark.parametrize("answer", [EMPTY, response(URL, status=403)], ids=["empty", "refused"])
def test_the_text_of_the_feed_is_a_marked_fallback(harness: WorkerHarness, answer: object) -> None:
    content = FeedContent(TEXT, ("Ann Writer",), ("Bridges",), "https://post.example/i.jpg")
    add_item(harness.engine, content, summary="A short summary.")
    assert harness.work({URL: answer}).outcomes == {"stored": 1}
    (row,) = rows(harness.engine)
    assert (row.text_source, row.clean_text, row.confidence) == ("feed", TEXT, None)
    assert (row.authors, row.tags) == (("Ann Writer",), ("Bridges",))
    assert (row.summary, row.image_url) == ("A short summary.", "https://post.example/i.jpg")
    assert (row.title, row.language) == ("The bridge", "en")


def test_a_teaser_is_not_taken_for_an_article(harness: WorkerHarness) -> None:
    add_item(harness.engine, FeedContent("Only a teaser."))
    assert harness.work({URL: EMPTY}).outcomes == {"error": 1}


def test_the_page_comes_first_and_the_feed_fills_what_it_does_not_state(
    harness: WorkerHarness,
) -> None:
    content = FeedContent(TEXT, ("Somebody Else",), ("Bridges",))
    add_item(harness.engine, content, summary="A short summary.")
    harness.work({URL: page("the bridge")})
    (row,) = rows(harness.engine)
    assert (row.text_source, row.authors) == ("page", ("Ada Writer",))
    assert (row.tags, row.summary) == (("Bridges",), "A short summary.")


LOCKED = (
    '<script type="application/ld+json">{"@context":"https://schema.org","@type":"NewsArticle",'
    '"isAccessibleForFree":false,"headline":"News of the bridge"}</script>'
    "<p>Subscribe to continue reading.</p>"
)


def test_a_paywalled_page_is_flagged_and_keeps_what_it_shows(harness: WorkerHarness) -> None:
    add_pending(harness.engine, URL)
    harness.work({URL: page("the bridge", extra=LOCKED)})
    (row,) = rows(harness.engine)
    assert (row.status, row.is_paywalled) == ("stored", True)
    assert "part 5" in row.clean_text
    assert "Subscribe" not in row.clean_text
    path = row.full_text_ref.removeprefix("articles/full_text/")
    text = gzip.decompress(harness.full_texts.read(path)).decode()
    assert "part 5" in text
    assert "Subscribe" not in text


def test_the_text_of_the_feed_is_used_where_a_paywall_shows_less(harness: WorkerHarness) -> None:
    longer = "\n".join([TEXT] * 5)
    add_item(harness.engine, FeedContent(longer))
    harness.work({URL: page("the bridge", extra=LOCKED)})
    (row,) = rows(harness.engine)
    assert (row.text_source, row.is_paywalled, row.clean_text) == ("feed", True, longer)


def test_a_page_without_a_word_of_its_article_says_paywall(harness: WorkerHarness) -> None:
    add_pending(harness.engine, URL)
    bare = f"<html><head>{LOCKED}</head><body></body></html>".encode()
    assert harness.work({URL: bare}).outcomes == {"error": 1}
    (row,) = rows(harness.engine)
    assert (row.error_msg, row.is_paywalled) == ("paywall: no text", True)


@pytest.mark.parametrize(
    ("line", "is_meter"),
    [
        ("Subscribe to continue reading", True),
        ("You\u2019ve reached your limit of free articles this month.", True),
        ("This article is for subscribers only.", True),
        ("Dieser Artikel ist nur f\u00fcr Abonnenten.", True),
        ("La suite est r\u00e9serv\u00e9e aux abonn\u00e9s.", True),
        ("Readers subscribe to newspapers for many reasons, the study says.", False),
        ("The subscribers of the service grew by two million.", False),
    ],
)
def test_a_meter_text_is_removed_and_a_sentence_about_subscriptions_stays(
    line: str, is_meter: bool
) -> None:
    kept = "First." if is_meter else f"First.\n{line}"
    assert without_meter_lines(f"First.\n{line}") == (kept, is_meter)


def test_the_main_row_of_a_text_is_the_one_that_was_found_first(harness: WorkerHarness) -> None:
    first, second = f"{SITE}/first", f"{SITE}/second"
    add_pending(harness.engine, first)
    add_pending(harness.engine, second)
    # The first one fails at first, so that the second one finishes before it.
    slow = {first: response(first, status=503), second: page("the bridge")}
    harness.work(slow)
    harness.now = NOW + DAY
    # The second one was counted as stored; of the pair, one is the duplicate.
    assert harness.work({first: page("the bridge")}).outcomes == {"duplicate_text": 1}
    one, two = rows(harness.engine)
    assert (one.status, two.status) == ("stored", "duplicate")
    assert one.aliases == (second,)
    assert {row.row_id_raw for row in rows(harness.engine, ARTICLES_INDEX)} == {one.row_id}


def set_own(engine: sa.Engine, **settings: object) -> None:
    own = FeedSettings.model_validate(settings)
    with write_transaction(engine) as transaction:
        upsert_feed(
            transaction, FEED, feed_url=FEED, status="active", own_settings=settings_text(own)
        )


def test_a_feed_whose_text_is_enough_costs_no_request_for_the_page(harness: WorkerHarness) -> None:
    set_own(harness.engine, feed_text_is_enough=True)
    add_item(harness.engine, FeedContent(TEXT))
    assert harness.work({}).outcomes == {"stored": 1}
    assert harness.web.requests == []


def test_a_feed_may_name_the_element_that_holds_the_body(harness: WorkerHarness) -> None:
    set_own(harness.engine, body_selector="div.story p")
    add_pending(harness.engine, URL)
    story = "<div class=story><p>The one paragraph that counts, and it is long enough.</p></div>"
    harness.work({URL: page("the bridge", extra=story)})
    (row,) = rows(harness.engine)
    assert row.clean_text == "The one paragraph that counts, and it is long enough."


def test_a_selector_that_matches_nothing_leaves_the_extractors_text(harness: WorkerHarness) -> None:
    set_own(harness.engine, body_selector="div.gone")
    add_pending(harness.engine, URL)
    harness.work({URL: page("the bridge")})
    assert "part 5" in rows(harness.engine)[0].clean_text


def test_a_login_goes_to_pages_of_the_feeds_own_host_only(harness: WorkerHarness) -> None:
    set_own(harness.engine, token="FEED_SECRET_PAID")
    harness.secrets["FEED_SECRET_PAID"] = "abc"
    other = "https://other.example/x"
    add_pending(harness.engine, URL, other)
    robots = {"https://other.example/robots.txt": b""}
    harness.work({URL: page("the bridge"), other: page("the park"), **robots})
    sent = dict(zip(harness.web.requests, harness.web.headers, strict=True))
    assert sent[URL] == {"Authorization": "Bearer abc"}
    assert sent[other] == {}
    assert sent[f"{SITE}/robots.txt"] == {}


def test_the_bytes_of_a_page_are_kept_once_and_expire(
    harness: WorkerHarness, local_store: ObjectStore
) -> None:
    harness.pages = local_store.child("pages")
    second = f"{SITE}/copy"
    add_pending(harness.engine, URL, second)
    body = page("the bridge")
    harness.work({URL: body, second: body})
    all_rows = rows(harness.engine)
    kept = [row for row in all_rows if row.status == "stored"]
    assert [info.path for info in harness.pages.list()] == [page_path(kept[0].page_ref)]
    assert read_page(harness.pages, kept[0].page_ref) == body
    assert kept[0].page_url == kept[0].article_url
    assert expire_pages(harness.engine, harness.pages, keep_days=30, now=NOW + 30 * DAY) == 0
    assert expire_pages(harness.engine, harness.pages, keep_days=30, now=NOW + 31 * DAY) >= 1
    assert read_page(harness.pages, kept[0].page_ref) is None
    assert not harness.pages.exists(page_path(kept[0].page_ref))
    assert [row.page_ref for row in rows(harness.engine)] == ["", ""]


def test_a_long_feed_does_not_keep_other_sites_waiting(sqlite_ledger: sa.Engine) -> None:
    for number in range(20):
        add_pending(sqlite_ledger, f"https://small{number}.example/a")
    add_pending(sqlite_ledger, *(f"{SITE}/{number}" for number in range(120)))
    claims = claim_articles(sqlite_ledger, "w1", limit=60, lease_seconds=600, now=NOW)
    assert len(claims) == 60
    sources = [claim.url.split("/")[2] for claim in claims]
    # One round of the long feed, all small sites, then further rounds until the batch is full.
    assert {f"small{number}.example" for number in range(20)} <= set(sources)
    alone = claim_articles(sqlite_ledger, "w1", limit=60, lease_seconds=600, now=NOW)
    assert len(alone) == 60
