"""What each partition of the demo has written, so that a lost file is noticed and built again."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from news_platform.errors import StorageError
from news_platform.storage.commit.markers import delete_marker
from news_platform.storage.objects.store import ObjectStore

OUTPUTS_FILE = "demo.json"
# Inputs, the ledger and markers are not outputs of a partition.
_NOT_OUTPUTS = ("world/", "raw/", "snapshots/", "markers/", "ledger.", "root.json", OUTPUTS_FILE)


@dataclass
class Outputs:
    """The files by asset and partition, kept in the root beside the data."""

    store: ObjectStore
    paths: dict[str, dict[str, list[str]]] = field(default_factory=dict)

    @classmethod
    def read(cls, store: ObjectStore) -> "Outputs":
        """Read what earlier runs noted."""
        if not store.exists(OUTPUTS_FILE):
            return cls(store)
        return cls(store, json.loads(store.read(OUTPUTS_FILE)))

    def write(self) -> None:
        """Keep the notes; equal ones are left untouched."""
        body = json.dumps(self.paths, indent=1, sort_keys=True).encode()
        if not self.store.exists(OUTPUTS_FILE) or self.store.read(OUTPUTS_FILE) != body:
            self.store.put(OUTPUTS_FILE, body)

    def forget_lost(self, asset: str) -> list[str]:
        """Drop the markers of the partitions that have lost a file; return their keys."""
        here = self._tags().keys()
        noted = self.paths.get(asset, {})
        lost = sorted(key for key, paths in noted.items() if not here >= set(paths))
        for key in lost:
            delete_marker(self.store, asset, key)
        return lost

    @contextmanager
    def noting(self, asset: str, partition: str) -> Iterator[None]:
        """Note what is written while this partition is built; refuse to leave a file lost."""
        before = self._tags()
        lost = set(self.paths.get(asset, {}).get(partition, ())) - before.keys()
        yield
        after = self._tags()
        changed = {path for path, tag in after.items() if before.get(path) != tag}
        if lost and not changed:
            raise StorageError(
                f"{asset} cannot build {min(lost)!r} again: delete the demo folder and start anew",
                thing=min(lost),
            )
        known = self.paths.setdefault(asset, {}).get(partition, [])
        self.paths[asset][partition] = sorted(changed | set(known) & after.keys())

    def _tags(self) -> dict[str, str]:
        return {
            info.path: info.etag
            for info in self.store.list()
            if not info.path.startswith(_NOT_OUTPUTS)
        }
