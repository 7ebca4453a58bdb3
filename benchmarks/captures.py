"""The URL index: its size, its speed beside raw_news, what a lookup reads, and its offsets.

Needs NEWS_PLATFORM_BENCH_DATA. A day of 300,000 captures is drawn from real addresses: words and
numbers of a path are replaced by those of other addresses in the same language.
"""

import base64
import gzip
import json
import os
import random
import re
import statistics
import tempfile
import time
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl

from benchmarks import RESULTS_FOLDER
from benchmarks.ccnews_runs import task_of
from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery
from news_platform.ccnews.captures import INDEX_LEVEL, capture_row, surt_key, write_sorted
from news_platform.ccnews.page import parse_head
from news_platform.ccnews.records import read_record
from news_platform.ccnews.warc import WarcResponse, iter_responses
from news_platform.ccnews.worker import collect_task
from news_platform.datasets.captures import CAPTURE_INDEX, CAPTURES
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.web.urls import registrable_domain, url_host

RESULTS = RESULTS_FOLDER / "captures.json"
_CAPTURES = 300_000
_DAYS = 365
_WARCS = 18
_TURNS = 3
_FIRST = date(2025, 1, 1)
_DOMAIN_CAPTURES = 100


def drawn_captures(data: Path, count: int) -> pl.DataFrame:
    """Return the captures of one day, drawn from real addresses."""
    chance = random.Random(37)
    lines = gzip.decompress((data / "stories" / "articles.jsonl.gz").read_bytes()).splitlines()
    articles = [json.loads(line) for line in lines]
    words: dict[str, list[str]] = defaultdict(list)
    for one in articles:
        words[one["lang"]] += re.findall(r"[a-z]{4,}", one["url"].split("/", 3)[-1])
    start, per_warc = datetime(2025, 1, 1, tzinfo=UTC), count // _WARCS + 1
    rows, offset = [], 0
    for number in range(count):
        one = chance.choice(articles)
        url = _varied(one["url"], words[one["lang"]], chance)
        host, (warc, place) = url_host(url), divmod(number, per_warc)
        offset, length = (0 if place == 0 else offset), int(chance.lognormvariate(9.9, 0.7))
        seconds = warc * 86_400 // _WARCS + place * 4_800 // per_warc
        rows.append(
            (
                surt_key(url),
                url,
                host,
                registrable_domain(host),
                start + timedelta(seconds=seconds),
                200 if chance.random() < 0.95 else 404,
                base64.b32encode(chance.randbytes(20)).decode(),
                "text/html",
                "text/html",
                {"en": "eng", "de": "deu", "es": "spa"}.get(one["lang"], "fra"),
                f"crawl-data/CC-NEWS/2025/01/CC-NEWS-20250101{warc:06}-{warc:05}.warc.gz",
                offset,
                length,
                "2025/01",
                "CC-NEWS-2025-01",
                "warc",
            )
        )
        offset += length + 400  # the request beside it
    return pl.DataFrame(rows, schema=CAPTURES.schema, orient="row")


def _varied(url: str, words: list[str], chance: random.Random) -> str:
    scheme, _, host, path = [*url.split("/", 3), ""][:4]
    path = re.sub(
        r"[a-z]{4,}", lambda m: chance.choice(words) if chance.random() < 0.8 else m[0], path
    )
    path = re.sub(r"\d{4,}", lambda m: "".join(chance.choices("0123456789", k=len(m[0]))), path)
    return f"{scheme}//{host}/{path}"


class CountedStore(ObjectStore):
    """A store that counts what is read from it by ranges."""

    def __init__(self, store: ObjectStore) -> None:
        super().__init__(store._backend, store._prefix)
        self.reads: list[int] = []

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Read and count."""
        self.reads.append(length)
        return super().read_range(path, start, length)


def size_and_lookup(data: Path, folder: Path) -> dict[str, float]:
    """Measure a day of the index, and a domain over a year of such days."""
    rows = drawn_captures(data, _CAPTURES)
    first = folder / CAPTURE_INDEX.place.path(date=str(_FIRST))
    first.parent.mkdir(parents=True)
    started = time.process_time()
    write_sorted(rows, first, level=INDEX_LEVEL)
    seconds, size = time.process_time() - started, first.stat().st_size
    for number in range(1, _DAYS):
        day = folder / CAPTURE_INDEX.place.path(date=str(_FIRST + timedelta(days=number)))
        day.parent.mkdir()
        day.hardlink_to(first)
    counted = rows.group_by("url_host_registered_domain").len()
    chosen = counted.filter(pl.col("len") <= _DOMAIN_CAPTURES).sort("len").row(-1)
    store = CountedStore(open_store(str(folder)))
    started = time.process_time()
    found = sum(map(len, CaptureFiles(store).iter_days(CaptureQuery.parse(f"*.{chosen[0]}"))))
    assert found == chosen[1] * _DAYS, (found, chosen)
    return {
        "captures": _CAPTURES,
        "bytes_per_capture": size / _CAPTURES,
        "write_cpu_seconds": seconds,
        "domain_captures_per_day": chosen[1],
        "days": _DAYS,
        "range_reads_per_file": len(store.reads) / _DAYS,
        "share_of_file_read": sum(store.reads) / _DAYS / size,
        "lookup_cpu_seconds": time.process_time() - started,
    }


def index_speed(data: Path) -> dict[str, float]:
    """Measure captures alone beside raw_news on the same WARC, whose records state no digest."""
    warc = min((data / "warc" / "world").iterdir())
    found: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(_TURNS + 1):
        for index_only, seconds in found.items():
            with tempfile.TemporaryDirectory() as folder:
                task = task_of(warc, Path(folder))
                task = replace(task, options=replace(task.options, index_only=index_only))
                started = time.process_time()
                marker = collect_task(task)
                if turn:  # the first loads the extractors
                    seconds.append(time.process_time() - started)
    ratios = [slow / fast for slow, fast in zip(found[False], found[True], strict=True)]
    per_second = (marker.captures or 0) / statistics.median(found[True])
    return {"times_raw_news": statistics.median(ratios), "captures_per_cpu_second": per_second}


def offsets(data: Path) -> dict[str, float]:
    """Count the captures of all WARCs whose range returns their record."""
    folder = data / "warc"
    paths = [*folder.glob("edge/**/*"), folder / "bench.warc.gz", *folder.glob("world/*")]
    captures = returned = 0
    for path in sorted(path for path in paths if path.is_file()):
        source = open_store(str(path.parent))
        try:
            with path.open("rb") as file:
                for item in iter_responses(file, warc_name=path.name, max_body_bytes=4096):
                    if isinstance(item, WarcResponse) and item.record.uri:
                        row = capture_row(item, parse_head(item.head))
                        row |= {"warc_filename": path.name, "date": "2025-01-01"}
                        captures += 1
                        record = read_record(row, crawl=[source], root=source)
                        returned += record.response.record.uri == row["url"]
        except InputError:
            continue  # an ARC or a cut file, of which nothing is published
    return {"captures_read_back": captures, "share_returned": returned / captures}


def main() -> None:
    """Measure, print the table, and store it."""
    place = os.environ.get("NEWS_PLATFORM_BENCH_DATA")
    if not place:
        print("captures: skipped, NEWS_PLATFORM_BENCH_DATA is not set")
        return
    data = Path(place)
    with tempfile.TemporaryDirectory() as folder:
        found = {**size_and_lookup(data, Path(folder)), **index_speed(data), **offsets(data)}
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    aims = {
        "bytes_per_capture": found["bytes_per_capture"] <= 95,
        "times_raw_news": found["times_raw_news"] >= 6,
        "range_reads_per_file": found["range_reads_per_file"] <= 2,
        "share_of_file_read": found["share_of_file_read"] <= 0.02,
        "share_returned": found["share_returned"] == 1,
    }
    for name, value in found.items():
        mark = "" if name not in aims else "reached" if aims[name] else "missed"
        print(f"{name:26} {value:12.4f}  {mark}")


if __name__ == "__main__":
    main()
