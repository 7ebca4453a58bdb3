"""The remote backends: one row per scheme says how it is opened and what it can do.

A new backend is a new row, its credentials in `StoreOptions`, and its settings. Credentials are the
configured keys, else those that boto3 or google-auth find. Both libraries are imported inside
functions, because importing them takes seconds.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from obstore.exceptions import BaseError
from obstore.store import GCSStore, HTTPStore, S3Store

from news_platform.errors import ConfigError
from news_platform.storage.objects.interfaces import StoreOptions

if TYPE_CHECKING:
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.auth.google import GoogleCredentialProvider
    from obstore.store import ClientConfig, GCSConfig, RetryConfig, S3Config

Client = S3Store | GCSStore | HTTPStore
Named = Mapping[str, str | None]
"""Options by the names of a library; those that are None or empty are not set."""

# A 1 GB body on a slow line may take hours; a stalled one is caught by the read timeout.
_WHOLE_REQUEST = timedelta(hours=24)
_CONNECT = timedelta(seconds=10)
_BACKOFF_SECONDS = 0.1
# Without a limit, the last of 8 doubling waits would take minutes.
_LONGEST_BACKOFF = timedelta(seconds=15)


@dataclass(frozen=True, slots=True)
class Backend:
    """What differs between the stores of two schemes.

    `client` returns obstore's client as a function of its HTTP and retry options. `polars` names
    the options as Polars' readers do, `delta` those that deltalake needs besides. A backend that is
    not `is_writable` cannot be listed either. `versions` says whether old versions of objects can
    be seen: "listed", "unseen", or "none" where there are none. `variables` are those by which its
    libraries find credentials.
    """

    example: str
    client: Callable[[str, StoreOptions], Callable[..., Client]]
    polars: Callable[[StoreOptions], Named] = lambda _: {}
    delta: Callable[[str, StoreOptions], Named] = lambda _url, _options: {}
    is_writable: bool = True
    backoff_seconds: float = _BACKOFF_SECONDS
    versions: str = "none"
    variables: tuple[str, ...] = ()


def backend_of(url: str, options: StoreOptions) -> Backend | None:
    """Return the backend of a URL; None for one that no backend opens."""
    parts = urlsplit(url)
    # Plain http is for emulators and must be allowed explicitly.
    is_allowed = parts.netloc and (parts.scheme != "http" or options.allow_http)
    return BACKENDS.get(parts.scheme) if is_allowed else None


def connect(url: str, options: StoreOptions, *, retries: int) -> Client:
    """Return a client for the bucket or host of a URL."""
    backend = BACKENDS[urlsplit(url).scheme]
    client = backend.client(url, options)
    retry = _retry(retries, backoff_seconds(url, options))
    try:
        return client(client_options=_http(options), retry_config=retry)
    except (BaseError, ValueError) as error:
        # `from None`, and one line: obstore's further lines may repeat what it could not read.
        cause = str(error).partition("\n")[0]
        message = f"cannot open {url!r}: {cause}; check the URL and the keys"
        raise ConfigError(message, thing=url) from None


def backoff_seconds(url: str, options: StoreOptions) -> float:
    """Return the shortest wait before a retry."""
    if options.backoff_seconds is not None:
        return options.backoff_seconds
    backend = BACKENDS.get(urlsplit(url).scheme)
    return backend.backoff_seconds if backend else _BACKOFF_SECONDS


def polars_options(url: str, options: StoreOptions) -> dict[str, str]:
    """Return the options as Polars names them; Polars finds missing credentials itself."""
    backend = BACKENDS.get(urlsplit(url).scheme)
    named = backend.polars(options) if backend else {}
    if not named:
        return {}
    # Polars and obstore refuse plain-http endpoints, such as emulators, without this option.
    return _set({**named, "allow_http": "true" if options.allow_http else None})


def delta_options(url: str, options: StoreOptions) -> dict[str, str]:
    """Return the options for deltalake and Polars' Delta reader; none for a folder."""
    backend = BACKENDS.get(urlsplit(url).scheme)
    more = backend.delta(url, options) if backend else {}
    return {**polars_options(url, options), **_set(more)}


def _set(named: Named) -> dict[str, str]:
    return {name: value for name, value in named.items() if value}


def _http(options: StoreOptions) -> "ClientConfig":
    timeout = timedelta(seconds=options.timeout_seconds)
    return {
        "allow_http": options.allow_http,
        "connect_timeout": min(_CONNECT, timeout),
        "read_timeout": timeout,
        "timeout": _WHOLE_REQUEST,
    }


def _retry(retries: int, backoff: float) -> "RetryConfig":
    shortest = timedelta(seconds=backoff)
    longest = max(_LONGEST_BACKOFF, shortest)
    return {
        "max_retries": retries,
        "backoff": {"init_backoff": shortest, "max_backoff": longest, "base": 2},
    }


def _address(url: str) -> str:
    """Return the address of a store; obstore panics on one that is not a web address."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # the port or a bracket is wrong
        is_valid = False
    if not is_valid or any(not "!" <= letter <= "~" for letter in url):
        expected = "expected one such as http://host:9000"
        raise ConfigError(f"invalid address of an object store: {url!r}: {expected}", thing=url)
    return url


def _no_credentials(url: str, cure: str) -> ConfigError:
    return ConfigError(f"cannot open {url!r}: no credentials found; {cure}", thing=url)


# S3 and compatible stores


def _s3_client(url: str, options: StoreOptions) -> Callable[..., Client]:
    keys = _s3_keys(options)
    config: S3Config = {**(keys or {})}
    if options.endpoint_url:
        config["endpoint"] = _address(options.endpoint_url)
    if options.region:
        config["region"] = options.region
    provider = None if keys else _boto3_provider(url)
    return partial(S3Store, urlsplit(url).netloc, config=config, credential_provider=provider)


def _s3_keys(options: StoreOptions) -> "S3Config | None":
    """Return the S3 credentials in the options, or None to use boto3."""
    if options.anonymous:
        return {"skip_signature": True}
    if options.access_key and options.secret_key:
        # obstore panics on a key that does not fit into a header.
        if not f"{options.access_key}{options.secret_key}".isprintable():
            raise ConfigError("an S3 key holds a line break or control character; set it again")
        return {"access_key_id": options.access_key, "secret_access_key": options.secret_key}
    return None


def _boto3_provider(url: str) -> "Boto3CredentialProvider":
    """Return a provider of the credentials that boto3 finds, renewed when they expire."""
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return Boto3CredentialProvider()
    except ValueError as error:  # raised by obstore if boto3 finds no credentials
        raise _no_credentials(
            url, "set the S3 access and secret key, or sign in with `aws configure`"
        ) from error


def _s3_polars(options: StoreOptions) -> Named:
    return {
        "aws_endpoint_url": options.endpoint_url,
        "aws_region": options.region,
        "aws_access_key_id": options.access_key,
        "aws_secret_access_key": options.secret_key,
        "aws_skip_signature": "true" if options.anonymous else None,
    }


def _s3_delta(url: str, options: StoreOptions) -> Named:
    # Two writers of one version: the store itself refuses the second one.
    named: dict[str, str | None] = {"aws_conditional_put": "etag"}
    if options.anonymous or options.access_key:
        return named
    found: Mapping[str, Any] = _boto3_provider(url)()
    return named | {
        "aws_access_key_id": found["access_key_id"],
        "aws_secret_access_key": found["secret_access_key"],
        "aws_session_token": found.get("token"),
    }


# Google Cloud Storage


def _gcs_client(url: str, options: StoreOptions) -> Callable[..., Client]:
    keys = _google_keys(options)
    config: GCSConfig = {**(keys or {})}
    if options.gcs_base_url:
        config["base_url"] = _address(options.gcs_base_url)
    provider = None if keys else _google_provider(url)
    return partial(GCSStore, urlsplit(url).netloc, config=config, credential_provider=provider)


def _google_keys(options: StoreOptions) -> "GCSConfig | None":
    """Return the Google credentials in the options, or None to use google-auth."""
    if options.anonymous:
        return {"skip_signature": True}
    key = _google_key(options)
    return {"service_account_key": key} if key else None


def _google_key(options: StoreOptions) -> str | None:
    """Read the key only here: a broken one must not stop the commands of other stores."""
    given = options.service_account_key
    return read_service_account_key(given) if given else None


def read_service_account_key(given: str, *, setting: str = "the Google service account key") -> str:
    """Return the JSON text of a key; raise ConfigError if the value is neither text nor a path."""
    if given.lstrip().startswith("{"):
        return given
    try:
        return Path(given).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else "not a text file"
        # `from None`, and no path: the value that is not a path may be the key itself.
        raise ConfigError(
            f"cannot read {setting}: expected its text or the path of its file, "
            f"found neither ({cause})"
        ) from None


def _google_provider(url: str) -> "GoogleCredentialProvider":
    """Return a provider of the credentials that google-auth finds, renewed when they expire."""
    from google.auth.exceptions import DefaultCredentialsError
    from obstore.auth.google import GoogleCredentialProvider

    try:
        return GoogleCredentialProvider()
    except DefaultCredentialsError as error:
        cure = "set a service account key, or run `gcloud auth application-default login`"
        raise _no_credentials(url, cure) from error


def _gcs_polars(options: StoreOptions) -> Named:
    return {
        "google_base_url": options.gcs_base_url,
        "google_service_account_key": _google_key(options),
        "google_skip_signature": "true" if options.anonymous else None,
    }


# Web hosts


def _web_client(url: str, _options: StoreOptions) -> Callable[..., Client]:
    return partial(HTTPStore, url)


_WEB = Backend(
    "https://host/…",
    _web_client,
    is_writable=False,
    # Public archives ask for at most one retry per second.
    backoff_seconds=1.0,
)
BACKENDS: Mapping[str, Backend] = {
    "s3": Backend(
        "s3://bucket/…",
        _s3_client,
        polars=_s3_polars,
        delta=_s3_delta,
        versions="listed",
        variables=("AWS_*",),
    ),
    "gs": Backend(
        "gs://bucket/…",
        _gcs_client,
        polars=_gcs_polars,
        versions="unseen",
        variables=("GOOGLE_*", "CLOUDSDK_*", "NO_GCE_CHECK", "GCE_METADATA_*"),
    ),
    "https": _WEB,
    "http": _WEB,
}
"""The remote backends by the scheme of their URLs; all else is a local folder."""

CREDENTIAL_VARIABLES = (
    *(name for backend in BACKENDS.values() for name in backend.variables),
    "*_PROXY",
    "*_proxy",
)
"""The variables by which the libraries of all backends find credentials and proxies."""
