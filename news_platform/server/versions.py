"""The version of the data that pages are made from, and what was read from that version."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from cachetools import LRUCache

from news_platform.datasets.corpus import DELTA_TABLES
from news_platform.storage.commit.markers import etag_part, fingerprint
from news_platform.storage.objects.store import ObjectStore

# The datasets whose markers change with what a page shows.
_MARKED = (
    *(table.name for table in DELTA_TABLES),
    "search_index",
    "near_duplicates",
    "domain_surveys",
    "usage_signals",
    "ai_policy_changes",
    "domain_store",
    "domain_catalog",
    "feeds",
)
ARTICLE_LOGS = tuple(f"{table.name}/_delta_log" for table in DELTA_TABLES)
CLUSTER_MARKERS = "markers/near_duplicates"
TAKEDOWNS = "takedowns"
INDEX_MARKERS = tuple(
    f"markers/{name}" for name in ("search_index", *(t.name for t in DELTA_TABLES))
)
_FOLDERS = (*ARTICLE_LOGS, *(f"markers/{name}" for name in _MARKED), TAKEDOWNS)
# Looking takes at most this share of the time, however long the listings are.
_SHARE_OF_TIME = 0.05
_SHORTEST_SECONDS = 1.0
_KEPT_VALUES = 64
_Value = TypeVar("_Value")


class Refreshed(Generic[_Value]):
    """A value that is read again when it is too old; while one caller reads, others get the last.

    `rest_seconds` says for how long it is good, by the seconds that reading took.
    """

    def __init__(
        self, read: Callable[[], _Value], *, rest_seconds: Callable[[float], float]
    ) -> None:
        self._read, self._rest_seconds = read, rest_seconds
        self._reading = threading.Lock()
        self._value: _Value | None = None
        self._good_until = 0.0

    @property
    def is_fresh(self) -> bool:
        """Return whether `current` answers without reading."""
        return time.monotonic() < self._good_until

    def current(self) -> _Value:
        """Return the value; the first callers wait for it."""
        if not self.is_fresh and self._reading.acquire(blocking=self._value is None):
            try:
                if not self.is_fresh:
                    started = time.monotonic()
                    self._value = self._read()
                    ended = time.monotonic()
                    self._good_until = ended + self._rest_seconds(ended - started)
            finally:
                self._reading.release()
        assert self._value is not None
        return self._value

    def forget(self) -> None:
        """Read again at the next request."""
        self._good_until = 0.0


class DataVersion:
    """The version of a root's data when it was last listed, and values read from that version."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._listed = Refreshed(
            self._list, rest_seconds=lambda took: max(_SHORTEST_SECONDS, took / _SHARE_OF_TIME)
        )
        self._kept: LRUCache[str, tuple[str, Any]] = LRUCache(_KEPT_VALUES)
        self._keeping = threading.Lock()

    @property
    def is_fresh(self) -> bool:
        """Return whether `of` answers without listing."""
        return self._listed.is_fresh

    def of(self, *folders: str) -> str:
        """Return the version of all data, or of some folders, which others do not change."""
        parts = self._listed.current()
        return "\n".join(parts[folder] for folder in folders or parts)

    def forget(self) -> None:
        """List and read again at the next request: the data changed under a reader."""
        self._listed.forget()
        with self._keeping:
            self._kept.clear()

    def kept(self, name: str, read: Callable[[], _Value], *folders: str) -> _Value:
        """Return a value that was read from this version of some folders, or read it now."""
        version = self.of(*folders)
        with self._keeping:
            known, value = self._kept.get(name, ("", None))
        if known == version:
            found: _Value = value
            return found
        # Outside of the lock: two threads may read the same value, none waits for another's.
        found = read()
        with self._keeping:
            self._kept[name] = (version, found)
        return found

    def _list(self) -> Mapping[str, str]:
        return {
            folder: fingerprint(map(etag_part, self._store.list(folder))) for folder in _FOLDERS
        }
