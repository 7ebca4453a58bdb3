"""Requests of operators: `news-platform retry` writes them into the root, and sensors read them."""

import json
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, unquote

from news_platform.defs.planning import EVERY, TickInput
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore

_FOLDER = "automation/retry_requests"


def request_retry(store: ObjectStore, asset: str, partition: str | None, *, now: datetime) -> None:
    """Request a retry of a partition, or of all stale partitions of an asset."""
    body = json.dumps({"requested_at": now.timestamp()}).encode()
    store.put(_path(asset, partition or EVERY), body)


def read_retry_requests(store: ObjectStore, asset: str) -> Mapping[str, float]:
    """Return when an operator requested a retry of each partition."""
    paths = [info.path for info in store.list(f"{_FOLDER}/{asset}")]
    names = [path.rpartition("/")[2].removesuffix(".json") for path in paths]
    return {
        unquote(name): _requested_at(store, path) for name, path in zip(names, paths, strict=True)
    }


def delete_served(store: ObjectStore, tick: TickInput) -> None:
    """Delete the requests that a run has followed, and those of partitions that are not stale.

    The run must exist: a daemon that is killed before it creates the run loses no request.
    """
    served = [key for key, at in tick.retry_requests.items() if _is_served(key, at, tick)]
    if served:
        store.delete([_path(tick.asset, key) for key in served])


def _is_served(key: str, requested_at: float, tick: TickInput) -> bool:
    wanted = tick.stale if key == EVERY else tick.stale.keys() & {key}
    attempts = [tick.attempts.get(one) for one in wanted]
    return all(one is not None and one.requested_at >= requested_at for one in attempts)


def _requested_at(store: ObjectStore, path: str) -> float:
    try:
        return float(json.loads(store.read(path))["requested_at"])
    except (ValueError, TypeError, KeyError) as error:
        text = f"cannot parse {path!r}: delete it and request the retry again"
        raise StorageError(text, thing=path) from error


def _path(asset: str, key: str) -> str:
    return f"{_FOLDER}/{asset}/{quote(key, safe='')}.json"
