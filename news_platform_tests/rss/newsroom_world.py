"""A simulated world of feeds: they publish, edit, turn over, move, end, fail and hide articles.

Everything follows from a seed and the clock. The world remembers which items each successful poll
could see, so that a test can say what must be in the ledger.
"""

import hashlib
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from html import escape
from urllib.parse import urlsplit

from news_platform.errors import FetchError
from news_platform.web.fetch import Response
from news_platform.web.urls import canonical_url, url_hash
from news_platform_tests.rss.web import page

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY = timedelta(days=1)
_LOCKED = (
    '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false}'
    "</script><p>Subscribe to continue reading.</p>"
)
_SHELL = b"<html><body><div id=app></div></body></html>"


@dataclass(frozen=True, slots=True)
class Period:
    """A time in which something is so, in days after what happens to the feed has begun."""

    first_day: float
    last_day: float

    def contains(self, age: timedelta) -> bool:
        """Return whether this long after the beginning it is so."""
        return self.first_day * DAY <= age < self.last_day * DAY


@dataclass(frozen=True, slots=True)
class FeedKind:
    """How a feed publishes and what happens to it; `alarms` are those that follow from it."""

    items_per_day: float = 0.3
    window: int = 12
    edits: bool = False
    moves: bool = False
    ends: bool = False
    paywall: bool = False
    outage: Period | None = None
    silence: Period | None = None
    broken_template: Period | None = None
    alarms: tuple[str, ...] = ()


CALM = FeedKind()
# What can happen to a feed; of 64 feeds one is of each of these kinds, and all others are calm.
KINDS = {
    "fast": FeedKind(items_per_day=5, window=1),
    "edits": FeedKind(items_per_day=1, edits=True),
    "moves": FeedKind(items_per_day=1, moves=True),
    "fast and moves": FeedKind(items_per_day=5, window=1, moves=True),
    "ends": FeedKind(items_per_day=1, ends=True),
    "fails for hours": FeedKind(items_per_day=1, outage=Period(0, 0.5)),
    "fails for days": FeedKind(items_per_day=1, outage=Period(0, 3), alarms=("failing",)),
    "template": FeedKind(items_per_day=3.5, broken_template=Period(0, 9), alarms=("text_share",)),
    "paywall": FeedKind(items_per_day=1, paywall=True),
    "silent": FeedKind(items_per_day=1, silence=Period(0, 9), alarms=("silent",)),
    "silent and fails": FeedKind(
        items_per_day=1,
        silence=Period(0, 11),
        outage=Period(7, 9),
        alarms=("failing", "silent"),
    ),
}


@dataclass(frozen=True, slots=True)
class SimulatedItem:
    """One article: when it is published, and when its publisher changes it."""

    path: str
    published_at: datetime
    edited_at: datetime | None = None

    def topic(self, now: datetime) -> str:
        """Return what the article is about at this time."""
        is_edited = self.edited_at is not None and now >= self.edited_at
        return f"the story {self.path.strip('/')}{' corrected' if is_edited else ''}"


@dataclass(slots=True)
class SimulatedFeed:
    """A feed and its site; `seen` are the items that successful polls could see."""

    host: str
    name: str
    kind: FeedKind
    items: list[SimulatedItem]
    turns_at: datetime
    seen: set[SimulatedItem] = field(default_factory=set)
    polled_at: list[datetime] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return the first address of the feed."""
        return f"https://{self.host}/feed"

    @property
    def new_url(self) -> str:
        """Return the address to which a feed that moves moves."""
        return f"https://{self.host}/feed-new"

    def listed(self, now: datetime) -> list[SimulatedItem]:
        """Return the items in the feed at this time, newest first."""
        published = [item for item in self.items if item.published_at <= now]
        return published[-self.kind.window :][::-1]

    def has_turned(self, now: datetime) -> bool:
        """Return whether what happens to the feed has happened."""
        return now >= self.turns_at

    def is_in(self, period: Period | None, now: datetime) -> bool:
        """Return whether this period of the feed is now."""
        return period is not None and period.contains(now - self.turns_at)


def make_feeds(numbers: range, *, days: int, seed: int) -> list[SimulatedFeed]:
    """Return the feeds of these numbers with their items of so many days."""
    kinds = dict(enumerate(KINDS.items()))
    feeds = []
    for number in numbers:
        chance = random.Random(f"{seed} {number}")
        name, kind = kinds.get(number % 64, ("calm", CALM))
        turns_at = START + days * DAY * chance.uniform(0.35, 0.5)
        feed = SimulatedFeed(f"site{number}.example", name, kind, [], turns_at)
        feed.items.extend(_items(chance, feed, number, days=days))
        feeds.append(feed)
    return feeds


def _items(
    chance: random.Random, feed: SimulatedFeed, number: int, *, days: int
) -> Iterator[SimulatedItem]:
    # Days before the start, so that a feed has a rhythm and is fresh when it is found.
    moment, serial = START - 6 * DAY, 0
    while moment < START + days * DAY:
        if not feed.is_in(feed.kind.silence, moment):
            edited_at = moment + DAY * chance.uniform(0.1, 0.9) if feed.kind.edits else None
            yield SimulatedItem(f"/{number}-{serial}", moment, edited_at)
            serial += 1
        # A rhythm, as newsrooms have it: never five times the usual gap by chance.
        moment += DAY / feed.kind.items_per_day * chance.uniform(0.5, 1.5)


class SimulatedWeb:
    """Answers requests for feeds, pages and robots.txt as the world is at `now`."""

    def __init__(self, feeds: list[SimulatedFeed]) -> None:
        self.now = START
        self.by_host = {feed.host: feed for feed in feeds}
        self.pages = {(feed.host, item.path): item for feed in feeds for item in feed.items}

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Wait for nothing: the clock is simulated."""

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        private_headers: Mapping[str, str] | None = None,
        max_body_bytes: int | None = None,
    ) -> Response:
        """Return what the world shows under this address."""
        parts = urlsplit(url)
        feed = self.by_host[parts.hostname or ""]
        if feed.is_in(feed.kind.outage, self.now):
            raise FetchError("no answer", thing=url, reason="timeout")
        if parts.path == "/robots.txt":
            return Response(url, url, 404, {}, b"")
        if parts.path in ("/feed", "/feed-new"):
            return self._feed(feed, url, (headers or {}).get("If-None-Match"))
        return self._page(feed, url, self.pages[feed.host, parts.path])

    def _feed(self, feed: SimulatedFeed, url: str, known_tag: str | None) -> Response:
        turned = feed.has_turned(self.now)
        if feed.kind.ends and turned:
            return Response(url, url, 410, {}, b"")
        listed = feed.listed(self.now)
        body = self._rss(feed, listed)
        moved = feed.kind.moves and turned and url == feed.url
        final = feed.new_url if moved else url
        redirects, statuses = ((url,), (301,)) if moved else ((), ())
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        if tag == known_tag:
            return Response(
                url,
                final,
                304,
                {"etag": tag},
                b"",
                redirects=redirects,
                redirect_statuses=statuses,
            )
        feed.seen.update(listed)
        feed.polled_at.append(self.now)
        fields = {"content-type": "application/rss+xml", "etag": tag}
        return Response(
            url, final, 200, fields, body, redirects=redirects, redirect_statuses=statuses
        )

    def _rss(self, feed: SimulatedFeed, listed: list[SimulatedItem]) -> bytes:
        items = "".join(self._item(feed, item) for item in listed)
        return (
            '<?xml version="1.0"?><rss version="2.0"><channel><title>News of '
            f"{feed.host}</title><language>en</language>{items}</channel></rss>"
        ).encode()

    def _item(self, feed: SimulatedFeed, item: SimulatedItem) -> str:
        topic = escape(item.topic(self.now))
        return (
            f"<item><title>News of {topic}</title><link>https://{feed.host}{item.path}</link>"
            f"<guid>{item.path}</guid><description>The town hears of {topic} today.</description>"
            f"<pubDate>{format_datetime(item.published_at)}</pubDate></item>"
        )

    def _page(self, feed: SimulatedFeed, url: str, item: SimulatedItem) -> Response:
        body = page(item.topic(self.now), extra=_LOCKED if feed.kind.paywall else "")
        if feed.is_in(feed.kind.broken_template, self.now):
            body = _SHELL
        return Response(url, url, 200, {"content-type": "text/html; charset=utf-8"}, body)


def item_hash(feed: SimulatedFeed, item: SimulatedItem) -> str:
    """Return the url_hash of an article."""
    return url_hash(canonical_url(f"https://{feed.host}{item.path}"))
