"""All datasets, parents before children: every declaration in the modules of this package."""

import pkgutil
from collections.abc import Mapping
from graphlib import TopologicalSorter
from importlib import import_module
from types import MappingProxyType

from news_platform import datasets
from news_platform.datasets.dataset import Dataset


def _declared() -> Mapping[str, Dataset]:
    """Return the datasets of all modules by name, in the order of their names."""
    found: dict[str, Dataset] = {}
    for module in sorted(it.name for it in pkgutil.iter_modules(datasets.__path__)):
        if module != "registry":
            for value in vars(import_module(f"{datasets.__name__}.{module}")).values():
                if isinstance(value, Dataset) and found.setdefault(value.name, value) is not value:
                    raise ValueError(f"two datasets are named {value.name!r}: rename one")
    return dict(sorted(found.items()))


def _inputs(dataset: Dataset) -> list[str]:
    """Return the datasets that must be built first."""
    writer = [dataset.written_by] if dataset.written_by else []
    return [*writer, *(parent.dataset for parent in dataset.parents)]


def _ordered() -> Mapping[str, Dataset]:
    declared = _declared()
    graph = {name: _inputs(dataset) for name, dataset in declared.items()}
    return {name: declared[name] for name in TopologicalSorter(graph).static_order()}


DATASETS: Mapping[str, Dataset] = MappingProxyType(_ordered())
"""Every dataset by its name, parents before children."""
