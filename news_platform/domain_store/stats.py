"""What a range of buckets holds, in numbers and small tables for people."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from news_platform.datasets.domain_catalog import DOMAIN_CATALOG
from news_platform.domain_store.reading.lookup import DomainStore

# Upper ends of the classes by which domains are counted: records a domain.
CLASSES = (1, 10, 100, 1_000, 10_000, 100_000)
TOP = 10


@dataclass(frozen=True, slots=True)
class Figures:
    """Sums, the largest domains, and how many domains have how many records."""

    domains: int
    records: int
    bytes: int
    fragments: int
    top: tuple[tuple[str, int, int], ...]
    histogram: tuple[tuple[str, int], ...]

    @property
    def fragments_per_domain(self) -> float:
        """Return how many range reads a lookup costs on average."""
        return self.fragments / self.domains if self.domains else 0.0


def describe(reader: DomainStore, buckets: Iterable[int]) -> Figures:
    """Sum up what these buckets hold."""
    parts = [reader.catalog(bucket) for bucket in buckets]
    rows = pl.concat([pl.DataFrame(schema=DOMAIN_CATALOG.schema), *parts])
    largest = rows.sort("records", "domain", descending=[True, False]).head(TOP)
    return Figures(
        domains=rows.height,
        records=int(rows["records"].sum()),
        bytes=int(rows["bytes"].sum()),
        fragments=int(rows["fragments"].sum()),
        top=tuple(largest.select("domain", "records", "bytes").rows()),
        histogram=_histogram(rows["records"]),
    )


def _histogram(records: pl.Series) -> tuple[tuple[str, int], ...]:
    edges = (0, *CLASSES, None)
    return tuple((_label(low, high), _between(records, low, high)) for low, high in pairwise(edges))


def _label(low: int | None, high: int | None) -> str:
    return f"more than {low}" if high is None else f"up to {high}"


def _between(records: pl.Series, low: int | None, high: int | None) -> int:
    above = records > (low or 0)
    return int((above if high is None else above & (records <= high)).sum())
