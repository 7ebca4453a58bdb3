"""From settings to opened resources: the data root, the crawl, the web, the ledger and the clock.

Assets and commands receive these and open nothing themselves. Each resource opens on first use, and
none shows a setting, or a secret, in its repr.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property

import sqlalchemy as sa

from news_platform.errors import ConfigError
from news_platform.settings import Settings
from news_platform.storage.commit.root import SAMPLE, claim_root, read_world
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.sql.engine import ledger_url, migrate, open_engine
from news_platform.web.fetch import FetchOptions


@dataclass(frozen=True)
class DataRoot:
    """The one place where all data lies."""

    settings: Settings = field(repr=False)

    @cached_property
    def store(self) -> ObjectStore:
        """Open the root, and check that it holds the world that the settings name."""
        store = open_store(self.settings.root, options=store_options(self.settings))
        world = claim_root(store, sample=self.settings.sample)
        if world == SAMPLE and not self.settings.sample:
            raise ConfigError(
                f"root {store.url!r} holds the sample world: set NEWS_PLATFORM_SAMPLE=1",
                thing=store.url,
            )
        return store


@dataclass(frozen=True)
class Crawl:
    """The place that lists and holds the crawl's WARC files."""

    data_root: DataRoot

    @cached_property
    def store(self) -> ObjectStore:
        """Open the crawl."""
        settings = self.data_root.settings
        return open_store(settings.ccnews.source, options=store_options(settings))

    @cached_property
    def sources(self) -> tuple[ObjectStore, ...]:
        """Return the crawl, then the store that is read when the crawl fails, if one is set."""
        settings = self.data_root.settings
        if settings.ccnews.fallback is None:
            return (self.store,)
        return (self.store, open_store(settings.ccnews.fallback, options=store_options(settings)))


@dataclass(frozen=True)
class Web:
    """How this process fetches from the web."""

    data_root: DataRoot

    @cached_property
    def fetch_options(self) -> FetchOptions:
        """Return the options of every fetcher."""
        given = self.data_root.settings.web
        return FetchOptions(
            user_agent=given.user_agent,
            contact=given.contact,
            total_timeout_seconds=given.total_timeout_seconds,
            per_host=given.per_host,
        )


@dataclass(frozen=True)
class Ledger:
    """The SQL database of queues and articles."""

    data_root: DataRoot

    @cached_property
    def engine(self) -> sa.Engine:
        """Open the ledger and bring its tables up to date."""
        settings = self.data_root.settings
        engine = open_engine(ledger_url(self.data_root.store.url, settings.ledger_url))
        migrate(engine)
        return engine

    def close(self) -> None:
        """Close all connections; SQLite then merges its log back into the one file."""
        if "engine" in self.__dict__:
            self.engine.dispose()


@dataclass(frozen=True)
class Clock:
    """The current time."""

    def now(self) -> datetime:
        """Return this moment, aware, in UTC."""
        return datetime.now(UTC)


@dataclass(frozen=True)
class Resources:
    """All resources of one process, from one set of settings."""

    settings: Settings = field(repr=False)

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
        """Return the access to the web."""
        return Web(self.data_root)

    @cached_property
    def ledger(self) -> Ledger:
        """Return the SQL ledger."""
        return Ledger(self.data_root)

    @cached_property
    def clock(self) -> Clock:
        """Return the clock."""
        return Clock()

    @property
    def is_live(self) -> bool:
        """Return whether new data keep arriving, so that old data are late."""
        return True

    @property
    def partition_days(self) -> tuple[date, ...] | None:
        """Return the only days that daily assets offer as partitions; None: all days."""
        return None


def open_resources(settings: Settings, *, may_connect: bool = True) -> Resources:
    """Return the sample world's resources for a sample root, else those that the settings name.

    A root holds the sample world if NEWS_PLATFORM_SAMPLE or its own root.json says so. Nothing is
    claimed or written. With `may_connect=False` a remote root is not read and counts as real: every
    process loads the definitions, long before any work.
    """
    if not _is_sample(settings, may_connect=may_connect):
        return Resources(settings)
    # Only a sample root pays for loading the sample world.
    from news_platform.sample.resources import SampleResources

    return SampleResources(settings)


def _is_sample(settings: Settings, *, may_connect: bool) -> bool:
    if settings.sample is not None:
        return settings.sample
    if "://" in settings.root and not may_connect:
        return False
    return read_world(open_store(settings.root, options=store_options(settings))) == SAMPLE


def store_options(settings: Settings) -> StoreOptions:
    """Return how to reach object stores."""
    given = settings.storage
    return StoreOptions(
        endpoint_url=given.s3_endpoint,
        region=given.s3_region,
        access_key=given.s3_access_key,
        secret_key=given.s3_secret_key,
        service_account_key=given.gcs_service_account,
        allow_http=given.allow_http,
    )
