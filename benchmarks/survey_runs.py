"""Run one survey, or the bare loop that fetches the same files; print its CPU seconds.

`unstored` is the whole survey without the disk: queue, threads and facts are the same, but the
files of the domains are discarded, as in the bare loop.
"""

import asyncio
import json
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from news_platform.datasets.domain_metadata import PROD_FOLDER
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.consumer import SurveyOptions
from news_platform.domain_metadata.pipeline import queue_batch, survey_over_web
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file
from news_platform.storage.objects.store import ObjectInfo, ObjectStore, open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.fetch import FetchOptions

CONCURRENCY = 64
# The requests that a survey makes to each of the loopback sites, in its order.
PATHS = (
    "robots.txt",
    "",
    ".well-known/tdmrep.json",
    "sitemap.xml",
    "ai.txt",
    "trust.txt",
    ".well-known/trust.txt",
    "llms.txt",
)


class OnePlace(AbstractResolver):
    """Resolve every host to one port."""

    def __init__(self, port: int) -> None:
        self.port = port

    async def resolve(self, host: str, port: int = 0, family: int = 0) -> list[ResolveResult]:
        """Return the address to aiohttp."""
        return [
            ResolveResult(
                hostname=host, host="127.0.0.1", port=self.port, family=2, proto=0, flags=0
            )
        ]

    async def close(self) -> None:
        """Do nothing."""


async def bare(hosts: list[str], port: int) -> float:
    """Fetch the same files of every host and discard them."""
    started = time.process_time()
    slots = asyncio.Semaphore(CONCURRENCY)
    connector = aiohttp.TCPConnector(resolver=OnePlace(port), limit=0)
    async with aiohttp.ClientSession(connector=connector) as session:

        async def ask(host: str) -> None:
            async with slots:
                for path in PATHS:
                    async with session.get(f"http://{host}/{path}") as answer:
                        await answer.read()

        await asyncio.gather(*map(ask, hosts))
    return time.process_time() - started


class MeteredStore(ObjectStore):
    """A store that counts the CPU seconds of its puts, which run on several threads."""

    put_seconds = 0.0

    def put(self, path: str, body: bytes | Path | BinaryIO) -> ObjectInfo:
        """Put an object and count its CPU time."""
        started = time.thread_time()
        try:
            return super().put(path, body)
        finally:
            MeteredStore.put_seconds += time.thread_time() - started


class ForgetfulStore(ObjectStore):
    """A store that discards the files of domains."""

    def put(self, path: str, body: bytes | Path | BinaryIO) -> ObjectInfo:
        """Put an object unless it is a result."""
        if not path.startswith(f"{PROD_FOLDER}/"):
            return super().put(path, body)
        return ObjectInfo(path, 0, "", datetime.now(UTC))


def survey(hosts: list[str], port: int, *, kind: type[ObjectStore]) -> tuple[float, float]:
    """Survey the same hosts; return all CPU seconds, and those of storing the files."""
    batch = PartitionInfo.of("zz", "bench", "2025-11-01")
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/root")
        store.__class__ = kind
        engine = open_engine(f"sqlite:///{Path(folder) / 'ledger.sqlite'}")
        migrate(engine)
        queue = DomainQueue(engine)
        records = [{"normalized_domain": host} for host in hosts]
        import_file(store, batch, name="x", body=json.dumps({"records": records}).encode())
        queue_batch(batch, store=store, queue=queue, now=datetime.now(UTC))
        started = time.process_time()
        report = survey_over_web(
            batch,
            web=FetchOptions(host_map=dict.fromkeys(hosts, ("127.0.0.1", port))),
            queue=queue,
            store=store,
            clock=lambda: datetime.now(UTC),
            seconds=time.time,
            worker="bench",
            options=SurveyOptions(concurrency=CONCURRENCY),
        )
        spent = time.process_time() - started
        assert report.outcomes == {"ok": len(hosts)}, report.outcomes
    return spent, MeteredStore.put_seconds


def main() -> None:
    """Run what the arguments say: `bare|unstored|survey PORT DOMAINS`."""
    kind, port, count = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    hosts = [f"site{number}.example" for number in range(count)]
    if kind == "bare":
        print(json.dumps((asyncio.run(bare(hosts, port)), 0.0)))
    else:
        stores = {"unstored": ForgetfulStore, "survey": MeteredStore}
        print(json.dumps(survey(hosts, port, kind=stores[kind])))


if __name__ == "__main__":
    main()
