"""The resources of a sample root: its own crawl, web, clock and settings instead of real ones."""

import atexit
import contextlib
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path

from news_platform.errors import ConfigError
from news_platform.resources import Clock, Crawl, DataRoot, Resources, Web
from news_platform.sample.server import serve_world
from news_platform.sample.world import DAYS, WORLD_NOW, write_world
from news_platform.setting_sections.fields import Section
from news_platform.settings import Settings
from news_platform.storage.commit.root import ROOT_FILE
from news_platform.storage.objects.store import ObjectStore, local_folder, open_store
from news_platform.web.fetch import FetchOptions

# Where the sample world lies under a sample root.
WORLD_FOLDER = "world"


def sample_settings(settings: Settings) -> Settings:
    """Return the settings as the sample world needs them, whatever the environment says."""
    changes: dict[str, Section] = {
        # The world is small: with more buckets it would be mostly empty folders.
        "domain_store": settings.domain_store.model_copy(update={"buckets": 64}),
        # The world's hosts answer at once or never.
        "domain_metadata": settings.domain_metadata.model_copy(
            update={"survey_retry_seconds": 0.1}
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
