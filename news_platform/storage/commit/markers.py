"""What each partition of a dataset was built from, readable by one LIST.

A marker is `markers/<dataset>/<partition>@<fingerprint of the inputs>.json`: the name carries what
a sensor compares, the body carries the report of the run.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from urllib.parse import quote, unquote

from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

_FINGERPRINT_HEX = 16


@dataclass(frozen=True, slots=True)
class Marker:
    """One partition's marker; `inputs` is the fingerprint of what it was built from."""

    partition: str
    inputs: str
    path: str
    etag: str
    size_bytes: int


def fingerprint(parts: Iterable[str]) -> str:
    """Return 16 hex digits that stand for this set of parts, in whatever order they come."""
    digest = hashlib.sha256()
    for part in sorted(part.encode() for part in parts):
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:_FINGERPRINT_HEX]


def fingerprint_of(infos: Iterable[ObjectInfo]) -> str:
    """Return the fingerprint of objects by their names, tags and sizes."""
    return fingerprint(f"{info.path}\n{info.etag}\n{info.size_bytes}" for info in infos)


def write_marker(
    store: ObjectStore,
    dataset: str,
    partition: str,
    *,
    inputs: str,
    report: Mapping[str, object],
) -> None:
    """Record that the partition now stands on `inputs`; then drop its older markers.

    In this order, so that a crash leaves one marker too many, never one too few.
    """
    path = f"{_stem(dataset, partition)}{inputs}.json"
    store.put(path, json.dumps(report, ensure_ascii=False, indent=1, sort_keys=True).encode())
    store.delete([old.path for old in _of_partition(store, dataset, partition) if old.path != path])


def read_markers(store: ObjectStore, dataset: str) -> dict[str, Marker]:
    """Return the marker of every partition that has one, by one LIST.

    Where a crash left two, the younger counts.
    """
    infos = sorted(store.list(_folder(dataset)), key=lambda info: (info.modified_at, info.path))
    markers = (_marker(info) for info in infos)
    return {marker.partition: marker for marker in markers}


def read_report(store: ObjectStore, marker: Marker) -> dict[str, object]:
    """Return the report that was written with the marker."""
    try:
        report = json.loads(store.read(marker.path))
    except ValueError as error:
        raise StorageError(f"not a marker: {marker.path!r}", thing=marker.path) from error
    return dict(report)


def delete_marker(store: ObjectStore, dataset: str, partition: str) -> None:
    """Forget the partition, so that it counts as never built."""
    store.delete([info.path for info in _of_partition(store, dataset, partition)])


def _folder(dataset: str) -> str:
    return f"markers/{dataset}"


def _stem(dataset: str, partition: str) -> str:
    return f"{_folder(dataset)}/{quote(partition, safe='')}@"


def _of_partition(store: ObjectStore, dataset: str, partition: str) -> list[ObjectInfo]:
    return list(store.list(_folder(dataset), name_prefix=f"{quote(partition, safe='')}@"))


def _marker(info: ObjectInfo) -> Marker:
    encoded, at, rest = info.path.rpartition("/")[2].rpartition("@")
    if not at or not rest.endswith(".json"):
        raise StorageError(f"not a marker: {info.path!r}; remove it", thing=info.path)
    inputs = rest.removesuffix(".json")
    return Marker(unquote(encoded), inputs, info.path, info.etag, info.size_bytes)
