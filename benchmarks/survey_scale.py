"""Survey 20,000 loopback hosts, 5 % of them hostile, with the settings of production.

The rate counts the domains with a final outcome until 99 % of the well-behaved ones have theirs.
Hosts that do not answer are tried again after 45 and 90 seconds; the run ends after them.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from threading import Event, Thread

from benchmarks.loopback_sites import HOSTILE
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyOptions
from news_platform.domain_metadata.pipeline import queue_batch, survey_over_web
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.fetch import FetchOptions

HOSTS = 20_000
HOSTILE_SHARE = 0.05


def host_names(count: int) -> list[str]:
    """Return the names of the hosts, the hostile ones spread evenly among them."""
    every = round(1 / HOSTILE_SHARE)
    return [
        f"{HOSTILE[number // every % len(HOSTILE)]}-{number}.example"
        if number % every == 0
        else f"site{number}.example"
        for number in range(count)
    ]


def watch(queue: DomainQueue, batch: str, done: Event, seen: list[tuple[float, int]]) -> None:
    """Note every second how many domains have a final outcome."""
    while not done.wait(1.0):
        seen.append((time.monotonic(), queue.states()[batch]["done"]))


def measure(port: int, count: int = HOSTS) -> dict[str, object]:
    """Survey the hosts; return the rate, the CPU per domain and the outcomes."""
    hosts = host_names(count)
    good = sum(host.startswith("site") for host in hosts)
    batch = PartitionInfo.of("zz", "bench", "2025-11-01")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/root")
        engine = open_engine(f"sqlite:///{Path(folder) / 'ledger.sqlite'}")
        migrate(engine)
        queue = DomainQueue(engine)
        records = [{"normalized_domain": host} for host in hosts]
        import_file(store, batch, name="x", body=json.dumps({"records": records}).encode())
        queue_batch(batch, store=store, queue=queue, now=datetime.now(UTC))
        done, seen = Event(), list[tuple[float, int]]()
        watching = Thread(target=watch, args=(queue, batch.key, done, seen))
        started, cpu = time.monotonic(), time.process_time()
        watching.start()
        report = survey_over_web(
            batch,
            web=FetchOptions(host_map=dict.fromkeys(hosts, ("127.0.0.1", port))),
            queue=queue,
            store=store,
            clock=lambda: datetime.now(UTC),
            seconds=time.time,
            worker="bench",
            options=SurveyOptions(),
        )
        ended, spent = time.monotonic(), time.process_time() - cpu
        done.set()
        watching.join()
    assert report.outcomes.get("ok", 0) >= good, report.outcomes
    at, finished = next((one for one in seen if one[1] >= 0.99 * good), (ended, good))
    return {
        "hosts": count,
        "hostile": count - good,
        "domains_per_minute": round(finished / (at - started) * 60),
        "seconds_to_the_last_retry": round(ended - started),
        "cpu_ms_per_domain": round(spent / count * 1000, 2),
        "outcomes": dict(Counter(report.outcomes)),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
