"""From settings to opened resources: the data root, the crawl, the web, the ledger and the clock.

Assets and commands receive these and open nothing themselves. Each resource opens on first use, and
none shows a setting, or a secret, in its repr. The functions at the end turn a section of the
settings into a feature's options; features never see the settings.
"""

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa

from news_platform.errors import ConfigError, StorageError
from news_platform.settings import (
    CcnewsSettings,
    CrawlStorageSettings,
    DomainMetadataSettings,
    DomainStoreSettings,
    RssSettings,
    Settings,
    SheetsSettings,
    SourceRecordsSettings,
    StorageSettings,
)
from news_platform.storage.commit import root as roots
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.commit.upgrade import upgrade_root
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store
from news_platform.storage.sql.engine import ledger_url, migrate, open_engine
from news_platform.web.allowed_places import checked_proxy, parse_allowed
from news_platform.web.fetch import FetchOptions

# The options are imported where they are made: a command loads only the feature that it runs.
if TYPE_CHECKING:
    from news_platform.ccnews.options import CollectOptions
    from news_platform.domain_metadata.consumer import SurveyOptions
    from news_platform.domain_store.options import BuildOptions
    from news_platform.rss.discovery.discover import DiscoveryOptions
    from news_platform.rss.polling.poll_schedule import PollOptions
    from news_platform.rss.sheets.access import SheetAccess
    from news_platform.rss.work_context import WorkOptions
    from news_platform.source_records.options import SegmentOptions
    from news_platform.source_records.pipeline import RecordsOptions

# Where full texts lie under the root unless FULLTEXT_DIR is set.
_FULL_TEXT_FOLDER = "articles/full_text"


@dataclass(frozen=True)
class DataRoot:
    """The one place where all data lies; with `READ` a root of version 0.1 stays as it is."""

    settings: Settings = field(repr=False)
    access: RootAccess = RootAccess.CREATE

    @cached_property
    def store(self) -> ObjectStore:
        """Open the root, check that it holds the world that the settings name, and upgrade it."""
        store = open_store(self.settings.root, options=store_options(self.settings))
        world = roots.claim_root(store, sample=self.settings.sample, access=self.access)
        if world == roots.SAMPLE and not self.settings.sample:
            raise ConfigError(
                f"root {store.url!r} holds the sample world: set NEWS_PLATFORM_SAMPLE=1",
                thing=store.url,
            )
        if self.access is not RootAccess.READ:
            upgrade_root(store, adopters=(adopt_markers,))
        return store


def adopt_markers(store: ObjectStore) -> None:
    """Keep current what version 0.1 built, whatever fingerprints it used."""
    from news_platform.domain_metadata import adoption as surveys
    from news_platform.source_records import pipeline as records

    for feature in (surveys, records):
        feature.adopt_markers(store)


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
        return FetchOptions(
            user_agent=given.user_agent,
            contact=given.contact,
            total_timeout_seconds=given.total_timeout_seconds,
            per_host=given.per_host,
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

        settings, store = self.data_root.settings, self.data_root.store
        roots.require_claim(store)
        engine = open_engine(ledger_url(store.url, settings.ledger_url))
        try:
            require_articles(engine, store)
            migrate(engine)
        except StorageError:
            engine.dispose()  # leaves none of SQLite's side files
            raise
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
    from news_platform.sample.resources import SampleResources

    return SampleResources(settings, access)


def _is_sample(settings: Settings, *, may_connect: bool) -> bool:
    if settings.sample is not None:
        return settings.sample
    if "://" in settings.root and not may_connect:
        return False
    return (
        roots.read_world(open_store(settings.root, options=store_options(settings))) == roots.SAMPLE
    )


def store_options(settings: Settings) -> StoreOptions:
    """Return how to reach the root, and every other object store but the crawl."""
    return _store_options(settings.storage, allow_http=settings.storage.allow_http)


def crawl_options(settings: Settings) -> StoreOptions:
    """Return how to reach the crawl: by its own settings, or as the root if none of them is set.

    One of them is enough: a root on MinIO must not send its keys or endpoint along to AWS.
    """
    own = settings.crawl_storage
    given = own if own.is_set else settings.storage
    return _store_options(given, allow_http=settings.storage.allow_http)


def _store_options(
    given: StorageSettings | CrawlStorageSettings, *, allow_http: bool
) -> StoreOptions:
    return StoreOptions(
        endpoint_url=given.s3_endpoint,
        gcs_base_url=given.gcs_base_url,
        region=given.s3_region,
        access_key=given.s3_access_key,
        secret_key=given.s3_secret_key,
        service_account_key=given.gcs_service_account,
        allow_http=allow_http,
    )


def open_full_texts(data_root: DataRoot) -> ObjectStore:
    """Open the place of full texts: the one that is set, else the folder under the root."""
    place = data_root.settings.rss.fulltext_dir
    if place:
        return open_store(place, options=store_options(data_root.settings))
    return data_root.store.child(_FULL_TEXT_FOLDER)


def collect_options(given: CcnewsSettings) -> "CollectOptions":
    """Return how WARCs are collected; raise ConfigError for a status that is not a number."""
    from news_platform.ccnews.options import HTML_TYPES, CollectOptions

    wrong = [text for text in given.statuses if not text.isdecimal()]
    if wrong:
        raise ConfigError(
            f"NEWS_PLATFORM_CCNEWS_STATUSES has {wrong[0]!r}: expected numbers such as 200",
            thing=wrong[0],
        )
    return CollectOptions(
        workers=max(0, given.workers),
        page_seconds=given.page_seconds,
        memory_mb=given.memory_mb,
        max_warcs=given.max_warcs,
        main_content=given.main_content,
        captures=given.captures,
        feed_candidates=given.feed_candidates,
        dropped_responses=given.dropped_days > 0,
        accept_after=given.accept_after,
        mimes=frozenset(mime.lower() for mime in given.mimes) or HTML_TYPES,
        hosts=frozenset(host.lower() for host in given.hosts),
        languages=frozenset(given.languages),
        statuses=frozenset(map(int, given.statuses)),
    )


def build_options(given: DomainStoreSettings, store: ObjectStore) -> "BuildOptions":
    """Return how the domain store is built; an existing store keeps its number of buckets."""
    from news_platform.domain_store.commit import resolve_bucket_count
    from news_platform.domain_store.options import BuildOptions

    return BuildOptions(
        buckets=resolve_bucket_count(store, given.buckets),
        memory_bytes=given.memory_mb << 20,
        file_bytes=given.file_mb * 1_000_000,
        grace=timedelta(days=given.grace_days),
        scratch=given.scratch,
        removal_share=given.removal_share,
    )


def survey_options(given: DomainMetadataSettings, web: Web) -> "SurveyOptions":
    """Return how domains are surveyed."""
    from news_platform.domain_metadata.consumer import SurveyOptions
    from news_platform.domain_metadata.fetchers import SurveyFetchOptions

    return SurveyOptions(
        fetch=SurveyFetchOptions(user_agent=web.fetch_options.user_agent),
        concurrency=given.survey_concurrency,
        max_tries=given.survey_tries,
        retry_seconds=given.survey_retry_seconds,
    )


def discovery_options(given: RssSettings) -> "DiscoveryOptions":
    """Return which feeds are accepted."""
    from news_platform.rss.discovery.discover import DiscoveryOptions

    languages = (code.strip().lower() for code in given.feed_languages.split(","))
    return DiscoveryOptions(
        fresh_days_limit=given.fresh_days_limit,
        languages=tuple(code for code in languages if code),
    )


def poll_options(given: RssSettings) -> "PollOptions":
    """Return how feeds are polled."""
    from news_platform.rss.polling.poll_schedule import PollOptions

    return PollOptions(
        max_items_per_feed=given.max_items_per_feed,
        min_interval_seconds=given.poll_min_seconds,
        max_interval_seconds=max(given.poll_max_seconds, given.poll_min_seconds),
    )


def work_options(given: RssSettings, *, max_articles: int | None = None) -> "WorkOptions":
    """Return how articles are fetched and stored; `max_articles` None: until none is due."""
    from news_platform.rss.work_context import WorkOptions

    return WorkOptions(
        pending_batch_size=given.pending_batch_size,
        concurrency=given.article_concurrency,
        extractors=given.extractors,
        max_articles=max_articles,
    )


def sheets_access(given: SheetsSettings) -> "SheetAccess | None":
    """Return how to reach the Google Sheet; None: the local workbook is the editors' view."""
    from news_platform.rss.sheets.access import SheetAccess

    if not (given.spreadsheet_id or given.spreadsheet_title):
        return None
    if given.service_account is None:
        raise ConfigError(
            "a Google Sheet is set, but no account to write it with: "
            "set GOOGLE_SERVICE_ACCOUNT_JSON to the path of a service account key",
            thing="GOOGLE_SERVICE_ACCOUNT_JSON",
        )
    return SheetAccess(
        given.service_account,
        spreadsheet_id=given.spreadsheet_id,
        spreadsheet_title=given.spreadsheet_title or "",
        endpoint=given.endpoint,
    )


def records_options(given: SourceRecordsSettings) -> "RecordsOptions":
    """Return how an institution's snapshots are segmented, and by how many processes."""
    from news_platform.source_records.pipeline import RecordsOptions

    return RecordsOptions(segment_options(given), workers=given.workers, samples=given.samples)


def segment_options(given: SourceRecordsSettings) -> "SegmentOptions":
    """Return how one page is segmented, with the rules of the rule file that is set."""
    from news_platform.source_records.options import SegmentOptions
    from news_platform.source_records.rules import with_rules

    names = {"language", "min_chars", "max_chars", "whitelist", "headings", "tables"}
    options = SegmentOptions(**given.model_dump(include=names))
    return with_rules(options, _rule_text(given.rules)) if given.rules else options


def _rule_text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the rule file {path!r}: {error}", thing=path) from error
