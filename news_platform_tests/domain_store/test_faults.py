"""Death at random points of build, compaction and deletion, with a reader looping beside."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from itertools import count
from threading import Event, Thread

import pytest

from news_platform.datasets.domain_store import ROOT
from news_platform.domain_store.building.verify import verify_bucket
from news_platform.domain_store.layout import STORE_FILE
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_buckets
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform_tests.domain_store.faults import (
    DOMAINS,
    OPTIONS,
    Crash,
    Days,
    DyingStore,
    Fuse,
    Step,
    after,
    expected_urls,
    found_urls,
    random_step,
)
from news_platform_tests.domain_store.pages import NOW, stage


class Watcher:
    """Reads all domains in a loop and notes whatever is neither the old nor the new state."""

    def __init__(self, store: ObjectStore, *, is_strict: bool = True) -> None:
        self._is_strict = is_strict
        self.allowed: tuple[Days, ...] = ({},)
        self.wrong: list[str] = []
        self.looks = 0
        self._store = store
        self._stop = Event()

    def loop(self) -> None:
        # It leaves most of a processor to the builder.
        while not self._stop.wait(0.01):
            for domain in DOMAINS:
                self._look(domain)

    def _look(self, domain: str) -> None:
        states = self.allowed
        try:
            found = found_urls(DomainStore(self._store), domain)
        except NotFound as error:
            # Before the first build there is no store; where time leaps, no grace period either.
            is_store_file = f"/{ROOT}/" in str(error.thing) and STORE_FILE not in str(error.thing)
            if self._is_strict and is_store_file:
                self.wrong.append(f"{domain}: {error}")
            return
        self.looks += 1
        if found not in [expected_urls(days, domain) for days in (*states, *self.allowed)]:
            self.wrong.append(f"{domain}: {found}")

    @contextmanager
    def watching(self) -> Iterator["Watcher"]:
        thread = Thread(target=self.loop)
        thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            thread.join()


def _deaths_until_done(store: ObjectStore, step: Step, rng: random.Random) -> int:
    """Run a step that dies at random points until it comes through; return how often it died."""
    for deaths in count():
        fuse = Fuse(rng.randrange(1, 40 << deaths), rng.random() < 0.5)
        try:
            step.run(DyingStore(store, fuse))
        except Crash:
            continue
        return deaths
    raise AssertionError("unreachable")


def _survive(store: ObjectStore, *, seed: int, deaths: int, leap_days: int = 0) -> Watcher:
    rng = random.Random(seed)
    days: Days = {}
    now, died = NOW, 0
    with Watcher(store, is_strict=not leap_days).watching() as watcher:
        while died < deaths:
            now += timedelta(days=rng.choice([0, 1, leap_days]))
            step = random_step(rng, now)
            watcher.allowed = (days, after(days, step))
            died += _deaths_until_done(store, step, rng)
            days = after(days, step)
            watcher.allowed = (days,)
            _expect(store, days)
    return watcher


def _expect(store: ObjectStore, days: Days) -> None:
    if store.find(STORE_FILE) is None:
        assert not days
        return
    reader = DomainStore(store)
    assert {d: found_urls(reader, d) for d in DOMAINS} == {
        d: expected_urls(days, d) for d in DOMAINS
    }
    for bucket in range(OPTIONS.buckets):
        assert verify_bucket(store, bucket).problems == ()


@pytest.mark.parametrize("leap_days", [0, 30])
def test_no_death_loses_doubles_or_half_shows_a_record(
    local_store: ObjectStore, leap_days: int
) -> None:
    watcher = _survive(local_store, seed=leap_days, deaths=3, leap_days=leap_days)
    assert watcher.wrong == []
    assert watcher.looks > 3


@pytest.mark.soak
@pytest.mark.parametrize("leap_days", [0, 30])
@pytest.mark.parametrize("seed", range(1000, 1010))
def test_eight_hundred_deaths_local(local_store: ObjectStore, seed: int, leap_days: int) -> None:
    watcher = _survive(local_store, seed=seed, deaths=40, leap_days=leap_days)
    assert watcher.wrong == []


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2000, 2004))
def test_a_hundred_deaths_s3(s3_store: ObjectStore, seed: int) -> None:
    watcher = _survive(s3_store, seed=seed, deaths=25)
    assert watcher.wrong == []


def _kill(store: ObjectStore, step: Step, fuse: Fuse, options: dict[str, object]) -> int:
    document = {
        "url": store.url,
        "options": options,
        "at": fuse.at,
        "is_after": fuse.is_after,
        "day": step.day,
        "hosts": step.hosts,
        "kind": step.kind,
        "now": step.now.isoformat(),
    }
    command = [sys.executable, "-m", "news_platform_tests.domain_store.killed"]
    return subprocess.run([*command, json.dumps(document)], check=False).returncode


def _survive_kills(store: ObjectStore, *, seed: int, points: int) -> None:
    rng = random.Random(seed)
    days: Days = {}
    killed = 0
    with Watcher(store).watching() as watcher:
        while killed < points:
            step = replace(random_step(rng, NOW), kind="build")
            watcher.allowed = (days, after(days, step))
            fuse = Fuse(rng.randrange(1, 50), rng.random() < 0.5)
            code = _kill(store, step, fuse, {})
            assert code in (0, -9)
            killed += code == -9
            step.run(store)
            days = after(days, step)
            watcher.allowed = (days,)
            _expect(store, days)
    assert watcher.wrong == []


def test_a_builder_killed_with_9_is_followed_by_a_clean_build(local_store: ObjectStore) -> None:
    _survive_kills(local_store, seed=5, points=1)


@pytest.mark.soak
def test_a_hundred_builders_killed_with_9(local_store: ObjectStore) -> None:
    _survive_kills(local_store, seed=6, points=100)


@pytest.mark.parametrize("kind", ["local_store", "s3_store"])
def test_two_writers_on_one_bucket_lose_no_update(
    kind: str, request: pytest.FixtureRequest
) -> None:
    store: ObjectStore = request.getfixturevalue(kind)
    stage(store, {"2025-11-01": ["org.a"]}, options=OPTIONS)

    def write(day: str) -> None:
        stage(store, {day: ["org.a", "org.b"]}, options=OPTIONS)
        build_buckets(range(2), store=store, options=OPTIONS, now=NOW)

    days = [f"2025-11-{number:02d}" for number in range(2, 6)]
    writers = [Thread(target=write, args=(day,)) for day in days]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    expected: Days = {"2025-11-01": ("org.a",), **dict.fromkeys(days, ("org.a", "org.b"))}
    _expect(store, expected)


def test_orphans_of_dead_writers_are_deleted_after_the_grace_period(
    local_store: ObjectStore,
) -> None:
    step = Step("2025-11-01", ("org.a",), "build", NOW)
    step.run(local_store)
    orphan = "domain_store/data/0/0/part-0123456789ab-000001.jsonl.gz"
    local_store.put(orphan, b"left behind")
    written_at = local_store.head(orphan).modified_at
    Step("", (), "sweep", written_at + OPTIONS.grace - timedelta(minutes=1)).run(local_store)
    assert local_store.exists(orphan)
    Step("", (), "sweep", written_at + OPTIONS.grace + timedelta(minutes=1)).run(local_store)
    assert not local_store.exists(orphan)
    _expect(local_store, {"2025-11-01": ("org.a",)})
