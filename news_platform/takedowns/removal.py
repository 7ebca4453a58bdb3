"""Remove what is stored: find the touched units once, mark them, clean them one by one.

A unit is a partition of a dataset. A run may be killed at any point: the marks say what is left,
and the next run, or the sensor, goes on from there. Nothing is downloaded.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

import polars as pl

from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.takedowns import TakedownRequest, TakedownScope
from news_platform.errors import Conflict, StorageError
from news_platform.storage.engines import DatasetEngine, RemovedRows
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import (
    add_aliases,
    clear_pending,
    find_mark,
    list_pending,
    mark_pending,
    read_active,
    read_states,
    write_applied,
    write_searched,
)
from news_platform.takedowns.rows import EXPORTS, TakedownTarget

_log = logging.getLogger(__name__)
# Collectors and builders may change a partition while it is searched or rewritten.
_ATTEMPTS = 10
ResultT = TypeVar("ResultT")


FoundPlaces = Mapping[str, Mapping[str, int]]
"""The rows that must go, by dataset and unit."""


class TakedownPart(Protocol):
    """How one dataset is searched and cleaned."""

    @property
    def dataset(self) -> str:
        """Return its name."""

    def find(self, target: TakedownTarget, found: FoundPlaces) -> Mapping[str, int]:
        """Return the rows that must go; `found` is what the datasets before it hold."""

    def remove(self, unit: str, target: TakedownTarget) -> RemovedRows:
        """Clean one unit; repeating it changes nothing."""


@dataclass(frozen=True, slots=True)
class EnginePart:
    """A dataset that its engine cleans, or that is built again from what is left.

    The engine is opened when it is used, because it may be damaged; None if there is nothing yet.
    `parent` is the dataset that one is made from which may lose rows that its own columns do not
    show. `after` corrects what is told about a cleaned unit.
    """

    open_engine: Callable[[], DatasetEngine | None]
    dataset: str
    parent: str = ""
    rebuild: Callable[[str], object] | None = None
    after: Callable[[DatasetEngine, str, TakedownTarget], object] = lambda *_: None

    def find(self, target: TakedownTarget, found: FoundPlaces) -> Mapping[str, int]:
        """Return the rows that must go, and the units whose parent loses rows."""
        engine = self.open_engine()
        if engine is None:
            return {}
        lost = found.get(self.parent, {})
        changed = {WHOLE} if lost and engine.dataset.partitions == "whole" else set(lost)
        stored = engine.units() if changed else {}
        return {**dict.fromkeys(sorted(changed & stored.keys()), 0), **engine.find(target)}

    def remove(self, unit: str, target: TakedownTarget) -> RemovedRows:
        """Clean one unit."""
        engine = self.open_engine()
        if engine is None:
            return RemovedRows()
        if self.rebuild is not None:
            lost = engine.find(target).get(unit, 0)
            self.rebuild(unit)
            return RemovedRows(lost)
        done = engine.remove_rows(unit, target)
        self.after(engine, unit, target)
        return done


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """What `apply` did: the requests it served, and what went from each dataset.

    `left` names what could not be searched or rewritten, each with the reason; `notes` say what
    remains outside the reach of the platform.
    """

    served: tuple[str, ...] = ()
    removed: Mapping[str, RemovedRows] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def total(self, name: str) -> int:
        """Return the sum of a number over all datasets."""
        return sum(int(getattr(one, name)) for one in self.removed.values())


def find_places(parts: Iterable[TakedownPart], takedowns: Takedowns) -> FoundPlaces:
    """Return every place that holds something covered; datasets without any are left out."""
    found, failed = _found(parts, takedowns, {})
    for message in failed.values():
        raise StorageError(message)
    return found


def _found(
    parts: Iterable[TakedownPart], takedowns: Takedowns, marked: FoundPlaces
) -> tuple[FoundPlaces, Mapping[str, str]]:
    """Return what was found, and the datasets that could not be searched, each with the reason.

    One damaged file must not keep the other datasets from being cleaned. What is `marked` counts
    as found: what is made from it follows.
    """
    found, failed = dict(marked), dict[str, str]()
    for part in parts:
        target = _target(part, takedowns)
        try:
            places = _repeated(part.dataset, partial(part.find, target, found)) if target else {}
        except StorageError as error:
            failed[part.dataset] = str(error)
        else:
            places = {**marked.get(part.dataset, {}), **places}
            found |= {part.dataset: places} if places else {}
    return found, failed


def _target(part: TakedownPart, takedowns: Takedowns) -> TakedownTarget:
    return TakedownTarget(takedowns.exported if part.dataset in EXPORTS else takedowns)


def apply_takedowns(
    store: ObjectStore,
    parts: Sequence[TakedownPart],
    *,
    now: datetime,
    aliases: Iterable[Sequence[str]] = (),
    search_again: bool = False,
) -> ApplyReport:
    """Remove what the requests cover, and finish what an earlier run left.

    `aliases` are those that the ledger knows now; those of covered pages are kept with the
    requests, because the ledger forgets them. `search_again` also looks for what requests that were
    applied before cover now.
    """
    keep_aliases(store, aliases, now=now)
    # What must not be stored must not be exported either.
    states = [one for one in read_states(store) if one.is_active("export", now)]
    fresh = [one.request for one in states if search_again or not one.is_searched]
    not_searched = _search(store, parts, fresh, now=now)
    removed, left = finish_pending(store, parts, now=now)
    if not_searched or left:
        return ApplyReport((), removed, {**not_searched, **left})
    served = [one.request.id for one in states if search_again or not one.is_applied]
    for takedown in served:
        write_applied(store, takedown, _record(removed, now=now))
    return ApplyReport(tuple(served), removed)


def keep_aliases(store: ObjectStore, aliases: Iterable[Sequence[str]], *, now: datetime) -> None:
    """Store the groups of addresses of which one is covered."""
    takedowns = Takedowns.read(store, now=now) if aliases else Takedowns()
    removing = Takedowns.read(store, now=now, use="removal") if aliases else Takedowns()
    for group in aliases:
        if any(takedowns.covers_url(url) or removing.covers_url(url) for url in group):
            add_aliases(store, group, now=now)


def _search(
    store: ObjectStore,
    parts: Iterable[TakedownPart],
    fresh: Sequence[TakedownRequest],
    *,
    now: datetime,
) -> Mapping[str, str]:
    """Mark the units that hold something; return the datasets that could not be searched."""
    if not fresh:
        return {}
    _, known = read_active(store, now=now, use="removal")
    marked: dict[str, dict[str, int]] = {}
    for dataset, unit in list_pending(store):
        marked.setdefault(dataset, {})[unit] = 0
    stored = [one for one in fresh if one.scope is not TakedownScope.export]
    takedowns = Takedowns.of(stored, aliases=known, exported=fresh)
    places, failed = _found(parts, takedowns, marked)
    for dataset, units in places.items():
        mark_pending(store, dataset, units)
    counted = {
        dataset: {"partitions": len(units), "rows": sum(units.values())}
        for dataset, units in places.items()
    }
    # After the marks: until then, a killed search is repeated.
    for request in fresh if not failed else ():
        write_searched(store, request.id, {"searched_at": now.isoformat(), "found": counted})
    return failed


def finish_pending(
    store: ObjectStore, parts: Iterable[TakedownPart], *, now: datetime
) -> tuple[Mapping[str, RemovedRows], Mapping[str, str]]:
    """Clean all marked units, in the order of the parts; return what went and what is left.

    Data of a request that was withdrawn in between stays.
    """
    takedowns = Takedowns.read(store, now=now, use="removal")
    marked = list_pending(store)
    removed: dict[str, RemovedRows] = {}
    left: dict[str, str] = {}
    for part in parts:
        target = _target(part, takedowns)
        for unit in [key for dataset, key in marked if dataset == part.dataset]:
            mark, place = find_mark(store, part.dataset, unit), f"{part.dataset} {unit}"
            try:
                done = _repeated(place, partial(part.remove, unit, target))
            except StorageError as error:
                left[place] = str(error)
                continue
            removed[part.dataset] = removed.get(part.dataset, RemovedRows()) + done
            clear_pending(store, part.dataset, unit, mark=mark)
    return removed, left


class _Unreadable(StorageError):
    """A file is damaged, or went while it was read."""


def _repeated(thing: str, work: Callable[[], ResultT]) -> ResultT:
    """Do something again as long as somebody else changes what it reads or writes."""
    for attempt in range(_ATTEMPTS):
        try:
            with _as_storage_error(thing):
                return work()
        except (Conflict, NotFound, _Unreadable) as error:
            _log.info("%s changed meanwhile: %s", thing, error)
            if attempt == _ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


@contextmanager
def _as_storage_error(thing: str) -> Iterator[None]:
    """Turn what the Parquet libraries raise for damaged files into an error of our own."""
    try:
        yield
    # The errors of pyarrow are ValueErrors or OSErrors.
    except (pl.exceptions.PolarsError, ValueError, OSError) as error:
        raise _Unreadable(f"cannot read {thing!r}: {error}", thing=thing) from error


def _record(removed: Mapping[str, RemovedRows], *, now: datetime) -> dict[str, object]:
    """Return what is recorded of a removal: when, what, how many bytes; never any text."""
    total = sum(removed.values(), RemovedRows())
    return {
        "applied_at": now.isoformat(),
        "removed": {dataset: asdict(one) for dataset, one in removed.items()},
        "bytes_removed": total.bytes_removed,
        "bytes_written": total.bytes_written,
    }
