"""What may happen to a run: outcomes that cannot be recorded, and a clock that jumps."""

import time
from collections.abc import Iterable
from dataclasses import replace
from itertools import count

import pytest
import sqlalchemy as sa

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.pipeline import queue_batch, survey_over_web
from news_platform.domain_metadata.queue import QUEUE, DomainQueue, SettledClaim
from news_platform.domain_metadata.raw_files import import_file
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.fetch import FetchOptions
from news_platform_tests.domain_metadata.test_pipeline import NOW, QUICK, research, site, survey
from news_platform_tests.web.site import body, serve_in_thread


class PickyQueue(DomainQueue):
    """A queue that cannot record one domain, or cannot record a final outcome of it."""

    def __init__(self, engine: sa.Engine, *, refuses: str, only_final: bool) -> None:
        super().__init__(engine)
        self._refuses = refuses
        self._only_final = only_final

    def settle(self, settled: Iterable[SettledClaim], *, at: float) -> int:
        settled = list(settled)
        for one in settled:
            is_refused = one.final or not self._only_final
            if is_refused and one.claim.message.registrable_domain == self._refuses:
                raise ValueError("cannot be recorded")
        return super().settle(settled, at=at)


@pytest.mark.parametrize(
    ("only_final", "outcomes"),
    [(True, {"internal_error": 1, "ok": 2}), (False, {"ok": 2, "waiting": 1})],
)
def test_a_domain_that_cannot_be_settled_is_left_to_the_next_run(
    only_final: bool,
    outcomes: dict[str, int],
    local_store: ObjectStore,
    engine: sa.Engine,
    queue: DomainQueue,
    batch: PartitionInfo,
) -> None:
    domains = ("a.example", "b.example", "c.example")
    web = {url: answer for domain in domains for url, answer in site(domain).items()}
    import_file(local_store, batch, name="x", body=research(*domains))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    picky = PickyQueue(engine, refuses="b.example", only_final=only_final)
    report, _ = survey(batch, web, store=local_store, queue=picky)
    assert report.outcomes == outcomes
    # Its files are complete, so the next run settles it without asking the host again.
    with engine.begin() as connection:
        connection.execute(sa.update(QUEUE).values(lease_until=0.0))
    _, again = survey(batch, web, store=local_store, queue=queue)
    assert queue.outcomes(batch.key) == {"ok": 3} and not again.requests


@pytest.mark.parametrize("jump_seconds", [-86_400.0, 86_400.0])
def test_a_clock_that_jumps_during_a_survey_asks_nobody_twice(
    jump_seconds: float, local_store: ObjectStore, queue: DomainQueue, batch: PartitionInfo
) -> None:
    domains = [f"s{number}.example" for number in range(6)]
    import_file(local_store, batch, name="x", body=research(*domains))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    readings = count()

    def jumping() -> float:
        return time.time() + (jump_seconds if next(readings) > 2 else 0.0)

    answers = {f"{domain}/robots.txt": body(b"User-agent: *\nAllow: /\n") for domain in domains}
    with serve_in_thread(answers) as site:
        report = survey_over_web(
            batch,
            web=FetchOptions(host_map=dict.fromkeys(domains, ("127.0.0.1", site.port))),
            queue=queue,
            store=local_store,
            clock=lambda: NOW,
            seconds=jumping,
            worker="w",
            options=replace(QUICK, concurrency=2),
        )
    asked = [host for host, path in site.requests if path == "/robots.txt"]
    assert sorted(asked) == domains
    assert report.outcomes == {"ok": 6} and report.lost_claims == 0


def test_a_retry_that_a_wrong_clock_put_off_for_years_is_made_by_the_next_run(
    local_store: ObjectStore, engine: sa.Engine, queue: DomainQueue, batch: PartitionInfo
) -> None:
    import_file(local_store, batch, name="x", body=research("a.example"))
    queue_batch(batch, store=local_store, queue=queue, now=NOW)
    with engine.begin() as connection:
        connection.execute(sa.update(QUEUE).values(due_at=time.time() + 9e8))
    report, _ = survey(batch, site("a.example"), store=local_store, queue=queue)
    assert report.outcomes == {"ok": 1}
