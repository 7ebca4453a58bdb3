"""Write the sample world to a folder, add a late WARC, and upload its inputs to a root."""

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from news_platform.errors import InputError
from news_platform.sample.build import World, WorldSummary, articles_of, build_world
from news_platform.sample.crawl import late_warc
from news_platform.sample.dates import DAYS, WORLD_NOW
from news_platform.storage.objects.store import ObjectStore

MANIFEST = "world.json"


@dataclass(frozen=True, slots=True)
class WorldManifest:
    """The world that a folder contains; `files` maps each path to its SHA-256."""

    recipe: str
    summary: WorldSummary
    files: Mapping[str, str]

    @property
    def late(self) -> tuple[date, ...]:
        """Return the days to which a late WARC was added."""
        return tuple(map(date.fromisoformat, self.summary.late))

    def holds(self, folder: Path, seed: int) -> bool:
        """Return whether the folder contains this code's world of the seed, byte for byte."""
        current = self.recipe == recipe() and self.summary.seed == seed
        return current and all(_has(folder / path, sha) for path, sha in self.files.items())


@cache
def recipe() -> str:
    """Return a hash of the code and texts that build worlds; other code may give other bytes."""
    package = files("news_platform.sample")
    sources = [*package.iterdir(), *package.joinpath("texts").iterdir()]
    made = sha256()
    for source in sorted(sources, key=lambda source: source.name):
        if source.name.endswith((".py", ".toml")):
            made.update(source.name.encode() + source.read_bytes())
    return made.hexdigest()


def read_manifest(folder: Path) -> WorldManifest | None:
    """Read the manifest; return None if it is missing or unreadable."""
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
        return WorldManifest(document["recipe"], _summary(document["summary"]), document["files"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def write_folder(folder: Path, world: World, *, old: WorldManifest | None) -> None:
    """Write the world to the folder: replace what differs, delete what an older world left."""
    hashes = {path: sha256(body).hexdigest() for path, body in world.files.items()}
    for path, body in world.files.items():
        if not _has(folder / path, hashes[path]):
            _replace(folder / path, body)
    for path in sorted(set(old.files if old else ()) - set(hashes)):
        (folder / path).unlink(missing_ok=True)
    document = {"recipe": recipe(), "summary": asdict(world.summary), "files": hashes}
    _replace(folder / MANIFEST, json.dumps(document, indent=1).encode() + b"\n")


def _summary(document: dict[str, Any]) -> WorldSummary:
    return WorldSummary(**{**document, "late": tuple(document["late"])})


def _has(path: Path, sha: str) -> bool:
    try:
        return sha256(path.read_bytes()).hexdigest() == sha
    except (FileNotFoundError, NotADirectoryError):
        return False


def _replace(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may write one folder at once: each has its own temporary file.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(body)
    part.replace(path)


__all__ = ["DAYS", "SEED", "WORLD_NOW", "WorldSummary", "add_late_warc", "write_world"]

SEED = 20251103


def write_world(folder: Path, *, seed: int = SEED) -> WorldSummary:
    """Write the world of a seed; a complete one is not touched, a partial one is completed.

    Late WARCs that were added to the same world are kept.
    """
    manifest = read_manifest(folder)
    if manifest and manifest.holds(folder, seed):
        return manifest.summary
    late = manifest.late if manifest and manifest.summary.seed == seed else ()
    world = build_world(seed, late=late)
    write_folder(folder, world, old=manifest)
    return world.summary


def add_late_warc(folder: Path, day: date) -> str:
    """Add one more WARC to a day of a written world and to its listing; return its path.

    The path is relative to the crawl folder, as in the listing. A second call changes nothing.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"no sample world in {str(folder)!r}; write it first", thing=str(folder))
    if day not in DAYS:
        raise InputError(f"the sample world has no day {day.isoformat()!r}", thing=day.isoformat())
    seed = manifest.summary.seed
    if day not in manifest.late or not manifest.holds(folder, seed):
        late = sorted({*manifest.late, day})
        write_folder(folder, build_world(seed, late=late), old=manifest)
    return late_warc(articles_of(seed), day, seed).path


# Folder in the sample world -> folder of its files under the root.
PLACES = {"research": "raw", "surveyed": "prod", "snapshots": "snapshots"}
FEEDS_FILE = "feeds.opml"


IsRefused = Callable[[str, bytes], bool]
"""From a path in the root and its content to whether it must not be stored."""


def place_inputs(
    world: Path, store: ObjectStore, *, is_refused: IsRefused = lambda path, body: False
) -> int:
    """Upload the inputs that the root does not have yet; return how many were uploaded."""
    wanted = {
        f"{place}/{path.relative_to(world / folder).as_posix()}": path
        for folder, place in PLACES.items()
        for path in sorted((world / folder).rglob("*"))
        if path.is_file()
    }
    wanted[FEEDS_FILE] = world / FEEDS_FILE
    bodies = ((place, path.read_bytes()) for place, path in wanted.items())
    return sum(
        store.put_if_absent(place, body) for place, body in bodies if not is_refused(place, body)
    )
