"""Consume the domain queue: claim messages, survey their domains, store and settle the results.

Any number of consumers may work on one batch at the same time. If a consumer dies, nothing is lost:
its leases expire, and a domain that it stored but did not settle is recognised by its success
marker.
"""

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from heapq import nlargest
from operator import itemgetter
from typing import ParamSpec, TypeVar

from news_platform.datasets.domain_metadata import sanitized_domain
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.domain_metadata.fetchers import PreviousSurvey, SurveyFetchOptions
from news_platform.domain_metadata.queue import (
    BatchBacklog,
    DomainQueue,
    MessageClaim,
    SettledClaim,
    earlier_batches,
)
from news_platform.domain_metadata.results import (
    DomainFiles,
    finished_outcome,
    read_domain_files,
    read_previous,
    write_result,
)
from news_platform.domain_metadata.survey import SurveyResult, survey_domain
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary, first_cause
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.web.fetch import PoliteFetcher
from news_platform.web.responses import parse_retry_after

P = ParamSpec("P")
T = TypeVar("T")

_SLOWEST_KEPT = 10
_log = logging.getLogger(__name__)
# A shorter wait, such as one before a retry, is not worth a line in the log.
_LOGGED_WAIT_SECONDS = 2.0
# Settle this many domains in one transaction. After a crash before it, the next consumer reads the
# success markers of those domains instead of surveying them again.
_SETTLED_AT_ONCE = 64
# How often an idle consumer looks for messages that others gave back or let expire.
_POLL_SECONDS = 1.0
_SHORTEST_PAUSE_SECONDS = 0.02
# With a pause of a second and responses within 150 ms, as many requests run as without a pause.
_PAUSING_PER_ACTIVE = 8


@dataclass(frozen=True, slots=True)
class SurveyOptions:
    """How a consumer works: concurrency, retries, leases and writers."""

    fetch: SurveyFetchOptions = field(default_factory=SurveyFetchOptions)
    concurrency: int = 64
    # Between two requests to one host.
    pause_seconds: float = 0.0
    max_tries: int = 3
    # Longer than the resolver caches a negative answer (30 s), so that a retry asks DNS again.
    retry_seconds: float = 45.0
    # A domain whose Retry-After is longer than this is left to the next run.
    max_retry_seconds: float = 600.0
    lease_seconds: float = 60.0
    # More than all timeouts together; only a long crawl-delay with many sitemaps reaches it.
    domain_seconds: float = 900.0

    @property
    def domains_at_once(self) -> int:
        """Return how many domains are surveyed at once: most of them pause if there is a pause."""
        return self.concurrency * (_PAUSING_PER_ACTIVE if self.pause_seconds else 1)


@dataclass(slots=True)
class SurveyReport:
    """Counts of a survey run; `outcomes` covers the whole batch, the other fields this run."""

    batch: str
    surveyed: int = 0
    finished_before: int = 0
    retries: int = 0
    lost_claims: int = 0
    outcomes: dict[str, int] = field(default_factory=dict)
    slowest: list[tuple[str, float]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class SurveyContext:
    """The resources of a consumer.

    `worker` is a name that no other consumer has. `clock` dates the facts and may stand still;
    `seconds` (since the epoch) times leases and retries and must advance.
    """

    queue: DomainQueue
    store: ObjectStore
    fetcher: PoliteFetcher
    clock: Callable[[], datetime]
    seconds: Callable[[], float]
    worker: str


class Consumer:
    """Survey one batch in one run."""

    def __init__(
        self, batch: PartitionInfo, *, context: SurveyContext, options: SurveyOptions
    ) -> None:
        self._batch = batch
        self._context = context
        self._options = options
        self._stored: DomainFiles = {}
        # The batches of earlier surveys by domain, the latest first.
        self._earlier: Mapping[str, Sequence[str]] = {}
        self._takedowns = Takedowns.read(context.store, now=context.clock())
        self._waits_until: float | None = None
        self._claimed: deque[MessageClaim] = deque()
        self._running: set[asyncio.Task[None]] = set()
        self._settled: list[SettledClaim] = []
        # Messages that could not be settled: this run does not wait for their leases to expire.
        self._left: set[int] = set()
        self.report = SurveyReport(batch.key)

    async def run(self) -> SurveyReport:
        """Work until every message of the batch is settled by this or another consumer."""
        # Queue calls have their own thread, so that no lease expires behind a hundred uploads.
        with ThreadPoolExecutor(1, thread_name_prefix="domain-queue") as self._queue_thread:
            try:
                await self._run()
            except ExceptionGroup as group:
                raise first_cause(group) from group
        self.report.slowest = nlargest(_SLOWEST_KEPT, self.report.slowest, key=itemgetter(1))
        return self.report

    async def _run(self) -> None:
        queue = self._context.queue
        self._stored = await asyncio.to_thread(read_domain_files, self._context.store, self._batch)
        self._earlier = await self._call_queue(earlier_batches, queue.engine, self._batch.key)
        # Messages that an earlier run gave up get new tries in this one.
        await self._call_queue(queue.reopen, self._batch.key, now=self._context.seconds())
        slots = asyncio.Semaphore(self._options.domains_at_once)
        async with asyncio.TaskGroup() as tasks:
            leases = tasks.create_task(self._keep_leases())
            while await self._has_claims():
                await slots.acquire()
                task = tasks.create_task(self._work(self._claimed.popleft()))
                self._running.add(task)
                task.add_done_callback(self._running.discard)
                task.add_done_callback(lambda _: slots.release())
            leases.cancel()
        self.report.outcomes = await self._call_queue(queue.outcomes, self._batch.key)

    async def _has_claims(self) -> bool:
        """Wait until a message is claimed; return False once the batch has none left."""
        while not self._claimed:
            self._claimed.extend(await self._call_queue(self._claim))
            if self._claimed:
                return True
            # A running survey may be postponed and become claimable again, so the batch is done
            # only after all of them have ended.
            if self._running:
                done = asyncio.FIRST_COMPLETED
                await asyncio.wait(self._running, timeout=_POLL_SECONDS, return_when=done)
                continue
            await self._flush()
            waiting = await self._call_queue(self._context.queue.waiting, self._batch.key)
            if waiting.messages <= len(self._left):
                return False
            # A consumer that was killed released nothing: do not wait for its leases to expire.
            if await self._call_queue(
                self._context.queue.expire_gone, self._batch.key, now=self._context.seconds()
            ):
                continue
            self._log_wait(waiting)
            pause = (waiting.next_at or 0.0) - self._context.seconds()
            await asyncio.sleep(min(max(pause, _SHORTEST_PAUSE_SECONDS), _POLL_SECONDS))
        return True

    def _log_wait(self, waiting: BatchBacklog) -> None:
        """Log, once per moment, what the consumer waits for."""
        pause = (waiting.next_at or 0.0) - self._context.seconds()
        if waiting.next_at != self._waits_until and pause > _LOGGED_WAIT_SECONDS:
            self._waits_until = waiting.next_at
            text = "%s: waiting up to %.0f s for %d domains: leased by another run, or due later"
            _log.warning(text, self._batch.key, pause, waiting.messages)

    async def _call_queue(self, method: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a method of the queue on the queue's own thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._queue_thread, partial(method, *args, **kwargs))

    async def _work(self, claim: MessageClaim) -> None:
        """Survey one domain; whatever its hosts send, the others are not affected."""
        with boundary("domain", claim.message.registrable_domain) as unit:
            await self._attempt(claim)
        if unit.cause:
            # Not final: the next run tries the domain again.
            await self._settle(SettledClaim(claim, INTERNAL_ERROR, final=False))

    async def _attempt(self, claim: MessageClaim) -> None:
        # Claims are taken in groups: this one may have expired while it waited for a free slot.
        if not await self._is_held(claim):
            self.report.lost_claims += 1
            return
        if self._takedowns.covers_domain(claim.message.registrable_domain):
            await self._settle(SettledClaim(claim, TAKEN_DOWN, final=True))
            return
        if await self._was_finished(claim):
            return
        surveyed = await self._survey(claim)
        if surveyed is None:
            await self._settle(SettledClaim(claim, "out_of_time", final=False))
            return
        wait_seconds = self._wait_before_retry(claim, surveyed)
        if wait_seconds is not None:
            self.report.retries += 1
            due_at, name = self._context.seconds() + wait_seconds, surveyed.outcome.name
            await self._call_queue(self._context.queue.postpone, claim, due_at=due_at, outcome=name)
        elif await self._publish(claim, surveyed):
            self._count(surveyed)
            final = surveyed.outcome.status == "final"
            await self._settle(SettledClaim(claim, surveyed.outcome.name, final=final))
        else:
            self.report.lost_claims += 1

    async def _survey(self, claim: MessageClaim) -> SurveyResult | None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.domain_seconds):
                return await survey_domain(
                    claim.message,
                    fetcher=self._context.fetcher,
                    clock=self._context.clock,
                    options=self._options.fetch,
                    tries=claim.tries,
                    previous=await self._previous(claim.message.registrable_domain),
                )
        return None

    async def _previous(self, domain: str) -> PreviousSurvey | None:
        """Return the previous survey of a domain: what was read then need not be sent again.

        That may be an unfinished survey of this batch by an earlier run.
        """
        batches = list(map(PartitionInfo.parse, self._earlier.get(domain, ())))
        if sanitized_domain(domain) in self._stored:
            batches.insert(0, self._batch)
        for batch in batches:
            found = await asyncio.to_thread(read_previous, self._context.store, batch, domain)
            if found is not None:
                return found
        return None

    async def _publish(self, claim: MessageClaim, surveyed: SurveyResult) -> bool:
        """Write the result unless another consumer has claimed the domain in the meantime."""
        if not await self._is_held(claim):
            return False
        write = partial(write_result, batch=self._batch, stored=self._stored)
        await asyncio.to_thread(write, self._context.store, surveyed)
        return True

    async def _is_held(self, claim: MessageClaim) -> bool:
        """Return whether this consumer still holds a claim."""
        # A fresh claim needs no query. The margin covers clock differences and the write itself.
        held_until = claim.leased_until - self._options.lease_seconds / 3
        now = self._context.seconds()
        return now <= held_until or await self._call_queue(
            self._context.queue.holds, claim, now=now
        )

    async def _was_finished(self, claim: MessageClaim) -> bool:
        """Settle a domain whose results were stored by a consumer that died before settling it."""
        domain = claim.message.registrable_domain
        # A first claim of a domain without files cannot have been finished: this saves a read.
        if claim.attempt == 1 and sanitized_domain(domain) not in self._stored:
            return False
        store = self._context.store
        outcome = await asyncio.to_thread(finished_outcome, store, self._batch, domain)
        if outcome is None:
            return False
        self.report.finished_before += 1
        await self._settle(SettledClaim(claim, outcome, final=True))
        return True

    def _wait_before_retry(self, claim: MessageClaim, surveyed: SurveyResult) -> float | None:
        """Return the seconds until this run's next try, or None if it makes no further one."""
        options = self._options
        if surveyed.outcome.status != "retry" or claim.tries >= options.max_tries:
            return None
        requested = parse_retry_after(surveyed.retry_after or "", now=self._context.clock())
        wait = max(options.retry_seconds * 2 ** (claim.tries - 1), requested or 0)
        return wait if wait <= options.max_retry_seconds else None

    def _claim(self) -> list[MessageClaim]:
        return self._context.queue.claim(
            self._batch.key,
            worker=self._context.worker,
            limit=self._options.concurrency,
            now=self._context.seconds(),
            lease_seconds=self._options.lease_seconds,
        )

    async def _keep_leases(self) -> None:
        lease = self._options.lease_seconds
        while True:
            # Early enough that one renewal may fail or come late.
            await asyncio.sleep(lease / 3)
            renew, worker = self._context.queue.renew, self._context.worker
            await self._call_queue(renew, worker, now=self._context.seconds(), lease_seconds=lease)
            await self._flush()

    async def _settle(self, settled: SettledClaim) -> None:
        self._settled.append(settled)
        if len(self._settled) >= _SETTLED_AT_ONCE:
            await self._flush()

    async def _flush(self) -> None:
        settled, self._settled = self._settled, []
        if not settled:
            return
        with boundary("group of domains", f"{len(settled)} of {self._batch.key}") as group:
            await self._settle_together(settled)
        if group.cause:
            # One of them cannot be settled; alone, each fails for itself only.
            for one in settled:
                await self._settle_alone(one)

    async def _settle_together(self, settled: Sequence[SettledClaim]) -> None:
        at = self._context.seconds()
        stood = await self._call_queue(self._context.queue.settle, settled, at=at)
        self.report.lost_claims += len(settled) - stood

    async def _settle_alone(self, settled: SettledClaim) -> None:
        """Settle one domain, else as an internal error, else leave it to the next run."""
        claim = settled.claim
        for one in (settled, SettledClaim(claim, INTERNAL_ERROR, final=False)):
            with boundary("domain", claim.message.registrable_domain) as unit:
                await self._settle_together([one])
            if not unit.cause:
                return
        self._left.add(claim.id)

    def _count(self, surveyed: SurveyResult) -> None:
        facts = surveyed.metadata
        self.report.surveyed += 1
        seconds = facts.robots.elapsed_seconds + facts.sitemap.elapsed_seconds
        self.report.slowest.append((facts.registrable_domain, round(seconds, 3)))
        # Keeps the list short without sorting it for every domain.
        if len(self.report.slowest) > 10 * _SLOWEST_KEPT:
            self.report.slowest = nlargest(_SLOWEST_KEPT, self.report.slowest, key=itemgetter(1))
