"""The search on articles that are recombined from the paragraphs of real ones.

`python -m benchmarks.search NAME` runs one part. `python -m benchmarks.search queries FOLDER` keeps
the million articles in a folder, so that the queries can be measured again.
"""

import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import tantivy

from benchmarks import RESULTS_FOLDER
from benchmarks.corpus import cpu_seconds
from news_platform.search.engine import SearchOptions
from news_platform.search.index import SearchableArticle, build_index
from news_platform.search.pipeline import search_days
from news_platform.search.publish import (
    DATASET,
    IndexPlace,
    IndexReport,
    index_folder,
    point_day,
    publish_index,
)
from news_platform.search.reading import IndexCache
from news_platform.search.words import words
from news_platform.settings import load_settings
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform_tests.emulators.s3 import new_bucket, s3_process

RESULTS = RESULTS_FOLDER / "search.json"
# Sets of news articles; the others have long pages of other kinds, too.
_NEWS_SETS = ("dragnet", "fundus_eval", "l3s", "newspaper", "waddle")
_FIRST = date(2025, 11, 1)
_DAYS = 30
# Building a million articles takes a quarter of an hour of CPU time: each of these days is there
# several times, in the index as in the table that is scanned.
_DISTINCT_DAYS = 6
_ARTICLES = 1_000_000
_COLD_ARTICLES = 20_000
_INDEXED = 20_000
_QUERIES = 200
_SCANS = 6
_ROWS_PER_GROUP = 5_000


def main() -> None:
    """Run the parts that are named, by default all, and store their figures."""
    data = load_settings(os.environ).bench_data
    if not data:
        print("search: set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    made = MadeArticles(_bodies(Path(data)))
    parts: Mapping[str, Callable[[MadeArticles], Mapping[str, float]]] = {
        "indexing": measure_indexing,
        "queries": measure_queries,
        "cold": measure_cold,
    }
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in [part for part in sys.argv[1:] if part in parts] or list(parts):
        known[name] = {key: round(value, 4) for key, value in parts[name](made).items()}
        for key, value in known[name].items():
            print(f"{name:<10}{key:<36}{value:>14.4f}", flush=True)
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


def _bodies(data: Path) -> list[str]:
    sets = [data / "articles" / "corpus" / name / "truth" for name in _NEWS_SETS]
    truths = (json.loads(path.read_bytes()) for one in sets for path in sorted(one.glob("*.json")))
    return [truth["body"] for truth in truths if truth["body"]]


@dataclass(frozen=True, slots=True)
class MadeArticles:
    """Articles as long as real ones, each of paragraphs of several real ones."""

    bodies: Sequence[str]

    def of_day(self, day: date, count: int) -> Iterator[SearchableArticle]:
        """Yield the same articles every time."""
        dice = random.Random(day.toordinal())
        paragraphs = [part for body in self.bodies for part in body.split("\n") if part.strip()]
        lengths = [len(body) for body in self.bodies]
        at = datetime.combine(day, datetime.min.time(), tzinfo=UTC)
        for number in range(count):
            parts, left = [], dice.choice(lengths)
            while left > 0:
                parts.append(dice.choice(paragraphs))
                left -= len(parts[-1])
            site = dice.randrange(5_000)
            url = f"https://site{site:04}.example/{day}/{number}"
            yield SearchableArticle(
                url=url,
                canonical_url=url,
                url_hash=f"{day.toordinal():032x}{number:032x}",
                domain=f"site{site:04}.example",
                language="en",
                day=day.isoformat(),
                source="crawl",
                at=at + timedelta(seconds=number % 86_400),
                title=" ".join(parts[-1].split()[:9]),
                text="\n".join(parts),
            )


def measure_indexing(made: MadeArticles) -> Mapping[str, float]:
    """Return articles per CPU second of all threads, and the size of the index."""
    articles = list(made.of_day(_FIRST, _INDEXED))
    text_bytes = sum(len(one.text.encode()) for one in articles)
    with tempfile.TemporaryDirectory() as folder:
        before = cpu_seconds()
        build_index(Path(folder), articles)
        spent = cpu_seconds() - before
        size = sum(path.stat().st_size for path in Path(folder).iterdir())
        before = cpu_seconds()
        _build_bare(articles)
        bare = cpu_seconds() - before
    return {
        "articles_per_cpu_second": len(articles) / spent,
        "bare_articles_per_cpu_second": len(articles) / bare,
        "ratio_to_bare": bare / spent,
        "megabytes_per_cpu_second": text_bytes / spent / 1e6,
        "text_bytes_per_article": text_bytes / len(articles),
        "index_share_of_text": size / text_bytes,
    }


def _build_bare(articles: Sequence[SearchableArticle]) -> None:
    """Index titles and texts as the library does by itself, without folding and facts."""
    builder = tantivy.SchemaBuilder()
    for name in ("title", "text"):
        builder.add_text_field(name)
    with tempfile.TemporaryDirectory() as folder:
        writer = tantivy.Index(builder.build(), path=folder).writer(256 << 20, num_threads=1)
        for one in articles:
            writer.add_document(tantivy.Document(title=one.title, text=one.text))
        writer.commit()
        writer.wait_merging_threads()


def measure_queries(made: MadeArticles) -> Mapping[str, float]:
    """Compare queries over 30 days, warm and on one core, with `ilike` over the same texts."""
    kept = next((Path(name) for name in sys.argv[2:] if "/" in name), None)
    with tempfile.TemporaryDirectory() as scratch:
        folder = kept or Path(scratch)
        store = open_store(str(folder / "root"))
        table = folder / "texts"
        if not table.exists():
            _store_all(made, store, table)
        cache = IndexCache(store, folder / "cache", max_bytes=1 << 40)
        queries = list(_queries(made, _QUERIES))
        took = _timed(lambda query: _search(cache, query), [*queries, *queries])[_QUERIES:]
        base = duckdb.connect()
        base.execute("SET threads = 1")
        files = [str(table / f"{day}.parquet") for day in _days()[:_DISTINCT_DAYS]]
        base.execute(
            f"CREATE VIEW texts AS SELECT * FROM read_parquet({files * (_DAYS // _DISTINCT_DAYS)})"
        )
        scans = _timed(lambda word: _scan(base, word), list(_words(made, _SCANS)))
    return {
        "articles": float(_ARTICLES),
        "p50_ms": _quantile(took, 0.5) * 1e3,
        "p95_ms": _quantile(took, 0.95) * 1e3,
        "slowest_ms": max(took) * 1e3,
        "ilike_p95_ms": _quantile(scans, 0.95) * 1e3,
        "times_faster_than_ilike": _quantile(scans, 0.95) / _quantile(took, 0.95),
    }


def measure_cold(made: MadeArticles) -> Mapping[str, float]:
    """Search an S3 emulator with an empty cache: the newest day alone, then all days."""
    with s3_process() as server, tempfile.TemporaryDirectory() as scratch:
        options = StoreOptions(
            endpoint_url=server, allow_http=True, access_key="x", secret_key="x", region="us-east-1"
        )
        store = open_store(f"s3://{new_bucket(server)}/root", options=options)
        for day in _days()[:_DISTINCT_DAYS]:
            _publish(made, store, day, _COLD_ARTICLES)
        _repeat_days(store)
        newest = str(_days()[-1])
        query = next(_words(made, 1))
        found: dict[str, float] = {}
        for name, first in (("newest_day", newest), ("all_days", "")):
            cache = IndexCache(store, Path(scratch) / name, max_bytes=1 << 40)
            chosen = SearchOptions(first_day=first, last_day=newest)
            started = time.perf_counter()
            search_days(cache, query, chosen, default_days=_DAYS)
            found[f"{name}_seconds"] = time.perf_counter() - started
            found[f"{name}_megabytes"] = cache.fetched_bytes / 1e6
    return found


def _store_all(made: MadeArticles, store: ObjectStore, table: Path) -> None:
    part = table.with_suffix(".part")
    part.mkdir(parents=True, exist_ok=True)
    per_day = -(-_ARTICLES // _DAYS)
    for day in _days()[:_DISTINCT_DAYS]:
        file = part / f"{day}.parquet"
        if not file.exists():
            _publish(made, store, day, per_day)
            rows = [(one.title, one.text) for one in made.of_day(day, per_day)]
            frame = pl.DataFrame(rows, schema=["title", "text"], orient="row")
            frame.write_parquet(file.with_suffix(".tmp"), row_group_size=_ROWS_PER_GROUP)
            file.with_suffix(".tmp").rename(file)
    _repeat_days(store)
    part.rename(table)


def _days() -> list[date]:
    return [_FIRST + timedelta(days=number) for number in range(_DAYS)]


def _repeat_days(store: ObjectStore) -> None:
    """Let each further day have a copy of the index of one of the first days."""
    known = read_markers(store, DATASET)
    for number, day in enumerate(map(str, _days())):
        source = known[str(_days()[number % _DISTINCT_DAYS])]
        if day in known:
            continue
        files = list(store.list(index_folder(source.partition, source.scope)))
        for info in files:
            name = info.path.rpartition("/")[2]
            store.put(f"{index_folder(day, source.scope)}/{name}", store.read(info.path))
        report = IndexReport(0, len(files), sum(info.size_bytes for info in files))
        point_day(store, day, IndexPlace(day, source.scope), inputs="0" * 16, report=report)


def _publish(made: MadeArticles, store: ObjectStore, day: date, count: int) -> None:
    now = datetime.now(UTC)
    publish_index(store, day.isoformat(), made.of_day(day, count), inputs="0" * 16, now=now)


def _words(made: MadeArticles, count: int) -> Iterator[str]:
    """Yield words of the texts, so that frequent ones come more often."""
    dice = random.Random(7)
    long = [[word for word in words(body) if len(word) > 3] for body in made.bodies]
    known = [found for found in long if found]
    for _ in range(count):
        yield dice.choice(dice.choice(known))


def _queries(made: MadeArticles, count: int) -> Iterator[str]:
    """Yield words, pairs, alternatives, phrases, exclusions and fields in turn."""
    dice = random.Random(8)
    for number, word in enumerate(_words(made, count)):
        text = dice.choice(made.bodies).split()
        start = dice.randrange(max(1, len(text) - 3))
        phrase = " ".join(words(" ".join(text[start : start + 3]))[:3]) or word
        other = words(text[start])[:1] or [word]
        yield (
            word,
            f"{word} {other[0]}",
            f"{word} OR {other[0]}",
            f'"{phrase}"',
            f"{word} -{other[0]}",
            f"title:{word} domain:site0042.example",
        )[number % 6]


def _search(cache: IndexCache, query: str) -> int:
    return search_days(cache, query, SearchOptions(), default_days=_DAYS).count


def _scan(base: duckdb.DuckDBPyConnection, word: str) -> int:
    query = "SELECT count(*) FROM texts WHERE title ILIKE $1 OR text ILIKE $1"
    found = base.execute(query, [f"%{word}%"]).fetchone()
    return int(found[0]) if found else 0


def _timed(work: Callable[[str], int], items: Sequence[str]) -> list[float]:
    """Return the CPU seconds of each item: everything is in memory, and one core works."""
    took = []
    for item in items:
        started = time.process_time()
        work(item)
        took.append(time.process_time() - started)
    return took


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


if __name__ == "__main__":
    main()
