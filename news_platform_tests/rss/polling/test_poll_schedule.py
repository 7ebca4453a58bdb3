"""When to poll a feed again, its health, its entries, and the dates and topics of articles."""

from datetime import UTC, datetime, timedelta

import pytest

from news_platform.articles.category import guess_category
from news_platform.html.dates import parse_date, parse_shown_date
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import entries_by_url_hash, with_text
from news_platform.rss.polling import poll_schedule
from news_platform.rss.polling.poll_schedule import PollOptions
from news_platform.web.urls import url_hash

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
HOUR = 3600
OPTIONS = PollOptions()


def every(hours: float, *, count: int = 10) -> list[datetime]:
    return [NOW - timedelta(hours=hours * n) for n in range(count)]


@pytest.mark.parametrize(
    ("dates", "previous", "found_new", "hours"),
    [
        pytest.param(every(0.1), 0, True, 3, id="a busy feed: as often as allowed"),
        pytest.param(every(8), 0, True, 4, id="half its rhythm"),
        pytest.param(every(100), 0, True, 6, id="a slow feed: as rarely as allowed"),
        pytest.param([], 0, True, 3, id="no dates"),
        pytest.param([], 3 * HOUR, False, 4.5, id="nothing new: half as long again"),
        pytest.param([], 6 * HOUR, False, 6, id="nothing new for long"),
    ],
)
def test_the_interval_follows_the_feeds_rhythm(
    dates: list[datetime], previous: int, found_new: bool, hours: float
) -> None:
    seconds = poll_schedule.interval_seconds(
        dates, now=NOW, previous=previous, found_new=found_new, options=OPTIONS
    )
    assert seconds == hours * HOUR


def test_jitter_stays_within_a_tenth_and_is_always_the_same() -> None:
    moved = [poll_schedule.jittered(1_000, key=f"feed {n}") for n in range(100)]
    assert all(900 <= seconds <= 1_100 for seconds in moved)
    assert len(set(moved)) > 50
    assert moved == [poll_schedule.jittered(1_000, key=f"feed {n}") for n in range(100)]


def test_failures_are_answered_with_growing_patience_up_to_the_probe() -> None:
    waits = [poll_schedule.failure_wait_seconds(n, options=OPTIONS) for n in (1, 2, 3, 10, 50)]
    assert waits == [3 * HOUR, 6 * HOUR, 12 * HOUR, 168 * HOUR, 168 * HOUR]


@pytest.mark.parametrize(
    ("errors", "days", "score"), [(0, 0, 100), (1, 0, 90), (0, 5, 90), (0, 99, 40), (9, 99, 0)]
)
def test_health_falls_with_failures_and_silence(errors: int, days: int, score: int) -> None:
    assert poll_schedule.health_score(errors_in_row=errors, no_updates_days=days) == score


def test_dates_ahead_of_us_are_not_the_newest() -> None:
    ahead = NOW + timedelta(days=400)
    assert poll_schedule.newest([NOW, None, ahead], now=NOW) == NOW
    assert poll_schedule.newest([], now=NOW) is None
    assert poll_schedule.days_without_update(None, now=NOW) == 0
    assert poll_schedule.days_without_update(NOW - timedelta(days=3, hours=5), now=NOW) == 3


@pytest.mark.parametrize(
    ("written", "moment"),
    [
        ("2025-11-03T10:20:30Z", datetime(2025, 11, 3, 10, 20, 30, tzinfo=UTC)),
        ("2025-11-03T10:20:30.123+01:00", datetime(2025, 11, 3, 9, 20, 30, tzinfo=UTC)),
        ("2025-11-03T10:20+0530", datetime(2025, 11, 3, 4, 50, tzinfo=UTC)),
        ("2025-11-03 10:20", datetime(2025, 11, 3, 10, 20, tzinfo=UTC)),
        ("2025-11-03", datetime(2025, 11, 3, tzinfo=UTC)),
        ("20251103", datetime(2025, 11, 3, tzinfo=UTC)),
        ("Mon, 03 Nov 2025 10:00:00 +0100", datetime(2025, 11, 3, 9, tzinfo=UTC)),
        ("Mon, 03 Nov 2025 10:00:00 EST", datetime(2025, 11, 3, 15, tzinfo=UTC)),
        ("Thu,28 Jul 2022 4:35:5 GMT+9", None),
        ("2025-13-45", None),
        ("0001-01-01T00:00:00Z", None),
        ("yesterday", None),
        ("", None),
    ],
)
def test_only_what_is_clearly_a_date_is_read(written: str, moment: datetime | None) -> None:
    assert parse_date(written) == moment


@pytest.mark.parametrize(
    ("shown", "day"),
    [
        ("erstellt: 01. April 2025, 15:25", "2025-04-01"),
        ("28.04.2023", "2023-04-28"),
        ("November 3, 2025", "2025-11-03"),
        ("3 novembre 2025", "2025-11-03"),
        ("14 juillet 2024", "2024-07-14"),
        ("5 juin 2024", "2024-06-05"),
        ("03/11/2025", None),
        ("31. Februar 2025", None),
        ("3 Quintember 2025", None),
    ],
)
def test_a_shown_date_is_read_when_it_has_one_meaning(shown: str, day: str | None) -> None:
    moment = parse_shown_date(shown)
    assert (moment.date().isoformat() if moment else None) == day


def entry(link: str, published_at: datetime | None = None) -> FeedEntry:
    return FeedEntry(link, "T", published_at, "", "")


def test_entries_are_kept_once_per_web_address_newest_first() -> None:
    found = entries_by_url_hash(
        [
            entry("https://a.example/old", NOW - timedelta(days=1)),
            entry("https://a.example/undated"),
            entry("https://a.example/new?utm_medium=x", NOW),
            entry("https://a.example/new", NOW - timedelta(days=9)),
            entry("mailto:a@b.example"),
            entry(""),
        ]
    )
    urls = [f"https://a.example/{name}" for name in ("new", "old", "undated")]
    assert list(found) == [url_hash(url) for url in urls]
    assert found[url_hash(urls[0])].link == "https://a.example/new?utm_medium=x"


def test_a_text_joins_a_list_once() -> None:
    assert with_text(("a",), "b") == ("a", "b")
    assert with_text(("a",), "a") == ("a",)
    assert with_text((), "") == ()


@pytest.mark.parametrize(
    ("facts", "category"),
    [
        ({"url": "https://x.example/sport/a"}, "sports"),
        ({"section": "Politik"}, "politics"),
        ({"tags": ("NFL",)}, "sports"),
        ({"url": "https://x.example/politics/football", "text": ""}, "other"),
        ({"text": "The senator said the government lost the vote in parliament."}, "politics"),
        ({"text": "The coach praised the team after the match and the late goal."}, "sports"),
        ({"text": "A recipe for soup with carrots and leek."}, "other"),
        ({"text": "The president watched the game."}, "other"),
    ],
)
def test_the_topic_is_named_by_labels_or_spoken_of_by_words(
    facts: dict[str, object], category: str
) -> None:
    given = {"url": "", "section": "", "tags": (), "title": "", "text": "", **facts}
    assert guess_category(**given) == category  # type: ignore[arg-type]  # a table of cases
