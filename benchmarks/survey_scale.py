"""Survey 20,000 loopback hosts, 5 % of them hostile, with the settings of production.

The rate counts the domains with a final outcome until 99 % of the well-behaved ones have theirs,
and is printed at once. Hosts that do not answer are tried again after 45 and 90 seconds; the run
ends after them.
"""

import json
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from threading import Event

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


def watch(queue: DomainQueue, batch: str, done: Event, wanted: float) -> tuple[float, int]:
    """Wait until so many domains have a final outcome; return when, and how many have."""
    started = time.monotonic()
    while True:
        ended = done.wait(1.0)
        finished = queue.states()[batch]["done"]
        if ended or finished >= wanted:
            seconds = time.monotonic() - started
            rate = finished / seconds * 60
            print(f"{finished:,} domains in {seconds:.0f} s: {rate:,.0f} a minute", file=sys.stderr)
            return seconds, finished


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
        done = Event()
        started, cpu = time.monotonic(), time.process_time()
        watching = ThreadPoolExecutor(1).submit(watch, queue, batch.key, done, 0.99 * good)
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
        seconds, finished = watching.result()
    assert report.outcomes.get("ok", 0) >= good, report.outcomes
    return {
        "hosts": count,
        "hostile": count - good,
        "domains_per_minute": round(finished / seconds * 60),
        "seconds_to_the_last_retry": round(ended - started),
        "cpu_ms_per_domain": round(spent / count * 1000, 2),
        "outcomes": dict(Counter(report.outcomes)),
    }


if __name__ == "__main__":
    print(json.dumps(measure(int(sys.argv[1]), int(sys.argv[2]))))
