"""The domain queue on SQLite and on PostgreSQL: leases, fencing, and many consumers at once."""

import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from news_platform.datasets.research_datasets import DomainQueueMessage, PartitionInfo
from news_platform.domain_metadata.queue import (
    AcceptedFile,
    DomainQueue,
    MessageClaim,
    SettledClaim,
)
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.storage.sql.leases import process_owner


def messages(batch: PartitionInfo, *domains: str) -> list[DomainQueueMessage]:
    return [
        DomainQueueMessage(
            domain_id=f"media:{batch.country}:{domain}",
            domain_url=f"https://{domain}/",
            registrable_domain=domain,
            authority="media",
            partition_info=batch,
        )
        for domain in domains
    ]


def fill(queue: DomainQueue, batch: PartitionInfo, *domains: str, path: str = "raw/1") -> int:
    file = AcceptedFile(path, batch.key, "0" * 64, len(domains), len(domains), 0)
    return queue.accept(file, messages(batch, *domains), at=0.0)


def claim(
    queue: DomainQueue, batch: PartitionInfo, *, now: float = 0.0, limit: int = 10
) -> list[MessageClaim]:
    return queue.claim(batch.key, worker="w", limit=limit, now=now, lease_seconds=10)


def test_messages_are_accepted_once_and_claimed_in_order(
    any_queue: DomainQueue, batch: PartitionInfo
) -> None:
    assert fill(any_queue, batch, "a.test", "b.test") == 2
    assert fill(any_queue, batch, "b.test", "c.test", path="raw/2") == 1
    first, second = claim(any_queue, batch, limit=2), claim(any_queue, batch, limit=9)
    assert [one.message.registrable_domain for one in first] == ["a.test", "b.test"]
    assert [one.message.registrable_domain for one in second] == ["c.test"]
    assert [(one.attempt, one.tries, one.leased_until) for one in first] == [(1, 1, 10.0)] * 2
    assert claim(any_queue, batch) == []


def test_an_expired_lease_is_claimed_again_and_the_first_worker_is_fenced_off(
    any_queue: DomainQueue, batch: PartitionInfo
) -> None:
    fill(any_queue, batch, "a.test")
    [late] = claim(any_queue, batch, now=0.0)
    assert claim(any_queue, batch, now=9.9) == []
    [next_] = claim(any_queue, batch, now=10.1)
    assert (next_.attempt, next_.id) == (2, late.id)
    assert not any_queue.holds(late, now=10.1) and any_queue.holds(next_, now=10.1)
    assert any_queue.settle([SettledClaim(late, "ok", final=True)], at=11.0) == 0
    assert not any_queue.postpone(late, due_at=0, outcome="timeout")
    assert any_queue.settle([SettledClaim(next_, "ok", final=True)], at=11.0) == 1
    assert any_queue.outcomes(batch.key) == {"ok": 1}


def test_a_renewed_lease_lasts_and_an_expired_one_cannot_be_renewed(
    any_queue: DomainQueue, batch: PartitionInfo
) -> None:
    fill(any_queue, batch, "a.test")
    [held] = claim(any_queue, batch)
    any_queue.renew("w", now=8.0, lease_seconds=10)
    assert any_queue.holds(held, now=17.0) and claim(any_queue, batch, now=17.0) == []
    any_queue.renew("w", now=30.0, lease_seconds=10)
    assert not any_queue.holds(held, now=30.0)


def test_the_leases_of_a_killed_process_end_at_once_and_those_of_a_living_one_stay(
    any_queue: DomainQueue, batch: PartitionInfo
) -> None:
    fill(any_queue, batch, "a.test", "b.test", "c.test")
    program = "from news_platform.storage.sql.leases import process_owner as owner;"
    killed = subprocess.Popen(
        [sys.executable, "-c", f"{program}print(owner('run'), flush=True);input()"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert killed.stdout is not None
    owner = killed.stdout.readline().strip()
    for worker in (owner, process_owner("run"), "a name without a process"):
        any_queue.claim(batch.key, worker=worker, limit=1, now=0.0, lease_seconds=60)
    assert any_queue.expire_gone(batch.key, now=1.0) == 0
    killed.kill()
    killed.communicate()
    assert any_queue.expire_gone(batch.key, now=1.0) == 1
    assert [one.message.registrable_domain for one in claim(any_queue, batch, now=1.0)] == [
        "a.test"
    ]


def test_a_postponed_message_comes_back_when_it_is_due(
    any_queue: DomainQueue, batch: PartitionInfo
) -> None:
    fill(any_queue, batch, "a.test")
    [first] = claim(any_queue, batch)
    assert any_queue.postpone(first, due_at=50.0, outcome="timeout")
    assert any_queue.waiting(batch.key).next_at == 50.0
    assert claim(any_queue, batch, now=49.0) == []
    [again] = claim(any_queue, batch, now=50.0)
    assert (again.attempt, again.tries) == (2, 2)


def test_an_unfinished_message_waits_for_the_next_run_and_a_final_one_is_done(
    any_queue: DomainQueue, batch: PartitionInfo
) -> None:
    fill(any_queue, batch, "a.test", "b.test")
    a, b = claim(any_queue, batch)
    any_queue.settle(
        [SettledClaim(a, "ok", final=True), SettledClaim(b, "timeout", final=False)], at=1.0
    )
    assert any_queue.waiting(batch.key).messages == 0 and claim(any_queue, batch, now=99) == []
    assert any_queue.states() == {batch.key: Counter(done=1, unfinished=1)}
    assert any_queue.reopen(batch.key, now=2.0) == 1
    [again] = claim(any_queue, batch, now=3.0)
    assert (again.message.registrable_domain, again.tries, again.attempt) == ("b.test", 1, 2)


class Desk:
    """Check that no message is claimed by two workers at the same time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.in_hand: set[str] = set()
        self.worked: Counter[str] = Counter()
        self.clashes: list[str] = []

    def take(self, domain: str) -> None:
        with self.lock:
            self.worked[domain] += 1
            self.clashes += [domain] if domain in self.in_hand else []
            self.in_hand.add(domain)

    def lay_down(self, domain: str) -> None:
        with self.lock:
            self.in_hand.discard(domain)


@pytest.fixture
def eight_queues(any_ledger_url: str) -> Iterator[list[DomainQueue]]:
    engines = [open_engine(any_ledger_url) for _ in range(8)]
    migrate(engines[0])
    yield [DomainQueue(engine) for engine in engines]
    for engine in engines:
        engine.dispose()


def test_eight_consumers_lose_nothing_and_never_hold_one_message_twice(
    eight_queues: list[DomainQueue], batch: PartitionInfo
) -> None:
    domains = [f"d{n}.test" for n in range(300)]
    fill(eight_queues[0], batch, *domains)
    desk = Desk()
    with ThreadPoolExecutor(8) as pool:
        stood = sum(pool.map(lambda n: consume(eight_queues[n], batch, desk, f"w{n}"), range(8)))
    assert desk.clashes == [] and stood == 300
    assert desk.worked == Counter(domains)
    assert eight_queues[0].outcomes(batch.key) == {"ok": 300}


def consume(queue: DomainQueue, batch: PartitionInfo, desk: Desk, worker: str) -> int:
    stood = 0
    while True:
        claims = queue.claim(batch.key, worker=worker, limit=7, now=time.time(), lease_seconds=60)
        if not claims:
            return stood
        for one in claims:
            desk.take(one.message.registrable_domain)
        time.sleep(0.001)
        for one in claims:
            desk.lay_down(one.message.registrable_domain)
        stood += queue.settle(
            [SettledClaim(one, "ok", final=True) for one in claims], at=time.time()
        )
