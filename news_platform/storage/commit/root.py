"""Read and write the files at the top of a root: its world and format, and the pause flag.

`root.json` says whether the root holds the sample or real data, and by a format number which
versions understand it.
"""

import json
from enum import Enum
from pathlib import Path

from news_platform.datasets.registry import DATASETS
from news_platform.errors import ConfigError, StorageError
from news_platform.storage.objects.store import ObjectStore

ROOT_FILE = "root.json"
PAUSE_FILE = "paused"
SAMPLE, REAL = "sample", "real"
SAMPLE_FOLDER = "data-demo"
"""The root of the demo unless another one is given."""
# Of version 0.3, the first that was published.
ROOT_FORMAT = 3
# Every dataset's folder and those of the inputs that people place by hand.
_FOLDERS = frozenset(dataset.path.partition("/")[0] for dataset in DATASETS.values())
_FILES = ("feeds.opml", "outlets.csv", "ledger.sqlite")


class RootAccess(Enum):
    """What a process may do to a root that holds no data yet.

    READ finds it empty and leaves it so; WRITE refuses it, because it may be mistyped; CREATE makes
    a new root.
    """

    READ = "read"
    WRITE = "write"
    CREATE = "create"


def read_world(store: ObjectStore) -> str | None:
    """Return `sample` or `real`, or None for a root that has not been claimed yet.

    Raise ConfigError for a root of another format, and StorageError for a broken root.json.
    """
    if not store.exists(ROOT_FILE):
        return None
    try:
        document = json.loads(store.read(ROOT_FILE))
        found, world = document.get("format"), document.get("contents")
        is_ours = found == ROOT_FORMAT
    except (ValueError, AttributeError) as error:
        raise _broken(store) from error
    if not is_ours:
        raise ConfigError(
            f"root {store.url!r} has format {found!r}, this version reads format {ROOT_FORMAT}: "
            "use the version of News Platform that made it, or set NEWS_PLATFORM_ROOT to another "
            "folder",
            thing=store.url,
        )
    if world not in (SAMPLE, REAL):
        raise _broken(store)
    return str(world)


def _broken(store: ObjectStore) -> StorageError:
    return StorageError(
        f"cannot parse {store.uri(ROOT_FILE)!r}: expected {_root_file(REAL).decode()} or "
        f'"{SAMPLE}"; restore or delete the file',
        thing=ROOT_FILE,
    )


def _root_file(world: str) -> bytes:
    return json.dumps({"format": ROOT_FORMAT, "contents": world}).encode()


def claim_root(
    store: ObjectStore, *, sample: bool | None, access: RootAccess = RootAccess.CREATE
) -> str:
    """Mark a new root as the sample world or real, or check its mark; return its world.

    With None any root is accepted, and a new one becomes real. It starts paused: its sensors would
    download gigabytes before anybody has looked. Sample and real data never share a root. A reader
    does not mark a new root.
    """
    wanted = {True: SAMPLE, False: REAL, None: None}[sample]
    if access is RootAccess.WRITE:
        require_data(store)
    found = read_world(store)
    if found is None and access is RootAccess.READ:
        return wanted or REAL
    if found is None:
        found = wanted or REAL
        if found == REAL:
            # Before the claim: whoever sees a new root sees that nothing may be downloaded yet.
            store.put_if_absent(PAUSE_FILE, b"")
        store.put_if_absent(ROOT_FILE, _root_file(found))
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
        raise ConfigError(f"there is no data at {store.url!r}: {_cure(store)}", thing=store.url)


def _cure(store: ObjectStore) -> str:
    """Return what to do about a root without data; the demo's, which is a folder beside it."""
    folder = store.local_folder
    demo = folder.with_name(SAMPLE_FOLDER) if folder is not None else None
    if demo is not None and demo != folder and (demo / ROOT_FILE).exists():
        return f"the demo is at {str(demo)!r}, add `--root {_shortest(demo)}`"
    create = "`rss ensure`, `ccnews collect` and `domains import` create a new one"
    return f"check the root; {create}, `news-platform demo` makes one to try"


def _shortest(folder: Path) -> str:
    here = Path.cwd()
    return str(folder.relative_to(here) if folder.is_relative_to(here) else folder)


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
