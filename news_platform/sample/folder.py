"""A world in a folder: files replaced one by one beside and by rename, the manifest last."""

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from importlib.resources import files
from pathlib import Path
from typing import Any

from news_platform.sample.build import World, WorldSummary

MANIFEST = "world.json"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a folder was last completed with; `files` maps each path to its SHA-256."""

    recipe: str
    summary: WorldSummary
    files: Mapping[str, str]

    @property
    def late(self) -> tuple[date, ...]:
        """Return the days to which a late WARC was added."""
        return tuple(map(date.fromisoformat, self.summary.late))

    def holds(self, folder: Path, seed: int) -> bool:
        """Say whether the folder has this code's world of the seed, byte for byte."""
        current = self.recipe == recipe() and self.summary.seed == seed
        return current and all(_has(folder / path, sha) for path, sha in self.files.items())


@cache
def recipe() -> str:
    """Return a hash of the code and texts that make worlds: other code, perhaps other bytes."""
    package = files("news_platform.sample")
    sources = [*package.iterdir(), *package.joinpath("texts").iterdir()]
    made = sha256()
    for source in sorted(sources, key=lambda source: source.name):
        if source.name.endswith((".py", ".toml")):
            made.update(source.name.encode() + source.read_bytes())
    return made.hexdigest()


def read_manifest(folder: Path) -> Manifest | None:
    """Read the manifest, or None when there is none that can be read."""
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
        return Manifest(document["recipe"], _summary(document["summary"]), document["files"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def write_folder(folder: Path, world: World, *, old: Manifest | None) -> None:
    """Make the folder hold the world: replace what differs, remove what an older one left."""
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
    # Several processes may mend one folder at once: each has its part, all the same bytes.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(body)
    part.replace(path)
