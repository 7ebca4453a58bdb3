"""From settings to opened resources: the data root, the crawl, the web, the ledger and the clock.

Assets and commands receive these and open nothing themselves. Each resource opens on first use, and
none shows a setting, or a secret, in its repr. The functions at the end return a feature's options:
`options_of` copies the settings that have the names of options; features never see the settings.
"""

from dataclasses import dataclass, field, fields, replace
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import sqlalchemy as sa

from news_platform.errors import ConfigError, StorageError
from news_platform.setting_sections.features import (
    CcnewsSettings,
    DomainMetadataSettings,
    DomainStoreSettings,
    RssSettings,
    SheetsSettings,
    SourceRecordsSettings,
)
from news_platform.setting_sections.fields import Section
from news_platform.settings import Settings
from news_platform.storage.commit import root as roots
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.sql.engine import has_table, ledger_url, migrate, open_engine
from news_platform.web.fetch import FetchOptions
from news_platform.web.guard import checked_proxy, parse_allowed

# The options are imported where they are made: a command loads only the feature that it runs.
if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from news_platform.ccnews.pool import CollectOptions
    from news_platform.domain_metadata.consumer import SurveyOptions
    from news_platform.domain_metadata.news_sitemaps import CandidateOptions
    from news_platform.domain_metadata.resurvey import ResurveyOptions
    from news_platform.domain_store.layout import BuildOptions
    from news_platform.rss.analyses import AnalysisOptions
    from news_platform.rss.discovery import DiscoveryOptions
    from news_platform.rss.ledger.article_queue import WorkOptions
    from news_platform.rss.poll_results import PollOptions
    from news_platform.rss.sheets.books import SheetAccess, SyncOptions
    from news_platform.rss.sheets.workbook import WorkbookOptions
    from news_platform.source_records.options import SegmentOptions
    from news_platform.source_records.pipeline import RecordsOptions

OptionsT = TypeVar("OptionsT", bound="DataclassInstance")

# Where full texts lie under the root unless FULLTEXT_DIR is set.
_FULL_TEXT_FOLDER = "articles/full_text"


@dataclass(frozen=True)
class DataRoot:
    """The one place where all data lies."""

    settings: Settings = field(repr=False)
    access: RootAccess = RootAccess.CREATE

    @cached_property
    def store(self) -> ObjectStore:
        """Open the root and check that it holds the world that the settings name."""
        store = open_store(self.settings.root, options=store_options(self.settings))
        world = roots.claim_root(store, sample=self.settings.sample, access=self.access)
        if world == roots.SAMPLE and not self.settings.sample:
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
        return open_store(settings.ccnews.source, options=crawl_options(settings))

    @cached_property
    def sources(self) -> tuple[ObjectStore, ...]:
        """Return the crawl, then the store that is read when the crawl fails, if one is set."""
        settings = self.data_root.settings
        if settings.ccnews.fallback is None:
            return (self.store,)
        return (self.store, open_store(settings.ccnews.fallback, options=crawl_options(settings)))


@dataclass(frozen=True)
class Web:
    """How this process fetches from the web."""

    data_root: DataRoot

    @cached_property
    def fetch_options(self) -> FetchOptions:
        """Return the options of every fetcher."""
        given = self.data_root.settings.web
        return options_of(
            FetchOptions,
            given,
            allowed=parse_allowed(given.allow),
            proxy=checked_proxy(given.proxy),
        )


@dataclass(frozen=True)
class Ledger:
    """The SQL database of queues and articles."""

    data_root: DataRoot

    @cached_property
    def engine(self) -> sa.Engine:
        """Open the ledger, check that it belongs to the root, and bring its tables up to date."""
        # Only a process that opens a ledger pays for loading its tables.
        from news_platform.rss.ledger.status import require_articles

        store = self.data_root.store
        roots.require_claim(store)
        engine = open_engine(self._url)
        try:
            require_articles(engine, store)
            migrate(engine)
        except StorageError:
            engine.dispose()  # leaves none of SQLite's side files
            raise
        return engine

    @property
    def _url(self) -> str:
        return ledger_url(self.data_root.store.url, self.data_root.settings.ledger_url)

    def existing_engine(self) -> sa.Engine | None:
        """Open the ledger, or return None for a root without one: nothing is created."""
        if "engine" in self.__dict__:
            return self.engine
        probe = open_engine(self._url)
        try:
            is_there = has_table(probe, "raw")
        finally:
            probe.dispose()
        return self.engine if is_there else None

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
    access: RootAccess = RootAccess.CREATE

    @cached_property
    def data_root(self) -> DataRoot:
        """Return the place where all data lies."""
        return DataRoot(self.settings, self.access)

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


def open_resources(
    settings: Settings, *, may_connect: bool = True, access: RootAccess = RootAccess.CREATE
) -> Resources:
    """Return the sample world's resources for a sample root, else those that the settings name.

    A root holds the sample world if NEWS_PLATFORM_SAMPLE or its own root.json says so. Nothing is
    claimed or written. With `may_connect=False` a remote root is not read and counts as real: every
    process loads the definitions, long before any work.
    """
    if not _is_sample(settings, may_connect=may_connect):
        return Resources(settings, access)
    # Only a sample root pays for loading the sample world.
    from news_platform.sample.world import SampleResources

    return SampleResources(settings, access)


def _is_sample(settings: Settings, *, may_connect: bool) -> bool:
    if settings.sample is not None:
        return settings.sample
    if "://" in settings.root and not may_connect:
        return False
    return (
        roots.read_world(open_store(settings.root, options=store_options(settings))) == roots.SAMPLE
    )


def options_of(kind: type[OptionsT], given: Section, **more: Any) -> OptionsT:
    """Return options of a feature: the settings of the same names, and `more`."""
    names = {option.name for option in fields(kind)} & type(given).model_fields.keys() - more.keys()
    return kind(**{name: getattr(given, name) for name in names}, **more)


def store_options(settings: Settings) -> StoreOptions:
    """Return how to reach the root, and every other object store but the crawl."""
    return options_of(StoreOptions, settings.storage)


def crawl_options(settings: Settings) -> StoreOptions:
    """Return how to reach the crawl: by its own settings, or as the root if none of them is set.

    One of them is enough: a root on MinIO must not send its keys or endpoint to AWS.
    """
    of_root, own = store_options(settings), settings.crawl_storage
    return replace(of_root, **dict(own)) if own.is_set else of_root


def open_full_texts(data_root: DataRoot) -> ObjectStore:
    """Open the place of full texts: the one that is set, else the folder under the root."""
    place = data_root.settings.rss.fulltext_dir
    if place:
        return open_store(place, options=store_options(data_root.settings))
    return data_root.store.child(_FULL_TEXT_FOLDER)


def collect_options(given: CcnewsSettings) -> "CollectOptions":
    """Return how WARCs are collected."""
    from news_platform.ccnews.pool import CollectOptions
    from news_platform.web.urls import plain_host

    return options_of(
        CollectOptions,
        given,
        workers=max(0, given.workers),
        hosts=frozenset(map(plain_host, given.hosts)),
        languages=frozenset(given.languages),
    )


def build_options(given: DomainStoreSettings, store: ObjectStore) -> "BuildOptions":
    """Return how the domain store is built; an existing store keeps its number of buckets."""
    from news_platform.domain_store.layout import BuildOptions
    from news_platform.domain_store.manifest import resolve_bucket_count

    return options_of(
        BuildOptions,
        given,
        buckets=resolve_bucket_count(store, given.buckets),
        memory_bytes=given.memory_mb << 20,
        grace=timedelta(days=given.grace_days),
    )


def survey_options(given: DomainMetadataSettings, web: Web) -> "SurveyOptions":
    """Return how domains are surveyed."""
    from news_platform.domain_metadata.consumer import SurveyOptions
    from news_platform.domain_metadata.fetchers import SurveyFetchOptions

    return SurveyOptions(
        fetch=SurveyFetchOptions(user_agent=web.fetch_options.user_agent),
        concurrency=given.survey_concurrency,
        pause_seconds=given.survey_pause_seconds,
        retry_seconds=given.survey_retry_seconds,
    )


def resurvey_options(given: DomainMetadataSettings) -> "ResurveyOptions":
    """Return when domains are surveyed again."""
    from news_platform.domain_metadata.resurvey import ResurveyOptions

    options = ResurveyOptions(given.resurvey_days, per_day=given.resurveys_per_day)
    return replace(options, changed_days=min(options.changed_days, options.interval_days))


def candidate_options(given: DomainMetadataSettings) -> "CandidateOptions":
    """Return how many news sitemaps are read."""
    from news_platform.domain_metadata.news_sitemaps import CandidateOptions

    return CandidateOptions(max_sitemaps=given.news_sitemaps)


def discovery_options(given: RssSettings) -> "DiscoveryOptions":
    """Return which feeds are accepted."""
    from news_platform.rss.discovery import DiscoveryOptions

    return options_of(DiscoveryOptions, given)


def poll_options(given: RssSettings) -> "PollOptions":
    """Return how feeds are polled."""
    from news_platform.rss.poll_results import PollOptions

    longest = max(given.max_interval_seconds, given.min_interval_seconds)
    return options_of(PollOptions, given, max_interval_seconds=longest)


def work_options(given: RssSettings, *, max_articles: int | None = None) -> "WorkOptions":
    """Return how articles are fetched and stored; `max_articles` None: until none is due."""
    from news_platform.rss.ledger.article_queue import WorkOptions

    return options_of(
        WorkOptions,
        given,
        concurrency=given.article_concurrency,
        extractors=max(1, given.workers),
        max_articles=max_articles,
    )


def sheets_access(given: SheetsSettings) -> "SheetAccess | None":
    """Return how to reach the Google Sheet; None: the local workbook is the editors' view."""
    from news_platform.rss.sheets.books import SheetAccess

    if not (given.spreadsheet_id or given.spreadsheet_title):
        return None
    if given.service_account is None:
        raise ConfigError(
            "a Google Sheet is set, but no account to write it with: "
            "set GOOGLE_SERVICE_ACCOUNT_JSON to the path of a service account key",
            thing="GOOGLE_SERVICE_ACCOUNT_JSON",
        )
    return options_of(SheetAccess, given, spreadsheet_title=given.spreadsheet_title or "")


def sync_options(given: Settings) -> "SyncOptions":
    """Return how much goes into a Google Sheet."""
    from news_platform.rss.sheets.books import SyncOptions

    return options_of(SyncOptions, given.rss)


def workbook_options(given: Settings) -> "WorkbookOptions":
    """Return how much of the ledger one workbook shows."""
    from news_platform.rss.sheets.workbook import WorkbookOptions

    return options_of(WorkbookOptions, given.rss)


def analysis_options(given: Settings) -> "AnalysisOptions | None":
    """Return the model that analyses articles, or None; raise ConfigError if it has no name."""
    from news_platform.rss.analyses import AnalysisOptions, ModelAccess

    wanted = given.newsroom
    if not wanted.analysis_url:
        return None
    if not wanted.analysis_model:
        raise ConfigError(
            "NEWS_PLATFORM_ANALYSIS_URL is set, but no model: set NEWS_PLATFORM_ANALYSIS_MODEL",
            thing="NEWS_PLATFORM_ANALYSIS_MODEL",
        )
    model = ModelAccess(wanted.analysis_url, wanted.analysis_model, wanted.analysis_key)
    return AnalysisOptions(model)


def records_options(given: SourceRecordsSettings) -> "RecordsOptions":
    """Return how an institution's snapshots are segmented, and by how many processes."""
    from news_platform.source_records.pipeline import RecordsOptions

    return RecordsOptions(segment_options(given), workers=max(0, given.workers))


def segment_options(given: SourceRecordsSettings) -> "SegmentOptions":
    """Return how one page is segmented, with the rules of the rule file that is set."""
    from news_platform.source_records.options import SegmentOptions, with_rules

    if given.rules is None:
        return SegmentOptions()
    try:
        text = Path(given.rules).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        message = f"cannot read the rule file {given.rules!r}: {error}"
        raise ConfigError(message, thing=given.rules) from error
    return with_rules(SegmentOptions(), text)
