"""Every setting of the platform, typed, with its environment variable: nobody else names one.

`load_settings` reads a mapping once and returns frozen values; a wrong value or an unknown
`NEWS_PLATFORM_*` name is a ConfigError of one line that names the variable and the cure.
"""

import dataclasses
import difflib
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from news_platform.environment import SettingInfo, load_section, section_infos, setting
from news_platform.errors import ConfigError

PREFIX = "NEWS_PLATFORM_"
ROOT_VARIABLE = "NEWS_PLATFORM_ROOT"


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """How object stores are reached; empty values leave it to the clouds' own defaults."""

    s3_endpoint: str | None = setting(
        "NEWS_PLATFORM_S3_ENDPOINT", None, "endpoint of an S3-compatible store (R2, MinIO, ...)"
    )
    s3_region: str | None = setting("NEWS_PLATFORM_S3_REGION", None, "region of the bucket")
    s3_access_key: str | None = setting(
        "NEWS_PLATFORM_S3_ACCESS_KEY", None, "access key; unset: boto3's own chain", secret=True
    )
    s3_secret_key: str | None = setting(
        "NEWS_PLATFORM_S3_SECRET_KEY", None, "secret key; unset: boto3's own chain", secret=True
    )
    gcs_service_account: str | None = setting(
        "NEWS_PLATFORM_GCS_SERVICE_ACCOUNT",
        None,
        "service account key file for gs://; unset: google-auth's own chain",
    )
    allow_http: bool = setting(
        "NEWS_PLATFORM_ALLOW_HTTP", False, "allow plain HTTP to an object store (emulators)"
    )


@dataclass(frozen=True, slots=True)
class WebSettings:
    """How the platform introduces itself to the web, and how politely it asks."""

    user_agent: str = setting(
        "NEWS_PLATFORM_USER_AGENT", "NewsPlatformBot/0.1", "product token sent with every request"
    )
    contact: str = setting(
        "NEWS_PLATFORM_CONTACT", "", "address or page added to the User-Agent, so sites can ask"
    )
    total_timeout_seconds: float = setting(
        "NEWS_PLATFORM_FETCH_TIMEOUT", 30.0, "longest time for one request, redirects included"
    )
    per_host: int = setting("NEWS_PLATFORM_PER_HOST", 2, "requests under way at one host")


@dataclass(frozen=True, slots=True)
class CcnewsSettings:
    """Which crawl is followed and what is taken from it."""

    source: str = setting(
        "NEWS_PLATFORM_CRAWL_URL",
        "https://data.commoncrawl.org/",
        "folder or URL that holds crawl-data/CC-NEWS/YYYY/MM/warc.paths.gz",
    )
    fallback: str | None = setting(
        "NEWS_PLATFORM_CRAWL_FALLBACK_URL",
        None,
        "same layout, read when the first gives an error (S3 first, HTTPS second)",
    )
    workers: int = setting(
        "NEWS_PLATFORM_CCNEWS_WORKERS", 2, "worker processes for the WARCs of a day"
    )
    max_warcs: int | None = setting(
        "NEWS_PLATFORM_CCNEWS_MAX_WARCS", None, "at most so many WARCs a day; unset: all"
    )
    max_days: int = setting(
        "NEWS_PLATFORM_CCNEWS_MAX_DAYS", 4, "days that the sensor may have under way at once"
    )
    page_seconds: float = setting(
        "NEWS_PLATFORM_CCNEWS_PAGE_SECONDS", 30.0, "longest time one page may take"
    )
    memory_mb: int = setting(
        "NEWS_PLATFORM_CCNEWS_MEMORY_MB", 1024, "most memory a worker may hold"
    )
    main_content: bool = setting(
        "NEWS_PLATFORM_CCNEWS_MAIN_CONTENT", True, "text is the main content; 0: the whole page"
    )
    captures: bool = setting("NEWS_PLATFORM_CCNEWS_CAPTURES", True, "write news/captures")
    feed_candidates: bool = setting(
        "NEWS_PLATFORM_CCNEWS_FEED_CANDIDATES", True, "write news/feed_candidates"
    )
    hosts: tuple[str, ...] = setting(
        "NEWS_PLATFORM_CCNEWS_HOSTS", (), "only these registrable domains; empty: all"
    )
    languages: tuple[str, ...] = setting(
        "NEWS_PLATFORM_CCNEWS_LANGUAGES", (), "only these main languages; empty: all"
    )
    statuses: tuple[str, ...] = setting(
        "NEWS_PLATFORM_CCNEWS_STATUSES", (), "only these HTTP status codes; empty: all"
    )
    mimes: tuple[str, ...] = setting(
        "NEWS_PLATFORM_CCNEWS_MIMES", (), "only these MIME types; empty: HTML and XHTML"
    )


@dataclass(frozen=True, slots=True)
class DomainStoreSettings:
    """How the domain store is cut."""

    buckets: int = setting(
        "NEWS_PLATFORM_BUCKETS", 1000, "hash buckets of a new store; an old one keeps its own"
    )
    memory_mb: int = setting(
        "NEWS_PLATFORM_STORE_MEMORY_MB", 1024, "memory a builder of the store may use"
    )
    file_mb: int = setting(
        "NEWS_PLATFORM_STORE_FILE_MB", 2000, "size at which a data file of the store ends"
    )
    grace_days: float = setting(
        "NEWS_PLATFORM_STORE_GRACE_DAYS",
        7.0,
        "how long replaced files of the store stay for those who still read them",
    )
    scratch: str | None = setting(
        "NEWS_PLATFORM_STORE_SCRATCH", None, "folder for sorting; unset: the system's temporary one"
    )


@dataclass(frozen=True, slots=True)
class DomainMetadataSettings:
    """How the survey of domains works."""

    survey_concurrency: int = setting(
        "NEWS_PLATFORM_SURVEY_CONCURRENCY", 64, "domains under way at once in one run"
    )
    survey_tries: int = setting(
        "NEWS_PLATFORM_SURVEY_TRIES", 3, "how often one run asks a domain that does not answer"
    )
    survey_retry_seconds: float = setting(
        "NEWS_PLATFORM_SURVEY_RETRY_SECONDS", 45.0, "pause before the first retry, then doubled"
    )
    catalog_domains_per_day: int = setting(
        "NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY",
        0,
        "domains newly seen in the crawl to survey, most records first; 0: none",
    )


@dataclass(frozen=True, slots=True)
class RssSettings:
    """How feeds are discovered, polled and worked."""

    fulltext_dir: str | None = setting(
        "FULLTEXT_DIR",
        None,
        "folder or URL of the full texts; unset: articles/full_text under the root",
    )
    fulltext_keep_days: int | None = setting(
        "NEWS_PLATFORM_FULLTEXT_KEEP_DAYS", None, "days a full text is kept; unset: for ever"
    )
    fresh_days_limit: int = setting(
        "FRESH_DAYS_LIMIT", 7, "oldest newest entry, in days, of a feed taken in"
    )
    feed_languages: str = setting(
        "NEWS_PLATFORM_FEED_LANGUAGES", "en", "languages of feeds taken in, as en,de; empty: any"
    )
    max_items_per_feed: int = setting(
        "MAX_ITEMS_PER_FEED_PER_POLL", 20, "new articles taken from one feed a poll"
    )
    poll_min_seconds: int = setting(
        "NEWS_PLATFORM_POLL_MIN_SECONDS", 3 * 3600, "shortest interval between polls of a feed"
    )
    poll_max_seconds: int = setting(
        "NEWS_PLATFORM_POLL_MAX_SECONDS", 6 * 3600, "longest interval between polls of a feed"
    )
    pending_batch_size: int = setting("PENDING_BATCH_SIZE", 100, "articles a worker claims at once")
    clean_text_limit: int = setting(
        "CLEAN_TEXT_SHEETS_LIMIT", 20_000, "characters of clean_text kept in a row"
    )
    article_concurrency: int = setting(
        "NEWS_PLATFORM_ARTICLE_CONCURRENCY", 32, "articles that one worker fetches at the same time"
    )
    extractors: int = setting(
        "NEWS_PLATFORM_EXTRACTORS", 2, "processes that read pages, for each worker"
    )


@dataclass(frozen=True, slots=True)
class SheetsSettings:
    """Which Google Sheet shows the ledger; without one a local workbook does."""

    service_account: str | None = setting(
        "GOOGLE_SERVICE_ACCOUNT_JSON",
        None,
        "path or text of the service account's key that writes to the Google Sheet",
        secret=True,
    )
    spreadsheet_id: str | None = setting(
        "SPREADSHEET_ID", None, "id of the Google Sheet, from its address"
    )
    spreadsheet_title: str | None = setting(
        "SPREADSHEET_TITLE", None, "title of the Google Sheet, created if there is none"
    )
    endpoint: str | None = setting(
        "NEWS_PLATFORM_SHEETS_ENDPOINT", None, "URL that stands in for Google's (emulators)"
    )
    calls_per_minute: int = setting(
        "NEWS_PLATFORM_SHEETS_CALLS_PER_MINUTE", 60, "Google's quota of reads, and of writes"
    )


@dataclass(frozen=True, slots=True)
class SourceRecordsSettings:
    """How page snapshots become source records."""

    language: str = setting(
        "NEWS_PLATFORM_RECORDS_LANGUAGE", "en", "language of the blocks that are kept"
    )
    min_chars: int = setting("NEWS_PLATFORM_RECORDS_MIN_CHARS", 12, "shorter blocks are dropped")
    max_chars: int = setting("NEWS_PLATFORM_RECORDS_MAX_CHARS", 2000, "longer blocks are dropped")
    whitelist: tuple[str, ...] = setting(
        "NEWS_PLATFORM_RECORDS_WHITELIST",
        (),
        "regular expressions, comma-separated: such sections or texts may have any length",
    )
    headings: str = setting(
        "NEWS_PLATFORM_RECORDS_HEADINGS",
        "attach",
        "`attach`: headings are the section of what follows; `records`: also records",
    )
    tables: str = setting(
        "NEWS_PLATFORM_RECORDS_TABLES",
        "rows",
        "`rows`: a record a row; `structure`: one a table",
    )
    rules: str | None = setting(
        "NEWS_PLATFORM_RECORDS_RULES", None, "TOML file of boilerplate and section rules"
    )
    failed_share: float = setting(
        "NEWS_PLATFORM_RECORDS_FAILED_SHARE", 0.2, "share of failed pages above which a check fails"
    )
    samples: int = setting(
        "NEWS_PLATFORM_RECORDS_SAMPLES", 5, "blocks of each institution shown in the UI"
    )
    workers: int = setting(
        "NEWS_PLATFORM_RECORDS_WORKERS", 2, "processes that cut pages at the same time"
    )


@dataclass(frozen=True, slots=True)
class NearDuplicatesSettings:
    """How near-identical texts are clustered."""


@dataclass(frozen=True, slots=True)
class AlertSettings:
    """Where a failed run is told."""

    webhook_url: str | None = setting(
        "NEWS_PLATFORM_ALERT_WEBHOOK", None, "URL that gets a POST for each failed run", secret=True
    )


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """Where the servers of a cluster are; unused on one machine."""

    broker_url: str | None = setting(
        "NEWS_PLATFORM_BROKER_URL", None, "redis:// URL of the Celery broker", secret=True
    )
    dagster_postgres_url: str | None = setting(
        "NEWS_PLATFORM_DAGSTER_POSTGRES_URL",
        None,
        "postgresql+psycopg2:// URL of Dagster's own storage, read by deploy/dagster.yaml",
        secret=True,
    )
    redelivery_seconds: int = setting(
        "NEWS_PLATFORM_REDELIVERY_SECONDS",
        60,
        "after which a task whose worker died before its run began goes to another worker",
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings: where the data lies, then one section a room."""

    root: str = setting(ROOT_VARIABLE, "data", "folder, s3:// or gs:// URL of all data")
    sample: bool | None = setting(
        "NEWS_PLATFORM_SAMPLE",
        None,
        "1: the fictional sample world; unset: whatever the root already holds",
    )
    sample_world: str | None = setting(
        "NEWS_PLATFORM_SAMPLE_WORLD",
        None,
        "local folder of the sample world; unset: under the root",
    )
    ledger_url: str | None = setting(
        "NEWS_PLATFORM_LEDGER_URL",
        None,
        "SQLAlchemy URL of the ledger; unset: SQLite under a local root",
        secret=True,
    )
    bench_data: str | None = setting(
        "NEWS_PLATFORM_BENCH_DATA", None, "folder of real inputs for tests and benchmarks"
    )
    chromium: str | None = setting(
        "NEWS_PLATFORM_CHROMIUM", None, "path of the browser that browser tests drive"
    )
    docs_url: str | None = setting(
        "NEWS_PLATFORM_DOCS_URL", None, "where docs/ is published; asset pages then link there"
    )
    dagster_home: str | None = setting(
        "DAGSTER_HOME", None, "absolute folder of Dagster's own state; `make` sets it"
    )
    storage: StorageSettings = StorageSettings()
    web: WebSettings = WebSettings()
    ccnews: CcnewsSettings = CcnewsSettings()
    domain_store: DomainStoreSettings = DomainStoreSettings()
    domain_metadata: DomainMetadataSettings = DomainMetadataSettings()
    rss: RssSettings = RssSettings()
    sheets: SheetsSettings = SheetsSettings()
    source_records: SourceRecordsSettings = SourceRecordsSettings()
    near_duplicates: NearDuplicatesSettings = NearDuplicatesSettings()
    alerts: AlertSettings = AlertSettings()
    cluster: ClusterSettings = ClusterSettings()


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read all settings from the variables given; raise ConfigError on the first wrong one."""
    _refuse_unknown(environ)
    sections = {name: load_section(kind, environ) for name, kind in _sections()}
    return dataclasses.replace(load_section(Settings, environ), **sections)


def setting_infos() -> tuple[SettingInfo, ...]:
    """Describe every setting in the order written, for the docs."""
    general = section_infos("general", Settings)
    return (*general, *(info for name, kind in _sections() for info in section_infos(name, kind)))


def secret_values(settings: Settings) -> frozenset[str]:
    """Return the secrets that are set, and the passwords inside those that are URLs."""
    given = {str(value) for value in _secrets(settings) if value}
    return frozenset(given | {word for text in given if (word := _password(text))})


def _sections() -> Iterator[tuple[str, type[Any]]]:
    for item in dataclasses.fields(Settings):
        if isinstance(item.type, type) and dataclasses.is_dataclass(item.type):
            yield item.name, item.type


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = [info.env for info in setting_infos()]
    for name in sorted(environ):
        if name.startswith(PREFIX) and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            cure = f"did you mean {close[0]}?" if close else "see docs/settings.md for all names"
            raise ConfigError(f"unknown setting {name}: {cure}", thing=name)


def _secrets(section: Any) -> Iterator[object]:
    for item in dataclasses.fields(section):
        value = getattr(section, item.name)
        if dataclasses.is_dataclass(value):
            yield from _secrets(value)
        elif item.metadata.get("secret"):
            yield value


def _password(text: str) -> str | None:
    try:
        return urllib.parse.urlsplit(text).password
    except ValueError:  # not a URL, so there is no password inside
        return None
