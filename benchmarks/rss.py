"""Measure rss: extraction of real pages, feed parsing, polling, and articles end to end.

What is compared runs in the same process, in turns. Pages per second are per CPU second.
"""

import calendar
import gzip
import json
import logging
import os
import re
import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import feedparser
import trafilatura

from benchmarks import RESULTS_FOLDER
from benchmarks.rss_site import Site, serve
from news_platform.articles.article import Article
from news_platform.articles.extract import extract_article
from news_platform.errors import InputError
from news_platform.rss import pipeline
from news_platform.rss.article_files import WorkPlaces
from news_platform.rss.feeds import FeedEntry, parse_feed, plain
from news_platform.rss.ledger.article_queue import WorkOptions
from news_platform.rss.ledger.entries import add_entries, entries_by_url_hash
from news_platform.rss.ledger.feed_rows import upsert_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.poll_results import PollOptions
from news_platform.settings import load_settings
from news_platform.storage.objects.store import open_store
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform.web.fetch import FetchOptions

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
RESULTS = RESULTS_FOLDER / "rss.json"
FEEDS_304 = 10_000
ARTICLE_COPIES = 4
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement and the value that it must reach."""

    what: str
    value: float
    at_least: float


def main() -> None:
    """Run all measurements, print a table, and write the results file."""
    data = load_settings(os.environ).bench_data
    if not data:
        print("rss: skipped, set NEWS_PLATFORM_BENCH_DATA to the folder of real inputs")
        return
    logging.disable(logging.CRITICAL)
    measurements = [
        *measure_articles(Path(data) / "articles"),
        *measure_feeds(Path(data) / "feeds"),
        *measure_poll(),
        *measure_work(Path(data) / "articles"),
    ]
    print(f"{'rss':<58}{'measured':>10}{'at least':>10}")
    for one in measurements:
        mark = "" if one.value >= one.at_least else "  below"
        print(f"{one.what:<58}{one.value:>10.3f}{one.at_least:>10}{mark}")
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps([asdict(one) for one in measurements], indent=1) + "\n")


def measure_articles(folder: Path) -> list[Measurement]:
    """Score the extracted text and metadata, and trafilatura's text for comparison."""
    extract_article("<p>load the language model", "")
    measurements = []
    for name, floor in (("benchmark", 0.965), ("publishers", 0.950)):
        pages, truth = read_pages(folder / name), read_truth(folder / name)
        ours, seconds = _timed(partial(_extract_all, pages))
        theirs = {k: trafilatura.extract(p, include_comments=False) or "" for k, p in pages.items()}
        texts = {key: article.clean_text for key, article in ours.items()}
        measurements += [
            Measurement(f"body F1, {name}", body_f1(texts, truth), floor),
            Measurement(f"body F1, {name}, trafilatura for comparison", body_f1(theirs, truth), 0),
            Measurement(f"pages/s per core, {name}", len(pages) / seconds, 20),
        ]
    return [*measurements, *measure_metadata(ours, truth)]


def _extract_all(pages: Mapping[str, bytes]) -> dict[str, Article]:
    return {key: extract_article(page, "") for key, page in pages.items()}


def measure_metadata(ours: Mapping[str, Article], truth: Mapping[str, Any]) -> list[Measurement]:
    """Return the share of exact titles, authors and published days."""
    hits: dict[str, list[bool]] = {"title": [], "authors": [], "published day": []}
    for key, known in truth.items():
        article = ours[key]
        if known["title"]:
            hits["title"].append(_words(article.title) == _words(known["title"]))
        if known["authors"]:
            same = set(map(_words, article.authors)) == set(map(_words, known["authors"]))
            hits["authors"].append(same)
        if known["published_at"]:
            hits["published day"].append(_day(article.published_at) == _day(_moment(known)))
    floors = {"title": 0.82, "authors": 0.86, "published day": 0.98}
    return [
        Measurement(f"{name} exact, publishers", sum(found) / len(found), floors[name])
        for name, found in hits.items()
    ]


def measure_feeds(folder: Path) -> list[Measurement]:
    """Compare our feed parser with feedparser, in CPU time and in entries."""
    names = [entry["file"] for entry in json.loads((folder / "MANIFEST.json").read_text())]
    bodies = {name: (folder / name).read_bytes() for name in names}
    for body in bodies.values():  # both parsers import modules at the first call
        _entries(body)
    theirs_seconds = ours_seconds = 0.0
    for _ in range(3):
        theirs, seconds = _timed(lambda: {n: feedparser.parse(b) for n, b in bodies.items()})
        theirs_seconds += seconds
        ours, seconds = _timed(lambda: {n: _entries(b) for n, b in bodies.items()})
        ours_seconds += seconds
    same = [
        hit
        for name in names
        if not name.endswith(".json")  # feedparser does not read JSON feeds
        for hit in _same_entries(ours[name], theirs[name].entries)
    ]
    return [
        Measurement(
            "feed parsing, times faster than feedparser", theirs_seconds / ours_seconds, 20
        ),
        Measurement("entries as feedparser's: link, title, date", sum(same) / len(same), 0.99),
    ]


def measure_poll() -> list[Measurement]:
    """Poll 10,000 feeds over HTTP, all of which respond with 304."""
    with tempfile.TemporaryDirectory() as folder, serve(Site()) as (hosts, _):
        engine = open_engine(f"sqlite:///{folder}/ledger.sqlite")
        migrate(engine)
        with write_transaction(engine) as transaction:
            for number in range(FEEDS_304):
                url = f"https://h{number % 500}.example/feed/{number}"
                upsert_feed(transaction, url, feed_url=url, status="active", etag='"same"')
        started, cpu_before = time.perf_counter(), _cpu_seconds()
        report = pipeline.run_poll(
            engine,
            fetch=FetchOptions(host_map=hosts, per_host=8),
            options=PollOptions(concurrency=128),
            now=NOW,
        )
        seconds = time.perf_counter() - started
        cpu = _cpu_seconds() - cpu_before
        engine.dispose()
    assert report.outcomes == {"not_modified": FEEDS_304}, report.outcomes
    return [
        Measurement(f"poll of {FEEDS_304} unchanged feeds, feeds/s", FEEDS_304 / seconds, 300),
        Measurement("the same, feeds per CPU second", FEEDS_304 / cpu, 0),
    ]


def measure_work(folder: Path) -> list[Measurement]:
    """Claim, fetch, extract and store the real publisher pages over HTTP, and keep their bytes."""
    pages = read_pages(folder / "publishers")
    site = Site(
        {f"/{copy}/{key}": page for key, page in pages.items() for copy in range(ARTICLE_COPIES)}
    )
    with tempfile.TemporaryDirectory() as place, serve(site) as (hosts, _):
        engine = open_engine(f"sqlite:///{place}/ledger.sqlite")
        migrate(engine)
        urls = [f"https://h{n % 50}.example{path}" for n, path in enumerate(sorted(site.pages))]
        seen = entries_by_url_hash(FeedEntry(u, "", None, "", "") for u in urls)
        with write_transaction(engine) as transaction:
            add_entries(transaction, "https://h.example/rss", seen, max_new=len(seen), now=NOW)
        started, cpu_before = time.perf_counter(), _cpu_seconds()
        report = pipeline.run_work(
            engine,
            fetch=FetchOptions(host_map=hosts, per_host=8),
            places=WorkPlaces(open_store(f"{place}/full_text"), pages=open_store(f"{place}/pages")),
            known_robots=lambda _: None,
            worker_id="bench",
            options=WorkOptions(),
            clock=lambda: NOW,
        )
        seconds = time.perf_counter() - started
        cpu = _cpu_seconds() - cpu_before
        engine.dispose()
    assert report.claimed == len(urls), report.outcomes
    return [
        Measurement(f"articles/s end to end, {len(urls)} real pages", len(urls) / seconds, 30),
        Measurement("the same, articles per CPU second of all processes", len(urls) / cpu, 10),
    ]


def read_pages(folder: Path) -> dict[str, bytes]:
    """Return the pages of a data set by id."""
    paths = sorted((folder / "html").glob("*.html.gz"))
    return {p.name.removesuffix(".html.gz"): gzip.decompress(p.read_bytes()) for p in paths}


def read_truth(folder: Path) -> dict[str, Any]:
    """Return the ground truth of a data set by page id."""
    known = folder / "ground-truth.json"
    if known.exists():
        pages = json.loads(known.read_text())
        return {key: {"body": page["articleBody"]} for key, page in pages.items()}
    return {path.stem: json.loads(path.read_text()) for path in (folder / "truth").glob("*.json")}


def body_f1(texts: Mapping[str, str], truth: Mapping[str, Any]) -> float:
    """Return the F1 of mean precision and mean recall over 4-word shingles."""
    scores = [_precision_recall(texts[k], t["body"]) for k, t in truth.items() if t["body"]]
    precision, recall = (sum(score[side] for score in scores) / len(scores) for side in (0, 1))
    return 2 * precision * recall / (precision + recall)


def _precision_recall(found: str, wanted: str) -> tuple[float, float]:
    ours, theirs = _shingles(found), _shingles(wanted)
    hit = (ours & theirs).total()
    return (hit / ours.total() if ours else 0.0), hit / theirs.total()


def _shingles(text: str) -> Counter[tuple[str, ...]]:
    words = _WORD.findall(text)
    return Counter(tuple(words[i : i + 4]) for i in range(max(len(words) - 3, 1)))


def _entries(body: bytes) -> list[tuple[str, str, datetime | None]]:
    try:
        return [(e.link, e.title, e.published_at) for e in parse_feed(body).entries]
    except InputError:
        return []


def _same_entries(ours: list[tuple[str, str, datetime | None]], theirs: Any) -> list[bool]:
    same = []
    for mine, other in zip(ours, theirs, strict=False):
        parsed = other.get("published_parsed") or other.get("updated_parsed")
        moment = datetime.fromtimestamp(calendar.timegm(parsed), UTC) if parsed else None
        same.append(mine == ((other.get("link") or "").strip(), plain(other.get("title")), moment))
    return same + [False] * abs(len(ours) - len(theirs))


def _timed(run: Callable[[], Any]) -> tuple[Any, float]:
    """Return the result and the CPU seconds that it took."""
    started = time.process_time()
    return run(), time.process_time() - started


def _cpu_seconds() -> float:
    """Return the CPU seconds of this process and of its ended child processes."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def _words(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))


def _moment(known: Mapping[str, Any]) -> datetime:
    return datetime.fromisoformat(known["published_at"])


def _day(moment: datetime | None) -> str | None:
    if moment is None:
        return None
    return (moment.astimezone(UTC) if moment.tzinfo else moment).date().isoformat()


if __name__ == "__main__":
    main()
