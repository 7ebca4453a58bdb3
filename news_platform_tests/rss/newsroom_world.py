"""A simulated world of feeds: they publish, edit, turn over, move, fail, and hide their articles.

Everything follows from a seed and the clock. The world remembers which items each successful poll
could see, so that a test can say what must be in the ledger.
"""

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
# What happens to a feed; most only publish.
KINDS = ("calm", "fast", "edits", "moves", "ends", "fails", "template", "paywall")
_LOCKED = (
    '<script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false}'
    "</script><p>Subscribe to continue reading.</p>"
)
_SHELL = b"<html><body><div id=app></div></body></html>"


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
    kind: str
    window: int
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
        """Return the address to which a feed of the kind `moves` moves."""
        return f"https://{self.host}/feed-new"

    def listed(self, now: datetime) -> list[SimulatedItem]:
        """Return the items in the feed at this time, newest first."""
        published = [item for item in self.items if item.published_at <= now]
        return published[-self.window :][::-1]

    def has_turned(self, now: datetime) -> bool:
        """Return whether what happens to the feed has happened."""
        return now >= self.turns_at


def make_feeds(count: int, *, days: int, seed: int, per_day: float = 3.0) -> list[SimulatedFeed]:
    """Return feeds of all kinds with their items of so many days."""
    chance = random.Random(seed)
    feeds = []
    for number in range(count):
        # The kinds other than calm come once in every sixteen feeds each.
        kind = KINDS[number % 16] if number % 16 < len(KINDS) else "calm"
        rate, window = (40.0, 5) if kind == "fast" else (per_day, 12)
        turns_at = START + days * DAY * chance.uniform(0.35, 0.6)
        items = list(_items(chance, number, rate=rate, days=days, edits=kind == "edits"))
        feeds.append(SimulatedFeed(f"site{number}.example", kind, window, items, turns_at))
    return feeds


def _items(
    chance: random.Random, number: int, *, rate: float, days: int, edits: bool
) -> Iterator[SimulatedItem]:
    # A day before the start, so that a feed is fresh when it is found.
    moment, serial = START - DAY, 0
    while moment < START + days * DAY:
        edited_at = moment + timedelta(hours=chance.uniform(3, 20)) if edits else None
        yield SimulatedItem(f"/{number}-{serial}", moment, edited_at)
        serial += 1
        moment += timedelta(seconds=chance.expovariate(rate) * 86_400)


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
        if parts.path == "/robots.txt":
            return Response(url, url, 404, {}, b"")
        if parts.path in ("/feed", "/feed-new"):
            return self._feed(feed, url)
        return self._page(feed, url, self.pages[feed.host, parts.path])

    def _feed(self, feed: SimulatedFeed, url: str) -> Response:
        turned = feed.has_turned(self.now)
        if feed.kind == "fails" and turned and self.now < feed.turns_at + DAY / 2:
            raise FetchError("no answer", thing=url, reason="timeout")
        if feed.kind == "ends" and turned:
            return Response(url, url, 410, {}, b"")
        listed = feed.listed(self.now)
        feed.seen.update(listed)
        feed.polled_at.append(self.now)
        body = self._rss(feed, listed)
        if feed.kind == "moves" and turned and url == feed.url:
            new = feed.new_url
            return Response(url, new, 200, {}, body, redirects=(url,), redirect_statuses=(301,))
        return Response(url, url, 200, {"content-type": "application/rss+xml"}, body)

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
        body = page(item.topic(self.now), extra=_LOCKED if feed.kind == "paywall" else "")
        if feed.kind == "template" and feed.has_turned(self.now):
            body = _SHELL
        return Response(url, url, 200, {"content-type": "text/html; charset=utf-8"}, body)


def item_hash(feed: SimulatedFeed, item: SimulatedItem) -> str:
    """Return the url_hash of an article."""
    return url_hash(canonical_url(f"https://{feed.host}{item.path}"))
