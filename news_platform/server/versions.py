"""The version of the data that pages are made from: a fingerprint of listings, looked up rarely."""

import threading
import time
from collections.abc import Mapping

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


class DataVersion:
    """The version of a root's data, as it was when somebody last looked."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store
        self._looking = threading.Lock()
        self._version = ""
        self._parts: Mapping[str, str] = {}
        self._good_until = 0.0

    @property
    def is_fresh(self) -> bool:
        """Return whether `current` answers without looking."""
        return time.monotonic() < self._good_until

    def current(self) -> str:
        """Return the version; look if the last time is too long ago and nobody else does."""
        # The first request waits for the first version; later ones use the last meanwhile.
        if not self.is_fresh and self._looking.acquire(blocking=not self._version):
            try:
                if not self.is_fresh:
                    self._look()
            finally:
                self._looking.release()
        return self._version

    def of(self, *folders: str) -> str:
        """Return the version of some of the folders, which others do not change."""
        self.current()
        return "\n".join(map(self._parts.__getitem__, folders))

    def forget(self) -> None:
        """Look at the next request: the data changed under a reader."""
        self._good_until = 0.0

    def _look(self) -> None:
        started = time.monotonic()
        self._parts = {
            folder: fingerprint(map(etag_part, self._store.list(folder))) for folder in _FOLDERS
        }
        self._version = fingerprint(self._parts.values())
        took = time.monotonic() - started
        self._good_until = time.monotonic() + max(_SHORTEST_SECONDS, took / _SHARE_OF_TIME)
