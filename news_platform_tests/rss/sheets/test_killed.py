"""Writers are killed while a third of all calls fail; no row is missing or duplicated."""

import random
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.rss.sheets.google import FENCE_KEY
from news_platform_tests.emulators.relay import Answer, Request, serve
from news_platform_tests.emulators.sheets.faults import Faults
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)
from news_platform_tests.rss.ledger_rows import add_articles, add_feed, change_article
from news_platform_tests.rss.sheets import sync_process
from news_platform_tests.rss.sheets.harness import differences

UNLIMITED = 1_000_000


@dataclass(slots=True)
class Trial:
    """One ledger, one emulator, and writers that are started and killed."""

    ledger_url: str
    emulator: SheetsEmulator
    endpoint: str
    key_file: Path
    max_rows: int
    writers: int = 0
    killed: int = 0

    def start(self) -> "subprocess.Popen[bytes]":
        """Start a writer in a process of its own."""
        module = "news_platform_tests.rss.sheets.sync_process"
        return subprocess.Popen([sys.executable, "-m", module, *self._arguments()])

    def write(self) -> None:
        """Write in this process."""
        sync_process.main(*self._arguments())

    def _arguments(self) -> tuple[str, str, str, str, str]:
        self.writers += 1
        owner = f"w{self.writers}"
        return self.ledger_url, self.endpoint, str(self.key_file), owner, str(self.max_rows)

    def kill_after(self, calls: int, *, delay_seconds: float) -> None:
        """Start a writer and kill it shortly after the emulator received this many more calls."""
        writer = self.start()
        until = self._calls() + calls
        while writer.poll() is None and self._calls() < until:
            time.sleep(0.001)
        time.sleep(delay_seconds)
        self.killed += writer.poll() is None
        writer.kill()
        writer.wait()

    def finish(self) -> None:
        self.write()
        self.emulator.flush()
        self.write()

    def _calls(self) -> int:
        return self.emulator.reads.used + self.emulator.writes.used


def run_trial(
    folder: Path, engine: sa.Engine, *, seed: int, rows: int, kills: int, max_rows: int
) -> SheetsEmulator:
    """Fill a ledger, kill writers at random times, then let one finish."""
    chance = random.Random(seed)
    add_feed(engine, "https://outlet.example/feed")
    ids = add_articles(engine, [{"title": f"=A {n} 😀"} for n in range(rows)])
    emulator = SheetsEmulator(
        faults=Faults(share=0.35, seed=seed),
        writes_per_minute=UNLIMITED,
        reads_per_minute=UNLIMITED,
    )
    with sheets_server(emulator) as url:
        key_file = folder / "key.json"
        key_file.write_text(service_account_key(url), encoding="utf-8")
        trial = Trial(str(engine.url), emulator, url, key_file, max_rows)
        for _ in range(kills):
            trial.kill_after(chance.randint(3, 40), delay_seconds=chance.random() / 20)
            change_article(engine, chance.choice(ids), title=f"Changed {chance.random()}")
        trial.finish()
        assert trial.killed >= kills / 2
    return emulator


def check(emulator: SheetsEmulator, engine: sa.Engine, *, rows: int) -> None:
    [book] = emulator.books.values()
    row_ids = [row[0] for row in book.titled("Raw").rows[1:] if row]
    assert len(row_ids) == len(set(row_ids)) == rows
    assert differences(engine, book) == {}
    assert {"after", "late"} <= set(emulator.faults.happened)


@dataclass(slots=True)
class Executioner:
    """A service in front of the emulator that kills the writer at its first batch."""

    emulator: SheetsEmulator
    moment: str
    writer: "subprocess.Popen[bytes] | None" = None
    late: Request | None = None

    def answer(self, request: Request) -> Answer:
        writer = self.writer
        if writer is None or FENCE_KEY.encode() not in request.body:
            return self.emulator.answer(request)
        self.writer = None
        if self.moment == "after the append":
            self.emulator.answer(request)
        elif self.moment == "while it is under way":
            self.late = request
        writer.kill()
        writer.wait()
        return Answer(0, {}, b"", 0, silent=True)


@pytest.mark.parametrize("moment", ["after the append", "while it is under way"])
def test_a_writer_killed_at_its_call_leaves_the_batch_to_the_next(
    tmp_path: Path, sqlite_ledger: sa.Engine, moment: str
) -> None:
    add_articles(sqlite_ledger, [{} for _ in range(30)])
    emulator = SheetsEmulator(writes_per_minute=UNLIMITED, reads_per_minute=UNLIMITED)
    before = Executioner(emulator, moment)
    with serve(before) as url:
        key_file = tmp_path / "key.json"
        key_file.write_text(service_account_key(url), encoding="utf-8")
        trial = Trial(str(sqlite_ledger.url), emulator, url, key_file, max_rows=20)
        before.writer = killed = trial.start()
        assert killed.wait() == -signal.SIGKILL
        change_article(sqlite_ledger, 1, title="Changed while nobody wrote")
        trial.write()
        if before.late:
            assert b"already exists" in emulator.answer(before.late).body
        trial.write()
    [book] = emulator.books.values()
    assert [row[0] for row in book.titled("Raw").rows] == ["row_id", *range(1, 31)]
    assert differences(sqlite_ledger, book) == {}


def test_two_writers_at_once_without_a_lease_write_every_row_once(
    tmp_path: Path, sqlite_ledger: sa.Engine
) -> None:
    add_articles(sqlite_ledger, [{} for _ in range(100)])
    emulator = SheetsEmulator(writes_per_minute=UNLIMITED, reads_per_minute=UNLIMITED)
    emulator.new_book("Desk")
    with sheets_server(emulator) as url:
        key_file = tmp_path / "key.json"
        key_file.write_text(service_account_key(url), encoding="utf-8")
        trial = Trial(str(sqlite_ledger.url), emulator, url, key_file, max_rows=15)
        writers = [trial.start() for _ in range(2)]
        assert [writer.wait() for writer in writers] == [0, 0]
    [book] = emulator.books.values()
    row_ids = [row[0] for row in book.titled("Raw").rows[1:]]
    assert len(row_ids) == len(set(row_ids)) == 100
    assert differences(sqlite_ledger, book) == {}


def test_killed_writers_leave_nothing_missing_and_nothing_doubled(
    tmp_path: Path, sqlite_ledger: sa.Engine
) -> None:
    emulator = run_trial(tmp_path, sqlite_ledger, seed=1, rows=150, kills=2, max_rows=15)
    check(emulator, sqlite_ledger, rows=150)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_20000_rows_survive_faults_and_kills(
    tmp_path: Path, sqlite_ledger: sa.Engine, seed: int
) -> None:
    emulator = run_trial(tmp_path, sqlite_ledger, seed=seed, rows=20_000, kills=20, max_rows=500)
    check(emulator, sqlite_ledger, rows=20_000)
