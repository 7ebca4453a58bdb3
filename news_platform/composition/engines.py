"""Map the place of every dataset to the engine that lists, reads and removes its rows."""

from collections.abc import Callable, Mapping

from news_platform.datasets.dataset import Dataset, Engine
from news_platform.storage.engines import DatasetEngine, ParquetEngine, PlainFilesEngine
from news_platform.storage.objects.store import ObjectStore

# Takedowns add the engines of Delta, SQL, the domain store and the search index.
ENGINES: Mapping[Engine, Callable[[ObjectStore, Dataset], DatasetEngine]] = {
    "parquet": ParquetEngine,
    "files": PlainFilesEngine,
}


def engine_of(store: ObjectStore, dataset: Dataset) -> DatasetEngine:
    """Return the engine of a dataset."""
    return ENGINES[dataset.place.engine](store, dataset)
