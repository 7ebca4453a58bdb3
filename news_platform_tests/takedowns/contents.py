"""What a root holds, in a form in which two roots can be compared, and requests drawn from it."""

import random
import sqlite3
from collections.abc import Iterator, Mapping
from pathlib import Path

import polars as pl

from news_platform.datasets.takedowns import TakedownRequest
from news_platform.domain_store.reading.lookup import DomainStore
from news_platform.errors import InputError
from news_platform.storage.objects.store import open_store
from news_platform_tests.takedowns.asked import asked

# Columns that differ between two roots with the same history: places, times, numbers and ids.
_OWN = {
    "articles": ("row_id", "full_text_ref", "fetched_at", "found_at"),
    "near_duplicates": ("cluster_id", "seen_at", "first_seen_at", "merged_ids"),
    "domain_catalog": ("bytes", "fragments"),
    "domain_metadata_table": ("collected_at",),
    "usage_signals": ("collected_at",),
    "ai_policy_changes": (),
    "source_records": ("fetched_at", "snapshot"),
    "quarantine": ("fetched_at",),
    "news/feed_candidates": (),
    "news/dropped": (),
}
_LEDGER = {
    "raw": "article_url, article_url_canon, url_hash, text_hash, title, status, clean_text",
    "articles_index": "url_hash, text_hash, article_url_canon, is_duplicate, reason",
    "feeds": "feed_url, status, title",
    "article_links": "target_url_hash",
    "robots": "origin",
    "domain_queue": "batch, domain, outcome",
}


def contents(root: Path) -> Mapping[str, object]:
    """Return bytes of raw_news and captures, and records of everything else, by name."""
    held: dict[str, object] = {}
    for folder in ("news/raw", "news/captures"):
        held[folder] = {name: path.read_bytes() for name, path in _files(root, folder)}
    for folder, own in _OWN.items():
        held[folder] = sorted(_rows(root, folder, own))
    for folder in ("prod", "articles/full_text", "snapshots"):
        held[folder] = [name for name, _ in _files(root, folder)]
    store = DomainStore(open_store(str(root)))
    held["domain_store"] = {name: list(store.records(name)) for name in sorted(store.domains())}
    with sqlite3.connect(f"file:{root}/ledger.sqlite?mode=ro", uri=True) as ledger:
        for table, columns in _LEDGER.items():
            rows = ledger.execute(f"select {columns} from {table}")
            held[f"ledger {table}"] = sorted(map(str, rows))
    return held


def _files(root: Path, folder: str) -> list[tuple[str, Path]]:
    found = (root / folder).rglob("*")
    return sorted((str(path.relative_to(root)), path) for path in found if path.is_file())


def _rows(root: Path, folder: str, own: tuple[str, ...]) -> Iterator[str]:
    for name, path in _files(root, folder):
        if name.endswith(".parquet"):
            rows = pl.read_parquet(path, hive_partitioning=False)
            yield from map(str, rows.select(pl.exclude(own)).rows())


def drawn_requests(root: Path, count: int, *, seed: int) -> list[TakedownRequest]:
    """Return requests for pages, prefixes and domains that a root holds."""
    draw = random.Random(seed)
    pages = [
        uri
        for _, path in _files(root, "news/raw")
        for uri in pl.read_parquet(path, columns=["uri"], hive_partitioning=False)["uri"]
    ]
    with sqlite3.connect(f"file:{root}/ledger.sqlite?mode=ro", uri=True) as ledger:
        articles = [
            url for (url,) in ledger.execute("select article_url_canon from articles_index")
        ]
        domains = [name for (name,) in ledger.execute("select domain from domain_queue")]
    found: list[TakedownRequest] = []
    while len(found) < count:
        kind = draw.choice(["page", "page", "article", "article", "prefix", "domain"])
        page = draw.choice(articles if kind == "article" else pages)
        try:
            if kind == "domain":
                found.append(asked("domain", draw.choice(domains)))
            elif kind == "prefix":
                found.append(asked("prefix", page[: page.index("/", 9) + draw.randint(2, 14)]))
            else:
                found.append(asked("url", page))
        except InputError:
            continue  # an address of the world that is none
    return found
