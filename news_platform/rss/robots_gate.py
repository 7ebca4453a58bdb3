"""Decide whether robots.txt allows a worker to fetch an article.

The rules come from the domain survey, else from the copy in the ledger, else from the site. A
disallow is final. While robots.txt is unreachable the verdict is "unknown" and the article waits.
"""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
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

RobotsVerdict = Literal["allowed", "disallowed", "unknown"]
KnownRobots = Callable[[str], Robots | None]
"""Return the robots.txt rules that the domain survey stored for a host, or None."""

# A site may have changed since an older survey; the worker then fetches its robots.txt.
_MAX_AGE = timedelta(days=30)
# Every batch costs one storage request per new domain.
_MAX_BATCHES = 8


@dataclass(frozen=True, slots=True)
class _RobotsResponse:
    status: int | None
    body: bytes


class RobotsGate:
    """Robots verdicts for the articles of one worker; each origin is resolved at most once."""

    def __init__(
        self,
        engine: sa.Engine,
        *,
        fetcher: PoliteFetcher,
        user_agent: str,
        known: KnownRobots,
        cache_seconds: int,
        now: datetime,
    ) -> None:
        self._engine = engine
        self._fetcher = fetcher
        self._user_agent = user_agent
        self._known = known
        self._oldest = now - timedelta(seconds=cache_seconds)
        self._now = now
        # Tasks, not rules: articles of one origin that arrive at once share one request.
        self._rules: dict[str, asyncio.Task[Robots | None]] = {}

    async def verdict(self, url: str) -> RobotsVerdict:
        """Return whether the rules of the URL's site allow us to fetch it.

        Raise FetchError (bad_url) for a URL that has no site.
        """
        parts = _split(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = asyncio.create_task(
                self._read_rules(origin, parts.hostname or "")
            )
        rules = await self._rules[origin]
        if rules is None:
            return "unknown"
        return "allowed" if rules.allows(self._user_agent, url) else "disallowed"

    async def _read_rules(self, origin: str, host: str) -> Robots | None:
        rules = self._known(host) or await self._read_robots(origin)
        delay = rules.crawl_delay(self._user_agent) if rules else None
        if delay:
            self._fetcher.set_crawl_delay(host, delay)
        return rules

    async def _read_robots(self, origin: str) -> Robots | None:
        response = await asyncio.to_thread(self._read_copy, origin)
        if response is None:
            response = await self._fetch(origin)
            # Not stored either, so that the next worker tries the site again.
            if response.status is None or _is_unavailable(response.status):
                return None
            await asyncio.to_thread(self._write_copy, origin, response)
        return Robots.of_answer(response.status, response.body)

    async def _fetch(self, origin: str) -> _RobotsResponse:
        try:
            response = await self._fetcher.fetch(f"{origin}/robots.txt", max_body_bytes=MAX_BYTES)
        except FetchError:
            return _RobotsResponse(None, b"")
        return _RobotsResponse(response.status, response.body)

    def _read_copy(self, origin: str) -> _RobotsResponse | None:
        chosen = sa.select(ROBOTS.c.status, ROBOTS.c.body).where(
            ROBOTS.c.origin == origin, ROBOTS.c.fetched_at > self._oldest
        )
        with read_transaction(self._engine) as connection:
            row = connection.execute(chosen).one_or_none()
        return _RobotsResponse(row.status, row.body) if row else None

    def _write_copy(self, origin: str, response: _RobotsResponse) -> None:
        row = {"fetched_at": self._now, "status": response.status, "body": response.body}
        with self._engine.begin() as connection:
            connection.execute(sa.delete(ROBOTS).where(ROBOTS.c.origin == origin))
            connection.execute(sa.insert(ROBOTS).values(origin=origin, **row))


class SurveyedRobots:
    """Look up the rules of a host in the newest survey batches that finished its domain."""

    def __init__(self, store: ObjectStore, *, now: datetime) -> None:
        self._store = store
        self._oldest = now - _MAX_AGE
        self._batches: list[str] | None = None
        self._known: dict[str, Robots | None] = {}

    def __call__(self, host: str) -> Robots | None:
        """Return the rules that the survey stored for a host, or None."""
        if host not in self._known:
            self._known[host] = self._find(host)
        return self._known[host]

    def _find(self, host: str) -> Robots | None:
        for folder in self._folders(registrable_domain(host)):
            metadata = self._read(folder)
            if metadata is not None and metadata.collected_at >= self._oldest:
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

    def _rules(self, folder: str, metadata: DomainMetadata, host: str) -> Robots | None:
        if metadata.robots.host == host:
            return self._read_file(metadata.robots, f"{folder}/{ROBOTS_FILE}")
        for facts in metadata.other_hosts:
            if facts.host == host:
                return self._read_file(facts, f"{folder}/robots.{sanitized_domain(host)}.txt")
        return None

    def _read_file(self, facts: RobotsFacts, path: str) -> Robots | None:
        # The survey could not read robots.txt; the worker fetches it from the site.
        if facts.status_code is None or _is_unavailable(facts.status_code):
            return None
        try:
            body = self._store.read(path) if facts.exists else b""
        except NotFound:
            return None
        return Robots.of_answer(facts.status_code, body)


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError as error:  # brackets in the host, or characters that no host may contain
        raise FetchError(f"invalid URL {url!r}: {error}", thing=url, reason="bad_url") from error


def _is_unavailable(status: int) -> bool:
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
