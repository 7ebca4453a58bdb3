"""A survey with hostile hosts, under kill -9, and by several programs: nothing is lost or torn."""

import asyncio
import json
import random
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from news_platform.datasets.domain_metadata import DomainMetadata, domain_folder
from news_platform.datasets.research_datasets import DomainQueueMessage
from news_platform.domain_metadata.consumer import SurveyContext, SurveyReport
from news_platform.domain_metadata.pipeline import queue_batch, survey_batch
from news_platform.domain_metadata.queue import AcceptedFile, DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.results import iter_broken, read_domain_files, read_metadata
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.fetch import WebFetcher
from news_platform_tests.domain_metadata.attacks import gzip_of
from news_platform_tests.domain_metadata.hostile_web import BATCH, OPTIONS, WEB
from news_platform_tests.web.site import (
    Answer,
    after,
    body,
    closing,
    dripping,
    endless,
    redirect,
    serve_in_thread,
)

ROBOTS = b"user-agent: *\ndisallow: /private\n"
SITEMAP = b"<urlset><url><loc>https://a.example/1</loc></url></urlset>"
GOOD: dict[str, Answer] = {"/robots.txt": body(ROBOTS), "/sitemap.xml": body(SITEMAP)}
MIB = 1024 * 1024

HOSTILE: dict[str, dict[str, Answer]] = {
    "loris.example": {"/robots.txt": dripping(0.1)},
    "endless.example": {"/robots.txt": endless()},
    "bomb.example": {"/robots.txt": body(gzip_of(b"#", 1024 * MIB), Content_Encoding="gzip")},
    "bombmap.example": {"/sitemap.xml": body(gzip_of(b" ", 1024 * MIB))},
    "loop.example": {"/robots.txt": redirect("/a"), "/a": redirect("/robots.txt")},
    "inward.example": {"/robots.txt": redirect("http://127.0.0.1/robots.txt")},
    "metadata.example": {"/robots.txt": redirect("http://169.254.169.254/latest/")},
    "html.example": {"/robots.txt": body(b"<!DOCTYPE html><html><body>hello</body></html>")},
    "big.example": {"/robots.txt": body(b"# a long comment\n" * 650_000)},
    "latin.example": {"/robots.txt": body(b"user-agent: *\ndisallow: /caf\xe9\n\xff\xfe")},
    "hangup.example": {"/robots.txt": closing(b"")},
    "noise.example": {"/robots.txt": closing(b"\x00\x01 this is not HTTP at all\r\n\r\n")},
    "half.example": {"/robots.txt": closing(b"HTTP/1.1 200 x\r\nContent-Length: 99\r\n\r\nhalf")},
}
EXPECTED = {
    "loris.example": "timeout",
    "endless.example": "ok",
    "bomb.example": "ok",
    "bombmap.example": "ok",
    "loop.example": "too_many_redirects",
    "inward.example": "blocked_address",
    "metadata.example": "blocked_address",
    "html.example": "ok",
    "big.example": "ok",
    "latin.example": "ok",
    "hangup.example": "reset",
    "noise.example": "protocol",
    "half.example": "incomplete",
    "10.0.0.1": "blocked_address",
    "private.test": "blocked_address",
    "missing.test": "nxdomain",
    "flaky.test": "dns",
}
PROGRAM = [sys.executable, "-m", "news_platform_tests.domain_metadata.hostile_web"]
FINAL = {"ok", "no_robots", "nxdomain"}


def lookup(host: str) -> Sequence[str]:
    """Resolve three names, all of them to bad results."""
    if host == "private.test":
        return ["192.168.1.1", "fd00::1"]
    reason = socket.EAI_NONAME if host == "missing.test" else socket.EAI_AGAIN
    raise socket.gaierror(reason, "not found")


def queue_domains(root: Path, domains: Sequence[str]) -> DomainQueue:
    """Queue domains from a research file, as usual."""
    store = open_store(str(root))
    engine = open_engine(f"sqlite:///{root / 'ledger.sqlite'}")
    migrate(engine)
    queue = DomainQueue(engine)
    records = [{"normalized_domain": domain, "source_type": "media"} for domain in domains]
    import_file(store, BATCH, name="x", body=json.dumps({"records": records}).encode())
    queue_batch(BATCH, store=store, queue=queue, now=datetime.now(UTC))
    return queue


def survey(queue: DomainQueue, store: ObjectStore, hosts: Sequence[str], port: int) -> SurveyReport:
    places = dict.fromkeys(hosts, ("127.0.0.1", port))

    async def go() -> SurveyReport:
        async with WebFetcher(replace(WEB, host_map=places), lookup=lookup) as fetcher:
            context = SurveyContext(
                queue, store, fetcher, lambda: datetime.now(UTC), time.time, "w"
            )
            return await survey_batch(BATCH, context=context, options=OPTIONS)

    return asyncio.run(go())


def answers_of(sites: Mapping[str, Mapping[str, Answer]]) -> dict[str, Answer]:
    named = {f"{host}{path}": one for host, site in sites.items() for path, one in site.items()}
    return GOOD | named


def test_every_hostile_host_gets_its_outcome_and_the_good_ones_finish(tmp_path: Path) -> None:
    survey_among_hostile_hosts(tmp_path, 100)


@pytest.mark.soak
def test_every_hostile_host_gets_its_outcome_and_a_thousand_good_ones_finish(
    tmp_path: Path,
) -> None:
    survey_among_hostile_hosts(tmp_path, 1000)


def survey_among_hostile_hosts(tmp_path: Path, count: int) -> None:
    good = [f"good{number}.example" for number in range(count)]
    others = list(EXPECTED)
    queue = queue_domains(tmp_path, [*others, *good])
    store = open_store(str(tmp_path))
    with serve_in_thread(answers_of(HOSTILE)) as site:
        report = survey(queue, store, [*good, *HOSTILE], site.port)
    found = {domain: facts(store, domain) for domain in others}
    assert {domain: one.outcome for domain, one in found.items()} == EXPECTED
    assert report.outcomes["ok"] == count + sum(word == "ok" for word in EXPECTED.values())
    stored = read_domain_files(store, BATCH)
    for domain, one in found.items():
        assert one.final is (one.outcome in FINAL)
        assert ("domain_metadata.json.success" in stored[domain]) is one.final
    assert all("domain_metadata.json.success" in stored[domain] for domain in good)
    assert list(iter_broken(store, BATCH)) == []
    assert found["endless.example"].robots.truncated and found["big.example"].robots.truncated
    assert found["big.example"].robots.content_length == 500 * 1024
    assert found["html.example"].robots.is_html
    assert found["bombmap.example"].sitemap.problems == ["too_large"]
    assert all(most <= WEB.per_host for most in site.most_open.values())


def facts(store: ObjectStore, domain: str) -> DomainMetadata:
    found = read_metadata(store, BATCH, domain)
    assert found is not None, domain
    return found


ODD = [
    "../../evil",
    "/etc/passwd",
    "..",
    ".",
    "a/../../b",
    "a\\b",
    "A B|c",
    "ü" * 40,
    "x\ny",
    "%2e%2e",
]


def test_odd_domain_names_never_leave_prod(tmp_path: Path) -> None:
    queue = queue_domains(tmp_path, ["good.example"])
    store = open_store(str(tmp_path))
    messages = [
        DomainQueueMessage(
            domain_id=name,
            domain_url=f"https://{name}/",
            registrable_domain=name,
            authority="x",
            partition_info=BATCH,
        )
        for name in ODD
    ]
    file = AcceptedFile("raw/odd", BATCH.key, "0" * 64, len(ODD), len(ODD), 0)
    queue.accept(file, messages, at=0.0)
    before = set(tmp_path.rglob("*"))
    with serve_in_thread(GOOD) as site:
        report = survey(queue, store, ["good.example"], site.port)
    assert sum(report.outcomes.values()) == len(ODD) + 1 and report.outcomes["ok"] == 1
    made = {path for path in tmp_path.rglob("*") if path.is_file()} - before
    outside = {path.relative_to(tmp_path).parts[0] for path in made} - {"prod", "markers"}
    assert outside <= {"ledger.sqlite", "ledger.sqlite-wal", "ledger.sqlite-shm", ".incoming"}
    assert not (tmp_path.parent / "evil").exists()
    for name in ODD:
        folder = domain_folder(BATCH, name).rpartition("/")[2]
        assert folder not in ("", ".", "..") and "/" not in folder


def kill_at_random_moments(tmp_path: Path, *, kills: int, domains: int, seed: int) -> None:
    """Start and kill a survey repeatedly; then let one finish and check the stored files."""
    dice = random.Random(seed)
    names = [f"site{number}.example" for number in range(domains)]
    queue = queue_domains(tmp_path, names)
    slow = {path: after(0.02, one) for path, one in GOOD.items()}
    with serve_in_thread(slow) as site:
        # A short lease, so that what a killed survey held is soon free.
        command = [*PROGRAM, str(tmp_path), str(site.port), "1.5"]
        for _ in range(kills):
            seen = len(site.requests)
            with subprocess.Popen(command) as child:
                while len(site.requests) == seen and child.poll() is None:
                    time.sleep(0.01)
                time.sleep(dice.uniform(0, 0.4))
                child.kill()
        subprocess.run(command, check=True, timeout=120)
    store = open_store(str(tmp_path))
    assert queue.outcomes(BATCH.key) == {"ok": domains}
    assert queue.states()[BATCH.key] == {"done": domains}
    complete = frozenset(
        ("domain_metadata.json", "domain_metadata.json.success", "robots.txt", "sitemap.xml")
    )
    assert read_domain_files(store, BATCH) == dict.fromkeys(names, complete)
    assert list(iter_broken(store, BATCH)) == []


def test_a_survey_killed_twice_leaves_one_complete_result_a_domain(tmp_path: Path) -> None:
    kill_at_random_moments(tmp_path, kills=2, domains=60, seed=11)


@pytest.mark.soak
def test_a_survey_killed_twenty_times_leaves_one_complete_result_a_domain(tmp_path: Path) -> None:
    kill_at_random_moments(tmp_path, kills=20, domains=400, seed=12)


def test_two_programs_on_one_queue_ask_no_domain_twice(tmp_path: Path) -> None:
    names = [f"site{number}.example" for number in range(150)]
    queue = queue_domains(tmp_path, names)
    slow = {path: after(0.01, one) for path, one in GOOD.items()}
    with serve_in_thread(slow) as site:
        command = [*PROGRAM, str(tmp_path), str(site.port), "60"]
        children = [subprocess.Popen(command) for _ in range(2)]
        assert [child.wait(timeout=120) for child in children] == [0, 0]
        asked = sorted(host for host, path in site.requests if path == "/robots.txt")
    assert asked == sorted(names)
    assert queue.outcomes(BATCH.key) == {"ok": 150}
    assert list(iter_broken(open_store(str(tmp_path)), BATCH)) == []
