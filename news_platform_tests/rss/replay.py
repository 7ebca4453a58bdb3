"""A simulated web of troubled sites on loopback, and a process that polls and works on it.

The process is killed by `kill -9` at random: before an answer, before a commit, after a file is
written. All follows from the seed, so that the test that started it knows what each site showed.
"""

import asyncio
import os
import random
import signal
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss.article_files import PAGES_FOLDER, WorkPlaces
from news_platform.rss.ledger.article_queue import WorkOptions
from news_platform.rss.page_extraction import extract_feed_page
from news_platform.rss.pipeline import extract_pool, parse_pool, work_articles
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import poll_feeds
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.sql.engine import open_engine
from news_platform.web.fetch import FetchOptions, WebFetcher
from news_platform_tests.rss.newsroom_world import DAY, START
from news_platform_tests.rss.stages import worker_context
from news_platform_tests.rss.web import STUB, WALL, home_page, page
from news_platform_tests.web.site import Answer, Site, body, closing, redirect, serve, status

STEP = timedelta(hours=4)
NOTICE = "Please enable JavaScript to read this story."
FULL_TEXTS = "articles/full_text"
# Loads the models once, in the process that forks all others.
extract_feed_page((b"<p>ready</p>", "http://ready.example/", None, ""))
TROUBLES = ("home", "consent", "outage", "429", "500", "404")


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
        """Return what it is about at this time."""
        is_edited = self.edited_at is not None and now >= self.edited_at
        return " ".join((*self.words, *(("corrected",) if is_edited else ())))

    def path(self, now: datetime) -> str:
        """Return where it is at this time."""
        is_moved = self.moved_at is not None and now >= self.moved_at
        return f"/2026/{self.number}-{self.words[2 if is_moved else 1]}"


@dataclass(frozen=True, slots=True)
class TroubledSite:
    """A site with its stories and troubles; some want a cookie, the feeds of some move."""

    host: str
    wants_cookie: bool
    feed_moves_at: datetime | None
    stories: list[Story] = field(default_factory=list)
    troubles: list[tuple[datetime, datetime, str]] = field(default_factory=list)

    def listed(self, now: datetime) -> list[Story]:
        """Return the stories in its feed, newest first."""
        return [story for story in self.stories if story.published_at <= now][-12:][::-1]

    def trouble(self, now: datetime) -> str:
        """Return what is wrong with the site at this time, or ''."""
        return next((kind for start, end, kind in self.troubles if start <= now < end), "")


@dataclass(frozen=True, slots=True)
class Plan:
    """How many sites live for how many days, and how often their reader is killed.

    Each of the first `kills` processes dies at one of its first `kill_within` answers, commits and
    writes, so that how many die does not depend on the speed of the machine.
    """

    sites: int
    days: int
    seed: int
    kills: int
    kill_within: int

    def make_sites(self) -> list[TroubledSite]:
        """Return the sites; their last two days are without trouble."""
        chance = random.Random(self.seed)
        sites: list[TroubledSite] = []
        calm = START + (self.days - 2) * DAY
        for number in range(self.sites):
            moves_at = START + DAY * chance.uniform(0, self.days)
            has_moved = moves_at if chance.random() < 0.2 else None
            site = TroubledSite(f"site{number}.example", chance.random() < 0.3, has_moved)
            site.stories.extend(_stories(chance, sites, START + self.days * DAY))
            start = START + DAY * chance.uniform(0, 4)
            while start < calm:
                end = min(start + DAY * chance.uniform(0.1, 1), calm)
                site.troubles.append((start, end, chance.choice(TROUBLES)))
                start = end + DAY * chance.uniform(1, 6)
            sites.append(site)
        return sites


def _stories(chance: random.Random, others: list[TroubledSite], end: datetime) -> Iterator[Story]:
    moment, number = START - DAY, 0
    while moment < end:
        words = tuple("".join(chance.choices("bdfgklmnprstaeiou", k=9)) for _ in range(4))
        other = chance.choice(others) if others and chance.random() < 0.05 else None
        twin = next((one for one in other.listed(moment)), None) if other else None
        is_plain = twin is not None or chance.random() < 0.5
        later = moment + DAY * chance.uniform(0.1, 1.5)
        yield Story(
            number,
            twin.words if twin is not None and not twin.edited_at else words,
            moment,
            None if is_plain else later,
            None if is_plain or chance.random() < 0.7 else later,
            is_placeholder=chance.random() < 0.3,
            is_twin=twin is not None,
        )
        moment, number = moment + DAY * chance.uniform(0.5, 2), number + 1


class TroubledWeb(dict[str, Answer]):
    """Answers by host and path as the sites are at `now`; each may be the last of the process."""

    def __init__(self, plan: Plan, log: Path, *, attempt: int) -> None:
        super().__init__()
        self.now = START
        self.site = Site()
        self.sites = {site.host: site for site in plan.make_sites()}
        self.chance = random.Random(f"{plan.seed} {attempt}")
        is_mortal = attempt < plan.kills
        self.steps_to_live = self.chance.randint(1, plan.kill_within) if is_mortal else None
        # Which feeds were shown when; a line is there before its answer.
        self.log = log.open("a", buffering=1)

    def may_die(self, *_: object) -> None:
        """End this process as `kill -9` does when its time has come."""
        if self.steps_to_live is not None:
            self.steps_to_live -= 1
            if not self.steps_to_live:
                os.kill(os.getpid(), signal.SIGKILL)

    def get(self, place: str, default: Any = None) -> Any:
        """Return the answer for `host/path`."""
        self.may_die()
        host, _, path = place.partition("/")
        site, trouble = self.sites[host], self.sites[host].trouble(self.now)
        if path == "robots.txt":
            return status(404)
        if trouble == "outage":
            return closing(b"")
        if path.startswith("feed"):
            is_moved = site.feed_moves_at is not None and self.now >= site.feed_moves_at
            return redirect("/feed-new", 301) if is_moved and path == "feed" else self.feed(site)
        if path in ("", "consent"):
            return body(WALL if path else home_page(), Content_Type="text/html")
        if trouble in ("429", "500", "404"):
            return status(int(trouble), Retry_After="3600")
        if trouble:
            return redirect("/" if trouble == "home" else "/consent")
        if site.wants_cookie and "seen=1" not in self.site.headers[-1].get("cookie", ""):
            return status(302, Location=f"/{path}", Set_Cookie="seen=1; Path=/")
        return self.page(site, f"/{path}")

    def feed(self, site: TroubledSite) -> Answer:
        """Return the feed of a site, with trackers and sessions in its links."""
        self.log.write(f"{site.host} {self.now.isoformat()}\n")
        items = ""
        for story in site.listed(self.now):
            tail = self.chance.choice(("", "?utm_source=rss", ";jsessionid=A1"))
            items += (
                f"<item><title>{story.topic(self.now)}</title><guid>{story.number}</guid>"
                f"<link>http://{site.host}{story.path(self.now)}{tail}</link>"
                f"<pubDate>{format_datetime(story.published_at)}</pubDate></item>"
            )
        head = f"<rss version='2.0'><channel><title>{site.host}</title><language>en</language>"
        return body(f"{head}{items}</channel></rss>".encode(), Content_Type="application/rss+xml")

    def page(self, site: TroubledSite, path: str) -> Answer:
        """Return the page of a story, or the redirect to where it is now."""
        clean = path.partition("?")[0].partition(";")[0]
        story = site.stories[int(clean.removeprefix("/2026/").partition("-")[0])]
        if clean != story.path(self.now):
            return redirect(story.path(self.now))
        topic, published = story.topic(self.now), story.published_at.isoformat()
        shown = page(topic, published=published)
        if story.is_placeholder and story.edited_at and self.now < story.edited_at:
            shown = STUB.format(topic, NOTICE).encode()
        return body(shown, Content_Type="text/html; charset=utf-8")


@dataclass(frozen=True, slots=True)
class MortalPlaces(WorkPlaces):
    """Where the worker writes; it may die before the row of a file is written."""

    web: TroubledWeb | None = None

    def write_full_text(self, url_hash: str, text: str) -> str:
        """Write a full text, and perhaps nothing after it."""
        reference = WorkPlaces.write_full_text(self, url_hash, text)
        if self.web is not None:
            self.web.may_die()
        return reference

    def write_page(self, body: bytes) -> str:
        """Write a page, and perhaps nothing after it."""
        reference = WorkPlaces.write_page(self, body)
        if self.web is not None:
            self.web.may_die()
        return reference


def live(plan: Plan, ledger_url: str, root: Path, attempt: int) -> None:
    """Poll and work step by step from where the last process was killed; the last day is safe."""
    web = TroubledWeb(plan, root / "polls.log", attempt=attempt)
    engine, steps = open_engine(ledger_url), root / "steps"
    sa.event.listen(engine, "commit", web.may_die)
    done = int(steps.read_text()) if steps.exists() else 0
    with parse_pool(0) as parse, extract_pool(0) as extract:
        for number in range(done, int((plan.days + 1) * DAY / STEP)):
            web.now = START + number * STEP
            if web.now > START + plan.days * DAY:
                web.steps_to_live = None
            # Written first: a step in which the process dies is not repeated.
            steps.write_text(str(number + 1))
            asyncio.run(_step(web, engine, (parse, extract), open_store(str(root))))
    engine.dispose()


async def _step(
    web: TroubledWeb, engine: sa.Engine, pools: tuple[Pool, Pool], store: ObjectStore
) -> None:
    parse, extract = pools
    async with serve(web) as web.site:
        places = {host: ("127.0.0.1", web.site.port) for host in web.sites}
        async with WebFetcher(
            FetchOptions(host_map=places, per_host=32, waits_for_hosts=True)
        ) as fetcher:
            options = PollOptions(min_interval_seconds=3600, max_interval_seconds=7200)
            await poll_feeds(engine, fetcher=fetcher, pool=parse, options=options, now=web.now)
            context = worker_context(
                engine,
                fetcher,
                extract,
                store,
                places=MortalPlaces(
                    store.child(FULL_TEXTS), pages=store.child(PAGES_FOLDER), web=web
                ),
                clock=lambda: web.now,
            )
            await work_articles(context, worker_id=f"w{web.now}", options=WorkOptions())
