"""A domain whose outcome cannot be recorded does not stop the others."""

from collections.abc import Iterable

import pytest
import sqlalchemy as sa

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.pipeline import queue_batch
from news_platform.domain_metadata.queue import QUEUE, DomainQueue, SettledClaim
from news_platform.domain_metadata.raw_files import import_file
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.domain_metadata.test_pipeline import NOW, research, site, survey


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
    web = site(domains[0]) | site(domains[1]) | site(domains[2])
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
