"""Read and write the files at the top of a root: its world (sample or real) and the pause flag."""

import json

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.objects.store import ObjectStore

ROOT_FILE = "root.json"
PAUSE_FILE = "paused"
SAMPLE, REAL = "sample", "real"


def read_world(store: ObjectStore) -> str | None:
    """Return `sample` or `real`, or None for a root that has not been claimed yet."""
    if not store.exists(ROOT_FILE):
        return None
    try:
        world = json.loads(store.read(ROOT_FILE))["world"]
    except (ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"cannot parse {store.uri(ROOT_FILE)!r}: "
            'expected {"world": "real"} or {"world": "sample"}; restore or delete the file',
            thing=ROOT_FILE,
        ) from error
    return str(world)


def claim_root(store: ObjectStore, *, sample: bool | None) -> str:
    """Mark a new root as the sample world or real, or check its mark; return its world.

    With None any root is accepted, and a new one becomes real. Sample and real data never share a
    root.
    """
    wanted = {True: SAMPLE, False: REAL, None: None}[sample]
    found = read_world(store)
    if found is None:
        found = wanted or REAL
        store.put_if_absent(ROOT_FILE, json.dumps({"world": found}).encode())
        # Another process may have claimed the root at the same moment.
        found = read_world(store) or found
    if wanted not in (None, found):
        raise ConfigError(
            f"root {store.url!r} holds the {found} world, expected the {wanted} world: "
            "set NEWS_PLATFORM_ROOT to another folder",
            thing=store.url,
        )
    return found


def is_paused(store: ObjectStore) -> bool:
    """Return whether an operator has paused all sensors of this root."""
    return store.exists(PAUSE_FILE)


def pause(store: ObjectStore) -> None:
    """Pause all sensors of this root."""
    store.put(PAUSE_FILE, b"")


def resume(store: ObjectStore) -> None:
    """Resume all sensors of this root."""
    store.delete([PAUSE_FILE])
