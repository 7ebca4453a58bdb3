"""Working: no text of another page is stored, no text is lost, and no story swallows another."""

from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from news_platform.articles.article import WRONG_PAGE
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.article_queue import claim_articles
from news_platform.rss.ledger.article_store import store_article
from news_platform.rss.ledger.entries import add_entries, entries_by_url_hash
from news_platform.rss.ledger.tables import ARTICLES_INDEX, REVISIONS
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.web.fetch import Response
from news_platform.web.urls import canonical_url, url_hash
from news_platform_tests.fakes import response
from news_platform_tests.rss.ledger_rows import read_full_text
from news_platform_tests.rss.stages import FEED, NOW, SITE, WorkerHarness, rows
from news_platform_tests.rss.web import STUB, WALL, home_page, page

NAMES = ("bridge", "harbour", "library")
URLS = tuple(f"{SITE}/2025/{name}" for name in NAMES)
# What a worker does not write.
KEPT = ("row_id", "status", "found_at", "changed_seq", "seen_seq", "lock_at", "lock_owner")
LONG = "Please enable JavaScript to read this story, which our newsroom is still working on now. "


def see(
    engine: sa.Engine,
    url: str,
    title: str,
    *,
    now: datetime = NOW,
    item_id: str = "",
    at: datetime = NOW,
) -> None:
    """Let the feed list one article."""
    entry = FeedEntry(url, title, at, item_id, "A summary.")
    with write_transaction(engine) as transaction:
        add_entries(transaction, FEED, entries_by_url_hash([entry]), max_new=10, now=now)


def list_all(engine: sa.Engine, *, edited: bool = False, now: datetime = NOW) -> None:
    for url, name in zip(URLS, NAMES, strict=True):
        see(engine, url, f"{'Update: ' if edited else ''}News of the {name}", now=now)


def redirected(url: str, final: str, body: bytes) -> Response:
    return Response(url, final, 200, {"content-type": "text/html"}, body, redirects=(url,))


def states(engine: sa.Engine) -> list[tuple[str, str]]:
    return [(row.status, row.error_msg) for row in rows(engine)]


@pytest.mark.parametrize(
    ("final", "body"),
    [
        pytest.param(f"{SITE}/", WALL, id="home address"),
        pytest.param(f"{SITE}/", home_page(), id="home page"),
        pytest.param(f"https://consent.{SITE.partition('//')[2]}/c", WALL, id="consent"),
        pytest.param(f"{SITE}/login?next=1", WALL, id="login"),
        pytest.param("", WALL, id="in place of the page"),
    ],
)
def test_a_wall_is_an_error_and_leaves_stored_articles_as_they_are(
    sqlite_harness: WorkerHarness, final: str, body: bytes
) -> None:
    engine = sqlite_harness.engine
    robots = {f"https://{final.split('/')[2]}/robots.txt": b""} if final else {}
    wall = {url: redirected(url, final or url, body) for url in URLS}
    list_all(engine)
    sqlite_harness.work({**wall, **robots})
    assert states(engine) == [("error", WRONG_PAGE)] * 3
    list_all(engine, edited=True)
    sqlite_harness.work({url: page(f"the {name}") for url, name in zip(URLS, NAMES, strict=True)})
    stored = [(row.status, row.clean_text) for row in rows(engine)]
    assert [status for status, _ in stored] == ["stored"] * 3
    list_all(engine, now=NOW + timedelta(hours=1))
    sqlite_harness.work({**wall, **robots})
    assert [(row.status, row.clean_text) for row in rows(engine)] == stored
    assert {row.error_msg for row in rows(engine)} == {WRONG_PAGE}
    texts = [read_full_text(sqlite_harness.full_texts, url_hash(url)) for url in URLS]
    assert all(f"News of the {name}" in text for name, text in zip(NAMES, texts, strict=True))


@pytest.mark.parametrize("at_once", [False, True])
def test_an_unknown_gate_that_looks_like_an_article_is_known_by_the_second_that_leads_to_it(
    sqlite_harness: WorkerHarness, at_once: bool
) -> None:
    gate, engine = f"{SITE}/2025/welcome", sqlite_harness.engine
    wall = page("our readers", published=None)
    answers = {url: redirected(url, gate, wall) for url in URLS}
    for url, name in zip(URLS, NAMES, strict=True):
        see(engine, url, f"Quarrel over {name}")
        if not at_once:
            sqlite_harness.work(answers)
    sqlite_harness.work(answers)
    assert states(engine) == [("error", WRONG_PAGE)] * 3
    assert not any(row.clean_text for row in rows(engine))
    assert list(sqlite_harness.full_texts.list()) == []


@pytest.mark.parametrize("length", [1, 5, 14])
@pytest.mark.parametrize("at_once", [False, True])
def test_an_unknown_wall_in_place_of_articles_is_known_by_its_second_copy(
    sqlite_harness: WorkerHarness, at_once: bool, length: int
) -> None:
    text, engine = (
        "Un mot de la maison à nos lectrices et lecteurs. " * length,
        sqlite_harness.engine,
    )
    wall = STUB.format("Un mot", text).encode()
    answers = dict.fromkeys(URLS, wall)
    for url, name in zip(URLS, NAMES, strict=True):
        see(engine, url, f"Quarrel over {name}")
        if not at_once:
            sqlite_harness.work(answers)
    sqlite_harness.work(answers)
    assert states(engine) == [("error", WRONG_PAGE)] * 3


def test_two_workers_that_meet_one_wall_do_not_take_it_for_an_article(
    harness: WorkerHarness,
) -> None:
    engine, wall = harness.engine, page("our readers", published=None)
    for url, name in zip(URLS[:2], NAMES, strict=False):
        see(engine, url, f"Quarrel over {name}")
    answers = {url: redirected(url, f"{SITE}/2025/welcome", wall) for url in URLS[:2]}
    (claim,) = claim_articles(engine, "other", limit=1, lease_seconds=600, now=NOW)
    harness.work(answers)
    (first,) = (row for row in rows(engine) if row.status == "stored")
    columns = {name: getattr(first, name) for name in first._fields if name not in KEPT}
    with write_transaction(engine) as transaction:
        # It has judged its page before the first one was stored.
        assert store_article(transaction, claim, columns, link_hashes=(), now=NOW) == "retry"
    harness.work({**answers, f"{SITE}/2025/welcome": wall})
    assert states(engine) == [("error", WRONG_PAGE)] * 2


def test_one_sign_alone_is_a_doubt(sqlite_harness: WorkerHarness) -> None:
    see(sqlite_harness.engine, URLS[0], "Quarrel in town")
    sqlite_harness.work({URLS[0]: page("the bridge")})
    (row,) = rows(sqlite_harness.engine)
    assert (row.status, row.page_doubt) == ("stored", "other_title")


@pytest.mark.parametrize(
    ("text", "same_title", "is_duplicate"),
    [
        pytest.param(LONG, True, False, id="notice"),
        pytest.param(LONG * 5, False, False, id="some text, other titles"),
        pytest.param(LONG * 5, True, True, id="some text, one title"),
        pytest.param(LONG * 14, False, True, id="long text"),
        pytest.param("記者は現場で取材を続けている。" * 8, True, False, id="short, wide"),
        pytest.param("記者は現場で取材を続けている。" * 10, True, True, id="some wide text"),
    ],
)
def test_equal_texts_are_duplicates_only_if_they_can_show_it(
    sqlite_harness: WorkerHarness, text: str, same_title: bool, is_duplicate: bool
) -> None:
    answers = {}
    for url, name in zip(URLS[:2], NAMES, strict=False):
        title = "News of the day" if same_title else f"News of the {name}"
        see(sqlite_harness.engine, url, title)
        answers[url] = STUB.format(title, text).encode()
    sqlite_harness.work(answers)
    found = [row.status for row in rows(sqlite_harness.engine)]
    assert found == ["stored", "duplicate" if is_duplicate else "stored"]
    assert all(row.text_hash for row in rows(sqlite_harness.engine) if row.status == "stored")


def test_the_lines_of_a_paywall_never_make_a_duplicate(sqlite_harness: WorkerHarness) -> None:
    locked = (
        '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false}'
    )
    for url in URLS[:2]:
        see(sqlite_harness.engine, url, "News of the bridge")
    body = page("the bridge", extra=f"{locked}</script>")
    sqlite_harness.work(dict.fromkeys(URLS[:2], body))
    assert [row.status for row in rows(sqlite_harness.engine)] == ["stored", "stored"]


def test_an_update_of_a_duplicate_by_text_queues_that_row_itself(harness: WorkerHarness) -> None:
    engine = harness.engine
    for url in URLS[:2]:
        see(engine, url, "News of the bridge", item_id=url)
    harness.work(dict.fromkeys(URLS[:2], page("the bridge")))
    assert [row.status for row in rows(engine)] == ["stored", "duplicate"]
    see(engine, URLS[1], "News of the bridge and more", item_id=URLS[1])
    main, copy = rows(engine)
    assert (main.status, copy.status, main.aliases) == ("stored", "pending", ())
    harness.work({URLS[1]: page("the bridge and more")})
    assert [row.status for row in rows(engine)] == ["stored", "stored"]
    assert {row.row_id_raw for row in rows(engine, ARTICLES_INDEX)} == {main.row_id, copy.row_id}


@pytest.mark.parametrize(("status", "headers"), [(404, {}), (200, {"content-type": "image/png"})])
def test_a_text_that_comes_by_another_address_is_stored_in_the_row_that_failed(
    harness: WorkerHarness, status: int, headers: dict[str, str]
) -> None:
    engine = harness.engine
    see(engine, URLS[0], "News of the bridge")
    harness.work({URLS[0]: response(URLS[0], status=status, headers=headers)})
    assert rows(engine)[0].status in ("error", "skipped")
    see(engine, f"{SITE}/s/1", "News of the bridge")
    harness.work({f"{SITE}/s/1": redirected(f"{SITE}/s/1", URLS[0], page("the bridge"))})
    main, other = rows(engine)
    assert (main.status, main.error_msg, other.status) == ("stored", "", "duplicate")
    assert "the bridge" in main.clean_text
    assert main.aliases == (f"{SITE}/s/1",)


def test_a_twin_that_is_stored_meanwhile_does_not_poison_a_queued_article(
    harness: WorkerHarness,
) -> None:
    engine = harness.engine
    see(engine, URLS[0], "News of the bridge")
    harness.work({URLS[0]: page("the bridge")})
    see(engine, URLS[0], "News of the bridge today")
    see(engine, URLS[1], "News of the bridge")
    # The newest is worked on first: the twin is stored while the first one waits.
    harness.work({URLS[1]: page("the bridge"), URLS[0]: response(URLS[0], status=404)})
    assert states(engine) == [("stored", "status 404"), ("duplicate", "")]


@pytest.mark.parametrize("answer", [page("the bridge"), response(URLS[0], status=404)])
def test_an_update_that_is_seen_while_a_worker_holds_the_row_is_fetched(
    sqlite_harness: WorkerHarness, answer: object
) -> None:
    engine = sqlite_harness.engine
    see(engine, URLS[0], "News of the bridge")
    (claim,) = claim_articles(engine, "slow", limit=1, lease_seconds=60, now=NOW)
    see(engine, URLS[0], "News of the bridge today")
    sqlite_harness.now = NOW + timedelta(minutes=11)
    assert sqlite_harness.work({URLS[0]: answer}).claimed == 2
    assert claim.attempt == 1
    assert rows(engine)[0].status == ("error" if isinstance(answer, Response) else "stored")


def test_a_refetch_that_shows_another_article_keeps_the_text(sqlite_harness: WorkerHarness) -> None:
    engine = sqlite_harness.engine
    list_all(engine)
    sqlite_harness.work({url: page(f"the {name}") for url, name in zip(URLS, NAMES, strict=True)})
    before = [row.clean_text for row in rows(engine)]
    list_all(engine, edited=True)
    # All three addresses now show the story of the first, one by a redirect.
    same = page("the bridge")
    moved = redirected(URLS[2], URLS[0], same)
    sqlite_harness.work({URLS[0]: same, URLS[1]: same, URLS[2]: moved})
    assert [row.status for row in rows(engine)] == ["stored"] * 3
    assert [row.clean_text for row in rows(engine)] == before
    assert all(row.error_msg for row in rows(engine)[1:])


def test_a_duplicate_by_redirect_leaves_the_file_of_the_article_it_leads_to(
    harness: WorkerHarness,
) -> None:
    engine, texts = harness.engine, harness.full_texts
    see(engine, URLS[0], "News of the bridge")
    harness.work({URLS[0]: page("the bridge")})
    before = read_full_text(texts, url_hash(URLS[0]))
    see(engine, f"{SITE}/s/1", "News of the bridge")
    changed = page("the bridge, which was changed without a word")
    report = harness.work({f"{SITE}/s/1": redirected(f"{SITE}/s/1", URLS[0], changed)})
    assert report.outcomes == {"duplicate_url": 1}
    assert read_full_text(texts, url_hash(URLS[0])) == before
    assert "without a word" not in rows(engine)[0].clean_text


def canonical_page(topic: str, link: str) -> bytes:
    return page(topic).replace(b"<head>", f'<head><link rel="canonical" href="{link}">'.encode())


def test_the_address_that_a_page_states_makes_its_other_addresses_duplicates(
    sqlite_harness: WorkerHarness,
) -> None:
    main = f"{SITE}/s"
    spellings = (f"{main}/amp", f"{main}?view=short", main)
    for url in spellings:
        see(sqlite_harness.engine, url, "News of the bridge")
    # Each fetch meets another state of the page.
    bodies = (canonical_page(f"the bridge{'!' * n}", main) for n in range(3))
    sqlite_harness.work(dict(zip(spellings, bodies, strict=True)))
    assert sorted(row.status for row in rows(sqlite_harness.engine)) == ["duplicate"] * 2 + [
        "stored"
    ]


def test_pages_that_state_one_address_for_all_stay_apart(sqlite_harness: WorkerHarness) -> None:
    urls = [f"{SITE}/show?id=1", f"{SITE}/show?id=2", f"{SITE}/a/x", f"{SITE}/a/y"]
    links = [f"{SITE}/show", f"{SITE}/show", f"{SITE}/a", f"{SITE}/a"]
    topics = ["bridge", "harbour", "library", "stadium"]
    answers = {}
    for url, link, topic in zip(urls, links, topics, strict=True):
        see(sqlite_harness.engine, url, f"{topic.title()} opened")
        answers[url] = canonical_page(f"{topic} opened", link).replace(b"News of ", b"")
    sqlite_harness.work(answers)
    assert [row.status for row in rows(sqlite_harness.engine)] == ["stored"] * 4


def test_an_item_with_a_new_slug_is_a_revision(harness: WorkerHarness) -> None:
    engine, new = harness.engine, f"{SITE}/2025/bridge-reopened"
    see(engine, URLS[0], "News of the bridge", item_id="tag:1")
    harness.work({URLS[0]: page("the bridge")})
    see(engine, new, "News of the bridge today", item_id="tag:1")
    harness.work({new: page("the bridge today")})
    (row,) = rows(engine)
    assert (row.status, row.article_url_canon, row.aliases) == ("stored", new, (URLS[0],))
    assert len(rows(engine, REVISIONS)) == 1
    see(engine, URLS[0], "News of the bridge", item_id="tag:1")
    see(engine, f"{SITE}/2025/park", "A quarrel in town", item_id="tag:1")
    assert len(rows(engine)) == 2, "another title is another article"


def test_an_id_that_names_two_links_names_no_article(sqlite_harness: WorkerHarness) -> None:
    engine = sqlite_harness.engine
    both = [FeedEntry(url, "News of the day", NOW, "same", "") for url in URLS[:2]]
    third = FeedEntry(URLS[2], "News of the day", NOW, "same", "")
    for listed in (both, [third]):
        with write_transaction(engine) as transaction:
            add_entries(transaction, FEED, entries_by_url_hash(listed), max_new=10, now=NOW)
    assert len(rows(engine)) == 3


@pytest.mark.parametrize(
    ("of_page", "of_feed", "kept"),
    [
        pytest.param("2099-01-01T00:00:00Z", NOW, NOW, id="page"),
        pytest.param(None, datetime(2099, 1, 1, tzinfo=UTC), None, id="feed"),
        pytest.param("2025-11-03T08:00:00Z", datetime(2099, 1, 1, tzinfo=UTC), "page", id="one"),
    ],
)
def test_a_date_far_ahead_is_kept_apart(
    sqlite_harness: WorkerHarness, of_page: str | None, of_feed: datetime, kept: object
) -> None:
    see(sqlite_harness.engine, URLS[0], "News of the bridge", at=of_feed)
    sqlite_harness.work({URLS[0]: page("the bridge", published=of_page)})
    (row,) = rows(sqlite_harness.engine)
    assert row.published_at == (datetime(2025, 11, 3, 8, tzinfo=UTC) if kept == "page" else kept)
    assert row.stated_published_at == datetime(2099, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("url", "canonical"),
    [
        ("https://a.example/x;jsessionid=A1?id=2", "https://a.example/x?id=2"),
        ("https://www.theguardian.com/x?CMP=rss", "https://www.theguardian.com/x"),
        ("https://www.npr.org/x?ft=1&f=1001&sc=rss", "https://www.npr.org/x"),
        ("https://a.example/x?f=1001", "https://a.example/x?f=1001"),
    ],
)
def test_trackers_of_publishers_and_sessions_are_removed(url: str, canonical: str) -> None:
    assert canonical_url(url) == canonical
