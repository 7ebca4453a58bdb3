"""Sixteen worker processes on one ledger, some killed: no article is lost or stored twice."""

import asyncio
import random
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.rss.ledger.article_queue import WorkOptions, claim_articles, renew_claims
from news_platform.rss.ledger.tables import ARTICLES_INDEX, RAW
from news_platform.rss.ledger.transactions import retry_deadlocks
from news_platform.storage.sql.engine import migrate, open_engine, read_transaction
from news_platform_tests.rss import claiming
from news_platform_tests.rss.claiming import LEASE_SECONDS
from news_platform_tests.rss.stages import FORKS, NOW, SITE, WorkerHarness, add_pending, rows
from news_platform_tests.rss.web import page
from news_platform_tests.web.site import body

WORKERS = 16


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a worker's log."""

    what: str
    row_id: int
    attempt: int
    seconds: float
    worker: str


def test_sixteen_workers_share_the_work_and_survive_kills(
    ledger: sa.Engine, ledger_url: str, tmp_path: Path
) -> None:
    _run(ledger, ledger_url, tmp_path, articles=120, kills=3, seed=1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(3))
def test_sixteen_workers_survive_many_kills(
    ledger: sa.Engine, ledger_url: str, tmp_path: Path, seed: int
) -> None:
    _run(ledger, ledger_url, tmp_path, articles=2_000, kills=40, seed=seed)


def test_renewals_and_polls_do_not_wait_for_each_other(postgres_url: str) -> None:
    """On PostgreSQL both change the same rows; in another order they would end in a deadlock."""
    engine = open_engine(postgres_url)
    migrate(engine)
    urls = [f"https://post.example/{number}" for number in range(60)]
    add_pending(engine, *urls)
    claims = claim_articles(engine, "w", limit=60, lease_seconds=600, now=NOW)
    end, draw = time.monotonic() + 2, random.Random(1)

    def renew() -> None:
        while time.monotonic() < end:
            renew_claims(engine, draw.sample(claims, len(claims)), now=NOW)

    def poll() -> None:
        while time.monotonic() < end:
            add_pending(engine, *draw.sample(urls, len(urls)))

    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(renew), threads.submit(poll)]:
            done.result(timeout=60)
    engine.dispose()


def test_a_transaction_that_lost_a_deadlock_is_run_again(
    postgres_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = open_engine(postgres_url)
    migrate(engine)
    add_pending(engine, "https://post.example/1", "https://post.example/2")
    both_hold_one = threading.Barrier(2)

    def crossing(*order: int) -> None:
        with engine.begin() as connection:
            for position, row_id in enumerate(order):
                connection.execute(
                    sa.update(RAW).where(RAW.c.row_id == row_id).values(retries=RAW.c.retries + 1)
                )
                with suppress(threading.BrokenBarrierError):
                    if position == 0:
                        both_hold_one.wait(timeout=5)
        both_hold_one.abort()

    with ThreadPoolExecutor(2) as threads:
        work = [partial(crossing, 1, 2), partial(crossing, 2, 1)]
        for done in [threads.submit(retry_deadlocks, one) for one in work]:
            done.result(timeout=60)
    assert [row.retries for row in rows(engine)] == [2, 2]
    assert "tried again" in caplog.text
    engine.dispose()


def test_a_renewal_that_fails_is_told_and_tried_again(
    sqlite_harness: WorkerHarness, caplog: pytest.LogCaptureFixture
) -> None:
    engine = sqlite_harness.engine
    failed: list[str] = []
    add_pending(engine, f"{SITE}/slow")

    @sa.event.listens_for(engine, "before_cursor_execute")
    def fail_once(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("UPDATE raw SET lock_at") and not failed:
            failed.append(statement)
            raise sa.exc.OperationalError(statement, None, OSError("the server is restarting"))

    async def slow_page(writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(1.2)
        await body(page("slow"), Content_Type="text/html")(writer)

    started = datetime.now(UTC)
    sqlite_harness.clock = lambda: datetime.now(UTC)
    options = WorkOptions(lease_seconds=1)
    report, _ = sqlite_harness.work_site({"post.example/slow": slow_page}, options=options)
    assert report.outcomes == {"stored": 1}
    assert failed and "cannot renew 1 leases" in caplog.text
    assert datetime.now(UTC) - started > timedelta(seconds=1)


def _run(
    engine: sa.Engine, url: str, folder: Path, *, articles: int, kills: int, seed: int
) -> None:
    add_pending(engine, *(f"https://post.example/{n}" for n in range(articles)))
    with _workers(url, folder) as workers:
        killed = _kill_some(workers, folder, kills=kills, draw=random.Random(seed))
        workers.wait()
    steps = _steps(folder)
    assert killed == kills, "the work was over before the killing was"
    _assert_nothing_lost(engine, articles)
    _assert_claims_are_exclusive(steps)


class WorkerProcesses:
    """Worker processes; a killed one is replaced, as by a supervisor."""

    def __init__(self, url: str, folder: Path) -> None:
        self.url, self.folder = url, folder
        self.started = 0
        self.running: list[ForkServerProcess] = []

    def start(self) -> None:
        """Start one more worker."""
        name = f"w{self.started}"
        self.started += 1
        arguments = (self.url, name, self.folder / f"{name}.log", 0.05)
        worker = FORKS.Process(target=claiming.main, args=arguments, name=name)
        worker.start()
        self.running.append(worker)

    def kill(self, position: int) -> bool:
        """Kill a worker with -9 and start another; return whether it was still running."""
        victim = self.running.pop(position)
        victim.kill()
        victim.join()
        self.start()
        return victim.exitcode == -signal.SIGKILL

    def wait(self) -> None:
        """Wait until all workers have ended."""
        for worker in self.running:
            worker.join(timeout=240)
            assert worker.exitcode == 0


@contextmanager
def _workers(url: str, folder: Path) -> Iterator[WorkerProcesses]:
    workers = WorkerProcesses(url, folder)
    try:
        for _ in range(WORKERS):
            workers.start()
        yield workers
    finally:
        for worker in workers.running:
            worker.kill()
            worker.join()


def _kill_some(workers: WorkerProcesses, folder: Path, *, kills: int, draw: random.Random) -> int:
    """Kill workers that have claimed something, one after the other."""
    killed = 0
    deadline = time.monotonic() + 120
    while killed < kills and time.monotonic() < deadline:
        time.sleep(draw.uniform(0.02, 0.1))
        busy = [
            position
            for position, worker in enumerate(workers.running)
            if worker.is_alive() and _has_claimed(folder / f"{worker.name}.log")
        ]
        if busy:
            killed += workers.kill(draw.choice(busy))
    return killed


def _has_claimed(log: Path) -> bool:
    return log.is_file() and log.stat().st_size > 0


def _steps(folder: Path) -> list[Step]:
    found = []
    for log in folder.glob("w*.log"):
        for line in log.read_text().splitlines():
            parts = line.split()
            if len(parts) == 4:  # the last line of a killed worker may be cut
                found.append(
                    Step(parts[0], int(parts[1]), int(parts[2]), float(parts[3]), log.stem)
                )
    return found


def _assert_nothing_lost(engine: sa.Engine, articles: int) -> None:
    with read_transaction(engine) as connection:
        statuses = Counter(connection.execute(sa.select(RAW.c.status)).scalars())
        hashes = Counter(connection.execute(sa.select(RAW.c.url_hash)).scalars())
        indexed = connection.execute(sa.select(ARTICLES_INDEX.c.row_id_raw)).scalars().all()
    assert statuses == {"stored": articles}
    assert set(hashes.values()) == {1}
    assert len(set(indexed)) == len(indexed) == articles


def _assert_claims_are_exclusive(steps: list[Step]) -> None:
    claims = [step for step in steps if step.what == "claim"]
    assert max(Counter((step.row_id, step.attempt) for step in claims).values()) == 1
    stored = Counter(step.row_id for step in steps if step.what == "stored")
    assert set(stored.values()) == {1}, "an article was stored twice"
    by_row: dict[int, list[Step]] = {}
    for step in claims:
        by_row.setdefault(step.row_id, []).append(step)
    for taken in by_row.values():
        ordered = sorted(taken, key=lambda step: step.attempt)
        for before, after in pairwise(ordered):
            assert after.seconds - before.seconds > LEASE_SECONDS - 0.01, "taken before its time"
