"""Build the sample world, write it to a folder, and open a root on it.

A sample root has its own crawl, web, clock and settings instead of real ones.
"""

import atexit
import contextlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cache, cached_property
from hashlib import sha256
from pathlib import Path
from typing import TypeAlias

from news_platform.datasets.domain_metadata import (
    METADATA_FILE,
    ROBOTS_FILE,
    AiPolicyFacts,
    DomainMetadata,
)
from news_platform.errors import ConfigError, InputError
from news_platform.resources import Clock, Crawl, DataRoot, Resources, Web
from news_platform.sample.crawl import LISTING, crawl_warcs, late_warc, listing
from news_platform.sample.newsroom import DAYS, WORLD_NOW, publish
from news_platform.sample.outlets import DATA, PACKAGE, read_tree
from news_platform.sample.server import serve_world, site_files
from news_platform.sample.sites import build_sites, snapshot_files
from news_platform.setting_sections.fields import Section
from news_platform.settings import Settings
from news_platform.storage.commit.root import ROOT_FILE
from news_platform.storage.objects.store import ObjectStore, local_folder, open_store
from news_platform.storage.outlets import OUTLETS_FILE
from news_platform.web.fetch import FetchOptions
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
    everyone, own = Robots.parse(robots).ai_stance()
    stated = AiPolicyFacts(list_version=AI_BOTS_VERSION, everyone=everyone, own={**own})
    survey = DomainMetadata.model_validate_json(facts).model_copy(update={"ai_policy": stated})
    return survey.model_dump_json(indent=1).encode()


@dataclass(frozen=True, slots=True)
class WorldManifest:
    """The world that a folder contains; it is written last."""

    recipe: str
    late: tuple[date, ...]


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
        return WorldManifest(document["recipe"], tuple(map(date.fromisoformat, document["late"])))
    except (FileNotFoundError, NotADirectoryError, ValueError, KeyError, TypeError):
        return None


def write_world(folder: Path) -> None:
    """Write the world; a complete one is not touched, a partial one is completed.

    Late WARCs that were added to the folder are kept.
    """
    manifest = read_manifest(folder)
    if manifest is None or manifest.recipe != recipe():
        _write_folder(folder, late=manifest.late if manifest else ())


def add_late_warc(folder: Path, day: date) -> str:
    """Add one more WARC to a day of a written world and to its listing; return its path.

    The path is relative to the crawl folder, as in the listing. A second call changes nothing.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise InputError(f"no sample world in {str(folder)!r}; write it first", thing=str(folder))
    if day not in DAYS:
        raise InputError(f"the sample world has no day {day.isoformat()!r}", thing=day.isoformat())
    if day not in manifest.late:
        _write_folder(folder, late=sorted({*manifest.late, day}))
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
    wanted |= {name: world / name for name in (FEEDS_FILE, OUTLETS_FILE)}
    bodies = ((place, path.read_bytes()) for place, path in wanted.items())
    return sum(
        store.put_if_absent(place, body) for place, body in bodies if not is_refused(place, body)
    )


def _write_folder(folder: Path, *, late: Sequence[date]) -> None:
    """Write the world to the folder: replace what differs, then the manifest."""
    for path, body in build_world(late=late).items():
        place = folder / path
        if not place.is_file() or place.read_bytes() != body:
            _replace(place, body)
    document = {"recipe": recipe(), "late": [day.isoformat() for day in late]}
    _replace(folder / MANIFEST, json.dumps(document, indent=1).encode() + b"\n")


def _replace(path: Path, body: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may write one folder at once: each has its own temporary file.
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    part.write_bytes(body)
    part.replace(path)


# Where the sample world lies under a sample root.
WORLD_FOLDER = "world"


def sample_settings(settings: Settings) -> Settings:
    """Return the settings as the sample world needs them, whatever the environment says."""
    changes: dict[str, Section] = {
        # The world is small: with more buckets it would be mostly empty folders.
        "domain_store": settings.domain_store.model_copy(update={"buckets": 64}),
        # The world's hosts answer at once or never.
        "domain_metadata": settings.domain_metadata.model_copy(
            update={"survey_retry_seconds": 0.1, "survey_pause_seconds": 0.0}
        ),
        # One at a time, so that the first of two identical articles is always the same one.
        "rss": settings.rss.model_copy(update={"article_concurrency": 1}),
    }
    if settings.sheets.endpoint is None:
        # Invented news never goes to Google: the editors' view is then the local workbook.
        no_book = {"spreadsheet_id": None, "spreadsheet_title": None}
        changes["sheets"] = settings.sheets.model_copy(update=no_book)
    return settings.model_copy(update={"sample": True, **changes})


def world_folder(settings: Settings) -> Path:
    """Return where the sample world lies, or will be written."""
    if settings.sample_world is not None:
        return Path(settings.sample_world)
    root = local_folder(settings.root)
    if root is None:
        raise ConfigError(
            f"the sample world cannot lie under {settings.root!r}: "
            "set NEWS_PLATFORM_SAMPLE_WORLD to a local folder",
            thing=settings.root,
        )
    return root / WORLD_FOLDER


@dataclass(frozen=True)
class SampleWorld:
    """The folder of the sample world, written on first use."""

    settings: Settings = field(repr=False)

    @cached_property
    def folder(self) -> Path:
        """Return the folder, with the world in it."""
        folder = world_folder(self.settings)
        write_world(folder)
        return folder


@dataclass(frozen=True)
class SampleCrawl(Crawl):
    """The crawl of the sample world, which never needs a fallback."""

    world: SampleWorld

    @cached_property
    def store(self) -> ObjectStore:
        """Open the folder of the crawl."""
        return open_store(str(self.world.folder / "crawl"))

    @cached_property
    def sources(self) -> tuple[ObjectStore, ...]:
        """Return the one place of the crawl."""
        return (self.store,)


@dataclass(frozen=True)
class SampleWeb(Web):
    """The sites of the sample world, served on loopback until the process ends."""

    world: SampleWorld
    is_frozen: bool = False

    @cached_property
    def fetch_options(self) -> FetchOptions:
        """Return the options of every fetcher, with the world's hosts mapped to its server."""
        # The name of the base class: cached_property does not go through super().
        options = Web(self.data_root).fetch_options
        serving = contextlib.ExitStack()
        atexit.register(serving.close)
        hosts = serving.enter_context(serve_world(self.world.folder))
        return replace(options, host_map=hosts, measures_time=not self.is_frozen)


@dataclass(frozen=True)
class SampleClock(Clock):
    """A clock that starts hours after the world's last article, when its root was made.

    A frozen one stands still at that moment, so that two runs write the same bytes.
    """

    data_root: DataRoot
    is_frozen: bool

    def now(self) -> datetime:
        """Return the moment in the world's time, aware, in UTC."""
        return WORLD_NOW + (timedelta() if self.is_frozen else self._age)

    @property
    def _age(self) -> timedelta:
        store = self.data_root.store  # may make the root just now
        return datetime.now(UTC) - store.head(ROOT_FILE).modified_at


@dataclass(frozen=True)
class SampleResources(Resources):
    """All resources of one process over a sample root."""

    frozen_clock: bool = False

    def __post_init__(self) -> None:
        """Put the sample's own values into the settings."""
        object.__setattr__(self, "settings", sample_settings(self.settings))

    @cached_property
    def world(self) -> SampleWorld:
        """Return the folder of the sample world."""
        return SampleWorld(self.settings)

    @cached_property
    def crawl(self) -> Crawl:
        """Return the crawl of the world."""
        return SampleCrawl(self.data_root, self.world)

    @cached_property
    def web(self) -> Web:
        """Return the sites of the world."""
        return SampleWeb(self.data_root, self.world, self.frozen_clock)

    @cached_property
    def clock(self) -> Clock:
        """Return the clock of the world."""
        return SampleClock(self.data_root, self.frozen_clock)

    @property
    def is_live(self) -> bool:
        """Return False: nothing new arrives in a world that stands still."""
        return False

    @property
    def partition_days(self) -> tuple[date, ...]:
        """Return the world's three days, so that a backfill of all days is small."""
        return DAYS
