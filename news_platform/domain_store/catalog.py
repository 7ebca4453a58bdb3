"""Write the catalog, one row per domain of the store, and sum up buckets for people."""

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from news_platform.datasets.domain_store import DOMAIN_CATALOG
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.domain_store.layout import range_buckets
from news_platform.domain_store.lookup import DomainStore
from news_platform.domain_store.staging.stage import staged_fingerprint
from news_platform.errors import StorageError
from news_platform.storage.commit.markers import read_inputs, write_marker
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import write_table
from news_platform.takedowns.build_filters import cleaned_later

# Upper bounds, in records per domain, of the bins in which domains are counted.
HISTOGRAM_BOUNDS = (1, 10, 100, 1_000, 10_000, 100_000)
TOP = 10


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """The totals of the catalog and its largest domains."""

    domains: int
    records: int
    bytes: int
    top: tuple[tuple[str, int], ...]


def write_catalog(store: ObjectStore, *, inputs: str, workers: int = 8) -> CatalogReport:
    """Write the catalog of all buckets and its marker; `inputs` is their fingerprint."""
    with cleaned_later(store, {DOMAIN_CATALOG.name: ["all"]}):
        return write_catalog_now(store, inputs=inputs, workers=workers)


def write_catalog_now(store: ObjectStore, *, inputs: str, workers: int = 8) -> CatalogReport:
    """Write the catalog while a takedown is served, which knows what may not be in it."""
    reader = DomainStore(store)
    _require_buckets(reader, store)
    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(reader.catalog, range(reader.buckets)))
    rows = pl.concat(parts).sort("domain")
    write_table(store, DOMAIN_CATALOG.path, rows, DOMAIN_CATALOG)
    top = rows.top_k(TOP, by="records").sort("records", "domain", descending=[True, False])
    report = CatalogReport(
        domains=rows.height,
        records=int(rows["records"].sum()),
        bytes=int(rows["bytes"].sum()),
        top=tuple(top.select("domain", "records").rows()),
    )
    totals = {"domains": report.domains, "records": report.records, "bytes": report.bytes}
    write_marker(store, DOMAIN_CATALOG.name, "all", inputs=inputs, report=totals)
    return report


def _require_buckets(reader: DomainStore, store: ObjectStore) -> None:
    """Raise StorageError if a range is marked as built, but files of the store are gone."""
    for key, inputs in read_inputs(store, STORE).items():
        if inputs == staged_fingerprint({}):
            continue
        for bucket in range_buckets(key, reader.buckets):
            if reader.manifest(bucket) is None:
                raise StorageError(
                    f"bucket {bucket} of the domain store is gone, and the catalog stays as it is: "
                    f"restore {store.uri(STORE)!r}, or run `store build`",
                    thing=key,
                )


@dataclass(frozen=True, slots=True)
class StoreStats:
    """Totals, the largest domains, and a histogram of domains by their number of records."""

    domains: int
    records: int
    bytes: int
    fragments: int
    top: tuple[tuple[str, int, int], ...]
    histogram: tuple[tuple[str, int], ...]

    @property
    def fragments_per_domain(self) -> float:
        """Return the average number of range reads per lookup."""
        return self.fragments / self.domains if self.domains else 0.0


def read_stats(reader: DomainStore, buckets: Iterable[int]) -> StoreStats:
    """Return the stats of some buckets."""
    parts = [reader.catalog(bucket) for bucket in buckets]
    rows = pl.concat([pl.DataFrame(schema=DOMAIN_CATALOG.schema), *parts])
    largest = rows.sort("records", "domain", descending=[True, False]).head(TOP)
    return StoreStats(
        domains=rows.height,
        records=int(rows["records"].sum()),
        bytes=int(rows["bytes"].sum()),
        fragments=int(rows["fragments"].sum()),
        top=tuple(largest.select("domain", "records", "bytes").rows()),
        histogram=_histogram(rows["records"]),
    )


def _histogram(records: pl.Series) -> tuple[tuple[str, int], ...]:
    edges = (0, *HISTOGRAM_BOUNDS, None)
    return tuple((_label(low, high), _between(records, low, high)) for low, high in pairwise(edges))


def _label(low: int | None, high: int | None) -> str:
    return f"more than {low}" if high is None else f"up to {high}"


def _between(records: pl.Series, low: int | None, high: int | None) -> int:
    above = records > (low or 0)
    return int((above if high is None else above & (records <= high)).sum())
