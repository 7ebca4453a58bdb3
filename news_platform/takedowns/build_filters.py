"""What builders and readers share: leave covered rows out, and notice requests that came since."""

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from news_platform.datasets.dataset import Dataset
from news_platform.datasets.domain_metadata import DOMAIN_METADATA
from news_platform.datasets.source_records import PAGE_SNAPSHOTS
from news_platform.datasets.takedowns import APPLIED, PENDING, SEARCHED, TAKEN_DOWN
from news_platform.errors import Conflict, FetchError
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns, TakedownUse
from news_platform.takedowns.requests import add_aliases, mark_late, read_active
from news_platform.takedowns.rows import ROW_ROLES, TakedownTarget

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

OptionsT = TypeVar("OptionsT", bound="DataclassInstance")
ResultT = TypeVar("ResultT")


def without_covered(rows: pl.DataFrame, dataset: Dataset, takedowns: Takedowns) -> pl.DataFrame:
    """Return rows of a dataset without those that are taken down, by the roles of its columns."""
    if not takedowns:
        return rows
    return rows.filter(~TakedownTarget(takedowns).covered(dataset, rows))


def read_hidden(store: ObjectStore) -> Takedowns:
    """Return what is asked for and may still be stored: no reader shows it.

    Once all is removed it is empty, and hiding it costs a few listings.
    """
    now = datetime.now(UTC)
    active, aliases = read_active(store, now=now, use="removal")
    if active and not any(store.list(PENDING)):
        served = _served(store)
        active = [one for one in active if one.id not in served]
    return Takedowns.of(active, aliases=aliases)


def without_hidden(
    rows: pl.LazyFrame, dataset: Dataset, hidden: Takedowns | ObjectStore
) -> pl.LazyFrame:
    """Return rows of a dataset without those that no reader shows, by the roles of its columns."""
    takedowns = hidden if isinstance(hidden, Takedowns) else read_hidden(hidden)
    if not takedowns:
        return rows
    known = rows.collect_schema().names()
    named = [one.name for one in dataset.all_columns if one.name in known and one.role in ROW_ROLES]
    if not named:
        return rows
    target = TakedownTarget(takedowns)
    is_gone = pl.struct(named).map_batches(
        lambda some: target.covered(dataset, some.struct.unnest()), return_dtype=pl.Boolean
    )
    return rows.filter(~is_gone)


def refuse_taken_down(url: str, takedowns: Takedowns) -> None:
    """Raise FetchError for an address that must not be fetched."""
    if takedowns.covers_url(url):
        raise FetchError(f"{url!r} is taken down", thing=url, reason=TAKEN_DOWN)


def obeying(options: OptionsT, store: ObjectStore, *, now: datetime) -> OptionsT:
    """Return the options of a collector with the takedowns that it must obey now."""
    takedowns = Takedowns.read(store, now=now)
    fields: dict[str, Any] = {"takedowns": takedowns}
    if hasattr(options, "keep_alias"):
        fields["keep_alias"] = partial(add_aliases, store, now=now)
    return replace(options, **fields)


def require_same_takedowns(
    store: ObjectStore,
    takedowns: Takedowns,
    *,
    now: datetime | None,
    use: TakedownUse = "removal",
) -> None:
    """Raise Conflict if requests came since they were read: what was built may hold too much.

    Called right before a commit, so that nothing built from older requests follows a removal.
    """
    if Takedowns.read(store, now=now, use=use).fingerprint != takedowns.fingerprint:
        raise Conflict("takedowns changed during the build: try again", thing=store.url)


def input_filter(store: ObjectStore) -> Callable[[str, bytes], bool]:
    """Return a function that tells whether an input, by its path and content, is taken down."""
    target = TakedownTarget(Takedowns.read(store))

    def is_refused(path: str, body: bytes) -> bool:
        # Research files and lists of feeds only mention pages.
        for dataset in (PAGE_SNAPSHOTS, DOMAIN_METADATA):
            if (values := dataset.place.parse(path)) is not None:
                return target.covers_file(dataset, values, lambda: body)
        return False

    return is_refused


def build_obeying(
    store: ObjectStore,
    build: Callable[[Takedowns], ResultT],
    *,
    after_repeat: Callable[[], object] = lambda: None,
) -> ResultT:
    """Build something without what is taken down, again as long as requests come meanwhile.

    They are read once more after `build` has stored its result: a request that came before was
    perhaps searched for before, and one that comes later finds the result. `after_repeat` removes
    what the earlier result left behind.
    """
    takedowns = Takedowns.read(store, use="removal")
    result = build(takedowns)
    while _state(latest := Takedowns.read(store, use="removal")) != _state(takedowns):
        takedowns = latest
        result = build(takedowns)
        after_repeat()
    return result


def _state(takedowns: Takedowns) -> tuple[str, str]:
    return takedowns.fingerprint, takedowns.exported.fingerprint


@contextmanager
def cleaned_later(store: ObjectStore, places: Mapping[str, Collection[str]]) -> Iterator[None]:
    """Mark what is written inside the block if it may hold more than the requests allow.

    For writers that take over what other datasets and the ledger hold: a request that came
    meanwhile, or was not served when the block began, may have been served before they wrote.
    `places` are the partitions by dataset, as in `takedowns/pending`.
    """
    served = _served(store)
    try:
        yield
    finally:
        asked = {one.id for one in read_active(store, now=None, use="removal")[0]}
        if asked - served:
            for dataset, partitions in places.items():
                mark_late(store, dataset, partitions)


def _served(store: ObjectStore) -> set[str]:
    return {PurePosixPath(info.path).stem for info in store.list(APPLIED)}


def has_removed(store: ObjectStore) -> bool:
    """Return whether anything was ever removed from a root by a takedown."""
    return any(next(iter(store.list(folder)), None) for folder in (SEARCHED, APPLIED))
