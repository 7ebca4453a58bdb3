"""Domains that the crawl has newly seen, offered to the survey as research files of our own.

They lie in batches `zz|ccnews|DAY`, one for each day on which domains were first seen.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from io import BytesIO

import polars as pl

from news_platform.datasets.domain_queue import DomainQueueMessage
from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.messages import UNKNOWN_AUTHORITY
from news_platform.domain_metadata.raw_files import import_file, iter_seeds, parse_records
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore

CATALOG_PATH = "domain_catalog/part-0.parquet"
COUNTRY, CATEGORY = "zz", "ccnews"


@dataclass(frozen=True, slots=True)
class SeedReport:
    """How many domains were newly offered, and in which files."""

    domains: int
    files: tuple[str, ...]


def seed_from_catalog(catalog: pl.DataFrame, *, store: ObjectStore, per_day: int) -> SeedReport:
    """Write a research file for each day whose new domains are not offered yet.

    `catalog` has domain, records and first_seen; at most `per_day` domains a day are offered,
    those with most records first.
    """
    domains, files = 0, []
    for day, found in newly_seen(catalog, per_day=per_day).items():
        batch = PartitionInfo.of(COUNTRY, CATEGORY, day)
        offered = _offered(store, batch)
        fresh = [domain for domain in found if domain not in offered][
            : max(0, per_day - len(offered))
        ]
        if fresh:
            domains += len(fresh)
            files.append(import_file(store, batch, name=day, body=research_file(day, fresh)))
    return SeedReport(domains, tuple(files))


def read_catalog(store: ObjectStore) -> pl.DataFrame:
    """Return what the survey needs of the catalog of domains."""
    body = BytesIO(store.read(CATALOG_PATH))
    return pl.read_parquet(body, columns=["domain", "records", "first_seen"])


def newly_seen(catalog: pl.DataFrame, *, per_day: int) -> dict[str, list[str]]:
    """Return the domains first seen on each day, most records first."""
    ranked = catalog.drop_nulls("first_seen").sort(
        "first_seen", "records", "domain", descending=[False, True, False]
    )
    days = ranked.group_by("first_seen", maintain_order=True).agg(pl.col("domain").head(per_day))
    return {str(day): found for day, found in days.iter_rows()} if per_day > 0 else {}


def research_file(day: str, domains: Sequence[str]) -> bytes:
    """Return a research file that names these domains."""
    meta = {
        "dataset_id": f"{CATEGORY}-{day}",
        "country": COUNTRY,
        "category": CATEGORY,
        "discovered_at": day,
        "research_methods": ["crawl"],
        "engine": "domain_catalog",
        "record_count": len(domains),
    }
    records = [
        {
            "raw_url": f"https://{domain}/",
            "normalized_domain": domain,
            "source_type": "media",
            "discovery_method": "crawl",
        }
        for domain in domains
    ]
    return json.dumps({"meta": meta, "records": records}, indent=1).encode()


def _offered(store: ObjectStore, batch: PartitionInfo) -> set[str]:
    return {
        str(record["normalized_domain"])
        for seed in iter_seeds(store, batch)
        for record in _records(store, seed.raw_file_path)
        if isinstance(record, dict) and "normalized_domain" in record
    }


def _records(store: ObjectStore, path: str) -> list[object]:
    """Return the records of a file, none of a broken one: it offers nothing, and the queue says."""
    try:
        return parse_records(store.read(path), path=path)
    except InputError:
        return []


def write_resurvey_files(
    messages: Iterable[DomainQueueMessage], *, day: date, store: ObjectStore
) -> dict[str, str]:
    """Write a research file for each batch of `day` that these domains belong to.

    Return the files by their batch. Doing it twice writes one file. Raise InputError when a domain
    was researched on that day or after it: its survey is not to be dated back.
    """
    batches: dict[PartitionInfo, dict[str, DomainQueueMessage]] = {}
    for message in messages:
        was = message.partition_info
        if was.date >= day:
            problem = f"its batch is of {was.date}, give a later day than that"
            raise InputError(
                f"cannot survey {message.registrable_domain!r} again on {day}: {problem}",
                thing=message.registrable_domain,
            )
        batch = PartitionInfo.of(was.country, was.category, day)
        batches.setdefault(batch, {}).setdefault(message.registrable_domain, message)
    return {
        batch.key: import_file(
            store, batch, name=batch.key, body=resurvey_file(batch, list(found.values()))
        )
        for batch, found in batches.items()
    }


def resurvey_file(batch: PartitionInfo, messages: Sequence[DomainQueueMessage]) -> bytes:
    """Return a research file that names the domains of these messages, in order of their names."""
    meta = {
        "dataset_id": f"resurvey-{batch.key}",
        "country": batch.country,
        "category": batch.category,
        "discovered_at": str(batch.date),
        "research_methods": ["resurvey"],
        "engine": "domain_queue",
        "record_count": len(messages),
    }
    ordered = sorted(messages, key=lambda message: message.registrable_domain)
    records = [_record(message) for message in ordered]
    return json.dumps({"meta": meta, "records": records}, indent=1).encode()


def _record(message: DomainQueueMessage) -> dict[str, str | None]:
    known = message.authority != UNKNOWN_AUTHORITY
    return {
        "raw_url": message.domain_url,
        "normalized_domain": message.registrable_domain,
        "source_type": message.authority if known else None,
        "discovery_method": "resurvey",
    }
