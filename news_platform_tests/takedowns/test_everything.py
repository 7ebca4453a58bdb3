"""Takedowns over the whole graph: interrupted, proved, and equal to never having collected."""

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from news_platform.domain_store.reading.lookup import DomainStore
from news_platform.errors import StorageError
from news_platform.sample.resources import SampleResources
from news_platform.settings import load_settings
from news_platform.storage.objects.store import open_store
from news_platform.takedown_parts import apply_root, has_work, verify_root
from news_platform.takedowns.evidence import VerifiedRoot
from news_platform.takedowns.requests import add_request
from news_platform_tests.servers.demo import Demo
from news_platform_tests.takedowns.contents import contents, drawn_requests

DAYS = "2025-11-01..2025-11-03"


def _resources(root: Path) -> SampleResources:
    environ = {"NEWS_PLATFORM_ROOT": str(root), "NEWS_PLATFORM_SAMPLE": "1"}
    return SampleResources(load_settings(environ), frozen_clock=True)


def _start(root: Path, *words: str) -> "subprocess.Popen[bytes]":
    environ = {
        key: value for key, value in os.environ.items() if not key.startswith("DAGSTER_HOME")
    }
    return subprocess.Popen(
        [sys.executable, "-m", "news_platform.cli", *words, "--root", str(root)],
        env={**environ, "NEWS_PLATFORM_SAMPLE": "1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _kill_after(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()


def _apply(root: Path) -> None:
    resources = _resources(root)
    report = apply_root(resources)
    resources.ledger.close()
    assert report.left == {}


def _verified(root: Path) -> VerifiedRoot:
    resources = _resources(root)
    assert not has_work(resources)
    found = verify_root(resources)
    resources.ledger.close()
    return found


def test_requests_survive_kills_and_leave_nothing(finished_demo: Demo, tmp_path: Path) -> None:
    """A short, seeded version of the soak below."""
    root = finished_demo.copy(tmp_path / "copy").root
    store, draw = open_store(str(root)), random.Random(21)
    for request in drawn_requests(root, 6, seed=21):
        add_request(store, request)
    _kill_after(_start(root, "takedown", "apply"), draw.uniform(2, 5))
    _apply(root)
    found = _verified(root)
    assert found.findings == () and found.files > 500 and found.rows > 1_000
    before = contents(root)
    # A day that is collected, staged and built again brings nothing back.
    for words in (("ccnews", "collect", "--days", "2025-11-02", "--again"), ("store", "build")):
        assert _start(root, *words).wait() == 0
    after = contents(root)
    assert {name: after[name] == before[name] for name in before} == dict.fromkeys(before, True)


@pytest.mark.soak
def test_500_requests_with_kills_readers_collectors_and_rebuilds(
    finished_demo: Demo, tmp_path: Path
) -> None:
    root = finished_demo.copy(tmp_path / "copy").root
    store, draw = open_store(str(root)), random.Random(500)
    requests = drawn_requests(root, 500, seed=500)
    stop = threading.Event()
    reader = threading.Thread(target=_read_on, args=(root, stop))
    reader.start()
    others: list[subprocess.Popen[bytes]] = []
    while requests:
        for _ in range(min(draw.randint(1, 25), len(requests))):
            add_request(store, requests.pop())
        if draw.random() < 0.5:
            again = ("ccnews", "collect", "--days", DAYS, "--again")
            others.append(_start(root, *draw.choice([again, ("store", "build")])))
        _kill_after(_start(root, "takedown", "apply"), draw.uniform(1, 20))
        if others and draw.random() < 0.5:
            _kill_after(others.pop(), draw.uniform(0, 10))
    for process in others:
        process.wait()
    stop.set()
    reader.join()
    _apply(root)
    _start(root, "takedown", "apply", "--all").wait()
    assert _verified(root).findings == ()
    # A copy elsewhere takes its requests along.
    shutil.copytree(root, tmp_path / "elsewhere")
    assert _start(tmp_path / "elsewhere", "demo").wait() == 0
    assert _verified(tmp_path / "elsewhere").findings == ()
    first = tmp_path / "first" / "data-demo"
    shutil.copytree(root / "takedowns" / "requests", first / "takedowns" / "requests")
    assert _start(first, "demo").wait() == 0
    # What the interrupted builds left unfinished, and the articles queued again.
    for words in (
        ("ccnews", "collect", "--days", DAYS),
        ("store", "build"),
        ("rss", "work", "--worker-id", "soak"),
        ("rss", "export"),
        ("demo",),
    ):
        _start(root, *words).wait()
    ours, theirs = contents(root), contents(first)
    assert {name: ours[name] == theirs[name] for name in ours} == dict.fromkeys(ours, True)


def _read_on(root: Path, stop: threading.Event) -> None:
    """Look records up all the time; a file that is gone is an error that names it."""
    while not stop.wait(0.05):
        try:
            reader = DomainStore(open_store(str(root)))
            for domain in sorted(reader.domains())[:5]:
                list(reader.records(domain))
        except StorageError as error:
            assert str(root) in str(error) or "domain_store" in str(error)
