"""Remove what is stored: find the touched partitions once, mark them, rewrite them one by one.

Every dataset registers its own part. A run may be killed at any point: the marks say what is left,
and the next run, or the sensor, goes on from there. Nothing is downloaded.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol, TypeVar

import polars as pl

from news_platform.datasets.takedowns import TakedownRequest, TakedownScope
from news_platform.errors import Conflict, StorageError
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.request_cache import combine
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

_log = logging.getLogger(__name__)
# Collectors and builders may change a partition while it is searched or rewritten.
_ATTEMPTS = 10
ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class RemovedData:
    """What rewriting one partition did: rows that are gone, bytes of old and of new files."""

    rows: int = 0
    bytes_removed: int = 0
    bytes_written: int = 0
    notes: tuple[str, ...] = ()

    def __add__(self, other: "RemovedData") -> "RemovedData":
        return RemovedData(
            self.rows + other.rows,
            self.bytes_removed + other.bytes_removed,
            self.bytes_written + other.bytes_written,
            (*self.notes, *other.notes),
        )


class TakedownPart(Protocol):
    """The part of one dataset in a takedown."""

    @property
    def dataset(self) -> str:
        """Return the name of the dataset."""

    def find(self, takedowns: Takedowns) -> Mapping[str, int]:
        """Return the rows that must go, by partition."""

    def remove(self, partition: str, takedowns: Takedowns) -> RemovedData:
        """Rewrite a partition without the covered rows; repeating it changes nothing."""


@dataclass(frozen=True, slots=True)
class SimplePart:
    """A part made of two functions."""

    dataset: str
    finder: Callable[[Takedowns], Mapping[str, int]]
    remover: Callable[[str, Takedowns], RemovedData]

    def find(self, takedowns: Takedowns) -> Mapping[str, int]:
        """Return the rows that must go, by partition."""
        return self.finder(takedowns)

    def remove(self, partition: str, takedowns: Takedowns) -> RemovedData:
        """Rewrite a partition without the covered rows."""
        return self.remover(partition, takedowns)


FoundPlaces = Mapping[str, Mapping[str, int]]
"""The rows that must go, by dataset and partition."""


@dataclass(frozen=True, slots=True)
class ApplyReport:
    """What `apply` did: the requests it served, and what went from each dataset.

    `left` names what could not be searched or rewritten, each with the reason; `notes` say what
    remains outside the reach of the platform.
    """

    served: tuple[str, ...] = ()
    removed: Mapping[str, RemovedData] = field(default_factory=dict)
    left: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def total(self, name: str) -> int:
        """Return the sum of a number over all datasets."""
        return sum(int(getattr(one, name)) for one in self.removed.values())


def find_places(parts: Iterable[TakedownPart], takedowns: Takedowns) -> FoundPlaces:
    """Return every place that holds something covered; datasets without any are left out."""
    found = {part.dataset: _find(part, takedowns) for part in parts} if takedowns else {}
    return {dataset: dict(places) for dataset, places in found.items() if places}


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
    combine(store)
    keep_aliases(store, aliases, now=now)
    states = [one for one in read_states(store) if one.is_active("removal", now)]
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
    """Mark the partitions that hold something; return the datasets that could not be searched.

    One damaged file must not keep the other datasets from being cleaned.
    """
    if not fresh:
        return {}
    _, known = read_active(store, now=now, use="removal")
    takedowns = Takedowns.of(fresh, aliases=known)
    places: dict[str, Mapping[str, int]] = {}
    failed: dict[str, str] = {}
    for part in parts:
        try:
            places |= find_places([part], takedowns)
        except StorageError as error:
            failed[part.dataset] = str(error)
    for dataset, partitions in places.items():
        mark_pending(store, dataset, partitions)
    counted = {
        dataset: {"partitions": len(partitions), "rows": sum(partitions.values())}
        for dataset, partitions in places.items()
    }
    # After the marks: until then, a killed search is repeated.
    for request in fresh if not failed else ():
        write_searched(store, request.id, {"searched_at": now.isoformat(), "found": counted})
    return failed


def finish_pending(
    store: ObjectStore, parts: Iterable[TakedownPart], *, now: datetime
) -> tuple[Mapping[str, RemovedData], Mapping[str, str]]:
    """Rewrite all marked partitions, in the order of the parts; return what went and what is left.

    Data of a request that was withdrawn in between stays.
    """
    takedowns = Takedowns.read(store, now=now, use="removal")
    marked = list_pending(store)
    removed: dict[str, RemovedData] = {}
    left: dict[str, str] = {}
    for part in parts:
        for partition in [key for dataset, key in marked if dataset == part.dataset]:
            mark = find_mark(store, part.dataset, partition)
            try:
                done = _remove(part, partition, takedowns)
            except StorageError as error:
                left[f"{part.dataset} {partition}"] = str(error)
                continue
            removed[part.dataset] = removed.get(part.dataset, RemovedData()) + done
            clear_pending(store, part.dataset, partition, mark=mark)
    return removed, left


def _find(part: TakedownPart, takedowns: Takedowns) -> Mapping[str, int]:
    return _repeated(part.dataset, lambda: part.find(takedowns))


def _remove(part: TakedownPart, partition: str, takedowns: Takedowns) -> RemovedData:
    return _repeated(f"{part.dataset} {partition}", lambda: part.remove(partition, takedowns))


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


def _record(removed: Mapping[str, RemovedData], *, now: datetime) -> dict[str, object]:
    """Return what is recorded of a removal: when, what, how many bytes; never any text."""
    return {
        "applied_at": now.isoformat(),
        "removed": {
            dataset: {
                "rows": one.rows,
                "bytes_removed": one.bytes_removed,
                "bytes_written": one.bytes_written,
            }
            for dataset, one in removed.items()
        },
        "bytes_removed": sum(one.bytes_removed for one in removed.values()),
        "bytes_written": sum(one.bytes_written for one in removed.values()),
    }


def is_ban(request: TakedownRequest) -> bool:
    """Return whether a request also bans future collection."""
    return request.scope is not TakedownScope.stored
