"""The corpus on real pages: a day, the article decision, exports, clusters and scans.

Speeds are per second of CPU time of all processes; each is compared with a bare loop over the same
pages or texts in this process. `python -m benchmarks.corpus NAME` runs one part.
"""

import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from statistics import median

import polars as pl

from benchmarks import RESULTS_FOLDER
from benchmarks.corpus_scan import scan_ratios
from benchmarks.near_duplicate_edits import PLAIN
from benchmarks.near_duplicates import article_bodies
from benchmarks.page_kinds import iter_kind_pages
from benchmarks.stored_texts import store_texts
from news_platform.articles.extract import extract_article
from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.pipeline import load_tokenizer
from news_platform.corpus.pipeline import build_crawl_day
from news_platform.datasets.collected import Collected
from news_platform.datasets.raw_news import RAW_NEWS, raw_news_path
from news_platform.html.decode import html_text
from news_platform.near_duplicates.candidates import THRESHOLD
from news_platform.near_duplicates.pipeline import build_day
from news_platform.near_duplicates.reading import read_clusters
from news_platform.settings import load_settings
from news_platform.storage.commit.collected import write_collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import write_table
from news_platform.text.normalize import jaccard, shingles
from news_platform.web.urls import reversed_domain

RESULTS = RESULTS_FOLDER / "corpus.json"
DAY = "2025-11-01"
_PAGES = 600
_WINDOW = 14
_STRENGTH = 0.05


def main() -> None:
    """Run the parts that are named, by default all, and store their figures."""
    data = load_settings(os.environ).bench_data
    if not data:
        print("corpus: set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    parts: Mapping[str, Callable[[Path], Mapping[str, float]]] = {
        "day": measure_day,
        "decision": measure_decision,
        "export": measure_export,
        "clusters": measure_clusters,
        "scan": scan_ratios,
    }
    known = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name in [part for part in sys.argv[1:] if part in parts] or list(parts):
        known[name] = {key: round(value, 4) for key, value in parts[name](Path(data)).items()}
        for key, value in known[name].items():
            print(f"{name:<10}{key:<36}{value:>12.4f}", flush=True)
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(known, indent=1) + "\n")


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


def measure_day(data: Path) -> Mapping[str, float]:
    """Build a day of real pages; compare its speed with bare extraction, its size with raw_news."""
    pages = _sample(data)
    loaded = [(html_text(html, None), url) for html, url in pages]
    extract_article(*loaded[0])
    started = time.process_time()
    for text, url in loaded:
        extract_article(text, url)
    bare = len(loaded) / (time.process_time() - started)
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/root")
        # Starting a worker takes seconds once per day of 300,000 pages: it is measured apart.
        raw_bytes = _collect(store, loaded[:1], "2025-10-31")
        before = cpu_seconds()
        build_crawl_day(store, "2025-10-31", options=CorpusOptions(workers=1))
        start_up = cpu_seconds() - before
        raw_bytes = _collect(store, loaded, DAY)
        before = cpu_seconds()
        report = build_crawl_day(store, DAY, options=CorpusOptions(workers=1))
        spent = cpu_seconds() - before - start_up
        assert report is not None
        return {
            "pages_per_cpu_second": len(loaded) / spent,
            "bare_pages_per_cpu_second": bare,
            "ratio_to_bare": len(loaded) / spent / bare,
            "start_up_cpu_seconds": start_up,
            "article_share": report.article_share,
            "bytes_share_of_raw_news": report.bytes / raw_bytes,
            "objects": float(report.files),
        }


def _sample(data: Path) -> Sequence[tuple[bytes, str]]:
    chance = random.Random(1)
    found = [(page.html, page.url) for page in iter_kind_pages(data) if "://" in page.url]
    return chance.sample(found, min(_PAGES, len(found)))


def _collect(store: ObjectStore, pages: Sequence[tuple[str, str]], day: str) -> int:
    """Store pages as a collected WARC of raw_news; return the size of its file."""
    when, warc = date.fromisoformat(day), f"CC-NEWS-{day}.warc.gz"
    columns = {
        "uri": [url for _, url in pages],
        "tree": [text for text, _ in pages],
        "text": ["" for _ in pages],
        "host": [reversed_domain(url) for _, url in pages],
    }
    empty = [None] * len(pages)
    frame = pl.DataFrame(
        [pl.Series(name, columns.get(name, empty), kind) for name, kind in RAW_NEWS.schema.items()]
    )
    path = raw_news_path(when, "en", filename=warc)
    write_table(store, path, frame, RAW_NEWS)
    size = store.head(path).size_bytes
    marker = Collected(
        warc=warc,
        day=when,
        source="",
        source_etag="",
        source_bytes=size,
        rows=len(pages),
        bytes=size,
        languages={"en": len(pages)},
        dropped={},
        captures=None,
        feed_candidates=0,
        extractor_version="1",
        attempt="1",
        collected_at=f"{day}T00:00:00+00:00",
    )
    write_collected(store, marker)
    return size


def measure_decision(data: Path) -> Mapping[str, float]:
    """Return recall and false positives by kind, on sites that were not learned from."""
    # LightGBM is needed for this part only.
    from benchmarks.page_kinds import page_row
    from benchmarks.train_pages import decided_by_other_folds, kept_shares, unseen_scores

    rows = [row for row in map(page_row, iter_kind_pages(data)) if row is not None]
    return kept_shares(rows, decided_by_other_folds(rows, unseen_scores(rows)))


def measure_export(data: Path) -> Mapping[str, float]:
    """Export real texts with tokens, against a bare loop over the same texts, in five rounds.

    The start of the command is measured apart: it is what the export of a few texts takes.
    """
    count = load_tokenizer()
    if count is None:
        return {}
    bodies = article_bodies(data)
    texts = [f"{body}\n{copy}" for copy in range(60) for body in bodies]
    count(texts[0])
    rounds = []
    with tempfile.TemporaryDirectory() as folder:
        for name, some in (("all", texts), ("few", texts[:40])):
            urls = {f"https://s{n % 50}.example/{n}": text for n, text in enumerate(some)}
            store_texts(open_store(f"{folder}/{name}"), DAY, urls)
        for _ in range(5):
            started = time.process_time()
            for text in texts:
                count(text)
            bare = time.process_time() - started
            start_up = _export_seconds(f"{folder}/few")
            rounds.append((bare, _export_seconds(f"{folder}/all"), start_up))
    ratios = [bare / (whole - start_up) for bare, whole, start_up in rounds]
    return {
        "ratio_to_bare": median(ratios),
        "least_ratio_to_bare": min(ratios),
        "ratio_with_start_up": median(bare / whole for bare, whole, _ in rounds),
        "start_up_cpu_seconds": median(start_up for _, _, start_up in rounds),
        "articles_per_cpu_second": len(texts) / median(whole for _, whole, _ in rounds),
    }


def _export_seconds(root: str) -> float:
    """Return the CPU time of the whole command."""
    words = ["corpus", "export", "--root", root, "--output", f"{root}-export"]
    before = cpu_seconds()
    subprocess.run(
        [sys.executable, "-m", "news_platform.cli", *words], check=True, stdout=subprocess.DEVNULL
    )
    return cpu_seconds() - before


def measure_clusters(data: Path) -> Mapping[str, float]:
    """Plant edits of real articles over the days of a window, and count the pairs found."""
    bodies, chance = article_bodies(data), random.Random(3)
    first = date(2025, 11, 1)
    days = [(first + timedelta(days=number)).isoformat() for number in range(_WINDOW)]
    planted: dict[str, dict[str, str]] = {day: {} for day in days}
    for number, body in enumerate(bodies):
        for copy, (name, edit) in enumerate([("as it is", None), *PLAIN.items()]):
            text = body if edit is None else edit(body, _STRENGTH, chance, bodies)
            url = f"https://{name.replace(' ', '-')}{number}.example/{number}-{copy}"
            planted[chance.choice(days)][url] = text
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"{folder}/root")
        started = time.process_time()
        for day in days:
            store_texts(store, day, planted[day])
            build_day(store, day, days=_WINDOW)
        spent = time.process_time() - started
        rows = read_clusters(store, days)
    return {**_pair_scores(rows, planted), "articles_per_cpu_second": rows.height / spent}


def _pair_scores(
    rows: pl.DataFrame, planted: Mapping[str, Mapping[str, str]]
) -> Mapping[str, float]:
    texts = {url: text for day in planted.values() for url, text in day.items()}
    clusters: dict[str, list[str]] = {}
    for url, name in rows.select("uri", "cluster_id").iter_rows():
        clusters.setdefault(name, []).append(url)
    found = {pair for urls in clusters.values() for pair in combinations(sorted(urls), 2)}
    alike = set(_alike_pairs(texts))
    same = {pair for pair in found if _origin(pair[0]) == _origin(pair[1])}
    return {
        "recall": len(alike & found) / len(alike),
        "precision": len(same) / len(found),
        "planted_pairs": float(len(alike)),
    }


def _origin(url: str) -> str:
    return url.rpartition("/")[2].partition("-")[0]


def _alike_pairs(texts: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the pairs of one origin that are near-identical by the plain definition."""
    threshold = THRESHOLD
    groups: dict[str, list[str]] = {}
    for url in texts:
        groups.setdefault(_origin(url), []).append(url)
    for urls in groups.values():
        sets = {url: shingles(texts[url], 3) for url in urls}
        for one, other in combinations(sorted(urls), 2):
            if jaccard(sets[one], sets[other]) >= threshold:
                yield one, other


if __name__ == "__main__":
    main()
