"""Upgrade a root of version 0.1 (format 1) in place to the current format.

The markers of collected WARCs are combined by month. What version 0.1 built from them stays
current: the fingerprint that it gave to a day is kept with the day. An upgrade may be killed at any
point; the next process that opens the root finishes it.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import date

from news_platform.datasets.collected import COLLECTED, Collected
from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.errors import Conflict
from news_platform.storage.commit.collected_months import combine_month
from news_platform.storage.commit.markers import (
    Marker,
    etag_part,
    fingerprint,
    read_markers,
    read_report,
)
from news_platform.storage.commit.root import ROOT_FILE, ROOT_FORMAT, RootFile, read_root
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

_log = logging.getLogger(__name__)


def upgrade_root(
    store: ObjectStore, *, adopters: Iterable[Callable[[ObjectStore], None]] = ()
) -> bool:
    """Bring a root to the current format; return whether there was anything to do.

    `adopters` give the markers of other datasets the fingerprints of today.
    """
    found = read_root(store)
    if found is None or (found.format == ROOT_FORMAT and not found.is_upgrading):
        return False
    _log.warning("upgrading root %s to format %s", store.url, ROOT_FORMAT)
    # First, so that version 0.1 stops here before it misses a marker.
    _write(store, replace(found, is_upgrading=True, made_at=found.made_at or _made_at(store)))
    _combine_all(store)
    for adopt in adopters:
        adopt(store)
    latest = read_root(store) or found
    _write(store, replace(latest, is_upgrading=False))
    return True


def _made_at(store: ObjectStore) -> str:
    return store.head(ROOT_FILE).modified_at.isoformat()


def _write(store: ObjectStore, root: RootFile) -> None:
    with suppress(Conflict):  # another process takes the same steps
        store.compare_and_set(ROOT_FILE, root.to_json(), etag=root.etag)


def _combine_all(store: ObjectStore) -> None:
    staged = read_markers(store, STAGED)
    for year in store.list_folders(COLLECTED):
        for folder in store.list_folders(year):
            with suppress(ValueError):  # a folder that somebody left there
                month = date.fromisoformat("-".join([*folder.split("/")[-2:], "01"]))
                combine_month(store, month, formerly=_Formerly(store, staged))


class _Formerly:
    """Find the fingerprint that version 0.1 gave to a day.

    It was made from the ETags of the day's markers. In a local folder those name inodes, which a
    copy does not keep: then the staged batch of the day tells whether it is of the same rows.
    """

    def __init__(self, store: ObjectStore, staged: Mapping[str, Marker]) -> None:
        self._store = store
        self._staged = staged

    def __call__(self, day: str, infos: list[ObjectInfo], markers: list[Collected]) -> str:
        """Return the fingerprint."""
        by_etags, staged = fingerprint(map(etag_part, infos)), self._staged.get(day)
        if staged is None or staged.inputs == by_etags:
            return by_etags
        rows = sum(marker.rows for marker in markers)
        is_same = read_report(self._store, staged).get("records") == rows
        return staged.inputs if is_same else by_etags
