"""From settings to opened resources: the data root, the crawl, the web, the ledger and the clock.

Assets and commands get these and open nothing themselves. Each door opens when first used, and none
shows a setting, or a secret, in its text.
"""

import atexit
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path

import sqlalchemy as sa

from news_platform.errors import ConfigError
from news_platform.sample.server import serve_world
from news_platform.sample.world import WORLD_NOW, write_world
from news_platform.settings import Settings
from news_platform.storage.commit.root import ROOT_FILE, SAMPLE, claim_root
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.sql.engine import ledger_url, migrate, open_engine
from news_platform.web.fetch import FetchOptions

# Where the sample world lies under a sample root.
WORLD_FOLDER = "world"


@dataclass(frozen=True)
class DataRoot:
    """The one place where all data lies."""

    settings: Settings = field(repr=False)

    @cached_property
    def store(self) -> ObjectStore:
        """Open the root, and check that it holds the world the settings speak of."""
        store = open_store(self.settings.root, options=store_options(self.settings))
        claim_root(store, sample=self.settings.sample)
        return store

    @cached_property
    def is_sample(self) -> bool:
        """Tell whether this root holds the fictional sample world."""
        return claim_root(self.store, sample=self.settings.sample) == SAMPLE

    @cached_property
    def world(self) -> Path:
        """Return the folder of the sample world, written when it is not there yet."""
        folder = self.world_folder()
        write_world(folder)
        return folder

    def world_folder(self) -> Path:
        """Return where the sample world lies, or should."""
        root = self.settings.root
        if self.settings.sample_world is not None:
            return Path(self.settings.sample_world)
        if "://" in root:
            raise ConfigError(
                f"the sample world cannot lie under {root!r}: "
                "set NEWS_PLATFORM_SAMPLE_WORLD to a local folder",
                thing=root,
            )
        return Path(root) / WORLD_FOLDER


@dataclass(frozen=True)
class Crawl:
    """The place that lists and holds the crawl's WARC files."""

    data_root: DataRoot

    @cached_property
    def store(self) -> ObjectStore:
        """Open the crawl: the sample's under a sample root, else the one of the settings."""
        settings = self.data_root.settings
        if self.data_root.is_sample:
            return open_store(str(self.data_root.world / "crawl"))
        return open_store(settings.ccnews.source, options=store_options(settings))

    @cached_property
    def sources(self) -> tuple[ObjectStore, ...]:
        """Return the crawl, and what is read when it fails; the sample world needs no second."""
        settings = self.data_root.settings
        fallback = settings.ccnews.fallback
        if fallback is None or self.data_root.is_sample:
            return (self.store,)
        return (self.store, open_store(fallback, options=store_options(settings)))


@dataclass(frozen=True)
class Web:
    """How this process speaks to the web."""

    data_root: DataRoot

    @cached_property
    def fetch_options(self) -> FetchOptions:
        """Return the fetcher's options; only a sample root maps hosts, to its own server."""
        given = self.data_root.settings.web
        return FetchOptions(
            user_agent=given.user_agent,
            contact=given.contact,
            total_timeout_seconds=given.total_timeout_seconds,
            per_host=given.per_host,
            host_map=self._sample_hosts() if self.data_root.is_sample else {},
        )

    def _sample_hosts(self) -> Mapping[str, tuple[str, int]]:
        serving = contextlib.ExitStack()
        atexit.register(serving.close)
        return serving.enter_context(serve_world(self.data_root.world))


@dataclass(frozen=True)
class Ledger:
    """The SQL database of queues and articles."""

    data_root: DataRoot

    @cached_property
    def engine(self) -> sa.Engine:
        """Open the ledger, its tables brought up to date."""
        settings = self.data_root.settings
        engine = open_engine(ledger_url(self.data_root.store.url, settings.ledger_url))
        migrate(engine)
        return engine

    def close(self) -> None:
        """Let go of all connections; SQLite then folds its log back into the one file."""
        if "engine" in self.__dict__:
            self.engine.dispose()


@dataclass(frozen=True)
class Clock:
    """What time it is: in the sample world, hours after its last article, not years."""

    data_root: DataRoot
    frozen: bool = False

    def now(self) -> datetime:
        """Return this moment, aware, in UTC; a frozen sample clock stands still."""
        if not self.data_root.is_sample:
            return datetime.now(UTC)
        return WORLD_NOW + (timedelta() if self.frozen else self._age)

    @property
    def _age(self) -> timedelta:
        return datetime.now(UTC) - self.data_root.store.head(ROOT_FILE).modified_at


@dataclass(frozen=True)
class Resources:
    """All resources of one process, from one set of settings."""

    settings: Settings = field(repr=False)
    frozen_clock: bool = False

    @cached_property
    def data_root(self) -> DataRoot:
        """Return the place where all data lies."""
        return DataRoot(self.settings)

    @cached_property
    def crawl(self) -> Crawl:
        """Return the place of the crawl."""
        return Crawl(self.data_root)

    @cached_property
    def web(self) -> Web:
        """Return the way to the web."""
        return Web(self.data_root)

    @cached_property
    def ledger(self) -> Ledger:
        """Return the SQL ledger."""
        return Ledger(self.data_root)

    @cached_property
    def clock(self) -> Clock:
        """Return the clock."""
        return Clock(self.data_root, frozen=self.frozen_clock)


def store_options(settings: Settings) -> StoreOptions:
    """Translate the storage settings."""
    given = settings.storage
    return StoreOptions(
        endpoint_url=given.s3_endpoint,
        region=given.s3_region,
        access_key=given.s3_access_key,
        secret_key=given.s3_secret_key,
        service_account_key=given.gcs_service_account,
        allow_http=given.allow_http,
    )
