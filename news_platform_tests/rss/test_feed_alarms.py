"""Silence as an alarm: what counts as silent, and that each beginning and end is told once."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.rss.feed_admin import remove_feed
from news_platform.rss.feed_alarms import (
    FeedAlarm,
    find_alarms,
    mark_told,
    untold_alarms,
    update_alarms,
)
from news_platform.rss.ledger.feed_rows import read_feed, upsert_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform_tests.fakes import response
from news_platform_tests.rss.ledger_rows import NOW, add_articles, add_feed
from news_platform_tests.rss.stages import FeedHarness

FEED = "https://outlet.example/feed"
HOUR = timedelta(hours=1)


def alarms(engine: sa.Engine) -> list[tuple[str, str]]:
    found = find_alarms(engine, now=NOW)
    return [(alarm.kind, alarm.thing) for alarm in found]


@pytest.mark.parametrize(
    ("feed", "is_silent"),
    [
        pytest.param({"gap": 4, "silent": 30}, True, id="hourly news, silent for a day"),
        pytest.param({"gap": 1, "silent": 20}, False, id="not yet a day"),
        pytest.param({"gap": 168, "silent": 400}, False, id="a weekly feed takes its time"),
        pytest.param({"gap": 168, "silent": 900}, True, id="a weekly feed, silent for weeks"),
        pytest.param({"gap": 0, "silent": 900}, False, id="its rhythm is unknown"),
        pytest.param({"gap": 4, "silent": 30, "status": "paused"}, False, id="paused"),
        pytest.param({"gap": 4, "silent": 30, "failing": 1}, False, id="fails, which is another"),
    ],
)
def test_a_feed_is_silent_by_its_own_rhythm(
    sqlite_ledger: sa.Engine, feed: dict[str, Any], is_silent: bool
) -> None:
    add_feed(
        sqlite_ledger,
        FEED,
        status=feed.get("status", "active"),
        usual_gap_seconds=feed["gap"] * 3600,
        last_entry_date=NOW - feed["silent"] * HOUR,
        failing_since=NOW - HOUR if "failing" in feed else None,
    )
    assert alarms(sqlite_ledger) == ([("silent", FEED)] if is_silent else [])


@pytest.mark.parametrize(
    ("hours", "status", "is_alarm"),
    [(25, "active", True), (25, "dead", True), (23, "active", False), (99, "paused", False)],
)
def test_a_feed_that_fails_for_a_day_is_an_alarm(
    sqlite_ledger: sa.Engine, hours: int, status: str, is_alarm: bool
) -> None:
    add_feed(sqlite_ledger, FEED, status=status, failing_since=NOW - hours * HOUR, last_status=503)
    assert alarms(sqlite_ledger) == ([("failing", FEED)] if is_alarm else [])
    if is_alarm:
        [alarm] = find_alarms(sqlite_ledger, now=NOW)
        assert alarm.detail == "polls fail for 25.0 hours, last: status 503"


def test_a_feed_that_is_gone_keeps_its_alarms_until_a_person_acts(
    sqlite_feeds: FeedHarness,
) -> None:
    engine = sqlite_feeds.engine
    silent = {"usual_gap_seconds": 3600, "last_entry_date": NOW - 99 * HOUR}
    add_feed(engine, FEED, status="active", **silent)
    update_alarms(engine, find_alarms(engine, now=NOW), now=NOW)
    sqlite_feeds.poll({FEED: response(FEED, status=410)}, now=NOW)
    assert alarms(engine) == [("failing", FEED), ("silent", FEED)]
    row = read_feed(engine, FEED)
    assert row is not None
    remove_feed(engine, row, now=NOW)
    assert alarms(engine) == []
    # An address that a feed has left is not an alarm: the feed is polled at its new one.
    add_feed(engine, "https://outlet.example/old", status="gone", notes="[moved]")
    assert alarms(engine) == []


def add_source(engine: sa.Engine, *, before: list[int], after: list[int], **values: Any) -> None:
    """Add articles of one source with these lengths of text, a week ago and today."""
    ages = ((before, timedelta(days=5)), (after, timedelta(hours=5)))
    for lengths, age in (it for it in ages if it[0]):
        add_articles(
            engine,
            [
                {
                    "source": "outlet.example",
                    "found_at": NOW - age,
                    "clean_text_len": length,
                    "text_source": "page" if length else "feed",
                    **values,
                }
                for length in lengths
            ],
        )


@pytest.mark.parametrize(
    ("before", "after", "is_alarm"),
    [
        pytest.param([900] * 20, [0] * 4 + [900], True, id="one in five is left"),
        pytest.param([900] * 20, [0] * 2 + [900] * 3, False, id="most are left"),
        pytest.param([900] * 20, [0] * 4, False, id="too few to tell"),
        pytest.param([900] * 19, [0] * 9, False, id="hardly known"),
        pytest.param([0] * 20 + [900] * 10, [0] * 9, False, id="it rarely had texts"),
    ],
)
def test_a_source_that_loses_its_texts_is_an_alarm(
    sqlite_ledger: sa.Engine, before: list[int], after: list[int], is_alarm: bool
) -> None:
    add_source(sqlite_ledger, before=before, after=after)
    expected = [("text_share", "outlet.example")] if is_alarm else []
    assert alarms(sqlite_ledger) == expected


def test_duplicates_and_pending_articles_say_nothing_about_a_source(
    sqlite_ledger: sa.Engine,
) -> None:
    add_source(sqlite_ledger, before=[900] * 20, after=[])
    for status in ("duplicate", "pending", "skipped"):
        add_source(sqlite_ledger, before=[], after=[0] * 9, status=status)
    assert alarms(sqlite_ledger) == []


def told(engine: sa.Engine) -> list[tuple[str, bool, list[str]]]:
    return [(one.kind, one.is_healed, one.things) for one in untold_alarms(engine)]


def test_each_alarm_is_told_once_and_so_is_its_healing(ledger: sa.Engine) -> None:
    silent = [FeedAlarm("silent", f"https://{n}.example/feed", "detail") for n in "ab"]
    update_alarms(ledger, silent, now=NOW)
    both = [alarm.thing for alarm in silent]
    assert told(ledger) == [("silent", False, both)]
    # Nobody was told yet, so it stays to be told.
    update_alarms(ledger, silent, now=NOW + HOUR)
    [untold] = untold_alarms(ledger)
    mark_told(ledger, untold, now=NOW + HOUR)
    assert told(ledger) == []
    update_alarms(ledger, silent[:1], now=NOW + 2 * HOUR)
    assert told(ledger) == [("silent", True, both[1:])]
    [healed] = untold_alarms(ledger)
    mark_told(ledger, healed, now=NOW + 2 * HOUR)
    update_alarms(ledger, silent[:1], now=NOW + 3 * HOUR)
    assert told(ledger) == []
    # An alarm that comes again is told again.
    update_alarms(ledger, silent, now=NOW + 4 * HOUR)
    assert told(ledger) == [("silent", False, both[1:])]


def test_an_alarm_that_healed_before_anybody_was_told_is_no_news(sqlite_ledger: sa.Engine) -> None:
    update_alarms(sqlite_ledger, [FeedAlarm("silent", FEED, "detail")], now=NOW)
    update_alarms(sqlite_ledger, [], now=NOW + HOUR)
    assert told(sqlite_ledger) == []


def watch(engine: sa.Engine, now: datetime) -> list[tuple[str, bool]]:
    """Do what the sensor does; return what people are told: the kind, and whether it healed."""
    update_alarms(engine, find_alarms(engine, now=now), now=now)
    news = [(one, one.kind, one.is_healed) for one in untold_alarms(engine)]
    for one, _, _ in news:
        mark_told(engine, one, now=now)
    return [(kind, is_healed) for _, kind, is_healed in news]


def change_feed(engine: sa.Engine, **values: Any) -> None:
    with write_transaction(engine) as transaction:
        assert not upsert_feed(transaction, FEED, **values)


def test_a_silent_feed_that_begins_to_fail_has_not_got_entries_again(
    sqlite_ledger: sa.Engine,
) -> None:
    silent = {"usual_gap_seconds": 3600, "last_entry_date": NOW - 30 * HOUR}
    add_feed(sqlite_ledger, FEED, status="active", **silent)
    assert watch(sqlite_ledger, NOW) == [("silent", False)]
    change_feed(sqlite_ledger, status="dead", failing_since=NOW)
    assert watch(sqlite_ledger, NOW + HOUR) == []
    change_feed(sqlite_ledger, status="active", failing_since=None)
    assert watch(sqlite_ledger, NOW + 2 * HOUR) == []
    change_feed(sqlite_ledger, last_entry_date=NOW + 2 * HOUR)
    assert watch(sqlite_ledger, NOW + 3 * HOUR) == [("silent", True)]


def test_a_template_that_stays_broken_heals_only_when_texts_come_back(
    sqlite_ledger: sa.Engine,
) -> None:
    # After a week the usual share is that of the broken template itself.
    for day in range(30):
        length = 0 if 9 <= day < 24 else 900
        articles = [
            {
                "source": "outlet.example",
                "found_at": NOW + timedelta(days=day, hours=hour),
                "clean_text_len": length,
                "status": "stored" if length else "error",
            }
            for hour in range(4)
        ]
        add_articles(sqlite_ledger, articles)
    news = {}
    for day in range(31):
        if told_now := watch(sqlite_ledger, NOW + timedelta(days=day)):
            news[day] = told_now
    assert list(news.values()) == [[("text_share", False)], [("text_share", True)]]
    began, healed = news
    assert 9 < began <= 12
    assert 24 < healed <= 27
