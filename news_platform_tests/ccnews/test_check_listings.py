"""The days that a tick finds stale: first the newest, then new, late and unfinished ones."""

import time
from datetime import date, timedelta
from pathlib import Path

import pytest

from news_platform.ccnews.listing import (
    FollowReport,
    FollowState,
    check_listings,
    listed_warcs,
)
from news_platform.datasets.collected import collected_path
from news_platform.storage.objects.store import open_store
from news_platform_tests.ccnews.crawl import warc_name, warc_path, write_listings

TODAY = date(2025, 11, 3)
DAYS = [date(2025, 11, day) for day in (1, 2, 3)]


class World:
    """A crawl listing and a root, and one tick after the other over them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "crawl"
        self.root = open_store(str(folder / "root"))
        self.listed = [(day, number) for day in DAYS for number in (1, 2)]
        self.state = FollowState()
        self.followed: set[str] = set()
        self.list_now()

    def list_now(self) -> None:
        write_listings(self.folder, [warc_path(day, number) for day, number in self.listed])

    def collect(self, day: date, *numbers: int) -> None:
        for number in numbers:
            self.root.put(collected_path(day, warc_name(day, number), "f"), b"{}")

    def tick(self, *, today: date = TODAY, max_warcs: int | None = None) -> FollowReport:
        seen = check_listings(
            open_store(str(self.folder)),
            self.root,
            today=today,
            state=self.state,
            followed=self.followed,
            max_warcs=max_warcs,
        )
        self.state = seen.state
        return seen


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_a_day_is_asked_for_until_its_last_warc_is_collected(world: World) -> None:
    first = world.tick().stale
    assert list(first) == ["2025-11-03"]  # the newest day alone
    world.collect(DAYS[2], 1)
    assert world.tick().stale == first
    world.collect(DAYS[2], 2)
    assert world.tick().stale == {}


def test_a_warc_added_to_a_collected_day_changes_its_fingerprint(world: World) -> None:
    first = world.tick().stale["2025-11-03"]
    world.collect(DAYS[2], 1, 2)
    world.listed.append((DAYS[2], 3))
    world.list_now()
    assert list(world.tick().stale) == ["2025-11-03"]
    assert world.tick().stale["2025-11-03"] != first


def test_days_after_the_first_are_followed_newest_first(world: World) -> None:
    world.tick()
    world.listed += [(date(2025, 11, 4), 1), (date(2025, 11, 5), 1)]
    world.list_now()
    assert list(world.tick(today=date(2025, 11, 5)).stale) == [
        "2025-11-05",
        "2025-11-04",
        "2025-11-03",
    ]


def test_an_older_day_is_followed_once_it_was_followed(world: World) -> None:
    world.tick()
    world.followed = {"2025-11-01"}
    assert list(world.tick().stale) == ["2025-11-03", "2025-11-01"]


def test_with_a_cap_a_day_is_complete_at_the_cap(world: World) -> None:
    world.collect(DAYS[2], 2)
    assert world.tick(max_warcs=1).stale == {}
    assert list(world.tick(max_warcs=2).stale) == ["2025-11-03"]


def test_what_is_collected_counts_for_a_cap_even_if_it_is_not_listed(world: World) -> None:
    world.collect(DAYS[2], 7, 8)
    assert world.tick(max_warcs=2).stale == {}


def test_a_warc_listed_under_the_month_before_is_asked_for_and_then_complete(world: World) -> None:
    late = f"crawl-data/CC-NEWS/2025/10/{warc_name(DAYS[2], 9)}"
    write_listings(world.folder, [late])
    world.collect(DAYS[2], 1, 2)
    assert list(world.tick().stale) == ["2025-11-03"]
    crawl = open_store(str(world.folder))
    assert late in {warc.path for warc in listed_warcs(crawl, world.root, day=DAYS[2])}
    world.collect(DAYS[2], 9)
    assert world.tick().stale == {}


def test_a_day_that_has_not_come_is_not_followed(world: World) -> None:
    world.listed.append((date(2099, 1, 1), 1))
    write_listings(
        world.folder,
        [f"crawl-data/CC-NEWS/2025/11/{warc_name(day, number)}" for day, number in world.listed],
    )
    assert list(world.tick().stale) == ["2025-11-03"]


def test_a_change_in_a_month_long_past_is_found_in_turn(world: World) -> None:
    old = date(2020, 5, 7)
    world.listed.append((old, 1))
    world.list_now()
    world.tick()
    world.followed = {old.isoformat()}
    world.collect(old, 1)
    assert old.isoformat() not in world.tick().stale
    world.listed.append((old, 2))
    world.list_now()
    assert any(old.isoformat() in world.tick().stale for _ in range(25))


def test_a_tick_over_three_years_takes_seconds(world: World) -> None:
    start = date(2022, 11, 1)
    days = [start + timedelta(days=count) for count in range((TODAY - start).days)]
    world.listed = [(day, 1) for day in days]
    world.list_now()
    world.followed = {day.isoformat() for day in days}
    for day in days:
        path = world.folder.parent / "root" / collected_path(day, warc_name(day, 1), "f")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"{}")
    for _ in range(10):
        started = time.process_time()
        stale = world.tick().stale
        assert time.process_time() - started < 2
    assert stale == {}
