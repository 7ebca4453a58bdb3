"""Measure adding a day to a small and to a large store, compaction included."""

from datetime import date, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import BinaryIO

import polars as pl

from benchmarks.domain_store_bucket import NOW, cpu_seconds
from benchmarks.domain_store_pages import Page, iter_short_pages
from news_platform.domain_store.layout import BuildOptions
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.pipeline import build_buckets
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.storage.objects.store import ObjectInfo, ObjectStore, open_store

# One bucket of one day of CC-NEWS: about 4 MB compressed.
DAY_RECORDS, DAY_DOMAINS = 1_400, 60
DAYS = 416
# Two rounds of small merges around the 10th day; around the 400th one large merge as well.
EARLY, LATE = range(2, 18), range(352, 416)
OPTIONS = BuildOptions(buckets=1)


class CountingStore(ObjectStore):
    """An object store that counts the bytes written to it."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store._backend, store._prefix)
        self.written_bytes = 0

    def put(self, path: str, body: bytes | Path | BinaryIO) -> ObjectInfo:
        """Write and count the bytes."""
        info = super().put(path, body)
        self.written_bytes += info.size_bytes
        return info

    def put_if_absent(self, path: str, body: bytes) -> bool:
        """Write and count the bytes."""
        self.written_bytes += len(body)
        return super().put_if_absent(path, body)

    def compare_and_set(self, path: str, body: bytes, *, etag: str | None) -> str:
        """Write and count the bytes."""
        self.written_bytes += len(body)
        return super().compare_and_set(path, body, etag=etag)


def measure(pages: list[Page], folder: Path) -> dict[str, float]:
    """Return how the time to add a day grows, how much is rewritten, and the most fragments."""
    store = open_store(str(folder / "growth"))
    counting = CountingStore(store)
    frames = [
        pl.concat(iter_short_pages(pages, DAY_RECORDS, domains=DAY_DOMAINS, seed=seed))
        for seed in range(8)
    ]
    times: list[float] = []
    added = most = 0
    for number in range(DAYS):
        day = (date(2024, 1, 1) + timedelta(days=number)).isoformat()
        rows = frames[number % len(frames)]
        added += stage_batch([rows], store=store, batch=day, inputs="x", options=OPTIONS).bytes
        times.append(cpu_seconds(partial(_build, counting, NOW + timedelta(days=number))))
        most = max(most, _most_fragments(store))
    early, late = (sum(times[number] for number in part) / len(part) for part in (EARLY, LATE))
    return {
        "early_day_ms": early * 1e3,
        "late_day_ms": late * 1e3,
        "growth_ratio": late / early,
        "written_per_byte": counting.written_bytes / added,
        "most_fragments": float(most),
    }


def _build(store: ObjectStore, now: datetime) -> None:
    build_buckets([0], store=store, options=OPTIONS, now=now)


def _most_fragments(store: ObjectStore) -> int:
    fragments = DomainStore(store).catalog(0)["fragments"].to_list()
    return max(int(count) for count in fragments)
