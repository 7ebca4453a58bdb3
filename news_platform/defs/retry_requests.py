"""Requests of operators to build a stale partition now, kept in the root until they are served.

`news-platform retry` writes them and the sensors read them, so neither needs the other's process.
"""

import json
from collections.abc import Mapping
from datetime import datetime
from urllib.parse import quote, unquote

from news_platform.defs.planning import EVERY
from news_platform.defs.sensor_state import StaleUnit
from news_platform.errors import StorageError
from news_platform.storage.objects.store import ObjectStore

_FOLDER = "automation/retry_requests"


def request_retry(store: ObjectStore, asset: str, partition: str | None, *, now: datetime) -> None:
    """Request a retry of a partition, or of all stale partitions of an asset."""
    body = json.dumps({"requested_at": now.timestamp()}).encode()
    store.put(_path(asset, partition or EVERY), body)


def read_retry_requests(store: ObjectStore, asset: str) -> Mapping[str, float]:
    """Return when an operator requested a retry of each partition."""
    return {
        unquote(info.path.removeprefix(f"{_FOLDER}/{asset}/").removesuffix(".json")): _requested_at(
            store, info.path
        )
        for info in store.list(f"{_FOLDER}/{asset}")
    }


def delete_served(
    store: ObjectStore, asset: str, requests: Mapping[str, float], units: Mapping[str, StaleUnit]
) -> None:
    """Delete the requests that led to a run or whose partition is no longer stale."""
    served = [key for key, moment in requests.items() if _is_served(key, moment, units)]
    store.delete([_path(asset, key) for key in served])


def _is_served(key: str, moment: float, units: Mapping[str, StaleUnit]) -> bool:
    wanted = units.values() if key == EVERY else [units[key]] if key in units else []
    return all(unit.requested_at >= moment for unit in wanted)


def _requested_at(store: ObjectStore, path: str) -> float:
    try:
        return float(json.loads(store.read(path))["requested_at"])
    except (ValueError, TypeError, KeyError) as error:
        raise StorageError(
            f"cannot parse {path!r}: delete it and request the retry again", thing=path
        ) from error


def _path(asset: str, key: str) -> str:
    return f"{_FOLDER}/{asset}/{quote(key, safe='')}.json"
