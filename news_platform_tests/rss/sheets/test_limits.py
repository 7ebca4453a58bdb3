"""Google's limits: calls per minute, the calls of a whole day, and the bytes of a request."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa

from news_platform.rss.ledger.transactions import note_metrics, write_transaction
from news_platform.rss.sheets.books import SyncOptions
from news_platform.rss.sheets.google import ChangeRejected, RateLimit, backoff_seconds
from news_platform_tests.rss.ledger_rows import (
    add_article,
    add_articles,
    add_feed,
    change_article,
    change_articles,
    see_again,
)
from news_platform_tests.rss.sheets.harness import SheetHarness, differences, open_harness

# As scheduled: a sync every ten minutes, a poll every hour, work every five minutes.
SYNC_MINUTES, POLL_MINUTES, WORK_MINUTES = 10, 60, 5
# 0.5 % of the 3,600 that the quota allows.
MAX_WRITES_PER_HOUR = 17
# The size that Google recommends for one request.
ADVISED_BYTES = 2_000_000


@pytest.fixture
def harness(sqlite_ledger: sa.Engine) -> Iterator[SheetHarness]:
    add_feed(sqlite_ledger, "https://outlet.example/feed")
    with open_harness(sqlite_ledger) as harness:
        yield harness


def test_the_quota_is_kept_without_a_single_refusal(harness: SheetHarness) -> None:
    harness.options = SyncOptions(max_rows=5)
    add_articles(harness.engine, [{} for _ in range(150)])
    report = harness.sync()
    assert harness.emulator.writes.refused == harness.emulator.reads.refused == 0
    assert report.quota_waits > 0 and harness.time.seconds > 60


def live(harness: SheetHarness, *, hours: int, articles_per_poll: int, sightings: int) -> int:
    """Find and read articles over hours as scheduled; return the number of syncs.

    Each poll lists again the articles of the `sightings` polls before it.
    """
    waiting: list[int] = []
    found: list[list[int]] = []
    # Opened once: reading the account's key for each sync would take half of the test's time.
    client, syncs = harness.client(), 0
    for minute in range(0, hours * 60, WORK_MINUTES):
        if minute % POLL_MINUTES == 0:
            for listed in found[-sightings:]:
                see_again(harness.engine, listed, at=harness.time.now())
            new = [{"status": "pending"} for _ in range(articles_per_poll)]
            found.append(add_articles(harness.engine, new))
            waiting += found[-1]
            _count(harness, "poll", new_articles=len(new), feeds_not_modified=20)
        read, waiting = _split(waiting, -(-articles_per_poll * WORK_MINUTES // POLL_MINUTES))
        change_articles(harness.engine, read, status="stored", clean_text="word " * 600)
        _count(harness, "work", stored=len(read))
        if minute % SYNC_MINUTES == 0:
            harness.sync(client=client)
            syncs += 1
        harness.time.sleep(WORK_MINUTES * 60)
    change_articles(harness.engine, waiting, status="stored", clean_text="word " * 600)
    harness.sync(client=client)
    return syncs + 1


def _split(ids: list[int], count: int) -> tuple[list[int], list[int]]:
    return ids[:count], ids[count:]


def _count(harness: SheetHarness, stage: str, **metrics: int) -> None:
    with write_transaction(harness.engine) as change:
        note_metrics(change, stage, metrics, now=harness.time.now())


@pytest.mark.parametrize(
    ("hours", "articles", "sightings"),
    [(4, 20, 2), pytest.param(24, 208, 8, marks=pytest.mark.soak)],
    ids=["some hours", "a day"],
)
def test_articles_that_are_all_seen_again_take_few_writes(
    harness: SheetHarness, hours: int, articles: int, sightings: int
) -> None:
    syncs = live(harness, hours=hours, articles_per_poll=articles, sightings=sightings)
    assert syncs == hours * 60 // SYNC_MINUTES + 1
    assert len(harness.rows("Raw")) == hours * articles
    assert harness.emulator.writes.used <= hours * MAX_WRITES_PER_HOUR
    assert harness.emulator.writes.refused == harness.emulator.reads.refused == 0
    assert harness.emulator.faults.happened == {}


def test_an_article_that_is_only_seen_again_is_not_sent_again(harness: SheetHarness) -> None:
    ids = add_articles(harness.engine, [{} for _ in range(30)])
    harness.sync()
    harness.sync()  # sends the counters of the first
    written = harness.emulator.writes.used
    see_again(harness.engine, ids, at=harness.time.now())
    assert not harness.is_behind()
    harness.sync()
    assert harness.emulator.writes.used == written


@pytest.mark.parametrize(
    "text",
    ["x" * 6_000, "😀" * 3_000],
    ids=["latin", "emoji"],
)
def test_batches_are_cut_by_their_bytes_on_the_wire(harness: SheetHarness, text: str) -> None:
    harness.emulator.max_request_bytes = ADVISED_BYTES
    add_articles(harness.engine, [{"clean_text": text} for _ in range(450)])
    assert harness.sync().batches > 2
    # Neither too large to be accepted, nor so small that calls are wasted.
    assert ADVISED_BYTES / 2 < harness.emulator.largest_request_bytes <= ADVISED_BYTES
    assert differences(harness.engine, harness.book) == {}


def test_updates_between_foreign_columns_stay_below_what_google_refuses(
    harness: SheetHarness,
) -> None:
    ids = add_articles(harness.engine, [{} for _ in range(300)])
    harness.sync()
    raw = harness.sheet("Raw")
    for place in range(len(raw.rows[0]) - 1, 0, -1):
        span = {"sheetId": raw.sheet_id, "dimension": "COLUMNS", "startIndex": place}
        harness.by_hand({"insertDimension": {"range": {**span, "endIndex": place + 1}}})
    change_articles(harness.engine, ids, clean_text="خبر " * 200)
    assert harness.sync().updated == 300
    assert harness.emulator.largest_request_bytes <= harness.emulator.max_request_bytes
    assert {row["clean_text"] for row in harness.rows("Raw")} == {"خبر " * 200}


def test_a_row_that_alone_is_too_large_is_refused_by_name_and_nothing_is_written(
    harness: SheetHarness,
) -> None:
    harness.sync()
    harness.emulator.max_request_bytes = 40_000
    add_article(harness.engine, subtitle="x" * 45_000)
    with pytest.raises(ChangeRejected, match="payload size exceeds the limit: 40000 bytes"):
        harness.sync()
    assert harness.rows("Raw") == []
    harness.emulator.max_request_bytes = ADVISED_BYTES
    change_article(harness.engine, 1, title="Changed meanwhile")
    harness.sync()
    assert differences(harness.engine, harness.book) == {}


def test_one_call_too_many_waits_until_the_oldest_is_a_window_old() -> None:
    limit = RateLimit(calls=2, window_seconds=60)
    limit.note(0.0)
    assert limit.wait_seconds(1.0) == 0
    limit.note(10.0)
    assert limit.wait_seconds(20.0) == 40
    assert limit.wait_seconds(60.0) == 0


def test_waits_double_up_to_about_a_minute() -> None:
    assert [backoff_seconds(tries) for tries in (1, 2, 3, 7, 20)] == [1, 2, 4, 64, 64]
