"""One job per asset that is built: for backfills, and for builds that should not wait."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.registry import DATASETS


@dataclass(frozen=True, slots=True)
class Task:
    """The purpose of a job and the assets that it builds."""

    purpose: str
    assets: tuple[str, ...]


CRAWL_OUTPUTS = tuple(
    name for name, dataset in DATASETS.items() if dataset.fingerprint == "collected"
)
"""Every asset that a run of raw_news writes."""


def _tasks() -> Iterator[tuple[str, Task]]:
    for name, dataset in DATASETS.items():
        if _is_built(dataset):
            assets = CRAWL_OUTPUTS if dataset is RAW_NEWS else (name,)
            yield f"build_{name}", Task(f"Build {name} now. {dataset.description}", assets)


def _is_built(dataset: Dataset) -> bool:
    # Outside systems write what has no version; a run of raw_news writes its side tables.
    is_side_table = dataset.fingerprint == "collected" and dataset is not RAW_NEWS
    return dataset.is_asset and dataset.version is not None and not is_side_table


TASKS: Mapping[str, Task] = dict(_tasks())
