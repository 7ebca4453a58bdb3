"""Write and read markers: which inputs each partition of a dataset was built from.

A marker is `markers/<dataset>/<partition>@<fingerprint of the inputs>.json`, or with a scope
`<partition>@<fingerprint>.<scope>.json`. A sensor compares only the names, which one LIST returns;
the body is the report of the run. `publish` writes a unit of many files and its own marker last.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from urllib.parse import quote, unquote

from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

_FINGERPRINT_HEX = 16
# Ten years of the crawl have 65,700 collected markers (18 WARCs per day), and every tick needs all
# of them: a smaller cache would drop each one before it is needed again.
_REMEMBERED_DIGESTS = 1 << 18
# Uploads wait for the network and local puts for the disk, so threads overlap well.
_CONCURRENT_PUTS = 8
_COMPARE_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Marker:
    """The marker of one partition; `inputs` is the fingerprint of the inputs it was built from.

    `scope` tells those who follow the dataset which part of it the partition touches, in the form
    that the dataset chose; empty if it was not recorded.
    """

    partition: str
    inputs: str
    path: str
    etag: str
    size_bytes: int
    scope: str = ""


StoredObject = ObjectInfo | Marker
PartOf = Callable[[StoredObject], str]
Digest = Callable[[bytes], str]


def fingerprint(parts: Iterable[str]) -> str:
    """Return a hash of the parts as 16 hex digits; their order does not matter."""
    digest = hashlib.sha256()
    for part in sorted(part.encode() for part in parts):
        # The length prefix keeps ["ab", "c"] and ["a", "bc"] apart.
        digest.update(len(part).to_bytes(8, "big") + part)
    return digest.hexdigest()[:_FINGERPRINT_HEX]


def fingerprint_of(objects: Iterable[StoredObject], part: PartOf | None = None) -> str:
    """Return the fingerprint of objects, each given by `part` or else by path, ETag and size."""
    return fingerprint(map(part or etag_part, objects))


def etag_part(stored: StoredObject) -> str:
    """Return what an object adds to a fingerprint, as its listing shows it."""
    return f"{stored.path}\n{stored.etag}\n{stored.size_bytes}"


def content_part(store: ObjectStore, digest: Digest | None = None) -> PartOf:
    """Return the function that gives what an object adds to a fingerprint by its content.

    An object store derives ETags from content, so they are used as they are. The ETag of a local
    file is its inode and time of change, which differ in every copy of a root: local files are read
    instead, and get the ETag that S3 gives to the same bytes in one PUT. `digest` may leave out of
    a file what does not matter to those who follow it.
    """
    folder = store.local_folder
    if folder is None:
        return etag_part
    if digest is not None:
        return lambda it: f"{it.path}\n{content_tag(store, it.path, it.etag, digest)}"
    return lambda it: f"{it.path}\n{_file_md5(folder / it.path, it.etag)}\n{it.size_bytes}"


def content_tag(store: ObjectStore, path: str, etag: str, digest: Digest | None = None) -> str:
    """Return the ETag of a remote object or the digest of a local file."""
    folder = store.local_folder
    return etag if folder is None else _file_digest(folder / path, etag, digest)


@lru_cache(_REMEMBERED_DIGESTS)
def _file_digest(path: Path, etag: str, digest: Digest | None) -> str:
    """Return the digest of a file, which is read once for each of its ETags."""
    try:
        if digest is not None:
            return digest(path.read_bytes())
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except FileNotFoundError:
        # Deleted since it was listed. Nothing was built from its ETag, so the caller looks again.
        return etag


@lru_cache(_REMEMBERED_DIGESTS)
def _file_md5(path: Path, etag: str) -> str:
    """Return the ETag that S3 would give to a file, which is read once for each of its ETags."""
    try:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False))
    except FileNotFoundError:
        return etag  # as in `_file_digest`
    return f'"{found.hexdigest()}"'


def stale_partitions(wanted: Mapping[str, str], built: Mapping[str, str]) -> dict[str, str]:
    """Return the partitions that differ from their inputs, newest key first.

    Both map a partition to a fingerprint: of its inputs now, and of those it was built from.
    """
    return {
        key: wanted[key] for key in sorted(wanted, reverse=True) if built.get(key) != wanted[key]
    }


def write_marker(
    store: ObjectStore,
    dataset: str,
    partition: str,
    *,
    inputs: str,
    report: Mapping[str, object],
    scope: str = "",
) -> None:
    """Record that the partition was built from `inputs`, then delete its older markers.

    In this order a crash leaves an extra marker, never a missing one.
    """
    path = marker_path(dataset, partition, inputs=inputs, scope=scope)
    store.put(path, _report_bytes(report))
    store.delete([old.path for old in _of_partition(store, dataset, partition) if old.path != path])


def marker_path(dataset: str, partition: str, *, inputs: str, scope: str = "") -> str:
    """Return where the marker of a partition that is built from `inputs` lies."""
    return f"{_stem(dataset, partition)}{inputs}{f'.{scope}' if scope else ''}.json"


def amend_report(store: ObjectStore, marker: Marker, fields: Mapping[str, object]) -> None:
    """Add fields to the report in a marker; raise Conflict if the partition was built meanwhile.

    The name stays, so nothing that follows the partition becomes stale.
    """
    change_report(store, marker, lambda report: {**report, **fields})


def change_report(
    store: ObjectStore,
    marker: Marker,
    change: Callable[[Mapping[str, object]], Mapping[str, object]],
) -> None:
    """Replace the report in a marker by what `change` makes of it, like `amend_report`."""
    body, info = store.read_with_info(marker.path)
    report = change(_parse_report(body, marker))
    store.compare_and_set(marker.path, _report_bytes(report), etag=info.etag)


def report_scope(report: Mapping[str, object]) -> str:
    """Return a scope that changes with the report.

    It is for a dataset that is built again from the same inputs with another result.
    """
    return fingerprint([json.dumps(report, sort_keys=True)])


def read_markers(store: ObjectStore, dataset: str) -> dict[str, Marker]:
    """Return the markers of all partitions with one LIST.

    If a crash left two markers of a partition, the newer one counts.
    """
    infos = sorted(store.list(_folder(dataset)), key=lambda info: (info.modified_at, info.path))
    markers = (_marker(info) for info in infos)
    return {marker.partition: marker for marker in markers}


def read_inputs(store: ObjectStore, dataset: str) -> dict[str, str]:
    """Return the fingerprint that every partition was built from."""
    return {key: marker.inputs for key, marker in read_markers(store, dataset).items()}


def read_report(store: ObjectStore, marker: Marker) -> dict[str, object]:
    """Return the report in the marker."""
    return _parse_report(store.read(marker.path), marker)


def _report_bytes(report: Mapping[str, object]) -> bytes:
    return json.dumps(report, ensure_ascii=False, indent=1, sort_keys=True).encode()


def _parse_report(body: bytes, marker: Marker) -> dict[str, object]:
    try:
        return dict(json.loads(body))
    except ValueError as error:
        message = f"cannot parse marker {marker.path!r}: expected JSON; delete it to rebuild"
        raise StorageError(message, thing=marker.path) from error


def delete_marker(store: ObjectStore, dataset: str, partition: str) -> None:
    """Delete the markers of the partition, so that it counts as never built."""
    store.delete([info.path for info in _of_partition(store, dataset, partition)])


def _folder(dataset: str) -> str:
    return f"markers/{dataset}"


def _stem(dataset: str, partition: str) -> str:
    # Quoted, because a partition key may contain `/` and `@`.
    return f"{_folder(dataset)}/{quote(partition, safe='')}@"


def _of_partition(store: ObjectStore, dataset: str, partition: str) -> list[ObjectInfo]:
    return list(store.list(_folder(dataset), name_prefix=f"{quote(partition, safe='')}@"))


def _marker(info: ObjectInfo) -> Marker:
    encoded, at, rest = info.path.rpartition("/")[2].rpartition("@")
    if not at or not rest.endswith(".json"):
        expected = "expected PARTITION@FINGERPRINT.json; remove it"
        raise StorageError(f"not a marker: {info.path!r}: {expected}", thing=info.path)
    inputs, _, scope = rest.removesuffix(".json").partition(".")
    return Marker(unquote(encoded), inputs, info.path, info.etag, info.size_bytes, scope)


def publish(
    store: ObjectStore,
    files: Mapping[str, bytes | Path],
    *,
    marker: str,
    marker_body: bytes,
    replaces: Iterable[str] = (),
    retract: Callable[[], None] | None = None,
) -> None:
    """Make the stored unit equal to `files` and commit it by writing its marker.

    Objects under the folders `replaces` that are not in `files` are deleted. A file that already
    has these bytes is not written, so a repeated publish changes neither tags nor times. If a
    stored file must change or be deleted, the marker of an earlier publish is deleted first: a
    reader that checks markers never sees a mix of old and new files as a finished unit. Writing a
    lost file again keeps the marker, and therefore everything built from it. `retract` deletes the
    earlier marker if that has another place than the new one.
    """
    # Sizes from one LIST per folder spare a HEAD per file.
    stored = {info.path: info for folder in replaces for info in store.list(folder)}
    strays = stored.keys() - files.keys() - {marker}
    changed = [path for path, body in files.items() if not _holds(store, path, body, stored)]
    if strays or any(path in stored or store.exists(path) for path in changed):
        (retract or partial(store.delete, [marker]))()
    with ThreadPoolExecutor(_CONCURRENT_PUTS) as pool:
        for _ in pool.map(lambda path: store.put(path, files[path]), changed):
            pass
    store.delete(sorted(strays))
    if not _holds(store, marker, marker_body, {}):
        store.put(marker, marker_body)


def _holds(
    store: ObjectStore, path: str, body: bytes | Path, stored: Mapping[str, ObjectInfo]
) -> bool:
    info = stored.get(path) or store.find(path)
    size = len(body) if isinstance(body, bytes) else body.stat().st_size
    return info is not None and info.size_bytes == size and _same_bytes(store, path, body)


def _same_bytes(store: ObjectStore, path: str, body: bytes | Path) -> bool:
    if isinstance(body, bytes):
        return store.read(path) == body
    with store.stream(path) as stored, body.open("rb") as ours:
        while piece := ours.read(_COMPARE_BYTES):
            if stored.read(len(piece)) != piece:
                return False
    return True
