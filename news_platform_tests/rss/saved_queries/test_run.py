"""Saved queries over a ledger: each article matches once and is delivered at least once."""

import random
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.rss.ledger.tables import ALERT_MATCHES, RAW
from news_platform.rss.ledger.transactions import newest_seq, write_transaction
from news_platform.rss.saved_queries.delivery import DeliveryOptions, deliver_matches
from news_platform.rss.saved_queries.pipeline import (
    SavedQueriesReport,
    find_matches,
    read_queries,
    run_saved_queries,
)
from news_platform.rss.saved_queries.query_file import SavedQuery
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform_tests.rss.ledger_rows import NOW, add_article, change_article, see_again
from news_platform_tests.rss.stages import rows
from news_platform_tests.servers.webhook import Webhook, serve_webhook

FLOODS = SavedQuery(name="floods", words=("flood*",), webhook="http://unused.example")


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with serve_webhook(Webhook()) as running:
        yield running


@dataclass
class Desk:
    """A ledger, a root with a file of saved queries, a webhook, and a clock."""

    engine: sa.Engine
    store: ObjectStore
    webhook: Webhook
    now: datetime = NOW
    options: DeliveryOptions = field(default_factory=DeliveryOptions)

    def run(self) -> SavedQueriesReport:
        return run_saved_queries(
            self.engine,
            self.store,
            path=None,
            variables={
                "ALERT_WEBHOOK_DESK": self.webhook.url,
                "ALERT_WEBHOOK_DESK_SECRET": "signing key",
            },
            clock=lambda: self.now,
            options=self.options,
        )

    def add(self, title: str, **values: Any) -> None:
        add_article(self.engine, title=title, stored_at=self.now, **values)


@pytest.fixture
def desk(ledger: sa.Engine, local_store: ObjectStore, webhook: Webhook) -> Desk:
    """Return a desk whose query has seen the ledger once."""
    text = (
        '[[alerts]]\nname = "floods"\nwords = ["flood*"]\nwebhook_variable = "ALERT_WEBHOOK_DESK"'
    )
    local_store.put("alerts.toml", text.encode())
    desk = Desk(ledger, local_store, webhook)
    desk.add("Flood before the query was saved")
    assert desk.run().found.matches == {}
    return desk


@pytest.mark.parametrize(
    ("digest", "due"), [("daily", timedelta(hours=10)), ("hourly", timedelta(hours=1))]
)
def test_a_digest_is_one_message_of_a_whole_day_or_hour(
    desk: Desk, digest: str, due: timedelta
) -> None:
    text = desk.store.read("alerts.toml").decode()
    desk.store.put("alerts.toml", f'{text}\ndigest = "{digest}"'.encode())
    desk.now = NOW + timedelta(minutes=1)
    desk.add("Floods in the north", source="post.example")
    desk.add("Floods in the south", source="post.example")
    assert desk.run().delivery.delivered == 0
    desk.now = NOW + due - timedelta(seconds=1)
    assert desk.run().delivery.delivered == 0 and desk.webhook.bodies == []
    desk.now = NOW + due
    assert desk.run().delivery.delivered == 1
    [body] = desk.webhook.bodies
    assert [item["title"] for item in body["articles"]] == [
        "Floods in the north",
        "Floods in the south",
    ]
    assert body["text"].startswith("floods: 2 articles\n• Floods in the north (post.example) https")
    desk.now += timedelta(days=1)
    assert desk.run().delivery.delivered == 0


def test_the_form_of_slack_is_a_text_with_links_in_which_foreign_text_is_inert(desk: Desk) -> None:
    text = desk.store.read("alerts.toml").decode()
    desk.store.put("alerts.toml", f'{text}\nformat = "slack"'.encode())
    desk.add(
        "Floods <!channel> & |more|", source="post.example", article_url_canon="https://a.example/1"
    )
    desk.run()
    assert desk.webhook.bodies == [
        {
            "text": "*floods*: <https://a.example/1|Floods &lt;!channel&gt; &amp; /more/> "
            "(post.example)"
        }
    ]


def test_a_new_article_that_matches_is_posted_with_its_id(desk: Desk) -> None:
    desk.add("Floods in the north", source="post.example", clean_text="Water.")
    desk.add("Sun in the south")
    report = desk.run()
    assert (report.found.articles, report.found.matches) == (2, {"floods": 1})
    [body], [headers] = desk.webhook.bodies, desk.webhook.headers
    assert body["alert"] == "floods" and len(body["id"]) == 32
    assert headers["Idempotency-Key"] == body["id"]
    assert headers["News-Platform-Signature"].startswith("t=")
    assert body["text"].startswith("floods: Floods in the north (post.example) https://")
    assert body["article"]["content_text"] == "Water."


def test_an_article_is_told_once_whatever_happens_to_it(desk: Desk) -> None:
    desk.add("High water in the north")
    assert desk.run().delivery.delivered == 0
    change_article(desk.engine, 2, title="Flood in the north")
    assert desk.run().delivery.delivered == 1
    change_article(desk.engine, 2, title="Floods in the north: update")
    see_again(desk.engine, [1, 2], at=NOW)
    assert desk.run().delivery.delivered == 0
    before = newest_seq(desk.engine)
    assert desk.run().delivery.delivered == 0
    assert newest_seq(desk.engine) == before, "a run without news writes nothing"
    assert len(desk.webhook.bodies) == 1


def test_a_webhook_that_fails_is_tried_again_with_the_same_id(desk: Desk) -> None:
    desk.webhook.answers = [500, 404]
    desk.add("Floods in the north")
    assert desk.run().delivery.failed == 1
    assert desk.run().delivery.failed == 0  # not due yet
    desk.now += timedelta(minutes=1)
    assert desk.run().delivery.failed == 1
    desk.now += timedelta(minutes=1)
    assert desk.run().delivery.delivered == 0  # pauses grow
    desk.now += timedelta(minutes=1)
    assert desk.run().delivery.delivered == 1
    assert len({body["id"] for body in desk.webhook.bodies}) == 1
    assert len(desk.webhook.bodies) == 3


def test_a_match_is_given_up_after_a_week_and_says_why(desk: Desk) -> None:
    desk.webhook.answers = [500] * 99
    desk.add("Floods in the north")
    desk.run()
    desk.now += timedelta(days=8)
    assert desk.run().delivery.given_up == 1
    assert desk.run().delivery.failed == 0
    with read_transaction(desk.engine) as connection:
        row = connection.execute(sa.select(ALERT_MATCHES)).one()
    assert (row.delivered_at, row.error_msg) == (None, "given up: HTTP 500")


def test_one_bad_webhook_keeps_no_other_waiting(desk: Desk) -> None:
    text = (
        '[[alerts]]\nname = "floods"\nwords = ["flood*"]\nwebhook = "http://127.0.0.1:9/"\n'
        '[[alerts]]\nname = "north"\nwords = ["north"]\nwebhook_variable = "ALERT_WEBHOOK_DESK"\n'
        '[[alerts]]\nname = "unset"\nwords = ["north"]\nwebhook_variable = "ALERT_WEBHOOK_NONE"\n'
    )
    desk.store.put("alerts.toml", text.encode())
    desk.run()
    for number in range(9):
        desk.add(f"Flood {number} in the north")
    report = desk.run()
    assert report.found.matches == {"floods": 9, "north": 9, "unset": 9}
    assert (report.delivery.delivered, report.delivery.failed) == (9, 2)
    assert report.delivery.failures == {"floods": {"connection": 1}, "unset": {"setting": 1}}


def test_a_full_queue_of_a_broken_webhook_keeps_no_other_waiting(desk: Desk) -> None:
    """A webhook that is down for weeks: one probe now and then, and in the end its matches go."""
    text = (
        '[[alerts]]\nname = "a"\nwords = ["flood*"]\nwebhook = "http://127.0.0.1:9/"\n'
        '[[alerts]]\nname = "b"\nwords = ["north"]\nwebhook_variable = "ALERT_WEBHOOK_DESK"\n'
    )
    desk.store.put("alerts.toml", text.encode())
    desk.options = DeliveryOptions(messages_per_run=5)
    desk.run()
    for number in range(20):
        desk.add(f"Flood {number}")
    tries = []
    for minute in range(60):
        desk.add(f"Sun in the north {minute}")
        delivery = desk.run().delivery
        assert delivery.delivered == 1, "the other query gets its match at once"
        tries.append(delivery.failed)
        desk.now += timedelta(minutes=1)
    assert [minute for minute, failed in enumerate(tries) if failed] == [0, 1, 3, 7, 15, 31]
    # Also those that were never tried are given up.
    desk.now += timedelta(days=8)
    assert desk.run().delivery.given_up == 20
    assert {row.error_msg for row in rows(desk.engine, ALERT_MATCHES) if row.alert == "a"} == {
        "given up: ConnectionRefusedError",
        "given up: its webhook failed for others",
    }


def test_a_message_that_is_rejected_does_not_stop_the_others(desk: Desk) -> None:
    desk.webhook.answers = [422]
    for number in range(3):
        desk.add(f"Flood {number}")
    delivery = desk.run().delivery
    assert (delivery.delivered, delivery.failed) == (2, 1)
    desk.add("Flood 4")
    assert desk.run().delivery.delivered == 1, "nor does it make new ones wait"
    desk.now += timedelta(minutes=2)
    assert desk.run().delivery.delivered == 1


def test_what_changes_in_an_article_from_before_the_query_is_not_news(desk: Desk) -> None:
    add_article(desk.engine, title="High water", stored_at=NOW - timedelta(days=100))
    desk.run()
    # Re-extraction, retention or a new guess of its category.
    change_article(desk.engine, 2, title="Flood", full_text_ref="")
    report = desk.run()
    assert (report.found.articles, report.found.matches) == (1, {})


CRITERIA: list[tuple[dict[str, Any], bool]] = [
    ({"words": ("flood",)}, True),
    ({"words": ("flood",), "none_of": ("north",)}, False),
    ({"all_of": ("flood", "north")}, True),
    ({"all_of": ("flood", "south")}, False),
    ({"sources": ("Post.example",)}, True),
    ({"sources": ("other.example",), "words": ("flood",)}, False),
    ({"languages": ("en",), "topics": ("weather",)}, True),
    ({"topics": ("Local",)}, True),
    ({"topics": ("politics",)}, True),
    ({"topics": ("sports",)}, False),
    ({"languages": ("de",)}, False),
]


def test_every_criterion_must_be_met(sqlite_ledger: sa.Engine) -> None:
    queries = [SavedQuery(name=f"q{n}", **criteria) for n, (criteria, _) in enumerate(CRITERIA)]
    find_matches(sqlite_ledger, queries, now=NOW)
    add_article(
        sqlite_ledger,
        stored_at=NOW,
        title="Flood in the north",
        source="post.example",
        language="en",
        category_guess="politics",
        section="Local",
        tags=("Weather",),
    )
    found = find_matches(sqlite_ledger, queries, now=NOW).matches
    assert [name in found for name in (query.name for query in queries)] == [
        matches for _, matches in CRITERIA
    ]


def test_the_sources_of_a_query_may_be_outlets(local_store: ObjectStore) -> None:
    local_store.put("outlets.csv", b"domain,kind\npost.example,daily\nwire.example,agency\n")
    local_store.put("alerts.toml", b'[[alerts]]\nname = "a"\nsources = ["kind=daily", "x.example"]')
    (query,) = read_queries(local_store, None)
    assert query.sources == ("post.example", "x.example")


def _store(engine: sa.Engine, count: int) -> None:
    for _ in range(count):
        add_article(engine, title="Flood", stored_at=NOW)


@pytest.mark.parametrize("seed", range(2))
def test_no_match_is_lost_when_webhooks_and_processes_fail_at_random(
    sqlite_ledger: sa.Engine, seed: int
) -> None:
    chance = random.Random(seed)
    received: list[str] = []
    now = NOW

    is_over = False

    def post(_url: str, document: Any, _headers: object, _secret: str) -> None:
        outcome = 1.0 if is_over else chance.random()
        if outcome < 0.3:
            raise FetchError("HTTP 503")
        received.append(document["id"])
        if outcome < 0.4:
            raise FetchError("the answer was lost")
        if outcome < 0.5:
            raise KeyboardInterrupt  # the process dies before it records the answer

    def deliver() -> None:
        options = DeliveryOptions(give_up_days=99)
        deliver_matches(
            sqlite_ledger, [FLOODS], variables={}, options=options, clock=lambda: now, post=post
        )

    find_matches(sqlite_ledger, [FLOODS], now=now)
    for _ in range(40):
        if len(received) < 60:
            _store(sqlite_ledger, chance.randrange(4))
        with suppress(KeyboardInterrupt):
            if chance.random() < 0.3:
                with write_transaction(sqlite_ledger) as change:  # another writer
                    change.connection.execute(sa.update(RAW).values(section="x"))
            find_matches(sqlite_ledger, [FLOODS], now=now)
            deliver()
        now += timedelta(hours=3)
    is_over = True
    for _ in range(30):
        now += timedelta(hours=7)
        deliver()
    with read_transaction(sqlite_ledger) as connection:
        articles = connection.execute(sa.select(sa.func.count()).select_from(RAW)).scalar_one()
        waiting = sa.select(ALERT_MATCHES).where(ALERT_MATCHES.c.delivered_at.is_(None))
        left = connection.execute(waiting).all()
    assert (len(set(received)), left) == (articles, [])
