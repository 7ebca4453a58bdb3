"""The reach of a takedown: time of a lookup, bytes that removal rewrites, speed of verification.

Also how many objects a run reads to know a hundred thousand requests.
"""

import json
import os
import random
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from benchmarks import RESULTS_FOLDER
from benchmarks.domain_store_growth import CountingStore
from news_platform.ccnews.pipeline import WarcSource, collect_warcs
from news_platform.ccnews.pool import CollectOptions
from news_platform.datasets.raw_news import CAPTURES, RAW_NEWS, RAW_NEWS_ORDER
from news_platform.datasets.takedowns import TakedownKind, TakedownRequest
from news_platform.domain_store.building.engine import StoreEngine, clean_bucket
from news_platform.domain_store.layout import BuildOptions, bucket_of
from news_platform.domain_store.pipeline import build_buckets
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import TakedownTerms, add_request, new_request, update_cache
from news_platform.takedowns.rows import TakedownTarget
from news_platform.takedowns.verify import VerificationReport, verify_objects

RESULTS = RESULTS_FOLDER / "takedown.json"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENTRIES, LOOKUPS = 100_000, 200_000
DAYS, BUCKETS = 400, 1_000
# A day of CC-NEWS.
WARCS_A_DAY = 18
LARGE = "large.example"


def main() -> None:
    """Print the figures and store them as JSON."""
    found = {"lookup_us": lookup_microseconds()}
    with tempfile.TemporaryDirectory() as folder:
        found |= many_requests(open_store(folder))
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/store")
        build_store(store)
        found["verify_mb_s"] = verify_speed(store)
        found["domain_rewritten_per_own_byte"] = domain_ratio(store)
        if bench := os.environ.get("NEWS_PLATFORM_BENCH_DATA"):
            found["url_share_of_day"] = url_share(Path(bench) / "warc", Path(folder))
    limits = {
        "lookup_us": "at most 2",
        "requests_reads": "reads of 100,000 requests, as many without the cache",
        "requests_seconds": "CPU of reading them and making the matcher",
        "requests_seconds_again": "CPU of looking whether anything changed",
        "verify_mb_s": "at least 200, inflated, one core",
        "domain_rewritten_per_own_byte": "at most 3",
        "url_share_of_day": "at most 0.04",
    }
    for name, value in found.items():
        print(f"{name:<32}{value:>10.3f}  ({limits[name]})")
    RESULTS.write_text(json.dumps({k: round(v, 4) for k, v in found.items()}, indent=1) + "\n")


def _asked(kind: str, *values: str) -> TakedownRequest:
    return new_request(TakedownKind(kind), values, terms=TakedownTerms("bench"), now=NOW)


def lookup_microseconds() -> float:
    """Return the CPU time of a lookup among 100,000 entries; one in five is covered."""
    third = ENTRIES // 3
    takedowns = Takedowns.of(
        [
            _asked("url", *(f"https://www.u{n}.org/2024/story-{n}" for n in range(third))),
            _asked("prefix", *(f"https://p{n}.org/archive/" for n in range(third))),
            _asked("domain", *(f"d{n}.org" for n in range(third))),
        ]
    )
    draw = random.Random(1)
    hosts = ("www.u{}.org/2024/story-{}", "news.free{}.org/2024/05/a-long-story-{}")
    urls = [
        "https://" + hosts[draw.random() > 0.2].format(n := draw.randrange(third), n)
        for _ in range(LOOKUPS)
    ]
    # The best of many short runs: other processes of a busy machine empty the CPU's caches.
    size = 2_000
    return min(
        _seconds(takedowns, urls[start : start + size]) / size * 1e6
        for start in range(0, LOOKUPS, size)
    )


def _seconds(takedowns: Takedowns, urls: list[str]) -> float:
    covers = takedowns.covers
    started = time.process_time()
    for url in urls:
        covers(url)
    return time.process_time() - started


class _CountingReads(ObjectStore):
    """Counts the objects that are read."""

    reads = 0

    def read(self, path: str, *, expected_size: int | None = None) -> bytes:
        """Read an object."""
        self.reads += 1
        return super().read(path, expected_size=expected_size)


def many_requests(store: ObjectStore) -> dict[str, float]:
    """Return how many reads, and how much CPU, a process needs for 100,000 requests."""
    for number in range(ENTRIES):
        add_request(store, _asked("url", f"https://www.u{number}.org/2024/story-{number}"))
    update_cache(store)
    counting = _CountingReads(store._backend)
    times = []
    for _ in range(2):
        started = time.process_time()
        takedowns = Takedowns.read(counting)
        times.append(time.process_time() - started)
    assert len(takedowns.pages) == ENTRIES
    return {
        "requests_reads": float(counting.reads),
        "requests_seconds": times[0],
        "requests_seconds_again": times[1],
    }


def build_store(store: ObjectStore) -> None:
    """Build 400 days in which one domain has 1 % of the pages of a store of 1,000 buckets.

    Of the other 99 % only what shares its bucket is built, as many bytes as a bucket has on
    average, and a few pages elsewhere.
    """
    bucket = bucket_of(LARGE, BUCKETS)
    names = (f"small{n}.example" for n in range(1_000_000))
    neighbour = next(name for name in names if bucket_of(name, BUCKETS) == bucket)
    options = BuildOptions(buckets=BUCKETS, allow_removal=True)
    for number in range(DAYS):
        day = date(2024, 1, 1) + timedelta(days=number)
        hosts = [LARGE] * 10 + [neighbour] + [f"other{n}.example" for n in range(3)]
        rows = _rows(hosts, day, seed=number)
        stage_batch([rows], store=store, batch=str(day), inputs=str(day), options=options)
    touched = {bucket_of(name, BUCKETS) for name in (LARGE, *(f"other{n}.example" for n in "012"))}
    build_buckets(sorted(touched), store=store, options=options, now=NOW)


def _rows(domains: list[str], day: date, *, seed: int) -> pl.DataFrame:
    draw = random.Random(seed)
    words = [f"word{draw.randrange(5_000)}" for _ in range(2_000)]
    trees = [f"<p>{' '.join(draw.sample(words, 800))}</p>" for _ in domains]
    count = len(domains)
    columns: dict[str, object] = {
        **{name: [None] * count for name in RAW_NEWS_ORDER},
        "uri": [f"https://www.{name}/{day}/{n}" for n, name in enumerate(domains)],
        "tree": trees,
        "text": [tree[3:-4] for tree in trees],
        "main_lang": ["en"] * count,
        "host": [".".join(reversed(name.split("."))) for name in domains],
        "filename": ["bench.warc.gz"] * count,
        "year": [f"{day:%Y}"] * count,
        "month": [f"{day:%m}"] * count,
        "day": [f"{day:%d}"] * count,
    }
    schema = {name: RAW_NEWS.full_schema[name] for name in RAW_NEWS_ORDER}
    return pl.DataFrame(columns, schema=schema)


def domain_ratio(store: ObjectStore) -> float:
    """Return the bytes written to remove a domain per byte that it had in the store."""
    bucket = bucket_of(LARGE, BUCKETS)
    own = sum(info.size_bytes for info in store.list(f"domain_store/data/{bucket}")) * 10 / 11
    counting = CountingStore(store)
    options = BuildOptions(buckets=BUCKETS, allow_removal=True)
    target = TakedownTarget(Takedowns.of([_asked("domain", LARGE)]))
    clean_bucket(StoreEngine(counting, options, NOW), bucket, target)
    return counting.written_bytes / own


def verify_speed(store: ObjectStore) -> float:
    """Return the inflated megabytes of gzip data per second of CPU that a verification reads."""
    takedowns = Takedowns.of([_asked("url", f"https://{LARGE}/2024-02-01/3")])
    data = store.child("domain_store/data")
    speeds = []
    # The best of three: other processes of a busy machine empty the CPU's caches.
    for _ in range(3):
        started = time.process_time()
        found = VerificationReport(takedowns)
        verify_objects(data, found, within="domain_store/data/")
        speeds.append(found.bytes_inflated / 1e6 / (time.process_time() - started))
    return max(speeds)


def url_share(source: Path, folder: Path) -> float:
    """Return the share of a day's bytes that is rewritten for one page in its largest language."""
    root = open_store(str(folder / "day"))
    warcs = [WarcSource("bench.warc.gz", (open_store(str(source)),))]
    collect_warcs(warcs, root=root, options=CollectOptions(), now=NOW, attempt="bench")
    (marker,) = read_collected(root)
    language = max(marker.languages, key=lambda name: marker.languages[name])
    body = root.read(marker.news_paths()[language])
    uri = pl.read_parquet(body, columns=["uri"])["uri"][0]
    counting = CountingStore(root)
    target = TakedownTarget(Takedowns.of([_asked("url", uri)]))
    for table in (RAW_NEWS, CAPTURES):
        ParquetEngine(counting, table).remove_rows(str(marker.day), target)
    return counting.written_bytes / (marker.bytes * WARCS_A_DAY)


if __name__ == "__main__":
    main()
