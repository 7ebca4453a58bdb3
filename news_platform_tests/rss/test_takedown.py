"""Taking articles and feeds down: what collectors refuse, and what the ledger loses."""

from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.datasets.dataset import Role
from news_platform.datasets.feeds import ARTICLES
from news_platform.rss.article_files import OwnedFiles, WorkPlaces, page_path
from news_platform.rss.discovery import DiscoveryOptions
from news_platform.rss.export import export_days
from news_platform.rss.ledger.article_queue import WorkOptions
from news_platform.rss.ledger.tables import (
    ARTICLE_STATES,
    ARTICLES_INDEX,
    FEEDS,
    LINKS,
    METADATA,
    RAW,
    ROBOTS,
)
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.takedown import LedgerPart, ledger_aliases
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.row_roles import role_of
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import TakedownPart, apply_takedowns
from news_platform.takedowns.rows import TakedownTarget
from news_platform.takedowns.unpack import iter_free_space
from news_platform.takedowns.verify import VerificationReport, verify_objects, verify_tables
from news_platform_tests.fakes import FakeFetcher, response
from news_platform_tests.rss.stages import (
    FEED,
    NOW,
    SITE,
    FeedHarness,
    WorkerHarness,
    add_pending,
    rows,
)
from news_platform_tests.rss.web import page, rss
from news_platform_tests.takedowns.asked import ask, asked, engine_part, target

GONE = f"{SITE}/gone"
STAYS = f"{SITE}/stays"


def _down(*urls: str) -> Takedowns:
    return Takedowns.of([asked("url", *urls)])


def _clean(harness: WorkerHarness) -> None:
    _serve(harness, target("url", GONE))


def _serve(harness: WorkerHarness, down: TakedownTarget) -> None:
    root, texts = harness.full_texts.child("root"), harness.full_texts
    LedgerPart(root, texts, lambda: harness.engine, NOW).remove("all", down)


def _parts(harness: WorkerHarness, root: ObjectStore) -> list[TakedownPart]:
    ledger = LedgerPart(root, harness.full_texts.child("t"), lambda: harness.engine, NOW)
    return [ledger, engine_part(ParquetEngine(root, ARTICLES))]


def _urls(engine: sa.Engine) -> list[str]:
    return [row.article_url_canon for row in rows(engine)]


def test_a_feed_that_offers_the_page_again_is_refused(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    newest = NOW - timedelta(hours=1)
    feed = rss([(f"{GONE}?utm_source=rss", "A", newest), (STAYS, "B", newest)])
    options = PollOptions(takedowns=_down(GONE))
    report = sqlite_feeds.poll({FEED: feed}, options=options)
    assert (report.new_articles, report.taken_down) == (1, 1)
    assert _urls(sqlite_feeds.engine) == [STAYS]


def test_a_feed_that_is_taken_down_is_not_fetched(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    web = FakeFetcher({})
    options = PollOptions(takedowns=Takedowns.of([asked("domain", "post.example")]))
    report = sqlite_feeds.poll(web, options=options)
    assert report.outcomes == {"taken_down": 1} and web.requests == []


def test_discovery_registers_no_feed_that_is_taken_down(sqlite_feeds: FeedHarness) -> None:
    options = DiscoveryOptions(takedowns=Takedowns.of([asked("domain", "post.example")]))
    found = sqlite_feeds.discover({}, FEED, options=options)
    assert found.outcomes == {"taken_down": 1} and sqlite_feeds.rows(FEEDS) == []


def test_a_pending_article_is_forgotten_and_not_fetched(harness: WorkerHarness) -> None:
    add_pending(harness.engine, GONE, STAYS)
    report = harness.work({STAYS: page("x")}, options=WorkOptions(takedowns=_down(GONE)))
    assert report.outcomes == {"stored": 1, "taken_down": 1}
    assert GONE not in harness.web.requests
    assert _urls(harness.engine) == [STAYS] and len(rows(harness.engine, ARTICLES_INDEX)) == 1


def test_a_redirect_to_a_page_that_is_taken_down_is_learned(harness: WorkerHarness) -> None:
    short = "https://short.example/1"
    add_pending(harness.engine, short)
    learned: list[tuple[str, ...]] = []
    moved = response(short, body=page("x"), final_url=GONE, redirects=(short,))
    report = harness.work(
        {short: moved, "https://short.example/robots.txt": b""},
        options=WorkOptions(
            takedowns=Takedowns.of([asked("domain", "post.example")]),
            keep_alias=lambda chain: learned.append(tuple(chain)),
        ),
    )
    assert report.outcomes == {"taken_down": 1}
    assert rows(harness.engine) == [] and {short, GONE} <= set(learned[0])


def test_the_ledger_loses_every_trace_of_an_article(harness: WorkerHarness) -> None:
    link = f'<p>See <a href="{STAYS}">the other</a>.</p>'
    add_pending(harness.engine, GONE, STAYS)
    harness.work({GONE: page("the harbour", extra=link), STAYS: page("the bridge")})
    _clean(harness)
    assert _urls(harness.engine) == [STAYS]
    assert len(rows(harness.engine, ARTICLES_INDEX)) == 1 and rows(harness.engine, LINKS) == []
    (left,) = rows(harness.engine)
    assert {one.row_id for one in rows(harness.engine, ARTICLE_STATES)} == {left.row_id}
    texts = [info.path for info in harness.full_texts.list() if info.path.endswith(".txt.gz")]
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("kind", "value", "gone"),
    [
        ("domain", "one.example", ["https://news.one.example", "https://one.example"]),
        ("prefix", "https://news.one.example/", ["https://news.one.example"]),
        ("prefix", "https://news.one.example/2025/", []),
        ("url", "https://news.one.example/", []),
    ],
)
def test_a_robots_file_goes_with_its_host_and_not_with_one_page(
    harness: WorkerHarness, kind: str, value: str, gone: list[str]
) -> None:
    origins = ["https://news.one.example", "https://one.example", "https://two.example"]
    with harness.engine.begin() as connection:
        values = {"status": 200, "body": b"", "fetched_at": NOW}
        connection.execute(sa.insert(ROBOTS), [{"origin": one, **values} for one in origins])
    down = target(kind, value)
    report = VerificationReport(down.takedowns, tables={ROBOTS.name: ROBOTS})
    verify_tables(harness.engine, report)
    assert [found.what for found in report.findings] == [f"origin {one!r}" for one in gone]
    _serve(harness, down)
    with harness.engine.connect() as connection:
        left = connection.execute(sa.select(ROBOTS.c.origin)).scalars().all()
    assert sorted(left) == sorted(set(origins) - set(gone))


def test_an_address_that_redirects_here_is_an_alias_and_equal_text_is_not(
    harness: WorkerHarness,
) -> None:
    short, copy = f"{SITE}/short", f"{SITE}/copy"
    add_pending(harness.engine, short)
    harness.work({short: response(short, body=page("x"), final_url=GONE, redirects=(short,))})
    add_pending(harness.engine, copy)
    assert harness.work({copy: page("x")}).outcomes == {"duplicate_text": 1}
    assert ledger_aliases(harness.engine) == [(short, GONE)]
    takedowns = Takedowns.of([asked("url", short)], aliases=ledger_aliases(harness.engine))
    assert takedowns.covers(GONE) and not takedowns.covers(copy)


def test_an_article_that_was_a_duplicate_of_the_removed_one_is_queued_again(
    harness: WorkerHarness,
) -> None:
    add_pending(harness.engine, GONE)
    harness.work({GONE: page("x")})
    add_pending(harness.engine, STAYS)
    assert harness.work({STAYS: page("x")}).outcomes == {"duplicate_text": 1}
    _clean(harness)
    assert [(row.article_url_canon, row.status) for row in rows(harness.engine)] == [
        (STAYS, "pending")
    ]
    *_, newest = rows(harness.engine, ARTICLE_STATES)
    assert (newest.status, newest.reason) == (
        "pending",
        "the article with the same text was taken down",
    )
    assert harness.work({STAYS: page("x")}).outcomes == {"stored": 1}
    (entry,) = rows(harness.engine, ARTICLES_INDEX)
    assert (entry.article_url_canon, entry.is_duplicate) == (STAYS, False)


def test_a_duplicate_that_is_taken_down_leaves_the_article_it_equals(
    sqlite_harness: WorkerHarness,
) -> None:
    for url in (STAYS, GONE):
        add_pending(sqlite_harness.engine, url)
        sqlite_harness.work({url: page("x")})
    _clean(sqlite_harness)
    (row,) = rows(sqlite_harness.engine)
    assert (row.article_url_canon, row.status, row.aliases) == (STAYS, "stored", ())


def test_no_byte_of_the_database_file_keeps_the_text(
    sqlite_harness: WorkerHarness, tmp_path: Path
) -> None:
    engine = sqlite_harness.engine
    add_pending(engine, GONE, STAYS)
    sqlite_harness.work({GONE: page("the vanished harbour"), STAYS: page("the bridge")})
    _clean(sqlite_harness)
    kept = b"".join(path.read_bytes() for path in tmp_path.glob("ledger.sqlite*"))
    assert b"the bridge" in kept
    assert b"vanished" not in kept and b"post.example/gone" not in kept
    assert not any(b"vanished" in space for space in iter_free_space(kept))


def test_the_daily_file_is_written_again_and_nothing_is_exported_anew(
    sqlite_harness: WorkerHarness,
) -> None:
    root, engine = sqlite_harness.full_texts.child("root"), sqlite_harness.engine
    add_pending(engine, GONE, STAYS)
    sqlite_harness.work({GONE: page("a"), STAYS: page("b")})
    export_days(engine, root, now=NOW)
    ask(root, "url", GONE)
    parts = _parts(sqlite_harness, root)
    report = apply_takedowns(root, parts, now=NOW, aliases=ledger_aliases(engine))
    assert report.removed["articles"].rows == 1
    assert export_days(engine, root, now=NOW).days == ()
    assert [row.article_url_canon for row in rows(engine, RAW)] == [STAYS]


def test_every_column_with_addresses_states_its_role() -> None:
    columns = [column for table in METADATA.tables.values() for column in table.columns]
    named = [one for one in columns if "url" in one.name and one.table.name != "sheet_books"]
    assert len(named) > 10 and [one for one in named if role_of(one) is Role.fact] == []


def _files(harness: WorkerHarness) -> set[str]:
    assert harness.pages is not None
    return {info.path for store in (harness.full_texts, harness.pages) for info in store.list()}


def _owned(harness: WorkerHarness) -> set[str]:
    owned = OwnedFiles.read(harness.engine)
    return {*owned.full_texts, *owned.pages}


def test_a_file_that_no_row_refers_to_is_deleted(
    harness: WorkerHarness, local_store: ObjectStore
) -> None:
    harness.full_texts, harness.pages = local_store.child("texts"), local_store.child("pages")
    moved, body = f"{SITE}/moved", page("the bridge")
    add_pending(harness.engine, STAYS)
    assert harness.work({STAYS: body}).outcomes == {"stored": 1}
    add_pending(harness.engine, f"{SITE}/copy", f"{SITE}/short")
    short = response(f"{SITE}/short", body=page("x"), final_url=STAYS)
    report = harness.work({f"{SITE}/copy": body + b" ", f"{SITE}/short": short})
    assert report.outcomes == {"duplicate_text": 1, "duplicate_url": 1}
    assert _files(harness) == _owned(harness) and len(_owned(harness)) == 2
    # A revision has another page, and may have another address.
    with harness.engine.begin() as connection:
        stored = sa.update(RAW).where(RAW.c.status == "stored")
        connection.execute(stored.values(status="pending", next_try_at=None))
    revised = response(STAYS, body=page("the bridge is open"), final_url=moved)
    assert harness.work({STAYS: revised}).outcomes == {"revised": 1}
    assert _files(harness) == _owned(harness) and len(_owned(harness)) == 2


@pytest.mark.parametrize("has_ledger", [True, False])
def test_a_file_without_a_row_is_searched_and_removed(
    harness: WorkerHarness, local_store: ObjectStore, has_ledger: bool
) -> None:
    """Such as one of a worker that was killed before it wrote the row."""
    texts, pages = local_store.child("articles/full_text"), local_store.child("articles/pages")
    places = WorkPlaces(texts, pages=pages)
    places.write_page(f'<link rel="canonical" href="{GONE}">'.encode())
    places.write_full_text("ab" * 32, f"see {GONE} for more")
    kept = places.write_page(f"see {STAYS}".encode())
    part = LedgerPart(local_store, texts, lambda: harness.engine if has_ledger else None, NOW)
    down = target("url", GONE)
    assert part.find(down) == {"all": 2}
    report = VerificationReport(down.takedowns)
    verify_objects(local_store, report)
    assert len(report.findings) == 2
    assert part.remove("all", down).rows == 2 and part.find(down) == {}
    assert [info.path for info in local_store.list("articles")] == [
        f"articles/pages/{page_path(kept)}"
    ]
