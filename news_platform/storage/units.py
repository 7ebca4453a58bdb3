"""Which units of a dataset are stored, and what each should be built from: both from listings.

A unit is a partition, or the day of a dataset that has a file per day. Its state changes when those
who are built from it must be built again. The inputs of a unit are the states of its parents' units
that it is built from, with the version and the options that its declaration names. A marker has the
fingerprint of the inputs in its name, so a tick over ten years reads no file.
"""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from news_platform.datasets.captures import run_day
from news_platform.datasets.dataset import (
    KNOWN_IN_MONTH,
    WHOLE,
    Dataset,
    ParentDataset,
    Place,
    batch_month,
)
from news_platform.datasets.registry import DATASETS, stored_parents
from news_platform.storage.commit.collected import REMOVED, collected_days
from news_platform.storage.commit.markers import (
    content_part,
    fingerprint,
    fingerprint_of,
    read_inputs,
    read_markers,
    stale_partitions,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

_DATE = re.compile(r"\d{4}-\d{2}(-\d{2})?")


def unit_files(
    store: ObjectStore,
    dataset: Dataset,
    units: Collection[str] | None = None,
    *,
    place: Place | None = None,
) -> Mapping[str, list[ObjectInfo]]:
    """Return the files of some units, or of all, in the order of their paths.

    `place` is that of the rows, unless files beside them are meant.
    """
    whole = {dataset.place.folder}
    folders = whole if units is None else {dataset.unit_folder(one) for one in units}
    found: dict[str, list[ObjectInfo]] = {}
    for folder in sorted(folders):
        for info in store.list(folder):
            values = (place or dataset.place).parse(info.path)
            unit = dataset.unit(values) if values is not None else None
            if unit is not None and (units is None or unit in units):
                found.setdefault(unit, []).append(info)
    return found


def unit_states(store: ObjectStore, dataset: Dataset) -> Mapping[str, str]:
    """Return the state of every unit that is stored."""
    match dataset.fingerprint:
        case "markers":
            markers = read_markers(store, dataset.writer)
            return {unit: f"{one.inputs}.{one.scope}" for unit, one in markers.items()}
        case "collected":
            days = collected_days(store)
            return {**days, **_states_of_runs(days, read_inputs(store, dataset.name))}
        case "files":
            part = content_part(store)
            files = unit_files(store, dataset)
            return {unit: fingerprint_of(infos, part) for unit, infos in files.items()}


def _states_of_runs(days: Mapping[str, str], runs: Mapping[str, str]) -> dict[str, str]:
    """Return the states of the days with runs of captures that were written without pages."""
    by_day: dict[str, list[str]] = defaultdict(list)
    for key, inputs in runs.items():
        by_day[run_day(key)].append(f"{key} {inputs}")
    return {day: fingerprint([days.get(day, ""), *found]) for day, found in by_day.items()}


def wanted_inputs(
    store: ObjectStore, dataset: Dataset, options: object = None
) -> Mapping[str, str]:
    """Return the fingerprint of the inputs that every unit of a dataset should be built from.

    `options` has the fields that the declaration names. A built day or month whose inputs are gone
    maps to REMOVED, so that its output is removed, too.
    """
    parts: dict[str, list[str]] = defaultdict(list)
    for parent in stored_parents(dataset):
        if parent.is_followed and parent.partitions != KNOWN_IN_MONTH:
            for unit, found in _parent_states(store, dataset, parent):
                parts[unit].append(found)
    for parent in stored_parents(dataset):
        # These only add to what the other parents have: a survey alone makes no export.
        if parent.partitions == KNOWN_IN_MONTH:
            states = unit_states(store, DATASETS[parent.dataset])
            for unit, found in _known_states(states, months=parts):
                parts[unit].append(f"{parent.dataset} {found}")
    own = list(_own_parts(dataset, options))
    wanted = {unit: fingerprint([*own, *found]) for unit, found in parts.items()}
    return wanted | dict.fromkeys(gone_units(store, dataset), REMOVED)


def gone_units(store: ObjectStore, dataset: Dataset) -> list[str]:
    """Return the built days or months of which no parent has anything left, oldest first."""
    built = built_inputs(store, dataset) if dataset.partitions in ("day", "month") else {}
    left = {
        parent.partitions.own(unit)
        for parent in stored_parents(dataset)
        if built and parent.is_followed
        for unit in _unit_names(store, DATASETS[parent.dataset])
    }
    return sorted(built.keys() - left)


def _unit_names(store: ObjectStore, dataset: Dataset) -> Collection[str]:
    """Return the units that are stored; unlike `unit_states` it reads no file."""
    if dataset.fingerprint == "files":
        return unit_files(store, dataset).keys()
    return unit_states(store, dataset).keys()


def built_inputs(store: ObjectStore, dataset: Dataset) -> Mapping[str, str]:
    """Return the fingerprint of the inputs that every unit of a dataset was built from.

    Units that are not partitions are left out, such as the named crawls of the domain store.
    """
    found = read_inputs(store, dataset.name)
    if dataset.partitions not in ("day", "month"):
        return found
    return {unit: inputs for unit, inputs in found.items() if _DATE.fullmatch(unit)}


def stale_units(store: ObjectStore, dataset: Dataset, options: object = None) -> dict[str, str]:
    """Return the units that differ from their inputs, newest first, with the wanted fingerprint."""
    # What was built first: a build that ends in between then looks stale, never current.
    built = built_inputs(store, dataset)
    return stale_partitions(wanted_inputs(store, dataset, options), built)


def _own_parts(dataset: Dataset, options: object) -> Iterator[str]:
    """Yield what the declaration adds to the fingerprint beside the parents.

    An option that is off adds nothing, so that a new one leaves everything current.
    """
    if dataset.follows_version:
        yield f"version {dataset.version}"
    for name in dataset.options:
        if value := getattr(options, name):
            yield f"{name} {sorted(map(str, value)) if isinstance(value, Collection) else value}"


def _parent_states(
    store: ObjectStore, dataset: Dataset, parent: ParentDataset
) -> Iterator[tuple[str, str]]:
    """Yield each own unit with the state of a unit of the parent that it is built from."""
    states = unit_states(store, DATASETS[parent.dataset])
    units = sorted(states)
    texts = {unit: f"{parent.dataset} {unit} {states[unit]}" for unit in units}
    if dataset.partitions == "whole":
        yield from ((WHOLE, texts[unit]) for unit in units)
    elif parent.partitions.kind in ("window", "all_before"):
        for own in units:
            first = bisect_left(units, parent.partitions.first(own))
            yield from ((own, texts[unit]) for unit in units[first : bisect_right(units, own)])
    else:
        yield from ((parent.partitions.own(unit), texts[unit]) for unit in units)


def _known_states(
    states: Mapping[str, str], *, months: Collection[str]
) -> Iterator[tuple[str, str]]:
    """Yield each month with one fingerprint of the batches that `known_in_month` means."""
    ordered = sorted(states, key=lambda batch: (batch_month(batch), batch))
    first: dict[str, str] = {}
    by_month: dict[str, list[str]] = defaultdict(list)
    for batch in ordered:
        first.setdefault(batch.rpartition("|")[0], batch)
        by_month[batch_month(batch)].append(batch)
    # Each month adds to the fingerprint of the one before: ten years have 100,000 batches.
    known = ""
    for month in sorted({*months, *by_month}):
        if found := by_month.get(month):
            known = fingerprint([known, *(f"{batch} {states[batch]}" for batch in found)])
        if month in months:
            later = [batch for batch in first.values() if batch_month(batch) > month]
            yield month, fingerprint([known, *(f"{batch} {states[batch]}" for batch in later)])
