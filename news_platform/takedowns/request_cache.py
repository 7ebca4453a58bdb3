"""Read many small immutable files with few requests: a cache holds their contents once more.

The files themselves stay, and the listing says which of them count: a cache that is missing,
damaged or behind only costs further reads.
"""

import gzip
import json
import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

from news_platform.datasets.takedowns import ALIASES, CACHE, REQUESTS
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectInfo, ObjectStore

_log = logging.getLogger(__name__)
_CONCURRENT_READS = 16
# Files that are read one by one before they are added to the cache.
MOST_SINGLE = 256
# A file never changes, so a process reads each once.
_REMEMBERED = 1 << 18


def read_files(store: ObjectStore, infos: Sequence[ObjectInfo]) -> dict[str, bytes]:
    """Return the contents of listed requests or aliases by path."""
    # Few files are read at once anyway.
    cached = _read_cache(store) if len(infos) > _CONCURRENT_READS else {}
    single = [info for info in infos if info.path not in cached]
    with ThreadPoolExecutor(_CONCURRENT_READS) as threads:
        bodies = list(threads.map(lambda info: _read(store, info.path, info.etag), single))
    found = dict(zip((info.path for info in single), bodies, strict=True))
    return {one.path: found[one.path] if one.path in found else cached[one.path] for one in infos}


@lru_cache(_REMEMBERED)
def _read(store: ObjectStore, path: str, etag: str) -> bytes:
    return store.read(path)


def _read_cache(store: ObjectStore) -> Mapping[str, bytes]:
    info = store.find(CACHE)
    try:
        return _parsed_cache(store, info.etag) if info is not None else {}
    except (StorageError, OSError, EOFError, ValueError) as error:
        _log.warning("cannot read %s, its files are read one by one: %s", CACHE, error)
        return {}


@lru_cache(4)
def _parsed_cache(store: ObjectStore, etag: str) -> Mapping[str, bytes]:
    document = json.loads(gzip.decompress(store.read(CACHE)))
    return {str(name): str(body).encode() for name, body in document.items()}


def update_cache(store: ObjectStore, *, most_single: int = MOST_SINGLE) -> bool:
    """Write the cache again if many files are not in it; return whether it did."""
    infos = [info for folder in (REQUESTS, ALIASES) for info in store.list(folder)]
    if len(infos) < most_single:
        return False
    cached = _read_cache(store)
    if sum(info.path not in cached for info in infos) < most_single:
        return False
    document = {path: body.decode() for path, body in sorted(read_files(store, infos).items())}
    store.put(CACHE, gzip.compress(json.dumps(document).encode(), compresslevel=1, mtime=0))
    return True
