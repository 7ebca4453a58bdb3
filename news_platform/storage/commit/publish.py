"""Publish files as one unit: write what changed, delete stray files, write the marker last."""

from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from news_platform.storage.objects.store import ObjectInfo, ObjectStore

# Uploads wait for the network and local puts for the disk, so threads overlap well.
_CONCURRENT_PUTS = 8
_COMPARE_BYTES = 4 * 1024 * 1024


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
