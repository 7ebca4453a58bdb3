"""What stage 1 has ready: which version of which batch, and how many files of it in each bucket."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from news_platform.datasets.domain_buckets import ROOT as DATASET
from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.domain_store.commit import read_buckets
from news_platform.domain_store.layout import STORE_FILE, range_keys
from news_platform.domain_store.staging.stage import staged_name
from news_platform.errors import StorageError
from news_platform.storage.commit.markers import Marker, fingerprint, read_markers, read_report
from news_platform.storage.objects.store import ObjectStore


@dataclass(frozen=True)
class Staged:
    """The batches of stage 1 as one listing of their markers showed them."""

    store: ObjectStore
    buckets: int
    markers: Mapping[str, Marker]

    @cached_property
    def versions(self) -> Mapping[str, str]:
        """Return what stands for the present version of each batch."""
        return {batch: marker.inputs for batch, marker in self.markers.items()}

    def name(self, batch: str) -> str:
        """Return what stands in the names of all files of the present version of a batch."""
        return staged_name(batch, self.markers[batch].inputs, buckets=self.buckets)

    @property
    def fingerprint(self) -> str:
        """Return what stands for all batches in their present versions."""
        return staged_fingerprint(self.markers)

    def files(self, batch: str, bucket: int) -> int:
        """Return how many data files the batch has in a bucket."""
        return self._cells(batch).get(str(bucket), (0, 0, 0))[0]

    def records(self, batch: str, bucket: int) -> int:
        """Return how many records the batch has in a bucket."""
        return self._cells(batch).get(str(bucket), (0, 0, 0))[1]

    @cached_property
    def _reports(self) -> dict[str, Mapping[str, tuple[int, int, int]]]:
        return {}

    def _cells(self, batch: str) -> Mapping[str, tuple[int, int, int]]:
        if batch not in self._reports:
            marker = self.markers[batch]
            cells = read_report(self.store, marker).get("buckets")
            if not isinstance(cells, dict):
                raise StorageError(f"{marker.path!r} does not name its buckets", thing=marker.path)
            self._reports[batch] = cells
        return self._reports[batch]


def read_staged(store: ObjectStore, buckets: int) -> Staged:
    """List what stage 1 has ready."""
    return Staged(store, buckets, read_markers(store, DATASET))


def staged_fingerprint(markers: Mapping[str, Marker]) -> str:
    """Return what stands for all batches of stage 1 in their present versions, by names alone."""
    return fingerprint(f"{batch}@{marker.inputs}" for batch, marker in markers.items())


def wanted_ranges(store: ObjectStore) -> Mapping[str, str]:
    """Return what every range of buckets must stand on: all batches that stage 1 has ready."""
    if not store.exists(STORE_FILE):
        return {}
    inputs = staged_fingerprint(read_markers(store, DATASET))
    return dict.fromkeys(range_keys(read_buckets(store)), inputs)


def built_ranges(store: ObjectStore) -> Mapping[str, str]:
    """Return what every range of buckets stands on."""
    return {key: marker.inputs for key, marker in read_markers(store, STORE).items()}
