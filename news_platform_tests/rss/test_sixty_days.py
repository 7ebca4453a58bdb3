"""Sixty days of sites with walls, placeholders, edits, moves, outages and twins, and of crashes.

Every story ends stored once with its own last text, or has a named reason. A crash is an exception
that nothing handles, before a commit or during a fetch; what a process loses by it, a killed one
loses, too.
"""

import asyncio
import random
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.isolation.pool import Pool
from news_platform.rss.article_files import OwnedFiles, WorkPlaces, find_orphans
from news_platform.rss.ledger.article_queue import WorkOptions
from news_platform.rss.ledger.tables import ARTICLES_INDEX
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import poll_feeds
from news_platform.rss.worker import work_articles
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import Response
from news_platform.web.urls import url_hash
from news_platform_tests.rss.ledger_rows import read_full_text
from news_platform_tests.rss.stages import register, rows, worker_context
from news_platform_tests.rss.test_wrong_pages import STUB, WALL, home
from news_platform_tests.rss.web import page

START = datetime(2026, 1, 5, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NOTICE = "Please enable JavaScript to read this story."
HTML = {"content-type": "text/html; charset=utf-8"}
TROUBLES = ("home", "consent", "outage", "429", "500", "404")


class Crash(BaseException):
    """The process is gone."""


@dataclass(frozen=True, slots=True)
class Story:
    """One story of a site; its first word is in no other story but its twin."""

    number: int
    words: tuple[str, ...]
    published_at: datetime
    edited_at: datetime | None
    moved_at: datetime | None
    is_placeholder: bool
    is_twin: bool

    def topic(self, now: datetime) -> str:
        is_edited = self.edited_at is not None and now >= self.edited_at
        return " ".join((*self.words, *(("corrected",) if is_edited else ())))

    def path(self, now: datetime) -> str:
        is_moved = self.moved_at is not None and now >= self.moved_at
        return f"/2026/{self.number}-{self.words[2 if is_moved else 1]}"


@dataclass(slots=True)
class SimulatedSite:
    """A site with its feed and troubles; `seen` is when a poll last listed each story."""

    host: str
    stories: list[Story]
    troubles: list[tuple[datetime, datetime, str]]
    seen: dict[int, datetime] = field(default_factory=dict)

    def listed(self, now: datetime) -> list[Story]:
        return [story for story in self.stories if story.published_at <= now][-12:][::-1]

    def trouble(self, now: datetime) -> str:
        return next((kind for start, end, kind in self.troubles if start <= now < end), "")


def make_sites(count: int, *, days: int, seed: int) -> list[SimulatedSite]:
    """Return sites of these many days; the last two days are without trouble."""
    chance = random.Random(seed)
    sites: list[SimulatedSite] = []
    for number in range(count):
        stories: list[Story] = []
        moment = START - DAY
        while moment < START + days * DAY:
            words = tuple("".join(chance.choices("bdfgklmnprstaeiou", k=9)) for _ in range(4))
            other = chance.choice(sites) if sites and chance.random() < 0.05 else None
            twin = next((one for one in other.listed(moment)), None) if other else None
            is_plain = twin is not None or chance.random() < 0.5
            later = moment + DAY * chance.uniform(0.1, 1.5)
            stories.append(
                Story(
                    len(stories),
                    twin.words if twin is not None and not twin.edited_at else words,
                    moment,
                    None if is_plain else later,
                    None if is_plain or chance.random() < 0.7 else later,
                    is_placeholder=chance.random() < 0.3,
                    is_twin=twin is not None,
                )
            )
            moment += DAY * chance.uniform(0.5, 2)
        troubles = []
        start = START + DAY * chance.uniform(0, 4)
        while start < START + (days - 2) * DAY:
            end = min(start + DAY * chance.uniform(0.1, 1), START + (days - 2) * DAY)
            troubles.append((start, end, chance.choice(TROUBLES)))
            start = end + DAY * chance.uniform(1, 6)
        sites.append(SimulatedSite(f"site{number}.example", stories, troubles))
    return sites


class SimulatedWeb:
    """Answers as the sites are at `now`; a request may be the last of the process."""

    def __init__(self, sites: list[SimulatedSite], *, seed: int, crash_rate: float) -> None:
        self.now = START
        self.sites = {site.host: site for site in sites}
        self.chance = random.Random(seed)
        self.crash_rate = crash_rate

    def set_crawl_delay(self, host: str, seconds: float) -> None:
        """Wait for nothing: the clock is simulated."""

    def may_crash(self, *_: object) -> None:
        if self.chance.random() < self.crash_rate:
            raise Crash

    async def fetch(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        private_headers: Mapping[str, str] | None = None,
        max_body_bytes: int | None = None,
    ) -> Response:
        self.may_crash()
        parts = urlsplit(url)
        site = self.sites[parts.hostname or ""]
        if parts.path == "/robots.txt":
            return Response(url, url, 404, {}, b"")
        trouble = site.trouble(self.now)
        if trouble == "outage":
            raise FetchError("no answer", thing=url, reason="timeout")
        if parts.path == "/feed":
            return Response(url, url, 200, {"content-type": "application/rss+xml"}, self.rss(site))
        if trouble in ("429", "500", "404"):
            return Response(url, url, int(trouble), {"retry-after": "3600"}, b"")
        if trouble:
            final = f"https://{site.host}/{'' if trouble == 'home' else 'consent'}"
            body = home() if trouble == "home" else WALL
            return Response(url, final, 200, HTML, body, redirects=(url,))
        return self.page(site, url, parts.path)

    def rss(self, site: SimulatedSite) -> bytes:
        items = ""
        for story in site.listed(self.now):
            site.seen[story.number] = self.now
            tail = self.chance.choice(("", "?utm_source=rss", ";jsessionid=A1"))
            items += (
                f"<item><title>{story.topic(self.now)}</title><guid>{story.number}</guid>"
                f"<link>https://{site.host}{story.path(self.now)}{tail}</link>"
                f"<pubDate>{format_datetime(story.published_at)}</pubDate></item>"
            )
        head = f"<rss version='2.0'><channel><title>{site.host}</title><language>en</language>"
        return f"{head}{items}</channel></rss>".encode()

    def page(self, site: SimulatedSite, url: str, path: str) -> Response:
        story = site.stories[int(path.removeprefix("/2026/").partition("-")[0])]
        topic, own = story.topic(self.now), story.path(self.now)
        final = f"https://{site.host}{own}"
        body = page(topic, published=story.published_at.isoformat())
        if story.is_placeholder and story.edited_at and self.now < story.edited_at:
            body = STUB.format(topic, NOTICE).encode()
        redirects = (url,) if path != own else ()
        return Response(url, url if path == own else final, 200, HTML, body, redirects=redirects)


@contextmanager
def crashing(engine: sa.Engine, web: SimulatedWeb) -> Iterator[None]:
    """Let commits crash, too."""
    sa.event.listen(engine, "commit", web.may_crash)
    try:
        yield
    finally:
        sa.event.remove(engine, "commit", web.may_crash)


async def step(
    web: SimulatedWeb, engine: sa.Engine, pools: tuple[Pool, Pool], store: ObjectStore
) -> None:
    parse, extract = pools
    places = WorkPlaces(store.child("texts"), pages=store.child("pages"))
    context = worker_context(engine, web, extract, store, places=places, clock=lambda: web.now)
    options = PollOptions(min_interval_seconds=3600, max_interval_seconds=7200)
    await poll_feeds(engine, fetcher=web, pool=parse, options=options, now=web.now)
    await work_articles(context, worker_id="w", options=WorkOptions(extractors=1))


def replay(
    engine: sa.Engine,
    pools: tuple[Pool, Pool],
    store: ObjectStore,
    sites: list[SimulatedSite],
    *,
    days: int,
    seed: int,
    crash_rate: float,
) -> int:
    """Run all steps; return how many of them crashed."""
    register(engine, *(f"https://{site.host}/feed" for site in sites))
    web = SimulatedWeb(sites, seed=seed, crash_rate=crash_rate)
    crashes = 0
    while web.now < START + (days + 1) * DAY:
        if web.now > START + days * DAY:
            web.crash_rate = 0.0
        try:
            with crashing(engine, web):
                asyncio.run(step(web, engine, pools, store))
        except* Crash:
            crashes += 1
        web.now += 4 * HOUR
    return crashes


def check(
    engine: sa.Engine, store: ObjectStore, sites: list[SimulatedSite], *, crashes: int
) -> Counter[str]:
    """Assert that every story is stored once with its own last text, or has a reason."""
    found = {row.row_id: row for row in rows(engine)}
    index = {row.url_hash: found[row.row_id_raw] for row in rows(engine, ARTICLES_INDEX)}
    tokens = {story.words[0] for site in sites for story in site.stories}
    became: Counter[str] = Counter()
    stored: Counter[str] = Counter()
    for row in found.values():
        assert row.status != "processing", row.row_id
        if row.status == "stored":
            own = tokens & set(re.findall(r"\w+", row.clean_text)) or {row.title.split()[0]}
            assert len(own) == 1, (row.row_id, own)
            stored.update(own)
    for site in sites:
        for story in site.stories:
            if story.number not in site.seen:
                continue
            last = site.seen[story.number]
            row = index[url_hash(f"https://{site.host}{story.path(last)}")]
            became[row.status] += 1
            if row.status != "stored":
                assert row.error_msg, row
                continue
            if story.is_placeholder and story.edited_at and last < story.edited_at:
                continue  # what came later was not announced before the end
            text = read_full_text(store.child("texts"), row.url_hash)
            is_last = story.topic(last) in row.clean_text and story.topic(last) in text
            assert is_last or story.is_twin or row.error_msg, (story, row.clean_text)
            assert NOTICE not in row.clean_text or row.error_msg, story
    doubled = {token: n for token, n in stored.items() if n > 1}
    assert doubled == {}
    owned = OwnedFiles.read(engine)
    later = datetime.now(UTC) + DAY
    for name, files in (("texts", owned.full_texts), ("pages", owned.pages)):
        kept = {info.path for info in store.child(name).list()}
        assert files <= kept
        assert len(find_orphans(store.child(name), files, before=later)) <= 32 * crashes
    return became


@pytest.fixture
def pools(parse_pool: Pool, extract_pool: Pool) -> tuple[Pool, Pool]:
    return parse_pool, extract_pool


def test_six_days_of_eight_sites(
    ledger: sa.Engine, pools: tuple[Pool, Pool], local_store: ObjectStore
) -> None:
    sites = make_sites(8, days=6, seed=3)
    crashes = replay(ledger, pools, local_store, sites, days=6, seed=3, crash_rate=0.01)
    became = check(ledger, local_store, sites, crashes=crashes)
    assert crashes > 0
    assert became["stored"] > 20, became


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_sixty_days_of_three_hundred_sites(
    ledger: sa.Engine, pools: tuple[Pool, Pool], local_store: ObjectStore, seed: int
) -> None:
    sites = make_sites(100, days=60, seed=seed)
    crashes = replay(ledger, pools, local_store, sites, days=60, seed=seed, crash_rate=0.0005)
    became = check(ledger, local_store, sites, crashes=crashes)
    assert crashes > 10
    assert became["stored"] > 2_000, became
