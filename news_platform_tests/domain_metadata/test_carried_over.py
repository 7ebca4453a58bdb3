"""Sites whose files fail, are deferred, change and recover: verdicts follow what was last read."""

import asyncio
import json
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import pairwise

import pytest

from news_platform.datasets.domain_metadata import UseStatement
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyContext, SurveyOptions
from news_platform.domain_metadata.history import build_stale_tables
from news_platform.domain_metadata.pipeline import queue_batch, survey_batch, survey_over_web
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.domain_metadata.signals.robots_signals import parse_robots_signals
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.signals.verdict import MAX_AGE, decide
from news_platform.domain_metadata.signals.well_known import (
    parse_ai_txt,
    parse_tdmrep,
    parse_trust_txt,
)
from news_platform.domain_metadata.table import CHANGES_DATASET, read_changes
from news_platform.domain_metadata.usage import usage_policy
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import FetchOptions, WebFetcher
from news_platform.web.robots import Robots
from news_platform_tests.domain_metadata.test_pipeline import research
from news_platform_tests.web.site import Answer, body, closing, serve, serve_in_thread, status

START = datetime(2025, 1, 6, 12, tzinfo=UTC)
OPTIONS = SurveyOptions(max_tries=1)
ABSENT = b""
OPEN = b"User-agent: *\nAllow: /\n"
# What a file of a site may say; an empty body stands for a file that is not there.
CONTENTS: Mapping[str, tuple[bytes, ...]] = {
    "/robots.txt": (
        OPEN,
        OPEN + b"Content-Signal: ai-train=no, search=yes\n",
        OPEN + b"Disallow: /news/\nContent-Signal: ai-train=yes\n",
        b"User-agent: GPTBot\nDisallow: /\n\n" + OPEN,
        ABSENT,
    ),
    "/.well-known/tdmrep.json": (
        b'[{"location": "/", "tdm-reservation": 1}]',
        b'[{"location": "/news/", "tdm-reservation": 1}]',
        b'[{"location": "/", "tdm-reservation": 0}]',
        ABSENT,
    ),
    "/ai.txt": (b"User-agent: *\nDisallow: /\n", b"User-agent: *\nDisallow: *.jpg\n", ABSENT),
    "/trust.txt": (b"datatrainingallowed=no\n", b"datatrainingallowed=yes\n", ABSENT),
}
PARSERS = {
    "/.well-known/tdmrep.json": parse_tdmrep,
    "/ai.txt": parse_ai_txt,
    "/trust.txt": parse_trust_txt,
}
PAGE = b"<!doctype html><title>Back soon</title>"
FAILURES: tuple[Answer, ...] = (
    status(503),
    status(429),
    status(402),
    closing(b""),
    body(PAGE),
    status(403, PAGE, cf_mitigated="challenge"),
)


@dataclass(slots=True)
class SiteModel:
    """One site: what its files hold now, and what a reader has last seen of each, and when."""

    contents: dict[str, bytes]
    failing: dict[str, Answer] = field(default_factory=dict)
    seen: dict[str, tuple[bytes, datetime]] = field(default_factory=dict)

    def answer(self, path: str) -> Answer:
        if path in self.failing:
            return self.failing[path]
        return body(self.contents[path]) if self.contents[path] else status(404)

    def verdicts(self, bot: str, at: datetime) -> list[str]:
        """Return what follows from the contents last seen that are not too old."""
        fresh = {path: one for path, (one, when) in self.seen.items() if at - when <= MAX_AGE}
        robots = fresh.get("/robots.txt", b"")
        statements: list[UseStatement] = [*parse_robots_signals(robots, source="r").statements]
        for path, parse in PARSERS.items():
            if fresh.get(path):
                statements += parse(fresh[path], source=path)
        rules = Robots.parse(robots)
        return [decide(statements, rules=rules, bot=bot, purpose=p).verdict for p in PURPOSES]


class Weeks:
    """Survey generated sites again and again, and compare with the model after each time."""

    def __init__(self, store: ObjectStore, queue: DomainQueue, *, hosts: int, seed: int) -> None:
        self.store, self.queue = store, queue
        self.dice = random.Random(seed)
        self.sites = {
            f"s{number}.example": SiteModel(
                {path: self.dice.choice(found) for path, found in CONTENTS.items()}
            )
            for number in range(hosts)
        }
        self.changed: set[tuple[str, str, str]] = set()  # domain, day, file
        self.at = START

    def disturb(self) -> None:
        for site in self.sites.values():
            site.failing = {}
            for path, found in CONTENTS.items():
                if self.dice.random() < 0.2:
                    site.contents[path] = self.dice.choice(found)
                if self.dice.random() < 0.3:
                    site.failing[path] = self.dice.choice(FAILURES)

    def survey(self) -> None:
        """Make one survey of all sites, as of `at`."""
        batch = PartitionInfo.of("de", "media", self.at.date())
        # Every other site has a second host, whose robots.txt takes a request from the budget.
        records = [
            {"raw_url": f"https://{'www.' * (number % 2)}{host}/", "normalized_domain": host}
            for number, host in enumerate(self.sites)
        ]
        document = json.dumps({"records": records}).encode()
        import_file(self.store, batch, name="x", body=document)
        queue_batch(batch, store=self.store, queue=self.queue, now=self.at)
        answers = {
            f"{host}{path}": site.answer(path)
            for host, site in self.sites.items()
            for path in CONTENTS
        }

        async def go() -> list[tuple[str, str]]:
            async with serve(answers) as site:
                hosts = {name for host in self.sites for name in (host, f"www.{host}")}
                web = FetchOptions(host_map=dict.fromkeys(hosts, ("127.0.0.1", site.port)))
                async with WebFetcher(web) as fetcher:
                    context = SurveyContext(
                        self.queue, self.store, fetcher, lambda: self.at, time.time, "w"
                    )
                    report = await survey_batch(batch, context=context, options=OPTIONS)
                assert sum(report.outcomes.values()) == len(self.sites)
                return site.requests

        self.see(asyncio.run(go()))
        build_stale_tables(self.store)

    def see(self, requests: list[tuple[str, str]]) -> None:
        """Note what the requests of a survey could read."""
        for host, path in requests:
            site = self.sites.get(host)
            if site and path in site.contents and path not in site.failing:
                now, (before, _) = site.contents[path], site.seen.get(path, (None, None))
                if before is not None and before != now:
                    self.changed.add((host, str(self.at.date()), path))
                site.seen[path] = now, self.at

    def check(self) -> None:
        for host, site in self.sites.items():
            for bot in ("*", "GPTBot"):
                found = [
                    usage_policy(host, bot, purpose, root=self.store).verdict
                    for purpose in PURPOSES
                ]
                assert found == site.verdicts(bot, self.at), (host, bot, self.at, site)
        for day in read_markers(self.store, CHANGES_DATASET):
            for row in read_changes(self.store, day).iter_rows(named=True):
                path = {"tdmrep": "/.well-known/tdmrep.json"}.get(row["file"], f"/{row['file']}")
                assert (row["domain"], day, path) in self.changed, row
                assert row["before_read_at"] < row["read_at"]


def survey_for_weeks(store: ObjectStore, queue: DomainQueue, *, hosts: int, seed: int) -> None:
    weeks = Weeks(store, queue, hosts=hosts, seed=seed)
    for number in range(12):
        if number:
            # What is absent is asked for again after 30 days, what was read counts for 90.
            weeks.at += timedelta(days=weeks.dice.choice((7, 31, 45)))
            weeks.disturb()
        weeks.survey()
        weeks.check()
    days = {day for _, day, _ in weeks.changed}
    assert sum(read_changes(store, day).height for day in days) > 0


def test_a_survey_pauses_between_requests_to_one_host_but_not_between_hosts(
    local_store: ObjectStore, queue: DomainQueue
) -> None:
    hosts = [f"s{number}.example" for number in range(24)]
    batch = PartitionInfo.of("de", "media", START.date())
    import_file(local_store, batch, name="x", body=research(*hosts))
    queue_batch(batch, store=local_store, queue=queue, now=START)
    times: dict[str, list[float]] = {host: [] for host in hosts}

    def timed(host: str) -> Answer:
        async def write(writer: asyncio.StreamWriter) -> None:
            times[host].append(time.monotonic())
            await status(404)(writer)

        return write

    paths = ("/robots.txt", "/", "/ai.txt")
    answers = {f"{host}{path}": timed(host) for host in hosts for path in paths}
    with serve_in_thread(answers) as site:
        survey_over_web(
            batch,
            web=FetchOptions(host_map=dict.fromkeys(hosts, ("127.0.0.1", site.port))),
            queue=queue,
            store=local_store,
            clock=lambda: START,
            seconds=time.time,
            worker="w",
            options=SurveyOptions(concurrency=3, pause_seconds=0.1),
        )
    assert all(len(found) == len(paths) for found in times.values())
    assert min(b - a for found in times.values() for a, b in pairwise(found)) >= 0.1
    starts = [found[0] for found in times.values()]
    assert max(starts) - min(starts) < 2.0, "all hosts begin, as only three would be at work"


RSL = (
    b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/">'
    b"<license>%s</license></content></rsl>"
)
NO_TRAINING = RSL % b'<prohibits type="usage">ai-train</prohibits>'


def survey_often(
    store: ObjectStore, queue: DomainQueue, surveys: list[dict[str, Answer]], *, days: int = 7
) -> list[str]:
    """Survey one site again and again, each time with other answers; return the verdicts."""
    found: list[str] = []
    for number, answers in enumerate(surveys):
        at = START + timedelta(days=days * number)
        batch = PartitionInfo.of("de", "media", at.date())
        import_file(store, batch, name="x", body=research("a.example"))
        queue_batch(batch, store=store, queue=queue, now=at)
        with serve_in_thread(answers) as site:
            web = FetchOptions(host_map={"a.example": ("127.0.0.1", site.port)})
            survey_over_web(
                batch,
                web=web,
                queue=queue,
                store=store,
                clock=partial(datetime.fromtimestamp, at.timestamp(), UTC),
                seconds=time.time,
                worker="w",
                options=OPTIONS,
            )
        found += [usage_policy("a.example", "*", "ai_train", root=store).verdict]
    return found


def test_a_licence_that_was_not_named_for_a_week_is_not_forgotten(
    local_store: ObjectStore, queue: DomainQueue
) -> None:
    naming = body(OPEN + b"License: https://a.example/license.xml\n")
    surveys = [
        {"/robots.txt": naming, "/license.xml": body(NO_TRAINING)},
        {"/robots.txt": body(OPEN), "/license.xml": body(NO_TRAINING)},
        {"/robots.txt": naming, "/license.xml": status(503)},
    ]
    verdicts = survey_often(local_store, queue, surveys)
    assert verdicts == ["refuse", "unspecified", "refuse"]


def test_the_second_place_of_trust_txt_does_not_count_beside_the_first(
    local_store: ObjectStore, queue: DomainQueue
) -> None:
    lines = b"License: https://a.example/1.xml\nLicense: https://a.example/2.xml\n"
    second = {"/.well-known/trust.txt": body(b"datatrainingallowed=no\n")}
    surveys = [
        # The second licence takes the request that the second place would have had.
        {"/robots.txt": body(OPEN + lines), **second},
        {"/robots.txt": body(OPEN), **second, "/trust.txt": body(b"datatrainingallowed=yes\n")},
    ]
    # What was absent is asked for again after a month.
    assert survey_often(local_store, queue, surveys, days=35) == ["unspecified", "allow"]


def test_verdicts_follow_what_was_last_read(local_store: ObjectStore, queue: DomainQueue) -> None:
    survey_for_weeks(local_store, queue, hosts=12, seed=35)


@pytest.mark.soak
@pytest.mark.parametrize("seed", [1, 2])
def test_verdicts_of_three_hundred_hosts_follow_what_was_last_read(
    local_store: ObjectStore, queue: DomainQueue, seed: int
) -> None:
    survey_for_weeks(local_store, queue, hosts=300, seed=seed)
