"""A survey repeated politely: what a host confirms is not sent again, and counts as received."""

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime, timedelta

import pytest

from news_platform.datasets.domain_metadata import ROBOTS_FILE, DomainMetadata, domain_folder
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyContext
from news_platform.domain_metadata.generated_research import write_resurvey_files
from news_platform.domain_metadata.pipeline import queue_batch, survey_batch
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.results import iter_broken
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import FetchOptions, WebFetcher
from news_platform_tests.domain_metadata.test_pipeline import NOW, QUICK, facts, research
from news_platform_tests.web.site import Answer, Site, body, serve, status

HOST = "a.example"
NEXT = PartitionInfo.of("de", "media", date(2025, 11, 8))
ROBOTS = b"User-agent: GPTBot\nDisallow: /\nUser-agent: *\nContent-Signal: ai-train=no\nAllow: /\n"
INDEX = b"<sitemapindex><sitemap><loc>https://a.example/1.xml</loc></sitemap></sitemapindex>"
URLSET = b"<urlset><url><loc>https://a.example/1</loc></url></urlset>"
TDMREP = json.dumps([{"location": "/", "tdm-reservation": 1}]).encode()
PAGE = b'<html><head><meta name="robots" content="noai"></head></html>'
FILES = {
    "/robots.txt": ROBOTS,
    "/": PAGE,
    "/.well-known/tdmrep.json": TDMREP,
    "/sitemap.xml": INDEX,
    "/llms.txt": b"# A site\n",
}


def first_answers() -> dict[str, Answer]:
    """Return a site whose every file has an ETag, and whose index has a child."""
    found = {f"{HOST}{path}": body(text, ETag=f'"{path}"') for path, text in FILES.items()}
    return {**found, f"{HOST}/1.xml": body(URLSET)}


def survey_site(
    batch: PartitionInfo,
    answers: Mapping[str, Answer],
    *,
    store: ObjectStore,
    queue: DomainQueue,
    at: datetime = NOW,
) -> Site:
    async def go() -> Site:
        async with serve(answers) as site:
            options = FetchOptions(host_map={HOST: ("127.0.0.1", site.port)})
            async with WebFetcher(options) as fetcher:
                context = SurveyContext(queue, store, fetcher, lambda: at, time.time, "w")
                await survey_batch(batch, context=context, options=QUICK)
            return site

    return asyncio.run(go())


@pytest.fixture
def first(local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo) -> DomainMetadata:
    """Survey the site, and queue it for the next week."""
    import_file(local_store, batch, name="x", body=research(HOST))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    survey_site(batch, first_answers(), store=local_store, queue=queue)
    write_resurvey_files(queue.messages(batch.key), day=NEXT.date, store=local_store)
    queue_batch(NEXT, store=local_store, queue=queue, now=NOW)
    return facts(local_store, batch, HOST)


def told(found: DomainMetadata) -> object:
    """Return what a survey found, without when and how it was asked."""
    assert found.usage is not None
    statements = [asdict(one) for one in found.usage.statements]
    assert all(one.read_at == NOW for one in found.usage.statements)
    return (found.outcome, found.files, found.ai_policy, statements, found.usage.verdicts)


def test_what_is_confirmed_is_stored_again_without_being_sent(
    local_store: ObjectStore, queue: DomainQueue, first: DomainMetadata
) -> None:
    answers = {f"{HOST}{path}": status(304) for path in FILES}
    site = survey_site(NEXT, answers, store=local_store, queue=queue)
    sent = {
        path: headers.get("if-none-match")
        for (_, path), headers in zip(site.requests, site.headers, strict=True)
    }
    assert {path: sent[path] for path in FILES} == {path: f'"{path}"' for path in FILES}
    assert "/1.xml" not in sent and len(site.requests) == len(FILES) + 1
    found = facts(local_store, NEXT, HOST)
    assert told(found) == told(first)
    assert found.robots.not_modified and found.robots.etag == '"/robots.txt"'
    assert found.sitemap.not_modified and found.sitemap.url_count == 1
    assert list(iter_broken(local_store, NEXT)) == []


def test_what_changed_is_read_anew(
    local_store: ObjectStore, queue: DomainQueue, first: DomainMetadata
) -> None:
    answers = {
        **{f"{HOST}{path}": status(304) for path in FILES},
        f"{HOST}/robots.txt": body(b"User-agent: *\nAllow: /\n", ETag='"new"'),
        f"{HOST}/.well-known/tdmrep.json": status(404),
    }
    survey_site(NEXT, answers, store=local_store, queue=queue)
    found = facts(local_store, NEXT, HOST)
    assert found.ai_policy is not None and found.ai_policy.own == {}
    assert not found.robots.not_modified and found.robots.etag == '"new"'
    assert found.usage is not None
    assert [one.system for one in found.usage.statements] == ["robots_meta"]


def test_a_file_that_was_damaged_since_is_asked_for_without_a_condition(
    local_store: ObjectStore, queue: DomainQueue, first: DomainMetadata, batch: PartitionInfo
) -> None:
    local_store.put(f"{domain_folder(batch, HOST)}/{ROBOTS_FILE}", b"something else")
    site = survey_site(NEXT, first_answers(), store=local_store, queue=queue)
    (robots,) = (h for (_, p), h in zip(site.requests, site.headers, strict=True) if "robots" in p)
    assert "if-none-match" not in robots
    assert told(facts(local_store, NEXT, HOST)) == told(first)


def test_a_file_that_is_absent_is_asked_for_again_after_a_month(
    local_store: ObjectStore, queue: DomainQueue, first: DomainMetadata, batch: PartitionInfo
) -> None:
    absent = {"/ai.txt", "/trust.txt", "/.well-known/trust.txt"}
    site = survey_site(NEXT, first_answers(), store=local_store, queue=queue)
    assert not absent & {path for _, path in site.requests}
    later = PartitionInfo.of("de", "media", date(2025, 12, 8))
    write_resurvey_files(queue.messages(NEXT.key), day=later.date, store=local_store)
    queue_batch(later, store=local_store, queue=queue, now=NOW)
    at = NOW + timedelta(days=35)
    site = survey_site(later, first_answers(), store=local_store, queue=queue, at=at)
    assert absent < {path for _, path in site.requests}


def test_a_file_that_had_no_request_left_comes_first_next_time(
    local_store: ObjectStore, queue: DomainQueue, first: DomainMetadata, batch: PartitionInfo
) -> None:
    # robots, home, tdmrep, sitemap, three files that may state something, llms: eight.
    assert first.usage is not None and first.usage.deferred == ["security.txt"]
    path = f"{domain_folder(batch, HOST)}/domain_metadata.json"
    first.usage.deferred = ["llms.txt"]
    first.usage.files = []  # so that nothing is known to be absent
    local_store.put(path, first.model_dump_json().encode())
    site = survey_site(NEXT, first_answers(), store=local_store, queue=queue)
    paths = [path for _, path in site.requests]
    assert paths.index("/llms.txt") < paths.index("/ai.txt")
