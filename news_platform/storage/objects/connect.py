"""Turn a URL and its options into obstore clients: S3, Google or read-only https."""

from datetime import timedelta
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from obstore.store import GCSStore, HTTPStore, S3Store

from news_platform.storage.objects.credentials import (
    boto3_provider,
    google_keys,
    google_provider,
    s3_keys,
)
from news_platform.storage.objects.options import StoreOptions

if TYPE_CHECKING:
    from obstore.store import ClientConfig, GCSConfig, RetryConfig, S3Config

# A 1 GB body on a slow line may take hours; a stalled one is caught by the read timeout.
_WHOLE_REQUEST = timedelta(hours=24)
_CONNECT = timedelta(seconds=10)
_LONGEST_BACKOFF = timedelta(seconds=15)

Bucket = S3Store | GCSStore


def connect_bucket(url: str, options: StoreOptions) -> tuple[Bucket, Bucket]:
    """Return two clients for the bucket of an s3:// or gs:// URL: with retries and without."""
    return (_s3 if url.startswith("s3://") else _google)(url, options)


def connect_web(url: str, options: StoreOptions) -> HTTPStore:
    """Return a client for the host of an https:// URL."""
    retry = _retry(options.retries, backoff_seconds(url, options))
    return HTTPStore(url, client_options=_client(options), retry_config=retry)


def backoff_seconds(url: str, options: StoreOptions) -> float:
    """Return the shortest wait before a retry: public archives want a second at least."""
    if options.backoff_seconds is not None:
        return options.backoff_seconds
    return 1.0 if url.startswith("http") else 0.1


def _s3(url: str, options: StoreOptions) -> tuple[S3Store, S3Store]:
    keys = s3_keys(options)
    provider = None if keys else boto3_provider(url)
    config: S3Config = {**(keys or {})}
    if options.endpoint_url:
        config["endpoint"] = options.endpoint_url
    if options.region:
        config["region"] = options.region

    def client(retries: int) -> S3Store:
        return S3Store(
            urlsplit(url).netloc,
            config=config,
            client_options=_client(options),
            retry_config=_retry(retries, backoff_seconds(url, options)),
            credential_provider=provider,
        )

    return client(options.retries), client(0)


def _google(url: str, options: StoreOptions) -> tuple[GCSStore, GCSStore]:
    keys = google_keys(options)
    provider = None if keys else google_provider(url)
    config: GCSConfig = {**(keys or {})}
    if options.endpoint_url:
        config["base_url"] = options.endpoint_url

    def client(retries: int) -> GCSStore:
        return GCSStore(
            urlsplit(url).netloc,
            config=config,
            client_options=_client(options),
            retry_config=_retry(retries, backoff_seconds(url, options)),
            credential_provider=provider,
        )

    return client(options.retries), client(0)


def _client(options: StoreOptions) -> "ClientConfig":
    patience = timedelta(seconds=options.timeout_seconds)
    return {
        "allow_http": options.allow_http,
        "connect_timeout": min(_CONNECT, patience),
        "read_timeout": patience,
        "timeout": _WHOLE_REQUEST,
    }


def _retry(retries: int, backoff: float) -> "RetryConfig":
    shortest = timedelta(seconds=backoff)
    longest = max(_LONGEST_BACKOFF, shortest)
    return {
        "max_retries": retries,
        "backoff": {"init_backoff": shortest, "max_backoff": longest, "base": 2},
    }
