"""An exception at any step of one feed, article or candidate leaves the others as they would be.

The steps come from a trace, so a new one is covered without a change here.
"""

import random
import shutil
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import StorageError
from news_platform.isolation.pool import Pool
from news_platform.rss.discovery import DiscoveryOptions, discover_feeds
from news_platform.rss.ledger.article_queue import WorkOptions
from news_platform.rss.ledger.tables import FEEDS, METADATA, RAW
from news_platform.rss.pipeline import work_articles
from news_platform.rss.poll_results import PollOptions
from news_platform.rss.poller import poll_feeds
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.fetch import WebFetcher
from news_platform_tests.isolation.every_step import Run, StageResult, all_steps, fail_at_steps
from news_platform_tests.isolation.injection import Victim, clear_caches, failing_step
from news_platform_tests.rss.stages import (
    NOW,
    add_pending,
    fetch_all,
    register,
    rows,
    worker_context,
)
from news_platform_tests.rss.web import items, page, rss
from news_platform_tests.web.site import Answer, body, redirect, status

GOOD = ("a.example", "b.example", "c.example")
# Victims on different ways through the code; each has its own host.
VICTIMS = ("plain-victim.example", "moved-victim.example", "missing-victim.example")
# Numbers of the ledger that depend on how often anything was written.
_COUNTERS = {"changed_seq", "seen_seq", "row_id", "attempt"}


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage of the pipeline: its units, its sites, and how it runs."""

    units: Callable[[sa.Engine], None]
    sites: Callable[[], Mapping[str, Answer]]
    run: Callable[[sa.Engine, WebFetcher, Pool, Path], Awaitable[Any]]
    table: sa.Table
    unfinished: tuple[str, ...] = ()


def feed_sites() -> dict[str, Answer]:
    feeds = {
        f"{host}/rss": body(rss(items(["x", "y"], host=host, newest=NOW)), ETag='"1"')
        for host in (*GOOD, *VICTIMS)
    }
    feeds["moved-victim.example/new"] = feeds["moved-victim.example/rss"]
    feeds["moved-victim.example/rss"] = redirect("/new", 301)
    feeds["missing-victim.example/rss"] = status(503, Retry_After="7200")
    return feeds


def article_sites() -> dict[str, Answer]:
    link = '<p><a href="https://other.example/x">More</a> about it.</p>'
    pages = {f"{h}/rss": body(page(f"the town {h}", extra=link)) for h in (*GOOD, *VICTIMS)}
    pages["moved-victim.example/new"] = pages["moved-victim.example/rss"]
    pages["moved-victim.example/rss"] = redirect("/new", 301)
    pages["missing-victim.example/rss"] = status(503, Retry_After="7200")
    robots = body(b"User-agent: *\nCrawl-delay: 0.01\nDisallow: /private\n")
    return pages | {f"{host}/robots.txt": robots for host in (*GOOD, *VICTIMS)}


def site_feeds() -> dict[str, Answer]:
    html = b'<html><link rel="alternate" type="application/rss+xml" href="/new"></html>'
    return feed_sites() | {"moved-victim.example/rss": body(html, Content_Type="text/html")}


URLS = [f"https://{host}/rss" for host in (*GOOD, *VICTIMS)]


async def run_poll(engine: sa.Engine, fetcher: WebFetcher, pool: Pool, _: Path) -> Any:
    return await poll_feeds(
        engine, fetcher=fetcher, pool=pool, options=PollOptions(concurrency=4), now=NOW
    )


async def run_discovery(engine: sa.Engine, fetcher: WebFetcher, pool: Pool, _: Path) -> Any:
    options = DiscoveryOptions(languages=(), concurrency=4)
    return await discover_feeds(engine, URLS, fetcher=fetcher, pool=pool, options=options, now=NOW)


async def run_work(engine: sa.Engine, fetcher: WebFetcher, pool: Pool, folder: Path) -> Any:
    # New for every run and written to once: the first write of a store has steps of its own, and
    # any article may be the first.
    shutil.rmtree(folder / "full", ignore_errors=True)
    full_texts = open_store(str(folder / "full"))
    full_texts.put("first", b"")
    context = worker_context(engine, fetcher, pool, full_texts)
    return await work_articles(context, worker_id="w", options=WorkOptions(concurrency=4))


STAGES = {
    "poll": Stage(lambda engine: register(engine, *URLS), feed_sites, run_poll, FEEDS),
    "discovery": Stage(lambda engine: None, site_feeds, run_discovery, FEEDS),
    "work": Stage(lambda engine: add_pending(engine, *URLS), article_sites, run_work, RAW),
}


class Bench:
    """A stage over a ledger that is new for every run."""

    def __init__(self, stage: Stage, pool: Pool, folder: Path, postgres_url: str | None) -> None:
        self.stage, self.pool, self.folder = stage, pool, folder
        self.number = 0
        self.template = folder / "template.sqlite"
        self.engine = open_engine(postgres_url or f"sqlite:///{self.template}")
        migrate(self.engine)
        self.is_postgres = postgres_url is not None
        if not self.is_postgres:
            stage.units(self.engine)
            self.engine.dispose()

    def fresh(self) -> sa.Engine:
        self.number += 1
        if self.is_postgres:
            with self.engine.begin() as connection:
                for table in METADATA.sorted_tables:
                    if table.name != "ledger_sequence":
                        connection.execute(sa.delete(table))
            self.stage.units(self.engine)
            return self.engine
        copy = self.folder / f"{self.number}.sqlite"
        shutil.copy(self.template, copy)
        return open_engine(f"sqlite:///{copy}")

    def run(self, engine: sa.Engine) -> Any:
        stage = self.stage
        return fetch_all(
            stage.sites(), lambda fetcher: stage.run(engine, fetcher, self.pool, self.folder)
        )

    def neighbours(self, engine: sa.Engine) -> list[dict[str, Any]]:
        """Return the rows of the good units, and of their articles."""
        tables = {self.stage.table, RAW}
        found = [row._asdict() for table in tables for row in rows(engine, table)]
        good = [row for row in found if not any(v in row["feed_url"] for v in VICTIMS)]
        if self.stage.table is RAW:  # the feed of all articles is the same
            good = [row for row in good if not any(v in row["article_url"] for v in VICTIMS)]
        kept = [{k: v for k, v in row.items() if k not in _COUNTERS} for row in good]
        return sorted(kept, key=repr)


@pytest.fixture
def bench(
    request: pytest.FixtureRequest, parse_pool: Pool, extract_pool: Pool, tmp_path: Path
) -> Iterator[Bench]:
    name, database = request.param
    url = request.getfixturevalue("postgres_url") if database == "postgres" else None
    made = Bench(STAGES[name], extract_pool if name == "work" else parse_pool, tmp_path, url)
    yield made
    made.engine.dispose()


def outcomes(bench: Bench) -> Run:
    """Return a run of the stage over a new ledger."""
    engine = bench.fresh()

    def run() -> StageResult:
        report = bench.run(engine)
        found = StageResult(bench.neighbours(engine), report.outcomes)
        assert len(found.neighbours) >= len(GOOD)
        if not bench.is_postgres:
            engine.dispose()
        return found

    return run


@pytest.mark.soak
@pytest.mark.parametrize(
    "bench", [(stage, "sqlite") for stage in STAGES], indirect=True, ids="-".join
)
@pytest.mark.parametrize("victim", VICTIMS)
def test_an_exception_at_every_step_of_a_unit_leaves_its_neighbours_as_they_are(
    bench: Bench, victim: str, caplog: pytest.LogCaptureFixture
) -> None:
    fail_at_steps(partial(outcomes, bench), Victim(victim, GOOD), caplog)


@pytest.mark.parametrize(
    "bench",
    [*((stage, "sqlite") for stage in STAGES), ("poll", "postgres")],
    indirect=True,
    ids="-".join,
)
def test_an_exception_at_some_step_of_a_unit_leaves_its_neighbours_as_they_are(
    bench: Bench, caplog: pytest.LogCaptureFixture
) -> None:
    fail_at_steps(partial(outcomes, bench), Victim(VICTIMS[0], GOOD), caplog, most=3)


OURS: tuple[Callable[[], BaseException], ...] = (
    lambda: StorageError("the root is gone"),
    lambda: sa.exc.OperationalError("update", {}, Exception("server closed")),
    MemoryError,
)


@pytest.mark.parametrize(
    "bench", [("work", "sqlite"), ("poll", "sqlite")], indirect=True, ids="-".join
)
def test_a_failure_of_ours_ends_the_batch_and_every_unit_can_be_claimed_again(
    bench: Bench,
) -> None:
    victim = VICTIMS[0]
    steps, undisturbed = all_steps(partial(outcomes, bench), Victim(victim, GOOD))
    for error, step in zip(OURS, random.Random(5).sample(steps, len(OURS)), strict=True):
        engine = bench.fresh()
        clear_caches()
        with failing_step(Victim(victim, GOOD), step, error, once=True) as seen:
            try:
                bench.run(engine)
            except type(error()):
                assert seen
            else:
                continue  # a step that a fetch turns into a failed request
        table = bench.stage.table
        bad = ("error", "dead", "gone")
        assert [row for row in rows(engine, table) if row.status in bad] == [], step
        assert all(row.errors_in_row == 0 for row in rows(engine, FEEDS)), step
        assert all(row.retries == 0 for row in rows(engine, RAW) if victim in row.article_url)
        with engine.begin() as connection:  # the leases end
            connection.execute(sa.update(FEEDS).values(next_poll_at=None, claimed_until=None))
            connection.execute(
                sa.update(RAW).where(RAW.c.status == "processing").values(status="pending")
            )
        bench.run(engine)
        assert bench.neighbours(engine) == undisturbed.neighbours, step
        engine.dispose()
