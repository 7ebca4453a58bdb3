"""Takedowns over the whole graph: interrupted, proved, and equal to never having collected.

The soak serves 500 requests in ten parts, each on a root of its own. A part that has passed is not
repeated if TAKEDOWN_SOAK_FOLDER names a folder for the record.
"""

import os
import random
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from news_platform.datasets.takedowns import ALIASES, REQUESTS
from news_platform.domain_store.lookup import DomainStore
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.requests import add_request
from news_platform_tests.emulators.s3 import new_bucket, s3_process
from news_platform_tests.servers.demo import Demo
from news_platform_tests.takedowns.contents import contents, drawn_requests
from news_platform_tests.takedowns.sample_root import SampleRoot, kill_after

DAYS = "2025-11-01..2025-11-03"
REQUESTS_PER_PART = 50
LOCAL_PARTS, S3_PARTS = range(7), range(7, 10)
COLLECT_AGAIN = ("ccnews", "collect", "--days", DAYS, "--again")
# A version that is newer than any.
NEW_EXTRACTOR = ("ccnews", "collect", "--older-than", "99")


def _differing(root: SampleRoot, other: SampleRoot) -> list[str]:
    with root.opened() as one, other.opened() as two:
        ours, theirs = contents(one), contents(two)
    return [
        f"{name}: {_first_difference(ours[name], theirs[name])}"
        for name in ours
        if ours[name] != theirs[name]
    ]


def _first_difference(ours: Any, theirs: Any) -> str:
    one, two = (list(held.items() if isinstance(held, dict) else held) for held in (ours, theirs))
    extra = [f"only here {item!r:.300}" for item in one if item not in two]
    missing = [f"only there {item!r:.300}" for item in two if item not in one]
    return "; ".join((*extra[:1], *missing[:1])) or f"{len(one)} instead of {len(two)}"


def test_requests_survive_kills_and_leave_nothing(finished_demo: Demo, tmp_path: Path) -> None:
    """A short, seeded version of the soak below."""
    root = SampleRoot.in_folder(finished_demo.copy(tmp_path / "copy").root)
    with root.opened() as resources:
        for request in drawn_requests(resources, 6, seed=21):
            add_request(root.store, request)
    kill_after(root.start("takedown", "apply"), random.Random(21).uniform(2, 5))
    root.apply()
    found = root.verified()
    assert found.findings == () and found.files > 500 and found.rows > 1_000
    with root.opened() as resources:
        before = contents(resources)
    # A day that is collected, staged and built again brings nothing back.
    root.run("ccnews", "collect", "--days", "2025-11-02", "--again")
    root.run("store", "build")
    with root.opened() as resources:
        after = contents(resources)
    assert [name for name in before if after[name] != before[name]] == []


@pytest.fixture
def part_record(request: pytest.FixtureRequest) -> Iterator[None]:
    """Skip a part that has passed before, and record one that passes now."""
    folder = os.environ.get("TAKEDOWN_SOAK_FOLDER")
    record = Path(folder) / f"takedowns-{request.node.callspec.id}" if folder else None
    if record is not None and record.exists():
        pytest.skip("this part has passed before")
    failed = request.session.testsfailed
    yield
    if record is not None and request.session.testsfailed == failed:
        record.touch()


@pytest.mark.soak
@pytest.mark.parametrize("part", LOCAL_PARTS)
@pytest.mark.usefixtures("part_record")
def test_500_requests_in_a_folder(finished_demo: Demo, tmp_path: Path, part: int) -> None:
    root = SampleRoot.in_folder(finished_demo.copy(tmp_path / "copy").root)
    _serve_under_fire(root, seed=part)
    _collect_everything_again(root)
    # A copy elsewhere takes its requests along.
    elsewhere = root.copy(tmp_path / "elsewhere")
    elsewhere.run("demo")
    assert elsewhere.verified().findings == ()
    assert _differing(root, _root_that_had_them_first(root, tmp_path)) == []


@pytest.mark.soak
@pytest.mark.parametrize("part", S3_PARTS)
@pytest.mark.usefixtures("part_record")
def test_500_requests_in_a_bucket(finished_demo: Demo, tmp_path: Path, part: int) -> None:
    with s3_process() as server:
        root = SampleRoot.in_bucket(server, new_bucket(server), folder=tmp_path)
        root.upload(finished_demo.root)
        _serve_under_fire(root, seed=part)
        _collect_everything_again(root)
        assert _differing(root, _root_that_had_them_first(root, tmp_path)) == []


def _serve_under_fire(root: SampleRoot, *, seed: int) -> None:
    """Serve requests in rounds, with kills, readers, collectors and rebuilds beside them."""
    draw = random.Random(seed)
    with root.opened() as resources:
        requests = drawn_requests(resources, REQUESTS_PER_PART, seed=seed)
    usual = _seconds_of_apply(root)
    stop = threading.Event()
    reader = threading.Thread(target=_read_on, args=(root.store, stop))
    reader.start()
    others: list[subprocess.Popen[bytes]] = []
    try:
        while requests:
            for _ in range(min(draw.randint(1, 15), len(requests))):
                add_request(root.store, requests.pop())
            if draw.random() < 0.5:
                again = draw.choice([COLLECT_AGAIN, ("store", "build"), ("rss", "poll"), ("demo",)])
                others.append(root.start(*again))
            kill_after(root.start("takedown", "apply"), draw.uniform(0.5, 4) * usual)
            if others and draw.random() < 0.5:
                kill_after(others.pop(), draw.uniform(0, 2) * usual)
        for process in others:
            process.wait()
    finally:
        stop.set()
        reader.join()
    root.apply()
    # Collectors that began before a request may have ended after its removal.
    root.start("takedown", "apply", "--all").wait()
    assert root.verified().findings == ()


def _seconds_of_apply(root: SampleRoot) -> float:
    """Return how long an apply without work takes here: kills come before and after its start."""
    started = time.monotonic()
    root.run("takedown", "apply")
    return time.monotonic() - started


def _collect_everything_again(root: SampleRoot) -> None:
    """Finish what was interrupted, then collect and build all of it once more."""
    root.run(*NEW_EXTRACTOR)
    for words in (("store", "build"), ("rss", "poll"), ("rss", "work", "--worker-id", "soak")):
        root.run(*words)
    root.run("demo")
    assert root.verified().findings == ()


def _root_that_had_them_first(root: SampleRoot, folder: Path) -> SampleRoot:
    """Build another root that has the requests from its beginning.

    It also has the redirects that were found: nobody follows one whose address is taken down.
    """
    first = SampleRoot.in_folder(folder / "first" / "data-demo")
    for info in (*root.store.list(REQUESTS), *root.store.list(ALIASES)):
        path = Path(first.url) / info.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(root.store.read(info.path))
    first.run("demo")
    return first


def _read_on(store: ObjectStore, stop: threading.Event) -> None:
    """Look records up all the time; a file that is gone is an error that names it."""
    while not stop.wait(0.05):
        try:
            reader = DomainStore(store)
            for domain in sorted(reader.domains())[:5]:
                list(reader.records(domain))
        except StorageError as error:
            assert store.url in str(error) or "domain_store" in str(error)
