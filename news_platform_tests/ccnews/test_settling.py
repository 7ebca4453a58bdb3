"""When a day of the crawl is settled."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta

import pytest

from news_platform.ccnews.listing import (
    DayArrivals,
    SettlingOptions,
    fetch_listing,
    grown,
    parse_listing,
    read_arrivals,
    record_arrivals,
    settles_at,
    unsettled_days,
)
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.ccnews.crawl import warc_path, write_listings

DAY = date(2025, 11, 1)
NEXT = date(2025, 11, 2)
END = datetime(2025, 11, 2, tzinfo=UTC)
OPTIONS = SettlingOptions()


def _hours(count: float) -> datetime:
    """Return the moment so many hours after the day's end."""
    return END + timedelta(hours=count)


@pytest.mark.parametrize(
    ("grown_at", "newest", "is_followed", "settled"),
    [
        pytest.param(_hours(1), NEXT, False, _hours(6), id="quiet after a later day was listed"),
        pytest.param(_hours(-2), DAY, False, _hours(72), id="no later day is listed"),
        pytest.param(_hours(80), DAY, False, _hours(85), id="the last day of a crawl, and late"),
        pytest.param(_hours(71), NEXT, True, _hours(72), id="late, and together with the first"),
        pytest.param(_hours(73), NEXT, True, _hours(144), id="later still"),
    ],
)
def test_a_day_settles(
    grown_at: datetime, newest: date, is_followed: bool, settled: datetime
) -> None:
    arrivals = DayArrivals(18, grown_at)
    found = settles_at(
        DAY, arrivals, newest_listed=newest, is_followed=is_followed, options=OPTIONS
    )
    assert found == settled


def test_without_a_late_time_nothing_waits() -> None:
    arrivals = DayArrivals(18, _hours(20))
    options = SettlingOptions(late=timedelta())
    found = settles_at(DAY, arrivals, newest_listed=NEXT, is_followed=True, options=options)
    assert found == _hours(20)


def test_a_day_grows_when_its_number_of_warcs_does() -> None:
    known: list[Mapping[date, DayArrivals]] = []

    def listed(*numbers: int) -> Mapping[date, DayArrivals]:
        listing = parse_listing(
            [warc_path(DAY, number) for number in numbers], month=DAY, etag=str(numbers)
        )
        known.append(grown(known[-1] if known else None, listing, now=_hours(len(numbers))))
        return known[-1]

    assert listed(1)[DAY] == DayArrivals(1, datetime(2025, 11, 1, 0, 0, 1, tzinfo=UTC)), "by name"
    assert listed(1, 2)[DAY] == DayArrivals(2, _hours(2))
    assert listed(1)[DAY] == DayArrivals(2, _hours(2)), "a listing that lost a line"


def test_arrivals_are_kept_beside_the_listing(local_store: ObjectStore) -> None:
    crawl = local_store.child("crawl")
    folder = crawl.local_folder
    assert folder is not None
    write_listings(folder, [warc_path(DAY)])
    listing = fetch_listing(open_store(str(folder)), local_store, month=DAY)
    assert listing is not None
    assert read_arrivals(local_store, DAY) is None
    record_arrivals(local_store, [listing], now=_hours(1))
    before = local_store.head("news/warc_paths/2025-11.arrivals.json")
    record_arrivals(local_store, [listing], now=_hours(2))
    assert local_store.head("news/warc_paths/2025-11.arrivals.json").etag == before.etag
    waits = unsettled_days(local_store, [DAY], followed=(), options=OPTIONS, now=_hours(1))
    assert waits[DAY].reason == "no later day is listed"


def test_a_settled_day_waits_a_little_for_the_run_that_collects_its_last_warcs(
    local_store: ObjectStore,
) -> None:
    folder = local_store.child("crawl").local_folder
    assert folder is not None
    write_listings(folder, [warc_path(DAY), warc_path(NEXT)])
    listing = fetch_listing(open_store(str(folder)), local_store, month=DAY)
    assert listing is not None
    record_arrivals(local_store, [listing], now=_hours(1))

    def waits(hours: float) -> str | None:
        found = unsettled_days(
            local_store, [DAY], followed=(), options=OPTIONS, now=_hours(hours)
        ).get(DAY)
        return found.reason if found else None

    # First sight of the month: the WARC counts as arrived at the time in its name, 00:00:01.
    settled = -24 + 5 + 1 / 3600
    assert waits(settled - 1) == "the day has just grown"
    assert waits(settled + 0.1) == "raw_news lacks 1 WARCs"
    assert waits(settled + 0.6) is None


@pytest.mark.parametrize("body", [b"{", b'{"2025-11-01": [1]}'])
def test_a_damaged_record_is_named(local_store: ObjectStore, body: bytes) -> None:
    local_store.put("news/warc_paths/2025-11.arrivals.json", body)
    with pytest.raises(StorageError, match=r"2025-11\.arrivals\.json"):
        read_arrivals(local_store, DAY)
