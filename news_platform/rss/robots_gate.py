"""Decide whether robots.txt allows a worker to fetch an article.

The rules come from the domain survey, else from the copy in the ledger, else from the site. None of
them is trusted for longer than a day (RFC 9309). A disallow is final. While robots.txt is
unreachable the answer is "unknown" and the article waits.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Literal
from urllib.parse import SplitResult, urlsplit

import sqlalchemy as sa
from pydantic import ValidationError

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    PROD_FOLDER,
    ROBOTS_FILE,
    SUCCESS_FILE,
    DomainMetadata,
    RobotsFacts,
    sanitized_domain,
)
from news_platform.errors import FetchError
from news_platform.rss.ledger.tables import ROBOTS
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.web.fetch import PoliteFetcher
from news_platform.web.robots import MAX_BYTES, Robots
from news_platform.web.urls import registrable_domain

RobotsAnswer = Literal["allowed", "disallowed", "unknown"]

# A site may have changed since an older survey; the worker then fetches its robots.txt.
_MAX_AGE = timedelta(hours=24)
# Every batch costs one storage request per new domain.
_MAX_BATCHES = 8


@dataclass(frozen=True, slots=True)
class RobotsFile:
    """The rules of one robots.txt: where they were read, and when the site sent them."""

    rules: Robots
    file: str
    read_at: datetime


KnownRobots = Callable[[str], RobotsFile | None]
"""Return the robots.txt that the domain survey stored for a host, or None."""


@dataclass(frozen=True, slots=True)
class RobotsDecision:
    """Whether a URL may be fetched, the line that decides ('': none applies), and its file."""

    answer: RobotsAnswer
    rule: str = ""
    file: str = ""
    read_at: datetime | None = None

    @property
    def columns(self) -> dict[str, Any]:
        """Return the columns of Raw that say what decided."""
        return {"robots_rule": self.rule, "robots_file": self.file, "robots_at": self.read_at}


class RobotsGate:
    """Robots decisions for the articles of one worker; each origin is resolved once per day."""

    def __init__(
        self,
        engine: sa.Engine,
        *,
        fetcher: PoliteFetcher,
        user_agent: str,
        known: KnownRobots,
        cache_seconds: int,
        clock: Callable[[], datetime],
    ) -> None:
        self._engine = engine
        self._fetcher = fetcher
        self._user_agent = user_agent
        self._known = known
        self._max_age = timedelta(seconds=cache_seconds)
        self._clock = clock
        # Tasks, not rules: articles of one origin that arrive at once share one request.
        self._files: dict[str, asyncio.Task[RobotsFile | None]] = {}

    async def decide(self, url: str, *, user_agent: str = "") -> RobotsDecision:
        """Return whether the rules of the URL's site allow us to fetch it, and which rule decided.

        `user_agent` is the one that a feed has of its own; '' means the worker's.

        Raise FetchError (bad_url) for a URL that has no site.
        """
        parts = _split(url)
        found = await self._file_of(f"{parts.scheme}://{parts.netloc}", parts.hostname or "")
        if found is None:
            return RobotsDecision("unknown")
        agent = user_agent or self._user_agent
        is_allowed = found.rules.allows(agent, url)
        rule = found.rules.deciding_rule(agent, url)
        return RobotsDecision(
            "allowed" if is_allowed else "disallowed",
            str(rule) if rule else "",
            found.file,
            found.read_at,
        )

    async def _file_of(self, origin: str, host: str) -> RobotsFile | None:
        task = self._files.get(origin)
        if task is not None and task.done() and self._is_outdated(task):
            task = None
        if task is None:
            task = self._files[origin] = asyncio.create_task(self._read(origin, host))
        return await task

    def _is_outdated(self, task: "asyncio.Task[RobotsFile | None]") -> bool:
        """Return whether a worker that runs for days has to read the file again."""
        if task.cancelled() or task.exception() is not None:
            return False
        found = task.result()
        return found is not None and self._clock() - found.read_at >= self._max_age

    async def _read(self, origin: str, host: str) -> RobotsFile | None:
        found = self._known(host)
        if found is None or self._clock() - found.read_at >= self._max_age:
            found = await self._read_robots(origin)
        delay = found.rules.crawl_delay(self._user_agent) if found else None
        if delay:
            self._fetcher.set_crawl_delay(host, delay)
        return found

    async def _read_robots(self, origin: str) -> RobotsFile | None:
        found = await asyncio.to_thread(self._read_copy, origin)
        if found is None:
            now = self._clock()
            try:
                answer = await self._fetcher.fetch(f"{origin}/robots.txt", max_body_bytes=MAX_BYTES)
            except FetchError:
                return None
            # Not stored either, so that the next worker tries the site again.
            if is_unavailable(answer.status):
                return None
            found = (answer.status, answer.body, now)
            await asyncio.to_thread(self._write_copy, origin, *found)
        status, body, read_at = found
        return RobotsFile(Robots.of_answer(status, body), f"{origin}/robots.txt", read_at)

    def _read_copy(self, origin: str) -> tuple[int, bytes, datetime] | None:
        chosen = sa.select(ROBOTS.c.status, ROBOTS.c.body, ROBOTS.c.fetched_at).where(
            ROBOTS.c.origin == origin, ROBOTS.c.fetched_at > self._clock() - self._max_age
        )
        with read_transaction(self._engine) as connection:
            row = connection.execute(chosen).one_or_none()
        return (row[0], row[1], row[2]) if row else None

    def _write_copy(self, origin: str, status: int, body: bytes, fetched_at: datetime) -> None:
        row = {"origin": origin, "status": status, "body": body, "fetched_at": fetched_at}
        with self._engine.begin() as connection:
            connection.execute(sa.delete(ROBOTS).where(ROBOTS.c.origin == origin))
            connection.execute(sa.insert(ROBOTS).values(row))


class SurveyedRobots:
    """Look up the rules of a host in the newest survey batches that finished its domain."""

    def __init__(self, store: ObjectStore, *, now: datetime) -> None:
        self._store = store
        self._oldest = now - _MAX_AGE
        self._batches: list[str] | None = None
        self._known: dict[str, RobotsFile | None] = {}

    def __call__(self, host: str) -> RobotsFile | None:
        """Return the file that the survey stored for a host in the last 24 hours, or None."""
        if host not in self._known:
            self._known[host] = self._find(host)
        return self._known[host]

    def _find(self, host: str) -> RobotsFile | None:
        for folder in self._folders(registrable_domain(host)):
            metadata = self._read(folder)
            if metadata is not None and metadata.collected_at > self._oldest:
                return self._rules(folder, metadata, host)
        return None

    def _folders(self, domain: str) -> Iterator[str]:
        if self._batches is None:
            self._batches = _newest_batches(self._store)
        name = sanitized_domain(domain)
        # Without the success marker the survey of the domain has not finished.
        for batch in self._batches:
            folder = f"{batch}/{name}"
            if self._store.exists(f"{folder}/{SUCCESS_FILE}"):
                yield folder

    def _read(self, folder: str) -> DomainMetadata | None:
        try:
            return DomainMetadata.model_validate_json(self._store.read(f"{folder}/{METADATA_FILE}"))
        except (NotFound, ValidationError):
            return None

    def _rules(self, folder: str, metadata: DomainMetadata, host: str) -> RobotsFile | None:
        asked_at = metadata.collected_at
        if metadata.robots.host == host:
            return self._read_file(metadata.robots, f"{folder}/{ROBOTS_FILE}", asked_at)
        for facts in metadata.other_hosts:
            if facts.host == host:
                path = f"{folder}/robots.{sanitized_domain(host)}.txt"
                return self._read_file(facts, path, asked_at)
        return None

    def _read_file(self, facts: RobotsFacts, path: str, asked_at: datetime) -> RobotsFile | None:
        # The survey could not read robots.txt; the worker fetches it from the site.
        if facts.status_code is None or is_unavailable(facts.status_code):
            return None
        try:
            body = self._store.read(path) if facts.exists else b""
        except NotFound:
            return None
        return RobotsFile(Robots.of_answer(facts.status_code, body), path, asked_at)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:  # brackets in the host, or characters that no host may contain
        raise FetchError(f"invalid URL {url!r}: {error}", thing=url, reason="bad_url") from error


def is_unavailable(status: int) -> bool:
    """Return whether the rules are unknown; any other error status means that there are none."""
    return status == 429 or status >= 500


def _newest_batches(store: ObjectStore) -> list[str]:
    """Return the folders of the newest survey batches, newest day first."""
    folders = [PROD_FOLDER]
    for _ in ("country", "category", "date"):
        folders = [f"{above}/{name}" for above in folders for name in _names(store, above)]
    return sorted(folders, key=lambda folder: folder.rpartition("date=")[2], reverse=True)[
        :_MAX_BATCHES
    ]


def _names(store: ObjectStore, folder: str) -> list[str]:
    return [path.rstrip("/").rpartition("/")[2] for path in store.list_folders(folder)]
