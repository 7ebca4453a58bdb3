"""A survey program over good and hostile sites on loopback, which tests start and kill.

Run as `python -m news_platform_tests.domain_metadata.hostile_web ROOT PORT LEASE_SECONDS`.
"""

import sys
import time
import uuid
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyOptions
from news_platform.domain_metadata.pipeline import survey_over_web
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import open_engine
from news_platform.web.fetch import FetchOptions
from news_platform.web.resolver import ResolverOptions

BATCH = PartitionInfo.of("de", "media", "2025-11-01")
OPTIONS = SurveyOptions(concurrency=32, max_tries=2, retry_seconds=0.05)
WEB = FetchOptions(
    total_timeout_seconds=3, read_timeout_seconds=2, resolver=ResolverOptions(control_name="")
)


def main() -> None:
    """Survey the batch in ROOT; every host in the queue is served at the port."""
    root, port, lease_seconds = Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    engine = open_engine(f"sqlite:///{root / 'ledger.sqlite'}")
    queue = DomainQueue(engine)
    hosts = [one.registrable_domain for one in queue.messages(BATCH.key)]
    survey_over_web(
        BATCH,
        web=replace(WEB, host_map=dict.fromkeys(hosts, ("127.0.0.1", port))),
        queue=queue,
        store=open_store(str(root)),
        clock=lambda: datetime.now(UTC),
        seconds=time.time,
        worker=uuid.uuid4().hex,
        options=replace(OPTIONS, lease_seconds=lease_seconds),
    )


if __name__ == "__main__":
    main()
