"""Build the sample world, write it to a folder, and upload its inputs to a root."""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    ROBOTS_FILE,
    AiPolicyFacts,
    DomainMetadata,
)
from news_platform.errors import InputError
from news_platform.sample.crawl import LISTING, crawl_warcs, late_warc, listing
from news_platform.sample.institutions import snapshot_files
from news_platform.sample.newsroom import DAYS, WORLD_NOW, publish
from news_platform.sample.package_data import DATA, PACKAGE, read_tree
from news_platform.sample.server import site_files
from news_platform.sample.sites import build_sites
from news_platform.storage.objects.store import ObjectStore
from news_platform.web.robots import AI_BOTS_VERSION, Robots

__all__ = ["DAYS", "WORLD_NOW", "add_late_warc", "build_world", "place_inputs", "write_world"]

MANIFEST = "world.json"

# Folder in the sample world -> folder of its files under the root.
PLACES = {"research": "raw", "surveyed": "prod", "snapshots": "snapshots"}
FEEDS_FILE = "feeds.opml"

IsRefused: TypeAlias = Callable[[str, bytes], bool]
"""From a path in the root and its content to whether it must not be stored."""


def build_world(*, late: Sequence[date] = ()) -> dict[str, bytes]:
    """Return every file of the world by path; the days in `late` have an additional WARC."""
    articles = publish()
    sites = build_sites(articles)
    warcs = crawl_warcs(articles, sites) | dict(late_warc(articles, day) for day in late)
    files = {
        f"crawl/{LISTING}": listing(warcs),
        **{f"crawl/{path}": body for path, body in warcs.items()},
        **_stored_files(),
        **{f"snapshots/{path}": body for path, body in snapshot_files().items()},
        **{f"sites/{path}": body for path, body in site_files(sites).items()},
    }
    return dict(sorted(files.items()))


def _stored_files() -> dict[str, bytes]:
    """Return the feed list, the research files and the earlier survey, from the package's data."""
    files = read_tree(DATA.joinpath("files"))
    for path in files:
        if path.endswith(METADATA_FILE):
            robots = files[path.removesuffix(METADATA_FILE) + ROBOTS_FILE]
            files[path] = _with_ai_policy(files[path], robots)
    return files


def _with_ai_policy(facts: bytes, robots: bytes) -> bytes:
    """Add what robots.txt says about the AI bots that this version of the package knows."""
    policies = Robots.parse(robots).ai_policies().values()
    stated = AiPolicyFacts(
        list_version=AI_BOTS_VERSION,
        policies={policy.bot: policy.policy for policy in policies},
        own=[policy.bot for policy in policies if policy.source == "own"],
    )
    survey = DomainMetadata.model_validate_json(facts).model_copy(update={"ai_policy": stated})
    return survey.model_dump_json(indent=1).encode()


@dataclass(frozen=True, slots=True)
class WorldManifest:
    """The world that a folder contains: `files` maps each path to its SHA-256."""

    recipe: str
    late: tuple[date, ...]
    files: Mapping[str, str]

    def holds(self, folder: Path) -> bool:
        """Return whether the folder contains this code's world, byte for byte."""
        return self.recipe == recipe() and all(
            _has(folder / path, sha) for path, sha in self.files.items()
        )


@cache
def recipe() -> str:
    """Return a hash of the code and data that build worlds; other code may give other bytes."""
    made = sha256()
    for path, body in sorted(read_tree(PACKAGE).items()):
        made.update(path.encode() + body)
    return made.hexdigest()


def read_manifest(folder: Path) -> WorldManifest | None:
    """Read the manifest; return None if it is missing or unreadable."""
    try:
        document = json.loads((folder / MANIFEST).read_bytes())
        late = tuple(map(date.fromisoformat, document["late"]))
        return WorldManifest(document["recipe"], late, document["files"])
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def write_world(folder: Path) -> None:
    """Write the world; a complete one is not touched, a partial one is completed.

    Late WARCs that were added to the folder are kept.
    """
    manifest = read_manifest(folder)
    if manifest is None or not manifest.holds(folder):
        _write_folder(folder, manifest, late=manifest.late if manifest else ())


def add_late_warc(folder: Path, day: date) -> str:
    """Add one more WARC to a day of a written world and to its listing; return its path.

    The path is relative to the crawl folder, as in the listing. A second call changes nothing.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"no sample world in {str(folder)!r}; write it first", thing=str(folder))
    if day not in DAYS:
        raise InputError(f"the sample world has no day {day.isoformat()!r}", thing=day.isoformat())
    if day not in manifest.late or not manifest.holds(folder):
        _write_folder(folder, manifest, late=sorted({*manifest.late, day}))
    return late_warc(publish(), day)[0]


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


def _write_folder(folder: Path, old: WorldManifest | None, *, late: Sequence[date]) -> None:
    """Write the world to the folder: replace what differs, delete what an older world left."""
    files = build_world(late=late)
    hashes = {path: sha256(body).hexdigest() for path, body in files.items()}
    for path, body in files.items():
        if not _has(folder / path, hashes[path]):
            _replace(folder / path, body)
    for path in sorted(set(old.files if old else ()) - set(hashes)):
        (folder / path).unlink(missing_ok=True)
    days = [day.isoformat() for day in late]
    document = {"recipe": recipe(), "late": days, "files": hashes}
    _replace(folder / MANIFEST, json.dumps(document, indent=1).encode() + b"\n")


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
