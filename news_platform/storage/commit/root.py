"""Read and write the files at the top of a root: its world and format, and the pause flag.

`root.json` says whether the root holds the sample or real data, and by a format number which
versions understand it. Version 0.1 wrote `{"world": …}` without a number. Later formats use another
field on purpose: at a file without `world`, version 0.1 stops with one line.
"""

import json
from dataclasses import dataclass
from enum import Enum

from news_platform.datasets.registry import DATASETS
from news_platform.errors import ConfigError, StorageError
from news_platform.storage.objects.store import ObjectStore

ROOT_FILE = "root.json"
PAUSE_FILE = "paused"
SAMPLE, REAL = "sample", "real"
# 2: markers of collected WARCs have a fingerprint in their names and are combined by month.
ROOT_FORMAT = 2
# Every dataset's folder and those of the inputs that people place by hand.
_FOLDERS = frozenset(dataset.path.partition("/")[0] for dataset in DATASETS.values())
_FILES = ("feeds.opml", "ledger.sqlite")


class RootAccess(Enum):
    """What a process may do to a root that holds no data yet.

    READ finds it empty and leaves it so; WRITE refuses it, because it may be mistyped; CREATE makes
    a new root.
    """

    READ = "read"
    WRITE = "write"
    CREATE = "create"


@dataclass(frozen=True, slots=True)
class RootFile:
    """The content of root.json; `etag` is that of the version read.

    `made_at` (ISO 8601) is kept from before an upgrade. `is_upgrading` is True from the start of an
    upgrade to its end, so that the next process finishes what a killed one began.
    """

    world: str
    format: int = ROOT_FORMAT
    is_upgrading: bool = False
    made_at: str | None = None
    etag: str | None = None

    def to_json(self) -> bytes:
        """Return the file in the current format."""
        document: dict[str, object] = {"format": ROOT_FORMAT, "contents": self.world}
        if self.is_upgrading:
            document["upgrading"] = True
        if self.made_at:
            document["made_at"] = self.made_at
        return json.dumps(document).encode()


def read_root(store: ObjectStore) -> RootFile | None:
    """Return root.json, or None for a root that has not been claimed yet."""
    if not store.exists(ROOT_FILE):
        return None
    body, info = store.read_with_info(ROOT_FILE)
    try:
        document = json.loads(body)
        found = document.get("format", 1)
        is_known = isinstance(found, int) and found <= ROOT_FORMAT
        # Of a later format nothing is known but its number.
        world = document["world" if found == 1 else "contents"] if is_known else ""
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageError(
            f"cannot parse {store.uri(ROOT_FILE)!r}: "
            'expected {"format": 2, "contents": "real"} or "sample"; restore or delete the file',
            thing=ROOT_FILE,
        ) from error
    if not is_known:
        raise ConfigError(
            f"root {store.url!r} has format {found!r}, this version reads up to {ROOT_FORMAT}: "
            "update News Platform",
            thing=store.url,
        )
    upgrading, made_at = document.get("upgrading") is True, document.get("made_at")
    return RootFile(str(world), found, upgrading, made_at, info.etag)


def read_world(store: ObjectStore) -> str | None:
    """Return `sample` or `real`, or None for a root that has not been claimed yet."""
    found = read_root(store)
    return found.world if found else None


def claim_root(
    store: ObjectStore, *, sample: bool | None, access: RootAccess = RootAccess.CREATE
) -> str:
    """Mark a new root as the sample world or real, or check its mark; return its world.

    With None any root is accepted, and a new one becomes real. Sample and real data never share a
    root. A reader does not mark a new root.
    """
    wanted = {True: SAMPLE, False: REAL, None: None}[sample]
    if access is RootAccess.WRITE:
        require_data(store)
    found = read_world(store)
    if found is None and access is RootAccess.READ:
        return wanted or REAL
    if found is None:
        found = wanted or REAL
        store.put_if_absent(ROOT_FILE, RootFile(found).to_json())
        # Another process may have claimed the root at the same moment.
        found = read_world(store) or found
    if wanted not in (None, found):
        raise ConfigError(
            f"root {store.url!r} holds the {found} world, expected the {wanted} world: "
            "set NEWS_PLATFORM_ROOT to another folder",
            thing=store.url,
        )
    return found


def require_data(store: ObjectStore) -> None:
    """Raise ConfigError for a root that was never claimed and holds none of our folders."""
    if read_world(store) is None and not _has_data(store):
        raise ConfigError(
            f"there is no data at {store.url!r}: check the root; `rss ensure`, `ccnews collect` "
            "and `domains import` create a new one",
            thing=store.url,
        )


def require_claim(store: ObjectStore) -> None:
    """Raise ConfigError before a ledger is created in a folder that is not a root."""
    if read_world(store) is None:
        raise ConfigError(
            f"{store.url!r} is not a root: it has no {ROOT_FILE}; check the root", thing=store.url
        )


def _has_data(store: ObjectStore) -> bool:
    """Return whether somebody has put inputs or datasets into a folder that has no root.json."""
    return not _FOLDERS.isdisjoint(store.list_folders()) or any(map(store.exists, _FILES))


def is_paused(store: ObjectStore) -> bool:
    """Return whether an operator has paused all sensors of this root."""
    return store.exists(PAUSE_FILE)


def pause(store: ObjectStore) -> None:
    """Pause all sensors of this root."""
    store.put(PAUSE_FILE, b"")


def resume(store: ObjectStore) -> None:
    """Resume all sensors of this root."""
    store.delete([PAUSE_FILE])
