"""Polling: every item of a feed is stored, skipped with a reason, or named as possibly missed."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.rss.export import changed_days, delta_since, export_days
from news_platform.rss.feed_alarms import FeedAlarm, update_alarms
from news_platform.rss.feed_settings import FeedSettings, settings_text
from news_platform.rss.ledger.tables import DIAGNOSTICS, FEED_ALARMS, FEED_ITEMS, FEED_POLLS, RAW
from news_platform.rss.poll_results import PollOptions
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import Response
from news_platform_tests.fakes import FakeFetcher, response
from news_platform_tests.rss.ledger_rows import change_articles
from news_platform_tests.rss.stages import FEED, NOW, FeedHarness, rows
from news_platform_tests.rss.web import items, rss
from news_platform_tests.web import site as server

LATER = NOW + timedelta(hours=7)


def names(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number}" for number in range(count)]


def by_status(engine: sa.Engine) -> dict[str, int]:
    found: dict[str, int] = {}
    for row in rows(engine):
        found[row.status] = found.get(row.status, 0) + 1
    return found


def metrics(engine: sa.Engine) -> dict[str, float]:
    return {row.metric: row.value for row in rows(engine, DIAGNOSTICS)}


def test_what_the_limit_leaves_out_is_counted_and_taken_while_the_feed_still_lists_it(
    feeds: FeedHarness,
) -> None:
    feeds.register(FEED)
    options = PollOptions(max_items_per_feed=20)
    feed = rss(items(names("a", 60), newest=NOW))
    web = FakeFetcher({FEED: response(FEED, body=feed, headers={"etag": '"x"'})})
    report = feeds.poll(web, options=options)
    assert (report.new_articles, report.skipped_articles) == (20, 40)
    assert by_status(feeds.engine) == {"pending": 20, "skipped": 40}
    assert {row.error_msg for row in feeds.rows() if row.status == "skipped"} == {"limit"}
    assert metrics(feeds.engine)["articles_skipped_by_limit"] == 40
    row = feeds.row()
    assert (row.health_score, row.skipped_items) == (80, 40)
    assert row.notes == "[40 items skipped by the limit]"
    for hours in (4, 8):
        moment = NOW + timedelta(hours=hours)
        feeds.poll(web, options=options, now=moment)
    assert by_status(feeds.engine) == {"pending": 60}
    row = feeds.row()
    assert (row.skipped_items, row.notes, row.health_score) == (0, "", 100)
    assert web.headers[1] == {}, "the validators must not hide what is still waiting"


def test_a_feed_that_turned_over_is_polled_more_often_and_says_so(feeds: FeedHarness) -> None:
    feeds.register(FEED)
    minutes = [
        (f"https://post.example/{n}", f"About {n}", NOW - timedelta(minutes=2 * n))
        for n in range(30)
    ]
    feeds.poll({FEED: rss(minutes)})
    assert not feeds.row().may_miss_items
    others = [(f"{url}-b", title, at and at + timedelta(hours=7)) for url, title, at in minutes]
    report = feeds.poll({FEED: rss(others)}, now=LATER)
    assert report.turned_over == 1
    row = feeds.row()
    assert row.may_miss_items
    assert row.turned_over_at == LATER
    assert "may miss items" in row.notes
    assert row.health_score == 80
    # Its items span 58 minutes: it is polled after half of that.
    assert row.interval_seconds == 29 * 60
    assert metrics(feeds.engine)["feeds_turned_over"] == 1
    # An hour without news does not change this, however long caches may keep the response.
    quiet = response(FEED, status=304, headers={"cache-control": "max-age=86400"})
    for hours in (1, 2):
        moment = LATER + timedelta(hours=hours)
        feeds.poll({FEED: quiet}, now=moment)
        row = feeds.row()
        assert row.interval_seconds == 29 * 60
        assert row.next_poll_at - moment < timedelta(minutes=33)
    # A week without another turn ends it.
    feeds.poll({FEED: response(FEED, status=304)}, now=LATER + timedelta(days=8))
    row = feeds.row()
    assert (row.may_miss_items, row.notes, row.interval_seconds) == (False, "", 270 * 60)


def paged(names: list[str], *, older: str = "") -> server.Answer:
    """Answer with a page of a feed, which names the one before it."""
    link = f'<atom:link rel="prev-archive" href="{older}"/>' if older else ""
    feed = rss(items(names, newest=NOW)).replace(b"<item>", f"{link}<item>".encode(), 1)
    return server.body(feed, Content_Type="application/rss+xml")


def test_what_a_feed_that_turned_over_missed_comes_back_from_its_archive(
    feeds: FeedHarness,
) -> None:
    feeds.register(FEED)
    archive = {"post.example/old/1": paged(["a", "b"])}
    sites = {**archive, "post.example/rss": paged(["c", "b"], older="/old/1")}
    _, site = feeds.poll_site(sites)
    assert [path for _, path in site.requests] == ["/rss"], "the first poll reads no archive"
    archive["post.example/old/2"] = paged(["e", "d", "c"], older="/old/1")
    archive["post.example/old/3"] = paged(["g", "f"], older="/old/2")
    sites = {**archive, "post.example/rss": paged(["i", "h"], older="/old/3")}
    report, site = feeds.poll_site(sites, now=LATER, options=PollOptions(max_items_per_feed=4))
    assert [path for _, path in site.requests] == ["/rss", "/old/3", "/old/2"]
    assert (report.new_articles, report.skipped_articles, report.turned_over) == (4, 2, 0)
    row = feeds.row()
    assert row.notes == "[2 items skipped by the limit; 2 older pages were read]"
    assert not row.may_miss_items
    # The limit spreads them over polls, whether the feed still lists them or not.
    moment = LATER + timedelta(hours=4)
    report, site = feeds.poll_site(sites, now=moment, options=PollOptions(max_items_per_feed=4))
    assert (report.new_articles, len(site.requests)) == (2, 1)
    assert by_status(feeds.engine) == {"pending": 8}
    assert (feeds.row().skipped_items, feeds.row().notes) == (0, "")


def test_an_archive_is_read_up_to_ten_pages_and_only_on_its_own_site(
    sqlite_feeds: FeedHarness,
) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll_site({"post.example/rss": paged(["a"])})
    sites = {f"post.example/{n}": paged([f"n{n}"], older=f"/{n + 1}") for n in range(1, 30)}
    sites["post.example/rss"] = paged(["n0"], older="/1")
    report, site = sqlite_feeds.poll_site(sites, now=LATER)
    assert (report.new_articles, report.turned_over, len(site.requests)) == (11, 1, 11)
    sites = {"post.example/rss": paged(["z"], older="https://other.example/1")}
    sites["other.example/1"] = paged(["y"])
    _, site = sqlite_feeds.poll_site(sites, now=LATER + timedelta(hours=7))
    assert len(site.requests) == 1


def test_items_that_lead_to_parts_of_one_page_are_counted_and_named(
    sqlite_feeds: FeedHarness,
) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll({FEED: rss(items(["a#1", "a#2", "b"], newest=NOW))})
    assert len(sqlite_feeds.rows()) == 2
    named = "1 items share a page with another, such as https://post.example/a#2"
    assert sqlite_feeds.row().notes == f"[{named}]"
    assert [poll.notes for poll in sqlite_feeds.rows(FEED_POLLS)] == [named]


def test_one_known_item_left_means_that_nothing_was_missed(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll({FEED: rss(items(["a", "b"], newest=NOW))})
    feed = rss(items(["d", "c", "b"], newest=LATER))
    assert sqlite_feeds.poll({FEED: feed}, now=LATER).turned_over == 0
    assert not sqlite_feeds.row().may_miss_items


def test_an_article_known_from_another_feed_does_not_hide_that_a_feed_turned_over(
    sqlite_feeds: FeedHarness,
) -> None:
    other = "https://post.example/all"
    sqlite_feeds.register(FEED, other)
    web = {FEED: rss(items(["a"], newest=NOW)), other: rss(items(["b"], newest=NOW))}
    sqlite_feeds.poll(web)
    web = {FEED: rss(items(["b", "c"], newest=LATER)), other: rss(items(["b"], newest=NOW))}
    assert sqlite_feeds.poll(web, now=LATER).turned_over == 1
    assert sqlite_feeds.row().may_miss_items
    assert not sqlite_feeds.row(other).may_miss_items


def test_a_feed_that_is_cut_at_the_size_limit_may_miss_items(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    feed = rss(items(names("a", 50), newest=NOW))
    options = PollOptions(max_body_bytes=len(feed) // 2)
    sqlite_feeds.poll({FEED: feed}, options=options)
    assert "longer than what is read" in sqlite_feeds.row().notes
    assert sqlite_feeds.row().may_miss_items


def test_a_feed_whose_items_have_no_link_is_told(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    feed = (
        b"<rss version='2.0'><channel><title>T</title><item><title>A</title></item>"
        b"<item><title>B</title></item></channel></rss>"
    )
    for moment in (NOW, LATER):
        report = sqlite_feeds.poll({FEED: feed}, now=moment)
        assert report.outcomes == {"no_links": 1}
        row = sqlite_feeds.row()
        assert row.notes == "[none of its 2 items links to a page]"
        assert row.health_score == 50
    assert [one.items_without_link for one in sqlite_feeds.rows(FEED_POLLS)] == [2, 2]


@pytest.mark.parametrize(
    ("old", "new", "is_update"),
    [
        pytest.param(("T", NOW, "text"), ("T", LATER, "text"), True, id="newer date"),
        pytest.param(("T", NOW, "text"), ("T", NOW, "other"), True, id="new text"),
        pytest.param(("T", NOW, "text"), ("T", NOW, "text"), False, id="the same"),
        pytest.param(("T", LATER, "text"), ("T", NOW, "text"), False, id="older date"),
    ],
)
def test_an_update_in_rss_2_is_noticed(
    sqlite_feeds: FeedHarness,
    old: tuple[str, datetime | None, str],
    new: tuple[str, datetime | None, str],
    is_update: bool,
) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll({FEED: one_item(*old)})
    (row,) = sqlite_feeds.rows()
    stored = {"status": "stored", "stored_at": NOW, "fetched_at": NOW}
    change_articles(sqlite_feeds.engine, [row.row_id], **stored)
    report = sqlite_feeds.poll({FEED: one_item(*new) + b"<!-- 2 -->"}, now=LATER)
    assert report.updated_articles == int(is_update)
    assert [one.status for one in sqlite_feeds.rows()] == ["pending" if is_update else "stored"]
    # The update is followed once, not at every poll.
    change_articles(sqlite_feeds.engine, [row.row_id], **stored)
    again = sqlite_feeds.poll(
        {FEED: one_item(*new) + b"<!-- 3 -->"},
        now=LATER + timedelta(hours=7),
    )
    assert again.updated_articles == 0


def one_item(title: str, published: datetime | None, text: str) -> bytes:
    link = ("https://post.example/a", title, published)
    return rss([link]).replace(b"<description>", f"<description>{text} ".encode())


def test_a_feed_that_dates_everything_anew_is_followed_ever_more_rarely(
    sqlite_feeds: FeedHarness,
) -> None:
    sqlite_feeds.register(FEED)
    followed = []
    for hour in range(0, 24 * 3, 7):
        moment = NOW + timedelta(hours=hour)
        feed = one_item("T", moment, "text")
        if sqlite_feeds.poll({FEED: feed}, now=moment).updated_articles:
            followed.append(hour)
        change_articles(sqlite_feeds.engine, [1], status="stored", stored_at=NOW)
        if not followed or followed[-1] == hour:
            change_articles(sqlite_feeds.engine, [1], fetched_at=moment)
    assert followed == [7, 14, 28, 56]


def test_a_mere_sighting_changes_neither_the_delta_nor_the_daily_file(
    sqlite_feeds: FeedHarness, local_store: ObjectStore
) -> None:
    sqlite_feeds.register(FEED)
    feed = rss(items(names("a", 5), newest=NOW))
    sqlite_feeds.poll({FEED: feed})
    for row in sqlite_feeds.rows():
        change_articles(
            sqlite_feeds.engine,
            [row.row_id],
            status="stored",
            stored_at=NOW,
            text_hash=row.url_hash,
        )
    export_days(sqlite_feeds.engine, local_store, now=NOW)
    cursor = delta_since(sqlite_feeds.engine, 0).cursor
    seen = max(row.seen_seq for row in sqlite_feeds.rows())
    sqlite_feeds.poll({FEED: feed + b"<!-- again -->"}, now=LATER)
    assert delta_since(sqlite_feeds.engine, cursor).rows == ()
    assert changed_days(sqlite_feeds.engine) == []
    assert {row.last_seen_rss for row in sqlite_feeds.rows()} == {LATER}
    assert min(row.seen_seq for row in sqlite_feeds.rows()) > seen


CARRIED = b"""<?xml version="1.0"?><rss version="2.0"
 xmlns:content="http://purl.org/rss/1.0/modules/content/"
 xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:media="http://search.yahoo.com/mrss/">
<channel><title>T</title><item><title>A</title><link>https://post.example/a</link>
<dc:creator>Ann Writer</dc:creator><category>Politics</category><category>EU</category>
<description>A short summary.</description>
<content:encoded><![CDATA[<p>The <b>first</b> paragraph.</p><script>no()</script>
<p>The second.<br>A line.</p><p>Subscribe to continue reading.</p>]]></content:encoded>
<enclosure url="https://post.example/a.mp3" type="audio/mpeg" length="12"/>
<media:content url="https://post.example/a.jpg" medium="image" type="image/jpeg"/>
</item></channel></rss>"""


def test_what_the_feed_carries_is_kept(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    sqlite_feeds.poll({FEED: CARRIED})
    (item,) = sqlite_feeds.rows(FEED_ITEMS)
    assert item.authors == ("Ann Writer",)
    assert item.tags == ("Politics", "EU")
    assert item.content == "The first paragraph.\nThe second.\nA line."
    assert item.is_paywalled is True
    (row,) = sqlite_feeds.rows()
    assert (row.summary, row.image_url) == ("A short summary.", "https://post.example/a.jpg")


def test_every_poll_is_kept_for_a_month(sqlite_feeds: FeedHarness) -> None:
    sqlite_feeds.register(FEED)
    answers: list[tuple[datetime, Any]] = [
        (NOW, rss(items(["a"], newest=NOW))),
        (LATER, response(FEED, status=304)),
        (NOW + timedelta(days=1), response(FEED, status=503)),
        (NOW + timedelta(days=30, hours=1), rss(items(["a", "b"], newest=NOW))),
    ]
    for moment, answer in answers:
        sqlite_feeds.poll({FEED: answer}, now=moment)
    polls = sqlite_feeds.rows(FEED_POLLS)
    assert [(one.outcome, one.status_code, one.items, one.new_items) for one in polls] == [
        ("not_modified", 304, 0, 0),
        ("status_503", 503, 0, 0),
        ("read", 200, 2, 1),
    ]


def test_a_feed_has_its_own_interval_limit_and_headers(sqlite_feeds: FeedHarness) -> None:
    own = FeedSettings(
        interval_seconds=600, max_items=2, user_agent="OurReader/1", headers={"X-Key": "1"}
    )
    sqlite_feeds.register(FEED, own_settings=settings_text(own))
    web = FakeFetcher({FEED: rss(items(names("a", 5), newest=NOW))})
    report = sqlite_feeds.poll(web)
    assert (report.new_articles, report.skipped_articles) == (2, 3)
    assert sqlite_feeds.row().interval_seconds == 600
    assert web.headers == [{"User-Agent": "OurReader/1", "X-Key": "1"}]


def test_a_secret_that_is_not_set_is_told_and_hurts_no_other_feed(
    sqlite_feeds: FeedHarness,
) -> None:
    good = "https://post.example/good"
    own = settings_text(FeedSettings(token="FEED_SECRET_PAID"))
    sqlite_feeds.register(FEED, own_settings=own)
    sqlite_feeds.register(good)
    report = sqlite_feeds.poll({good: rss(items(["a"], newest=NOW))})
    assert report.new_articles == 1
    assert "FEED_SECRET_PAID is not set" in sqlite_feeds.row().notes
    assert sum(row.status == "pending" for row in sqlite_feeds.rows(RAW)) == 1


def test_a_feed_that_turns_over_when_it_moves_says_so_and_keeps_its_history(
    feeds: FeedHarness,
) -> None:
    new = "https://new.example/rss"
    feeds.register(FEED)
    feeds.poll({FEED: rss(items(names("a", 3), newest=NOW))})
    update_alarms(feeds.engine, [FeedAlarm("silent", FEED, "no entry")], now=NOW)
    moved = rss(items(names("a", 3), newest=NOW), title="The New Post")
    answer = Response(FEED, new, 200, {}, moved, redirects=(FEED,), redirect_statuses=(301,))
    feeds.poll({FEED: answer}, now=LATER)
    assert [row.feed_url for row in feeds.rows(FEED_POLLS)] == [new, new]
    assert [row.thing for row in feeds.rows(FEED_ALARMS)] == [new]
    # Nothing that it lists now was there before, so what lies between may be missed.
    much_later = LATER + timedelta(hours=7)
    feeds.poll({new: rss(items(names("b", 3), newest=much_later))}, now=much_later)
    assert [row.turned_over for row in feeds.rows(FEED_POLLS)] == [False, False, True]
    assert feeds.row(new).may_miss_items
