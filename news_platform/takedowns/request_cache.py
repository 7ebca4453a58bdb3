"""Read many small immutable files with few requests: their contents are kept once more, combined.

The files themselves stay, and the listing says which of them count: a combined file that is
missing, damaged or behind only costs further reads. Combined files are joined like the digits of a
counter, so that there are few of them and each content is written again only a few times.
"""

import gzip
import hashlib
import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from news_platform.datasets.takedowns import ALIASES, COMBINED, REQUESTS
from news_platform.errors import StorageError
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore

_log = logging.getLogger(__name__)
_CONCURRENT_READS = 16
# Files that are read one by one before they are combined.
MOST_SINGLE = 256
# A file never changes, so a process reads each once.
_REMEMBERED = 1 << 18
_REMEMBERED_COMBINED = 64
FOLDERS = (REQUESTS, ALIASES)


def read_files(store: ObjectStore, infos: Sequence[ObjectInfo]) -> dict[str, bytes]:
    """Return the contents of listed requests or aliases by path."""
    listed = {info.path: info.etag for info in infos}
    # Few files are read at once anyway.
    combined = _read_combined(store) if len(listed) > _CONCURRENT_READS else {}
    single = [path for path in listed if path not in combined]
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        bodies = threads.map(lambda path: _read(store, path, listed[path]), single)
        found = dict(zip(single, bodies, strict=True))
    return {path: combined[path] if path in combined else found[path] for path in listed}


@lru_cache(_REMEMBERED)
def _read(store: ObjectStore, path: str, etag: str) -> bytes:
    return store.read(path)


def _read_combined(store: ObjectStore) -> Mapping[str, bytes]:
    found: dict[str, bytes] = {}
    for info in store.list(COMBINED):
        try:
            found |= _read_one(store, info.path)
        except NotFound:
            continue  # joined with others since it was listed
        except (StorageError, OSError, EOFError, ValueError) as error:
            _log.warning("cannot read %s, its files are read one by one: %s", info.path, error)
    return found


@lru_cache(_REMEMBERED_COMBINED)
def _read_one(store: ObjectStore, path: str) -> Mapping[str, bytes]:
    document = json.loads(gzip.decompress(store.read(path)))
    return {str(name): str(body).encode() for name, body in document.items()}


def combine(store: ObjectStore, *, most_single: int = MOST_SINGLE) -> bool:
    """Combine the files that are read one by one if they are many; return whether it did.

    Two runs at once may write some contents twice, which the next join ends.
    """
    infos = [info for folder in FOLDERS for info in store.list(folder)]
    if len(infos) < most_single:
        return False
    known = _read_combined(store)
    single = [info for info in infos if info.path not in known]
    if len(single) < most_single:
        return False
    joined = read_files(store, single)
    gone: list[str] = []
    for info in sorted(store.list(COMBINED), key=lambda one: one.size_bytes):
        part = _part(store, info.path)
        # Each join at least doubles what it takes in, so a content is written log N times.
        if len(part) <= len(joined):
            joined |= part
            gone.append(info.path)
    store.put(_combined_path(joined), _packed(joined))
    store.delete(path for path in gone if path != _combined_path(joined))
    return True


def _part(store: ObjectStore, path: str) -> Mapping[str, bytes]:
    try:
        return _read_one(store, path)
    except (StorageError, OSError, EOFError, ValueError):
        return {}  # its files are still there


def _combined_path(files: Iterable[str]) -> str:
    name = hashlib.sha256("\n".join(sorted(files)).encode()).hexdigest()[:16]
    return f"{COMBINED}/{name}.json.gz"


def _packed(files: Mapping[str, bytes]) -> bytes:
    document = {path: files[path].decode() for path in sorted(files)}
    return gzip.compress(json.dumps(document).encode(), compresslevel=1, mtime=0)
