"""May we fetch this article? By the survey's rules, the ledger's copy of robots.txt, or the site's.

A stated disallow is final. A robots.txt that cannot be reached forbids nothing for good: the
article waits and is asked about again later.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from urllib.parse import urlsplit

import sqlalchemy as sa

from news_platform.errors import FetchError
from news_platform.rss.ledger.tables import ROBOTS
from news_platform.rss.ledger.transactions import read_transaction
from news_platform.web.fetch import PoliteFetcher
from news_platform.web.robots import MAX_BYTES, Robots

RobotsVerdict = Literal["allowed", "disallowed", "unknown"]
KnownRobots = Callable[[str], Robots | None]
"""Given a host, the rules that the domain survey stored for it, or None."""


@dataclass(frozen=True, slots=True)
class _RobotsResponse:
    status: int | None
    body: bytes


class RobotsGate:
    """Verdicts for one batch; every origin is asked for at most once."""

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
        self._rules: dict[str, asyncio.Task[Robots | None]] = {}

    async def verdict(self, url: str) -> RobotsVerdict:
        """Say whether the rules of the URL's site let us fetch it."""
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = asyncio.create_task(self._rules_of(origin, parts.hostname or ""))
        rules = await self._rules[origin]
        if rules is None:
            return "unknown"
        return "allowed" if rules.allows(self._user_agent, url) else "disallowed"

    async def _rules_of(self, origin: str, host: str) -> Robots | None:
        rules = self._known(host) or await self._fetched(origin)
        delay = rules.crawl_delay(self._user_agent) if rules else None
        if delay:
            self._fetcher.set_crawl_delay(host, delay)
        return rules

    async def _fetched(self, origin: str) -> Robots | None:
        answer = await asyncio.to_thread(self._kept, origin)
        if answer is None:
            answer = await self._fetch(origin)
            if answer.status is None or answer.status == 429 or answer.status >= 500:
                return None
            await asyncio.to_thread(self._keep, origin, answer)
        return Robots.of_answer(answer.status, answer.body)

    async def _fetch(self, origin: str) -> _RobotsResponse:
        try:
            answer = await self._fetcher.fetch(f"{origin}/robots.txt", max_body_bytes=MAX_BYTES)
        except FetchError:
            return _RobotsResponse(None, b"")
        return _RobotsResponse(answer.status, answer.body)

    def _kept(self, origin: str) -> _RobotsResponse | None:
        chosen = sa.select(ROBOTS.c.status, ROBOTS.c.body).where(
            ROBOTS.c.origin == origin, ROBOTS.c.fetched_at > self._oldest
        )
        with read_transaction(self._engine) as connection:
            row = connection.execute(chosen).one_or_none()
        return _RobotsResponse(row.status, row.body) if row else None

    def _keep(self, origin: str, answer: _RobotsResponse) -> None:
        row = {"fetched_at": self._now, "status": answer.status, "body": answer.body}
        with self._engine.begin() as connection:
            connection.execute(sa.delete(ROBOTS).where(ROBOTS.c.origin == origin))
            connection.execute(sa.insert(ROBOTS).values(origin=origin, **row))
