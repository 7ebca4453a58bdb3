"""All datasets, parents before children: every declaration in the modules of this package."""

import pkgutil
from collections.abc import Mapping
from dataclasses import replace
from graphlib import TopologicalSorter
from importlib import import_module
from types import MappingProxyType

from news_platform import datasets
from news_platform.datasets.dataset import Dataset, ParentDataset


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


def stored_parents(dataset: Dataset) -> tuple[ParentDataset, ...]:
    """Return the parents of a dataset; those that are views are replaced by what they join."""
    found: list[ParentDataset] = []
    for parent in dataset.parents:
        declared = DATASETS[parent.dataset]
        joined = stored_parents(declared) if declared.place.engine == "view" else ()
        found += [replace(parent, dataset=one.dataset) for one in joined] or [parent]
    return tuple(found)


def column_sources(dataset: Dataset) -> Mapping[str, tuple[str, ...]]:
    """Return the columns of other datasets, as `dataset.column`, that each column is made from."""
    given = {
        column.name: tuple(
            source for source, made in dataset.sources.items() if column.name in made
        )
        for column in dataset.all_columns
    }
    parents = [DATASETS[it.dataset] for it in stored_parents(dataset) if it.is_followed]
    for column in dataset.all_columns:
        given[column.name] = given[column.name] or tuple(
            f"{parent.name}.{column.name}"
            for parent in parents
            if any((it.name, it.role) == (column.name, column.role) for it in parent.all_columns)
        )
    return {name: sources for name, sources in given.items() if any(sources)}
