"""What a root holds, in a form in which two roots can be compared, and requests drawn from it."""

import io
import random
import zipfile
from collections.abc import Iterator, Mapping

import polars as pl
import sqlalchemy as sa

from deploy.compare import indexed_articles
from news_platform.corpus.export.publish import current_version
from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.datasets.takedowns import TakedownRequest
from news_platform.domain_store.lookup import DomainStore
from news_platform.errors import InputError
from news_platform.resources import Resources
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore
from news_platform_tests.takedowns.asked import asked

# Columns that differ between two roots with the same history: places, times, numbers and ids.
# Not `news/feed_candidates`: feeds that only removed pages named stay until a new collection.
_OWN = {
    "articles": ("row_id", "full_text_ref", "fetched_at", "found_at"),
    "near_duplicates": ("cluster_id", "jaccard", "seen_at", "first_seen_at", "merged_ids"),
    "story_members": ("story_id", "linked_to", "score", "role", "seen_at"),
    "training_export": ("fetched_at", "day", "usage"),
    "domain_catalog": ("bytes", "fragments"),
    "domain_surveys": ("collected_at",),
    "usage_signals": ("collected_at",),
    "ai_policy_changes": (),
    "source_records": ("fetched_at", "snapshot"),
    "quarantine": ("fetched_at",),
    "news/raw": (),
    "news/captures": (),
    "news/page_metadata": (),
    "capture_index": (),
    "news/dropped": (),
}
# Not `robots`: it has the hosts that were ever asked, also of pages that went later.
_LEDGER = {
    "raw": "article_url, article_url_canon, url_hash, text_hash, title, status, clean_text",
    "articles_index": "url_hash, text_hash, article_url_canon, is_duplicate, reason",
    "feeds": "feed_url, status, title",
    "feed_items": "feed_url, item_id, title, summary",
    "analyses": "summary, text_hash",
    "article_links": "target_url_hash",
    "domain_queue": "batch, domain, outcome",
}
_DELTA_OWN = ("fetched_at", "day")


def contents(resources: Resources) -> Mapping[str, object]:
    """Return the records of everything that is stored, by name."""
    store = resources.data_root.store
    held: dict[str, object] = {}
    for folder, own in _OWN.items():
        held[folder] = sorted(_rows(store, folder, own))
    for folder in ("prod", "articles/full_text", "articles/pages", "snapshots"):
        held[folder] = [info.path for info in store.list(folder)]
    records = DomainStore(store)
    held["domain_store"] = {name: list(records.records(name)) for name in sorted(records.domains())}
    for table in DELTA_TABLES:
        rows = DeltaDataset(store, table, STATISTICS_COLUMNS).scan()
        held[table.name] = sorted(map(str, rows.select(pl.exclude(_DELTA_OWN)).collect().rows()))
    held["search"] = sorted(_indexed(store))
    held["workbook"] = sorted(_workbook_addresses(store))
    with resources.ledger.engine.connect() as ledger:
        for name, columns in _LEDGER.items():
            found = ledger.execute(sa.text(f"select {columns} from {name}"))
            held[f"ledger {name}"] = sorted(str(tuple(row)) for row in found)
    return held


def _rows(store: ObjectStore, folder: str, own: tuple[str, ...]) -> Iterator[str]:
    exports = {
        month: current_version(store, month)
        for month in (one.partition("=")[2] for one in store.list_folders("training_export"))
    }
    for info in store.list(folder):
        # Readers of an older version of an export may still have it.
        is_old = folder == "training_export" and not any(
            f"month={month}/{version}/" in info.path for month, version in exports.items()
        )
        if info.path.endswith(".parquet") and not is_old:
            rows = pl.read_parquet(io.BytesIO(store.read(info.path)), hive_partitioning=False)
            yield from map(str, rows.select(pl.exclude(own)).rows())


def _indexed(store: ObjectStore) -> Iterator[str]:
    for hit in indexed_articles(store):
        yield str((hit.canonical_url, hit.title, hit.source, hit.domain, hit.language))


def _workbook_addresses(store: ObjectStore) -> Iterator[str]:
    for info in store.list("article_sheets"):
        with zipfile.ZipFile(io.BytesIO(store.read(info.path))) as book:
            for name in book.namelist():
                for cell in book.read(name).split(b"<t")[1:]:
                    text = cell.partition(b">")[2].partition(b"</t>")[0].decode()
                    if text.startswith("http") and " " not in text:
                        yield f"{name} {text}"


def drawn_requests(resources: Resources, count: int, *, seed: int) -> list[TakedownRequest]:
    """Return requests for pages, prefixes and domains that a root holds."""
    draw, store = random.Random(seed), resources.data_root.store
    pages = [
        uri
        for info in store.list("news/raw")
        for uri in pl.read_parquet(io.BytesIO(store.read(info.path)), columns=["uri"])["uri"]
    ]
    with resources.ledger.engine.connect() as ledger:
        articles, domains = (
            sorted(ledger.execute(sa.text(f"select {columns}")).scalars())
            for columns in ("article_url_canon from articles_index", "domain from domain_queue")
        )
    found: list[TakedownRequest] = []
    # Few domains: after many of them nothing would be left to compare.
    kinds = ("page", "article", "prefix", "domain")
    while len(found) < count:
        (kind,) = draw.choices(kinds, weights=(6, 6, 3, 1))
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
