"""Every setting of the platform, typed, with its environment variable; no other module names one.

`load_settings` reads a mapping once and returns frozen values. A wrong value or an unknown
`NEWS_PLATFORM_*` name raises a one-line ConfigError that names the variable and the remedy.
"""

import difflib
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar

from pydantic import BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from news_platform.errors import ConfigError

PREFIX = "NEWS_PLATFORM_"
ROOT_VARIABLE = "NEWS_PLATFORM_ROOT"


def _split(value: object) -> object:
    """Split a variable's text at commas; leave a tuple given in code as it is."""
    if not isinstance(value, str):
        return value
    return tuple(part.strip() for part in value.split(",") if part.strip())


# pydantic-settings would read a tuple as JSON; people write `a,b`.
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
# A trailing space in an env file must not turn a switch into an error.
Switch = Annotated[bool, BeforeValidator(lambda it: it.strip() if isinstance(it, str) else it)]


def env(variable: str, text: str, default: Any = None) -> Any:
    """Return a field of a section that is read from a variable."""
    return Field(default, validation_alias=variable, description=text)


def secret(variable: str, text: str) -> Any:
    """Return a field that is read from a variable and never appears in a repr."""
    return Field(None, validation_alias=variable, description=text, repr=False)


class Section(BaseSettings):
    """A group of settings; an instance created in code has the defaults."""

    model_config = SettingsConfigDict(
        frozen=True, extra="forbid", populate_by_name=True, hide_input_in_errors=True
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Read no variable behind the caller's back: only `load_settings` does."""
        return (init_settings,)


class StorageSettings(Section):
    """Access to object stores; unset values use the defaults of the cloud libraries."""

    s3_endpoint: str | None = env(
        "NEWS_PLATFORM_S3_ENDPOINT", "endpoint of an S3-compatible store (R2, MinIO, ...)"
    )
    s3_region: str | None = env("NEWS_PLATFORM_S3_REGION", "region of the bucket")
    s3_access_key: str | None = secret(
        "NEWS_PLATFORM_S3_ACCESS_KEY", "access key; unset: boto3's own chain"
    )
    s3_secret_key: str | None = secret(
        "NEWS_PLATFORM_S3_SECRET_KEY", "secret key; unset: boto3's own chain"
    )
    gcs_service_account: str | None = env(
        "NEWS_PLATFORM_GCS_SERVICE_ACCOUNT", "key file for gs://; unset: google-auth's own chain"
    )
    allow_http: Switch = env(
        "NEWS_PLATFORM_ALLOW_HTTP", "allow plain HTTP to object stores (emulators)", False
    )


class WebSettings(Section):
    """The identity and the limits of requests to the web."""

    user_agent: str = env(
        "NEWS_PLATFORM_USER_AGENT", "product token sent with every request", "NewsPlatformBot/0.1"
    )
    contact: str = env(
        "NEWS_PLATFORM_CONTACT", "address or page added to the User-Agent for questions", ""
    )
    total_timeout_seconds: float = env(
        "NEWS_PLATFORM_FETCH_TIMEOUT", "longest time for one request, redirects included", 30.0
    )
    per_host: int = env("NEWS_PLATFORM_PER_HOST", "concurrent requests to one host", 2)


class CcnewsSettings(Section):
    """The crawl to follow, and what to collect from it."""

    source: str = env(
        "NEWS_PLATFORM_CRAWL_URL",
        "folder or URL that holds crawl-data/CC-NEWS/YYYY/MM/warc.paths.gz",
        "https://data.commoncrawl.org/",
    )
    fallback: str | None = env(
        "NEWS_PLATFORM_CRAWL_FALLBACK_URL", "same layout, read on errors (S3 first, HTTPS second)"
    )
    workers: int = env("NEWS_PLATFORM_CCNEWS_WORKERS", "worker processes for the WARCs of a day", 2)
    max_warcs: int | None = env("NEWS_PLATFORM_CCNEWS_MAX_WARCS", "most WARCs per day; unset: all")
    max_days: int = env(
        "NEWS_PLATFORM_CCNEWS_MAX_DAYS", "most days that the sensor has in progress", 4
    )
    page_seconds: float = env("NEWS_PLATFORM_CCNEWS_PAGE_SECONDS", "time limit for one page", 30.0)
    memory_mb: int = env("NEWS_PLATFORM_CCNEWS_MEMORY_MB", "memory limit of a worker", 1024)
    main_content: Switch = env(
        "NEWS_PLATFORM_CCNEWS_MAIN_CONTENT", "text is the main content; 0: the whole page", True
    )
    captures: Switch = env("NEWS_PLATFORM_CCNEWS_CAPTURES", "write news/captures", True)
    feed_candidates: Switch = env(
        "NEWS_PLATFORM_CCNEWS_FEED_CANDIDATES", "write news/feed_candidates", True
    )
    hosts: Names = env("NEWS_PLATFORM_CCNEWS_HOSTS", "only these domains; empty: all", ())
    languages: Names = env("NEWS_PLATFORM_CCNEWS_LANGUAGES", "only these languages; empty: all", ())
    statuses: Names = env(
        "NEWS_PLATFORM_CCNEWS_STATUSES", "only these HTTP statuses; empty: all", ()
    )
    mimes: Names = env(
        "NEWS_PLATFORM_CCNEWS_MIMES", "only these MIME types; empty: HTML and XHTML", ()
    )


class DomainStoreSettings(Section):
    """The layout and the limits of the domain store."""

    buckets: int = env(
        "NEWS_PLATFORM_BUCKETS", "hash buckets of a new store; an old one keeps its own", 1000
    )
    memory_mb: int = env("NEWS_PLATFORM_STORE_MEMORY_MB", "memory limit of a builder", 1024)
    file_mb: int = env("NEWS_PLATFORM_STORE_FILE_MB", "size limit of a data file", 2000)
    grace_days: float = env(
        "NEWS_PLATFORM_STORE_GRACE_DAYS", "days that replaced files stay for readers", 7.0
    )
    scratch: str | None = env(
        "NEWS_PLATFORM_STORE_SCRATCH", "folder for sorting; unset: the system's own"
    )


class DomainMetadataSettings(Section):
    """The survey of domains."""

    survey_concurrency: int = env(
        "NEWS_PLATFORM_SURVEY_CONCURRENCY", "domains surveyed at once", 64
    )
    survey_tries: int = env(
        "NEWS_PLATFORM_SURVEY_TRIES", "tries per run for a domain that does not answer", 3
    )
    survey_retry_seconds: float = env(
        "NEWS_PLATFORM_SURVEY_RETRY_SECONDS", "pause before the first retry, then doubled", 45.0
    )
    catalog_domains_per_day: int = env(
        "NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY", "new domains of the crawl to survey; 0: none", 0
    )


class RssSettings(Section):
    """Discovery and polling of feeds, and fetching of articles."""

    fulltext_dir: str | None = env(
        "FULLTEXT_DIR", "folder or URL of full texts; unset: articles/full_text in the root"
    )
    fulltext_keep_days: int | None = env(
        "NEWS_PLATFORM_FULLTEXT_KEEP_DAYS", "days a full text is kept; unset: for ever"
    )
    fresh_days_limit: int = env(
        "FRESH_DAYS_LIMIT", "age limit, in days, of the newest entry of a new feed", 7
    )
    feed_languages: str = env(
        "NEWS_PLATFORM_FEED_LANGUAGES", "languages of accepted feeds, as en,de; empty: any", "en"
    )
    max_items_per_feed: int = env(
        "MAX_ITEMS_PER_FEED_PER_POLL", "new articles per feed and poll", 20
    )
    poll_min_seconds: int = env(
        "NEWS_PLATFORM_POLL_MIN_SECONDS", "shortest interval between polls of a feed", 3 * 3600
    )
    poll_max_seconds: int = env(
        "NEWS_PLATFORM_POLL_MAX_SECONDS", "longest interval between polls of a feed", 6 * 3600
    )
    pending_batch_size: int = env(
        "PENDING_BATCH_SIZE", "articles that a worker claims at once", 100
    )
    clean_text_limit: int = env(
        "CLEAN_TEXT_SHEETS_LIMIT", "characters of clean_text kept per row", 20_000
    )
    article_concurrency: int = env(
        "NEWS_PLATFORM_ARTICLE_CONCURRENCY", "articles that a worker fetches at once", 32
    )
    extractors: int = env("NEWS_PLATFORM_EXTRACTORS", "extractor processes per worker", 2)


class SheetsSettings(Section):
    """The Google Sheet that shows the ledger; without one, a local workbook does."""

    service_account: str | None = secret(
        "GOOGLE_SERVICE_ACCOUNT_JSON", "path or text of a service account key for the Google Sheet"
    )
    spreadsheet_id: str | None = env("SPREADSHEET_ID", "id of the Google Sheet, from its URL")
    spreadsheet_title: str | None = env(
        "SPREADSHEET_TITLE", "title of the Google Sheet, created if missing"
    )
    endpoint: str | None = env(
        "NEWS_PLATFORM_SHEETS_ENDPOINT", "URL to use instead of Google's (emulators)"
    )
    calls_per_minute: int = env(
        "NEWS_PLATFORM_SHEETS_CALLS_PER_MINUTE", "Google's quota, for reads and for writes", 60
    )


class SourceRecordsSettings(Section):
    """The segmentation of page snapshots into source records."""

    language: str = env("NEWS_PLATFORM_RECORDS_LANGUAGE", "language of the blocks to keep", "en")
    min_chars: int = env("NEWS_PLATFORM_RECORDS_MIN_CHARS", "shorter blocks are dropped", 12)
    max_chars: int = env("NEWS_PLATFORM_RECORDS_MAX_CHARS", "longer blocks are dropped", 2000)
    whitelist: Names = env(
        "NEWS_PLATFORM_RECORDS_WHITELIST", "regexes of sections and texts of any length, as a,b", ()
    )
    headings: str = env(
        "NEWS_PLATFORM_RECORDS_HEADINGS",
        "`attach`: headings name the section that follows; `records`: also become records",
        "attach",
    )
    tables: str = env(
        "NEWS_PLATFORM_RECORDS_TABLES", "record per `rows` or per whole table (`structure`)", "rows"
    )
    rules: str | None = env(
        "NEWS_PLATFORM_RECORDS_RULES", "TOML file of boilerplate and section rules"
    )
    failed_share: float = env(
        "NEWS_PLATFORM_RECORDS_FAILED_SHARE", "share of failed pages above which a check fails", 0.2
    )
    samples: int = env("NEWS_PLATFORM_RECORDS_SAMPLES", "blocks per institution shown in the UI", 5)
    workers: int = env("NEWS_PLATFORM_RECORDS_WORKERS", "processes that segment pages", 2)


class AlertSettings(Section):
    """Where failed runs are reported."""

    webhook_url: str | None = secret(
        "NEWS_PLATFORM_ALERT_WEBHOOK", "URL that receives a POST for each failed run"
    )


class ClusterSettings(Section):
    """The servers of a cluster; not used on one machine."""

    broker_url: str | None = secret("NEWS_PLATFORM_BROKER_URL", "redis:// URL of the Celery broker")
    dagster_postgres_url: str | None = secret(
        "NEWS_PLATFORM_DAGSTER_POSTGRES_URL",
        "postgresql+psycopg2:// URL of Dagster's own storage, read by deploy/dagster.yaml",
    )
    redelivery_seconds: int = env(
        "NEWS_PLATFORM_REDELIVERY_SECONDS",
        "seconds until another worker gets the task of one that died before its run began",
        60,
    )


class GeneralSettings(Section):
    """The location of the data, and settings that belong to no single feature."""

    root: str = env(ROOT_VARIABLE, "folder, s3:// or gs:// URL of all data", "data")
    sample: Switch | None = env(
        "NEWS_PLATFORM_SAMPLE", "1: the fictional sample world; unset: what the root already holds"
    )
    sample_world: str | None = env(
        "NEWS_PLATFORM_SAMPLE_WORLD", "local folder of the sample world; unset: under the root"
    )
    ledger_url: str | None = secret(
        "NEWS_PLATFORM_LEDGER_URL", "SQLAlchemy URL of the ledger; unset: SQLite under a local root"
    )
    bench_data: str | None = env(
        "NEWS_PLATFORM_BENCH_DATA", "folder of real inputs for tests and benchmarks"
    )
    chromium: str | None = env("NEWS_PLATFORM_CHROMIUM", "path of the browser for browser tests")
    docs_url: str | None = env(
        "NEWS_PLATFORM_DOCS_URL", "where docs/ is published; asset pages link to it"
    )
    dagster_home: str | None = env(
        "DAGSTER_HOME", "absolute folder of Dagster's own state; `make` sets it"
    )


class Settings(GeneralSettings):
    """All settings: the general ones, then one section per feature."""

    storage: StorageSettings = StorageSettings()
    web: WebSettings = WebSettings()
    ccnews: CcnewsSettings = CcnewsSettings()
    domain_store: DomainStoreSettings = DomainStoreSettings()
    domain_metadata: DomainMetadataSettings = DomainMetadataSettings()
    rss: RssSettings = RssSettings()
    sheets: SheetsSettings = SheetsSettings()
    source_records: SourceRecordsSettings = SourceRecordsSettings()
    alerts: AlertSettings = AlertSettings()
    cluster: ClusterSettings = ClusterSettings()


@dataclass(frozen=True, slots=True)
class SettingInfo:
    """One row of the settings table in the docs."""

    section: str
    env: str
    default: str
    help: str


def load_settings(environ: Mapping[str, str]) -> Settings:
    """Read all settings from these variables; raise ConfigError on the first wrong one."""
    _refuse_unknown(environ)
    loaded: dict[str, Any] = dict(_load(GeneralSettings, environ))
    return Settings(**loaded | {name: _load(kind, environ) for name, kind in _sections()})


def setting_infos() -> tuple[SettingInfo, ...]:
    """Return a description of every setting, in the order of definition, for the docs."""
    kinds: list[tuple[str, type[Section]]] = [("general", GeneralSettings), *_sections()]
    return tuple(_info(name, item) for name, kind in kinds for item in kind.model_fields.values())


def _info(section: str, item: FieldInfo) -> SettingInfo:
    default = "" if item.default is None else str(item.default)
    return SettingInfo(section, str(item.validation_alias), default, item.description or "")


def secret_values(settings: Settings) -> frozenset[str]:
    """Return the secrets that are set, and the passwords inside those that are URLs."""
    given = {str(value) for value in _secrets(settings) if value}
    return frozenset(given | {word for text in given if (word := _password(text))})


_Kind = TypeVar("_Kind", bound=Section)


def _load(kind: type[_Kind], environ: Mapping[str, str]) -> _Kind:
    """Read one section; what is unset or empty keeps its default."""
    source = EnvSettingsSource(kind, case_sensitive=True)
    # Only these: the source also takes a variable that has the name of a field, such as `root`.
    variables = {str(item.validation_alias) for item in kind.model_fields.values()}
    source.env_vars = {name: environ[name] for name in variables if environ.get(name)}
    try:
        return kind(**source())
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        name, wanted = str(found["loc"][0]), found["type"].partition("_")[0]
        message = f"{name}={environ[name]!r} is not of type {wanted}"
        raise ConfigError(message, thing=name) from error


def _sections() -> Iterator[tuple[str, type[Section]]]:
    for name, item in Settings.model_fields.items():
        if isinstance(item.annotation, type) and issubclass(item.annotation, Section):
            yield name, item.annotation


def _refuse_unknown(environ: Mapping[str, str]) -> None:
    known = [info.env for info in setting_infos()]
    for name in sorted(name for name in environ.keys() - known if name.startswith(PREFIX)):
        close = difflib.get_close_matches(name, known, n=1)
        cure = f"did you mean {close[0]}?" if close else "see docs/settings.md for all names"
        raise ConfigError(f"unknown setting {name}: {cure}", thing=name)


def _secrets(section: Section) -> Iterator[object]:
    for name, item in type(section).model_fields.items():
        value = getattr(section, name)
        if isinstance(value, Section):
            yield from _secrets(value)
        elif not item.repr:
            yield value


def _password(text: str) -> str | None:
    try:
        return urllib.parse.urlsplit(text).password
    except ValueError:  # not a URL, so there is no password inside
        return None
