"""Opt-out lists over a root: what one covers, storing a version, and the exports that follow."""

from dataclasses import dataclass, replace

import polars as pl

from news_platform.composition.engines import open_dataset
from news_platform.composition.takedown_parts import all_parts, record_request
from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.datasets.registry import DATASETS
from news_platform.datasets.takedowns import TakedownRequest, TakedownScope, request_path
from news_platform.errors import Conflict, StorageError
from news_platform.resources import Resources
from news_platform.storage.delta import DeltaDataset
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import find_places
from news_platform.takedowns.requests import TakedownState, mark_pending
from news_platform.takedowns.rows import EXPORTS, is_covered, may_be_covered


@dataclass(frozen=True, slots=True)
class ListCoverage:
    """What of a root a list covers: rows of all datasets; bytes and domains of its articles."""

    rows: int
    bytes: int
    domains: int

    @property
    def text(self) -> str:
        """Return it as a person reads it."""
        return f"{self.rows} rows, {self.bytes} bytes of text, {self.domains} domains"


def list_coverage(resources: Resources, takedowns: Takedowns) -> ListCoverage:
    """Count what a list covers, with one pass over each dataset."""
    store = resources.data_root.store
    places = find_places(all_parts(resources), replace(takedowns, exports=None))
    wanted = ("canonical_url", "domain", pl.col("text").str.len_bytes().alias("bytes"))
    tables = [DeltaDataset(store, table, STATISTICS_COLUMNS).scan() for table in DELTA_TABLES]
    likely = pl.concat(tables).filter(may_be_covered("canonical_url", takedowns)).select(*wanted)
    articles = likely.collect()
    articles = articles.filter(is_covered(articles["canonical_url"], takedowns))
    return ListCoverage(
        sum(sum(units.values()) for units in places.values()),
        int(articles["bytes"].sum()),
        articles["domain"].n_unique(),
    )


def build_exports_again(resources: Resources) -> None:
    """Mark the exports: a list allows more than before, so they lack what it alone covered."""
    for name in EXPORTS:
        engine = open_dataset(resources, DATASETS[name])
        mark_pending(resources.data_root.store, name, engine.units() if engine is not None else ())


def record_list(
    resources: Resources, request: TakedownRequest, before: TakedownState | None
) -> StorageError | None:
    """Store a version of a list as `record_request` does; raise Conflict if another was faster.

    Exports are built again if they may hold more than before.
    """
    if resources.data_root.store.find(request_path(request.id)) is not None:
        raise Conflict(
            f"{request.id} was imported meanwhile: import the list again", thing=request.id
        )
    failure = record_request(resources, request)
    if before is not None and before.request.scope is TakedownScope.export:
        build_exports_again(resources)
    return failure
