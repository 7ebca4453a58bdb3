"""The reach of a takedown: time of a lookup, bytes that removal rewrites, speed of verification.

Also how long a list of 10,000 domains takes on 100 days.
"""

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from benchmarks import RESULTS_FOLDER
from benchmarks.domain_store_growth import CountingStore
from news_platform.ccnews.pipeline import WarcSource, collect_warcs
from news_platform.ccnews.pool import CollectOptions
from news_platform.datasets.captures import CAPTURES
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER
from news_platform.datasets.takedowns import TakedownKind, TakedownRequest
from news_platform.domain_store.building.engine import StoreEngine, clean_bucket
from news_platform.domain_store.layout import BuildOptions, bucket_of
from news_platform.domain_store.pipeline import build_buckets
from news_platform.domain_store.staging.stage import stage_batch
from news_platform.storage.commit.collected import read_collected
from news_platform.storage.engines import ParquetEngine
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import TakedownTerms, new_request
from news_platform.takedowns.rows import TakedownTarget
from news_platform.takedowns.verify import VerificationReport, verify_objects
from news_platform.web.urls import has_registrable_domain, registrable_domain, url_host

RESULTS = RESULTS_FOLDER / "takedown.json"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ENTRIES, LOOKUPS = 100_000, 200_000
DAYS, BUCKETS = 400, 1_000
LIST_DAYS, LIST_ENTRIES = 100, 10_000
# A day of CC-NEWS.
WARCS_A_DAY = 18
LARGE = "large.example"


def main() -> None:
    """Print the figures and store them as JSON."""
    found = {"lookup_us": lookup_microseconds()}
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/store")
        build_store(store)
        found["verify_mb_s"] = verify_speed(store)
        found["domain_rewritten_per_own_byte"] = domain_ratio(store)
        if bench := os.environ.get("NEWS_PLATFORM_BENCH_DATA"):
            found["url_share_of_day"] = url_share(Path(bench) / "warc", Path(folder))
            found |= list_seconds(Path(bench) / "warc", Path(folder))
    limits = {
        "lookup_us": "at most 2",
        "list_import_s": "a list of 10,000 domains on 100 days of pages",
        "list_apply_s": "its removal from everything",
        "list_verify_s": "all three together at most 600",
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


def list_seconds(source: Path, folder: Path, *, days: int = LIST_DAYS) -> dict[str, float]:
    """Return how long a list of 10,000 domains takes on a root of many days of real pages.

    Every day has the pages of the same WARC; every second of their domains is on the list.
    """
    warcs, root = folder / "warcs", folder / "days"
    warcs.mkdir()
    names = [
        f"CC-NEWS-{date(2025, 1, 1) + timedelta(days=n):%Y%m%d}000000-00001.warc.gz"
        for n in range(days)
    ]
    for name in names:
        (warcs / name).symlink_to(source / "bench.warc.gz")
    store = open_store(str(root))
    sources = [WarcSource(name, (open_store(str(warcs)),)) for name in names]
    collect_warcs(sources, root=store, options=CollectOptions(), now=NOW, attempt="bench")
    for words in (("store", "build"), ("corpus", "build")):
        _command(root, *words)
    hosts = ParquetEngine(store, CAPTURES).scan().select("uri").unique().collect()["uri"]
    named = {registrable_domain(url_host(uri)) for uri in hosts}
    held = sorted(filter(has_registrable_domain, named))
    entries = [*held[::2], *(f"site{n}.org" for n in range(LIST_ENTRIES))][:LIST_ENTRIES]
    (folder / "list.txt").write_text("\n".join(entries))
    steps = {
        "import": ("import", str(folder / "list.txt"), "--list", "bench"),
        "apply": ("apply",),
        "verify": ("verify",),
    }
    return {f"list_{name}_s": _command(root, "takedown", *words) for name, words in steps.items()}


def _command(root: Path, *words: str) -> float:
    """Run a command on a root; return the seconds that it took."""
    started = time.monotonic()
    command = [sys.executable, "-m", "news_platform.cli", *words, "--root", str(root)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


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
