"""Writes the catalog: one row for each domain of the store."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import polars as pl

from news_platform.datasets.domain_catalog import DOMAIN_CATALOG
from news_platform.datasets.domain_store import ROOT as DATASET
from news_platform.domain_store.commit import read_buckets
from news_platform.domain_store.layout import STORE_FILE, range_keys
from news_platform.domain_store.reading.lookup import DomainStore
from news_platform.storage.commit.markers import read_markers, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table, write_table


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """What the catalog holds."""

    domains: int
    records: int
    bytes: int
    top: tuple[tuple[str, int], ...]


def write_catalog(store: ObjectStore, *, inputs: str, workers: int = 8) -> CatalogReport:
    """Replace the catalog by what all buckets hold now; `inputs` is their fingerprint."""
    reader = DomainStore(store)
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(reader.catalog, range(reader.buckets)))
    rows = pl.concat(parts).sort("domain")
    write_table(store, DOMAIN_CATALOG.path, rows, DOMAIN_CATALOG)
    top = rows.top_k(10, by="records").sort("records", "domain", descending=[True, False])
    report = CatalogReport(
        domains=rows.height,
        records=int(rows["records"].sum()),
        bytes=int(rows["bytes"].sum()),
        top=tuple(top.select("domain", "records").rows()),
    )
    figures = {"domains": report.domains, "records": report.records, "bytes": report.bytes}
    write_marker(store, DOMAIN_CATALOG.name, "all", inputs=inputs, report=figures)
    return report


def catalog_inputs(store: ObjectStore) -> str | None:
    """Return what stands for the whole store, None while its ranges stand on different batches."""
    if not store.exists(STORE_FILE):
        return None
    markers = read_markers(store, DATASET)
    found = [markers.get(key) for key in range_keys(read_buckets(store))]
    inputs = {marker.inputs if marker else None for marker in found}
    return inputs.pop() if len(inputs) == 1 else None


def read_catalog(store: ObjectStore) -> pl.DataFrame:
    """Return the catalog; raise NotFound before it was first written."""
    return read_table(store, DOMAIN_CATALOG.path, DOMAIN_CATALOG)
