"""Settings that belong to no single feature: root, stores, web, servers, alerts, cluster, logs."""

from typing import Annotated, Literal

from pydantic import BeforeValidator

from news_platform.setting_sections.features import CONTACT
from news_platform.setting_sections.fields import Names, Section, Switch, env, secret

ROOT_VARIABLE, HOME_VARIABLE = "NEWS_PLATFORM_ROOT", "DAGSTER_HOME"
_lower = BeforeValidator(lambda it: it.strip().lower() if isinstance(it, str) else it)
LogFormat = Annotated[Literal["text", "json"], _lower]
LogLevel = Annotated[Literal["debug", "info", "warning", "error"], _lower]


class StorageSettings(Section):
    """Access to object stores; unset values use the defaults of the cloud libraries."""

    endpoint_url: str | None = env(
        "NEWS_PLATFORM_S3_ENDPOINT", "endpoint of an S3-compatible store (R2, MinIO, ...)"
    )
    region: str | None = env("NEWS_PLATFORM_S3_REGION", "region of the bucket")
    access_key: str | None = secret(
        "NEWS_PLATFORM_S3_ACCESS_KEY", "access key; unset: boto3's own chain"
    )
    secret_key: str | None = secret(
        "NEWS_PLATFORM_S3_SECRET_KEY", "secret key; unset: boto3's own chain"
    )
    gcs_base_url: str | None = env(
        "NEWS_PLATFORM_GCS_BASE_URL", "URL to use instead of Google's for gs:// (emulators)"
    )
    service_account_key: str | None = secret(
        "NEWS_PLATFORM_GCS_SERVICE_ACCOUNT",
        "path or text of a key for gs://; unset: google-auth's own chain",
    )
    allow_http: Switch = env(
        "NEWS_PLATFORM_ALLOW_HTTP", "allow plain HTTP to object stores (emulators)", False
    )


class CrawlStorageSettings(Section):
    """Access to a crawl in S3; if one is set, none of the root's S3 settings apply to the crawl."""

    endpoint_url: str | None = env(
        "NEWS_PLATFORM_CRAWL_S3_ENDPOINT", "endpoint of the crawl; unset: AWS, or the root's"
    )
    region: str | None = env(
        "NEWS_PLATFORM_CRAWL_S3_REGION", "region of the crawl's bucket (commoncrawl: us-east-1)"
    )
    access_key: str | None = secret(
        "NEWS_PLATFORM_CRAWL_S3_ACCESS_KEY", "access key for the crawl; unset: boto3's own chain"
    )
    secret_key: str | None = secret(
        "NEWS_PLATFORM_CRAWL_S3_SECRET_KEY", "secret key for the crawl; unset: boto3's own chain"
    )

    @property
    def is_set(self) -> bool:
        """Return whether the crawl has an access of its own."""
        return any(value is not None for _, value in self)


class WebSettings(Section):
    """The identity and the limits of requests to the web."""

    user_agent: str = env(
        "NEWS_PLATFORM_USER_AGENT", "product token sent with every request", "NewsPlatformBot/0.1"
    )
    contact: str = CONTACT
    total_timeout_seconds: float = env(
        "NEWS_PLATFORM_FETCH_TIMEOUT", "longest time for one request, redirects included", 30.0
    )
    per_host: int = env("NEWS_PLATFORM_PER_HOST", "concurrent requests to one host", 2)
    allow: Names = env(
        "NEWS_PLATFORM_WEB_ALLOW",
        "places of own networks that may be fetched, as host:port or a network such as "
        "10.1.0.0/16 or 10.1.0.0/16:8080, separated by commas; all else stays closed",
        (),
    )
    proxy: str | None = secret(
        "NEWS_PLATFORM_WEB_PROXY",
        "http://HOST:PORT of the outgoing proxy; places of own networks are reached directly",
    )


class AlertSettings(Section):
    """Where failed runs are reported."""

    webhook_url: str | None = secret(
        "NEWS_PLATFORM_ALERT_WEBHOOK", "URL that receives a POST for each failed run"
    )
    webhook_secret: str | None = secret(
        "NEWS_PLATFORM_ALERT_WEBHOOK_SECRET",
        "key that signs these POSTs by HMAC-SHA256, see exports.md",
    )


class UiSettings(Section):
    """Who may use the Dagster UI."""

    allowed_hosts: Names = env(
        "NEWS_PLATFORM_ALLOWED_HOSTS",
        "names besides localhost, 127.0.0.1 and [::1] under which the Dagster UI answers, "
        "separated by commas",
        (),
    )


class CheckSettings(Section):
    """The nightly evaluation of all checks."""

    # What one night has no time for is first in the next.
    max_hours: float = 3.0


class ServerSettings(Section):
    """Who may use the explorer, and how it and the Dagster UI find each other."""

    token: str | None = secret(
        "NEWS_PLATFORM_SERVER_TOKEN",
        "token that every request must carry, as a bearer token or as the password of a login; "
        "needed to serve on an address other than loopback",
    )
    requests_per_minute: int = env(
        "NEWS_PLATFORM_SERVER_RATE", "requests per minute and client; 0: no limit", 1200
    )
    trusted_proxies: Names = env(
        "NEWS_PLATFORM_TRUSTED_PROXIES",
        "addresses or networks of proxies, separated by commas, whose X-Forwarded-For names the "
        "client that the rate limit counts",
        (),
    )
    url: str | None = env(
        "NEWS_PLATFORM_SERVER_URL", "where the explorer is served; asset pages link to it"
    )
    dagster_url: str | None = env(
        "NEWS_PLATFORM_DAGSTER_URL", "where the Dagster UI is served; the explorer links to it"
    )


class LogSettings(Section):
    """How every process of the platform writes its log lines to stderr."""

    format: LogFormat = env(
        "NEWS_PLATFORM_LOG_FORMAT", "text, or json: one JSON object per line", "text"
    )
    level: LogLevel = env(
        "NEWS_PLATFORM_LOG_LEVEL",
        "lowest level that is written: debug (a line per article), info, warning or error",
        "warning",
    )


class ClusterSettings(Section):
    """The servers of a cluster; not used on one machine."""

    broker_url: str | None = secret("NEWS_PLATFORM_BROKER_URL", "redis:// URL of the Celery broker")
    dagster_postgres_url: str | None = secret(
        "NEWS_PLATFORM_DAGSTER_POSTGRES_URL",
        "postgresql+psycopg2:// URL of Dagster's own storage, read by deploy/dagster.yaml",
    )
    logs_url: str | None = env(
        "NEWS_PLATFORM_LOGS_URL",
        "s3:// or gs:// URL of the output of runs, read by deploy/dagster.yaml; reached like the "
        "root, and not inside it",
    )
    max_concurrent_runs: int | None = env(
        "NEWS_PLATFORM_MAX_CONCURRENT_RUNS",
        "runs at once, the number of worker slots; unset: as deploy/dagster.yaml says",
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
    ledger_target_url: str | None = secret(
        "NEWS_PLATFORM_LEDGER_TARGET_URL",
        "URL of the empty ledger that `ledger move` fills; unset: its option --to",
    )
    bench_data: str | None = env(
        "NEWS_PLATFORM_BENCH_DATA", "folder of real inputs for tests and benchmarks"
    )
    chromium: str | None = env("NEWS_PLATFORM_CHROMIUM", "path of the browser for browser tests")
    docs_url: str | None = env(
        "NEWS_PLATFORM_DOCS_URL", "where docs/ is published; asset pages link to it"
    )
    dagster_home: str | None = env(
        HOME_VARIABLE, "absolute folder of Dagster's own state; unset: .dagster under a local root"
    )
