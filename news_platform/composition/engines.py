"""Map the place of every dataset to the engine that lists, reads and removes its rows."""

from collections.abc import Callable, Mapping

import sqlalchemy as sa

from news_platform.datasets.dataset import Dataset, Engine
from news_platform.datasets.domain_store import DOMAIN_BUCKETS
from news_platform.domain_metadata.queue import QUEUE
from news_platform.domain_store.building.engine import StoreEngine
from news_platform.domain_store.staging.engine import StagedEngine
from news_platform.resources import Resources, build_options
from news_platform.search.index_engine import IndexEngine
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.engines import DatasetEngine, ParquetEngine, PlainFilesEngine
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import has_table, ledger_url, open_engine
from news_platform.storage.sql.row_roles import SqlEngine

# The engines that need nothing but the store.
ENGINES: Mapping[Engine, Callable[[ObjectStore, Dataset], DatasetEngine]] = {
    "parquet": ParquetEngine,
    "files": PlainFilesEngine,
    "delta": DeltaEngine,
}


def engine_of(store: ObjectStore, dataset: Dataset) -> DatasetEngine:
    """Return the engine of a dataset of files."""
    return ENGINES[dataset.place.engine](store, dataset)


def open_dataset(resources: Resources, dataset: Dataset) -> DatasetEngine | None:
    """Return the engine of any dataset; None for views, inputs and tables without a ledger."""
    store, now = resources.data_root.store, resources.clock.now()
    match dataset.place.engine:
        case "sql":
            ledger = existing_ledger(resources)
            return SqlEngine(store, dataset, ledger, QUEUE, "batch") if ledger is not None else None
        case "store":
            options = build_options(resources.settings.domain_store, store)
            is_staged = dataset is DOMAIN_BUCKETS
            return StagedEngine(store) if is_staged else StoreEngine(store, options, now)
        case "index":
            return IndexEngine(store, now)
        case "view" | "external":
            return None
    return engine_of(store, dataset)


def existing_ledger(resources: Resources) -> sa.Engine | None:
    """Return the ledger, or None for a root that has none: nobody creates one to look into it."""
    url = ledger_url(resources.data_root.store.url, resources.settings.ledger_url)
    probe = open_engine(url)
    try:
        is_there = has_table(probe, "raw")
    finally:
        probe.dispose()
    return resources.ledger.engine if is_there else None
