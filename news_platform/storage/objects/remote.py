"""Read and write S3, Google Cloud Storage and (read-only) web hosts through obstore.

A conditional put is sent without the client's own retries: only then does a first "exists" mean
that someone else wrote the object. After an error that leaves the outcome unknown, the put is sent
again, and from then on an object with our own bytes counts as our own write.

Credentials are the configured keys, else those of boto3 or google-auth. Both libraries are imported
inside functions, because importing them takes seconds.
"""

import errno
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from functools import partial
from itertools import chain, dropwhile, takewhile
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, GenericError, PreconditionError
from obstore.store import GCSStore, HTTPStore, S3Store

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.objects.interfaces import Body, ObjectInfo, StoreOptions
from news_platform.storage.objects.service_account import read_service_account_key

if TYPE_CHECKING:
    from obstore import GetOptions, GetResult, ObjectMeta, PutMode, UpdateVersion
    from obstore.auth.boto3 import Boto3CredentialProvider
    from obstore.auth.google import GoogleCredentialProvider
    from obstore.store import ClientConfig, GCSConfig, RetryConfig, S3Config

Bucket = S3Store | GCSStore

# The variables by which boto3, google-auth and obstore's HTTP client find credentials and proxies.
CREDENTIAL_VARIABLES = (
    "AWS_*",
    "GOOGLE_*",
    "CLOUDSDK_*",
    "NO_GCE_CHECK",
    "GCE_METADATA_*",
    "*_PROXY",
    "*_proxy",
)
# A 1 GB body on a slow line may take hours; a stalled one is caught by the read timeout.
_WHOLE_REQUEST = timedelta(hours=24)
_CONNECT = timedelta(seconds=10)
# Without a limit, the last of 8 doubling waits would take minutes.
_LONGEST_BACKOFF = timedelta(seconds=15)
# The page size of an S3 or Google listing.
_PAGE = 1000
# S3 accepts at most 1000 keys per delete request.
_DELETE_BATCH = 1000


def connect_bucket(url: str, options: StoreOptions) -> tuple[Bucket, Bucket]:
    """Return two clients for the bucket of an s3:// or gs:// URL: with retries and without."""
    name, backoff = urlsplit(url).netloc, backoff_seconds(url, options)
    client: Callable[..., Bucket]
    if url.startswith("s3://"):
        provider = None if s3_keys(options) else boto3_provider(url)
        client = partial(S3Store, name, config=_s3_config(options), credential_provider=provider)
    else:
        google = None if google_keys(options) else google_provider(url)
        client = partial(GCSStore, name, config=_gcs_config(options), credential_provider=google)
    with _opening(url):
        with_retries, without = (
            client(client_options=_client(options), retry_config=_retry(retries, backoff))
            for retries in (options.retries, 0)
        )
    return with_retries, without


def connect_web(url: str, options: StoreOptions) -> HTTPStore:
    """Return a client for the host of an https:// URL."""
    retry = _retry(options.retries, backoff_seconds(url, options))
    with _opening(url):
        return HTTPStore(url, client_options=_client(options), retry_config=retry)


@contextmanager
def _opening(url: str) -> Iterator[None]:
    try:
        yield
    except (BaseError, ValueError) as error:
        # `from None`, and one line: obstore's further lines may repeat what it could not read.
        cause = str(error).partition("\n")[0]
        message = f"cannot open {url!r}: {cause}; check the URL and the keys"
        raise ConfigError(message, thing=url) from None


def backoff_seconds(url: str, options: StoreOptions) -> float:
    """Return the shortest wait before a retry; public archives ask for at least one second."""
    if options.backoff_seconds is not None:
        return options.backoff_seconds
    return 1.0 if url.startswith("http") else 0.1


def s3_keys(options: StoreOptions) -> "S3Config | None":
    """Return the S3 credentials in the options, or None to use boto3."""
    if options.anonymous:
        return {"skip_signature": True}
    if options.access_key and options.secret_key:
        # obstore panics on a key that does not fit into a header.
        if not f"{options.access_key}{options.secret_key}".isprintable():
            raise ConfigError("an S3 key holds a line break or control character; set it again")
        return {"access_key_id": options.access_key, "secret_access_key": options.secret_key}
    return None


def google_keys(options: StoreOptions) -> "GCSConfig | None":
    """Return the Google credentials in the options, or None to use google-auth."""
    if options.anonymous:
        return {"skip_signature": True}
    key = _google_key(options)
    return {"service_account_key": key} if key else None


def _google_key(options: StoreOptions) -> str | None:
    """Read the key only here: a broken one must not stop the commands of other stores."""
    given = options.service_account_key
    return read_service_account_key(given) if given else None


def polars_options(url: str, options: StoreOptions) -> dict[str, str]:
    """Return the options as Polars names them; Polars finds missing credentials itself."""
    if url.startswith("s3://"):
        named = {
            "aws_endpoint_url": options.endpoint_url,
            "aws_region": options.region,
            "aws_access_key_id": options.access_key,
            "aws_secret_access_key": options.secret_key,
            "aws_skip_signature": "true" if options.anonymous else None,
        }
    elif url.startswith("gs://"):
        named = {
            "google_base_url": options.gcs_base_url,
            "google_service_account_key": _google_key(options),
            "google_skip_signature": "true" if options.anonymous else None,
        }
    else:
        return {}
    # Polars and obstore refuse plain-http endpoints, such as emulators, without this option.
    named["allow_http"] = "true" if options.allow_http else None
    return {name: value for name, value in named.items() if value}


def boto3_provider(url: str) -> "Boto3CredentialProvider":
    """Return a provider of the credentials that boto3 finds, renewed when they expire."""
    from obstore.auth.boto3 import Boto3CredentialProvider

    try:
        return Boto3CredentialProvider()
    except ValueError as error:  # raised by obstore if boto3 finds no credentials
        raise _no_credentials(
            url, "set the S3 access and secret key, or sign in with `aws configure`"
        ) from error


def google_provider(url: str) -> "GoogleCredentialProvider":
    """Return a provider of the credentials that google-auth finds, renewed when they expire."""
    from google.auth.exceptions import DefaultCredentialsError
    from obstore.auth.google import GoogleCredentialProvider

    try:
        return GoogleCredentialProvider()
    except DefaultCredentialsError as error:
        cure = "set a service account key, or run `gcloud auth application-default login`"
        raise _no_credentials(url, cure) from error


def _no_credentials(url: str, cure: str) -> ConfigError:
    return ConfigError(f"cannot open {url!r}: no credentials found; {cure}", thing=url)


class RemoteDownload:
    """One response of the store."""

    def __init__(self, response: "GetResult") -> None:
        self._response = response
        self.info = ObjectInfo.of_meta(response.meta)

    def read(self) -> bytes:
        """Return all bytes at once."""
        return bytes(self._response.bytes())

    def chunks(self, size_bytes: int) -> Iterator[bytes]:
        """Yield the bytes in pieces of at least this size."""
        return self._response.stream(size_bytes)

    def close(self) -> None:
        """Do nothing: obstore closes a connection when its response is garbage-collected."""


class RemoteReader:
    """Read one bucket or web host."""

    def __init__(self, client: S3Store | GCSStore | HTTPStore) -> None:
        self._client = client

    def open(self, key: str, *, offset: int = 0, etag: str | None = None) -> RemoteDownload:
        """Request the object from `offset` on if it still has this tag."""
        options: GetOptions = {}
        # A server may send no tag; then the version cannot be checked.
        if etag:
            options["if_match"] = etag
        if offset:
            options["range"] = {"offset": offset}
        return RemoteDownload(obstore.get(self._client, key, options=options))

    def head(self, key: str) -> ObjectInfo:
        """Return the info of an object."""
        return ObjectInfo.of_meta(obstore.head(self._client, key))

    def ranges(self, key: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return these ranges, truncated at the end of the object; close ones share a request."""
        found = obstore.get_ranges(self._client, key, starts=starts, lengths=lengths)
        return [bytes(piece) for piece in found]

    def iter_objects(self, folder: str, *, start: str = "") -> Iterator[ObjectInfo]:
        """Yield the objects under `folder` page by page, in the order of the store."""
        self._refuse_web_listing()
        # An offset is exclusive, so pass the wanted start without its last character.
        offset = start[:-1] or None
        pages = obstore.list(self._client, folder or None, offset=offset, chunk_size=_PAGE)
        metas: Iterable[ObjectMeta] = chain.from_iterable(pages)
        # The store sorts by key, so the wanted keys are adjacent.
        if start:
            metas = dropwhile(lambda meta: meta["path"] < start, metas)
            metas = takewhile(lambda meta: meta["path"].startswith(start), metas)
        return (ObjectInfo.of_meta(meta) for meta in metas)

    def folders(self, folder: str) -> list[str]:
        """Return the folders directly under `folder`, sorted."""
        self._refuse_web_listing()
        return sorted(obstore.list_with_delimiter(self._client, folder or None)["common_prefixes"])

    def _refuse_web_listing(self) -> None:
        if isinstance(self._client, HTTPStore):
            raise OSError(errno.ENOTSUP, "a web address cannot be listed")


class RemoteWriter:
    """Write to one bucket; `once` is the same client without retries."""

    def __init__(
        self, store: Bucket, once: Bucket, *, retries: int, backoff_seconds: float
    ) -> None:
        self._store = store
        self._once = once
        self._retries = retries
        self._backoff_seconds = backoff_seconds

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Replace the object, then check the stored size: an upload may be truncated too."""
        sent = _size(body)
        etag = obstore.put(self._store, key, body)["e_tag"]
        info = ObjectInfo.of_meta(obstore.head(self._store, key))
        # With another tag, someone else has replaced the object since, and its size is not ours.
        if info.etag == etag and sent not in (None, info.size_bytes):
            raise OSError(errno.EIO, f"sent {sent} bytes, the store holds {info.size_bytes}")
        return info

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Create the object and return its tag, or None if someone else's exists."""
        return self._put_once(key, body, mode="create")

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Replace the object if it still has this tag; return the new tag, or None."""
        try:
            found = obstore.head(self._store, key)
        except FileNotFoundError:
            return None
        if found["e_tag"] != etag:
            return None
        # S3 compares the tag, Google the generation; the client sends what its store understands.
        version: UpdateVersion = {"e_tag": etag}
        if found["version"]:
            version["version"] = found["version"]
        return self._put_once(key, body, mode=version)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete the objects; missing ones are ignored."""
        wanted = list(keys)
        for start in range(0, len(wanted), _DELETE_BATCH):
            self._delete_batch(wanted[start : start + _DELETE_BATCH])

    def _delete_batch(self, keys: list[str]) -> None:
        try:
            obstore.delete(self._store, keys)
        except FileNotFoundError:
            # Google reports a missing key and stops there, so delete the rest one by one.
            for key in keys:
                with suppress(FileNotFoundError):
                    obstore.delete(self._store, key)

    def _put_once(self, key: str, body: bytes, *, mode: "PutMode") -> str | None:
        for attempt in range(self._retries + 1):
            try:
                return obstore.put(self._once, key, body, mode=mode)["e_tag"]
            except (AlreadyExistsError, PreconditionError):
                # On the first attempt another writer was first; later it may have been our own put.
                return self._own_tag(key, body) if attempt else None
            except GenericError:
                # The put may or may not have happened.
                if attempt == self._retries:
                    raise
                time.sleep(self._backoff_seconds * 2**attempt)
        return None

    def _own_tag(self, key: str, body: bytes) -> str | None:
        with suppress(FileNotFoundError):
            response = obstore.get(self._store, key)
            return response.meta["e_tag"] if response.bytes() == body else None
        return None


class ReadOnlyWriter:
    """The writer of a web host: every call raises StorageError."""

    def __init__(self, root: str) -> None:
        self._root = root

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Raise StorageError."""
        raise self._refusal(key)

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Raise StorageError."""
        raise self._refusal(key)

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Raise StorageError."""
        raise self._refusal(key)

    def delete(self, keys: Iterable[str]) -> None:
        """Raise StorageError."""
        raise self._refusal("")

    def _refusal(self, key: str) -> StorageError:
        thing = f"{self._root}/{key}"
        return StorageError(f"cannot write {thing!r}: a web address is read-only", thing=thing)


def _s3_config(options: StoreOptions) -> "S3Config":
    config: S3Config = {**(s3_keys(options) or {})}
    if options.endpoint_url:
        config["endpoint"] = _address(options.endpoint_url)
    if options.region:
        config["region"] = options.region
    return config


def _gcs_config(options: StoreOptions) -> "GCSConfig":
    config: GCSConfig = {**(google_keys(options) or {})}
    if options.gcs_base_url:
        config["base_url"] = _address(options.gcs_base_url)
    return config


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


def _client(options: StoreOptions) -> "ClientConfig":
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


def _size(body: Body) -> int | None:
    if isinstance(body, bytes):
        return len(body)
    return body.stat().st_size if isinstance(body, Path) else None
