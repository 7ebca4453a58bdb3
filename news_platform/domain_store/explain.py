"""Explain where the domain store has a page or a domain: data file, offset and length."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import polars as pl

from news_platform.datasets.domain_store import ENTRIES, RECORDS
from news_platform.datasets.domain_store import ROOT as DATASET
from news_platform.datasets.evidence import Evidence
from news_platform.domain_store.layout import STORE_FILE, bucket_of, entries_path, records_path
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.manifest import (
    Manifest,
    Segment,
    read_bucket_count,
    read_current,
)
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.match import PageAddress

_SHOWN = 10


@dataclass(frozen=True, slots=True)
class StoreAnswer:
    """The evidence of the domain store, and the days on which it has the page."""

    evidence: tuple[Evidence, ...]
    days: frozenset[str]


def explain_page(store: ObjectStore, page: PageAddress) -> StoreAnswer:
    """Return the records of a page; only the narrow tables of its domain's bucket are read."""
    manifest = _manifest(store, page.domain)
    if manifest is None:
        return StoreAnswer(tuple(_nothing(store, page.domain)), frozenset())
    found = [
        (segment, row)
        for segment in manifest.segments
        if segment.files
        for row in _records(store, segment, page.domain)
        if page.is_same(str(row["url"] or ""))
    ]
    days = frozenset(str(row["day"]) for _, row in found if row["day"] is not None)
    if not found:
        return StoreAnswer(tuple(_nothing(store, page.domain)), days)
    shown = [_record(store, segment, row) for segment, row in found[-_SHOWN:]]
    return StoreAnswer(tuple(shown), days)


def explain_domain(store: ObjectStore, domain: str) -> Iterator[Evidence]:
    """Yield the records of a domain, and the byte ranges that hold them."""
    if not store.exists(STORE_FILE):
        yield Evidence(DATASET, "absent", "The domain store is not built yet.")
        return
    lookup = DomainStore(store)
    entry = lookup.entry(domain)
    if entry is None:
        yield Evidence(DATASET, "absent", f"The domain store has no record of {domain}.")
        return
    rows = lookup.catalog(bucket_of(entry.domain, lookup.buckets))
    facts = rows.filter(pl.col("domain") == entry.domain).row(0, named=True)
    yield Evidence(
        DATASET,
        "stored",
        f"The domain store has {entry.count} records of {entry.domain}, from "
        f"{facts['first_seen']} to {facts['last_seen']}.",
        details={"languages": ", ".join(facts["languages"]), "bucket": str(facts["bucket"])},
    )
    for part in entry.fragments[-_SHOWN:]:
        yield Evidence(
            DATASET,
            "stored",
            f"{part.records} of them are {part.length} bytes of one data file.",
            source=f"{part.path}@{part.offset}+{part.length}",
        )


def _manifest(store: ObjectStore, domain: str) -> Manifest | None:
    if not store.exists(STORE_FILE):
        return None
    bucket = bucket_of(domain, read_bucket_count(store))
    return read_current(store, bucket, with_batches=True).manifest


def _records(store: ObjectStore, segment: Segment, domain: str) -> list[dict[str, object]]:
    rows = scan_table(store, [records_path(segment.bucket, segment.name)], RECORDS)
    is_live = ~pl.col("batch").is_in(list(segment.dropped))
    return rows.filter(is_live, pl.col("domain") == domain).collect().to_dicts()


def _record(store: ObjectStore, segment: Segment, row: dict[str, object]) -> Evidence:
    batch = str(row["batch"])
    entries = scan_table(store, [entries_path(segment.bucket, segment.name)], ENTRIES)
    mine = (pl.col("domain") == row["domain"]) & (pl.col("batch") == batch)
    place = entries.filter(mine).select("file", "offset", "length").head(1).collect()
    source = ""
    for file, offset, length in place.iter_rows():
        source = f"{segment.files[file].path}@{offset}+{length}"
    return Evidence(
        DATASET,
        "stored",
        f"The domain store has the page of {row['day'] or 'an unknown day'}, "
        f"among the records of {row['domain']} in batch {batch}.",
        at=datetime.fromtimestamp(segment.live[batch].taken_at, UTC),
        source=source,
        details={"url": str(row["url"]), "day": str(row["day"]), "language": str(row["language"])},
    )


def _nothing(store: ObjectStore, domain: str) -> Iterator[Evidence]:
    for one in explain_domain(store, domain):
        if one.is_known:
            text = f"{one.text.removesuffix('.')}, but not this page."
            yield Evidence(DATASET, "absent", text, details=one.details)
            return
        yield one
