"""An exception at any step of one domain, research file or record leaves the others as they are."""

import json
import time
from collections.abc import Awaitable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyContext, SurveyOptions, SurveyReport
from news_platform.domain_metadata.pipeline import queue_batch, survey_batch
from news_platform.domain_metadata.queue import FILES, QUEUE, DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.fetch import WebFetcher
from news_platform_tests.domain_metadata.test_pipeline import NOW, research
from news_platform_tests.isolation.every_step import Run, StageResult, fail_at_steps
from news_platform_tests.isolation.injection import Step, Victim
from news_platform_tests.rss.stages import fetch_all
from news_platform_tests.web.site import Answer, body, redirect, status

GOOD = ("a.example", "b.example", "c.example")
# Victims on different ways through the code.
VICTIMS = ("plain-victim.example", "index-victim.example", "missing-victim.example")
OPTIONS = SurveyOptions(retry_seconds=0.01, max_tries=2, lease_seconds=30)
ROBOTS = b"User-agent: *\nCrawl-delay: 0.01\nDisallow: /private\nUser-agent: GPTBot\nDisallow: /\n"


def urlset(host: str) -> bytes:
    return f"<urlset><url><loc>https://{host}/1</loc></url></urlset>".encode()


def sites() -> dict[str, Answer]:
    """Return the sites: robots.txt with rules for AI bots, a sitemap, an index, nothing."""
    found = {}
    for host in (*GOOD, *VICTIMS):
        found[f"{host}/robots.txt"] = body(ROBOTS)
        found[f"{host}/sitemap.xml"] = body(urlset(host), Content_Type="application/xml")
    host = "index-victim.example"
    index = f"<sitemapindex><sitemap><loc>https://{host}/s1.xml</loc></sitemap></sitemapindex>"
    found[f"{host}/robots.txt"] = redirect("/moved.txt", 301)
    found[f"{host}/moved.txt"] = body(ROBOTS + f"Sitemap: https://{host}/index.xml\n".encode())
    found[f"{host}/index.xml"] = body(index.encode())
    found[f"{host}/s1.xml"] = body(urlset(host))
    found["missing-victim.example/robots.txt"] = status(503, Retry_After="1")
    found["missing-victim.example/sitemap.xml"] = status(404)
    return found


@contextmanager
def open_queue(url: str) -> Iterator[DomainQueue]:
    engine = open_engine(url)
    yield DomainQueue(engine)
    engine.dispose()


@contextmanager
def new_queue(url: str) -> Iterator[DomainQueue]:
    """Open a queue without messages."""
    engine = open_engine(url)
    migrate(engine)
    with engine.begin() as connection:
        for table in (QUEUE, FILES):
            connection.execute(sa.delete(table))
    yield DomainQueue(engine)
    engine.dispose()


def without_times(value: Any) -> Any:
    """Return facts without the fields that measure time."""
    if isinstance(value, dict):
        return {k: without_times(v) for k, v in value.items() if "seconds" not in k}
    return value


def good_files(store: ObjectStore) -> dict[str, Any]:
    """Return the files of the good domains by path, those with facts parsed."""
    found: dict[str, Any] = {}
    for info in store.list("prod"):
        if any(f"/{host}/" in info.path for host in GOOD):
            content = store.read(info.path)
            is_json = info.path.endswith(".json")
            found[info.path] = without_times(json.loads(content)) if is_json else content
    return found


def surveyed(folder: Path, url: str, batch: PartitionInfo) -> Run:
    store = open_store(mkdtemp(dir=folder))
    import_file(store, batch, name="x.json", body=research(*GOOD, *VICTIMS))
    with new_queue(url) as queue:
        queue_batch(batch, store=store, queue=queue, now=NOW)

    def run() -> StageResult:
        with open_queue(url) as queue:

            def survey(fetcher: WebFetcher) -> Awaitable[SurveyReport]:
                context = SurveyContext(queue, store, fetcher, lambda: NOW, time.time, "w")
                return survey_batch(batch, context=context, options=OPTIONS)

            report = fetch_all(sites(), survey)
        files = good_files(store)
        assert len(files) >= 3 * len(GOOD), files.keys()
        return StageResult(files, report.outcomes)

    return run


def ledger(request: pytest.FixtureRequest, database: str, folder: Path) -> str:
    if database == "postgres":
        return str(request.getfixturevalue("postgres_url"))
    return f"sqlite:///{folder}/ledger.sqlite"


@pytest.mark.soak
@pytest.mark.parametrize("victim", VICTIMS)
def test_an_exception_at_every_step_of_a_domain_leaves_the_others(
    victim: str, tmp_path: Path, batch: PartitionInfo, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    fail_at_steps(partial(surveyed, tmp_path, url, batch), Victim(victim, GOOD), caplog)


@pytest.mark.parametrize(
    ("victim", "most", "database"),
    [(*one, "sqlite") for one in zip(VICTIMS, (3, 2, 2), strict=True)]
    + [(VICTIMS[0], 1, "postgres")],
)
def test_an_exception_at_some_step_of_a_domain_leaves_the_others(
    victim: str,
    most: int,
    database: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    batch: PartitionInfo,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = ledger(request, database, tmp_path)
    fail_at_steps(partial(surveyed, tmp_path, url, batch), Victim(victim, GOOD), caplog, most=most)


RESEARCH = {"a.json": ("a1.example", "a2.example"), "b.json": ("b1.example", "b2.example")}
RECORDS = tuple(domain for domains in RESEARCH.values() for domain in domains)


def queued(folder: Path, url: str, batch: PartitionInfo, *, kind: str) -> Run:
    """Queue three research files, of which the second or one record of it is the victim."""
    store = open_store(mkdtemp(dir=folder))
    bodies = {"a.json": RESEARCH["a.json"], "v.json": (VICTIMS[0], "d.example"), **RESEARCH}
    for name, domains in bodies.items():
        import_file(store, batch, name=name, body=research(*domains))
    with new_queue(url):
        pass

    def run() -> StageResult:
        with open_queue(url) as queue:
            report = queue_batch(batch, store=store, queue=queue, now=NOW)
            claims = queue.claim(batch.key, worker="w", limit=99, now=2e9, lease_seconds=1)
        found = {claim.message.registrable_domain: claim.message for claim in claims}
        beside = RECORDS if kind == "file" else (*RECORDS, "d.example")
        neighbours = {domain: message for domain, message in found.items() if domain in beside}
        assert neighbours.keys() == set(beside)
        if kind == "file":
            failed = len(report.failed)
            return StageResult(neighbours, {"accepted": report.files - failed, "failed": failed})
        return StageResult(neighbours, {"messages": report.messages, **report.dropped})

    return run


# The second file is stored under this name.
@pytest.mark.parametrize(
    ("kind", "victim"),
    [
        ("file", Victim("raw_0002.json", ("raw_0001.json", "raw_0003.json"))),
        ("record", Victim(VICTIMS[0], ("d.example", *RECORDS))),
    ],
)
@pytest.mark.parametrize(
    ("database", "most"),
    [("sqlite", 3), ("postgres", 2), pytest.param("sqlite", None, marks=pytest.mark.soak)],
)
def test_an_exception_at_any_step_of_a_research_file_or_record_leaves_the_others(
    kind: str,
    victim: Victim,
    database: str,
    most: int | None,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    batch: PartitionInfo,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = ledger(request, database, tmp_path)
    prepare = partial(queued, tmp_path, url, batch, kind=kind)
    # Once, because the batch's own report names a file that has failed.
    fail_at_steps(prepare, victim, caplog, most=most, again=False, only=IS_OF_UNIT[kind])


def is_of_file(step: Step) -> bool:
    """Return False for steps of the fingerprint: it is the batch's, and reads only our store."""
    return step[0] != "storage/commit/markers.py"


def is_of_record(step: Step) -> bool:
    """Return False for steps of the queue, which takes the valid messages of a file or none."""
    return step not in (
        ("domain_metadata/queue.py", "_row"),
        ("datasets/research_datasets.py", "PartitionInfo.key"),
    )


IS_OF_UNIT = {"file": is_of_file, "record": is_of_record}
