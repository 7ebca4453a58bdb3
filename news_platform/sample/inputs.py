"""What a person would upload, placed under a root: research, an old survey, snapshots, feeds."""

from pathlib import Path

from news_platform.storage.objects.store import ObjectStore

# Folder in the sample world -> where its files belong under the root.
PLACES = {"research": "raw", "surveyed": "prod", "snapshots": "snapshots"}
FEEDS_FILE = "feeds.opml"


def place_inputs(world: Path, store: ObjectStore) -> int:
    """Upload the world's inputs that are not there yet; return how many were."""
    wanted = {
        f"{place}/{path.relative_to(world / folder).as_posix()}": path
        for folder, place in PLACES.items()
        for path in sorted((world / folder).rglob("*"))
        if path.is_file()
    }
    wanted[FEEDS_FILE] = world / FEEDS_FILE
    return sum(store.put_if_absent(place, path.read_bytes()) for place, path in wanted.items())
