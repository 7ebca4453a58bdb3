"""What stands behind a URL: a reader, a writer, and the prefix of our paths."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote, urlsplit

from news_platform.errors import ConfigError, StorageError
from news_platform.storage.objects.connect import backoff_seconds, connect_bucket, connect_web
from news_platform.storage.objects.error_mapping import without_secrets
from news_platform.storage.objects.info import ObjectInfo
from news_platform.storage.objects.interfaces import Body, Reader, Writer
from news_platform.storage.objects.local import LocalWriter
from news_platform.storage.objects.local_reader import LocalReader
from news_platform.storage.objects.options import StoreOptions
from news_platform.storage.objects.remote import RemoteWriter
from news_platform.storage.objects.remote_reader import RemoteReader


@dataclass(frozen=True, slots=True)
class Backend:
    """A root (folder, bucket or host) and how it is read and written; `folder` None: remote."""

    root: str
    reader: Reader
    writer: Writer
    options: StoreOptions
    folder: Path | None = None

    @property
    def backoff_seconds(self) -> float:
        """Return the shortest wait before a retry."""
        return backoff_seconds(self.root, self.options)


class NoWriter:
    """The writer of a web host: it refuses."""

    def __init__(self, root: str) -> None:
        self._root = root

    def put(self, key: str, body: Body) -> ObjectInfo:
        """Refuse."""
        raise self._refusal(key)

    def put_if_absent(self, key: str, body: bytes) -> str | None:
        """Refuse."""
        raise self._refusal(key)

    def put_if_match(self, key: str, body: bytes, *, etag: str) -> str | None:
        """Refuse."""
        raise self._refusal(key)

    def delete(self, keys: Iterable[str]) -> None:
        """Refuse."""
        raise self._refusal("")

    def _refusal(self, key: str) -> StorageError:
        thing = f"{self._root}/{key}"
        return StorageError(f"cannot write {thing!r}: a web address is read-only", thing=thing)


def backend_of(url: str, options: StoreOptions) -> tuple[Backend, str]:
    """Return what stands behind the URL, and the prefix of its paths."""
    folder = _folder(url)
    if folder is not None:
        return _local(folder, options), ""
    parts = urlsplit(url)
    root, prefix = f"{parts.scheme}://{parts.netloc}", unquote(parts.path).strip("/")
    if parts.scheme in ("s3", "gs") and parts.netloc:
        return _bucket(root, options), prefix
    if parts.scheme == "https" or (parts.scheme == "http" and options.allow_http):
        reader = RemoteReader(connect_web(root, options))
        return Backend(root, reader, NoWriter(without_secrets(root)), options), prefix
    shown = without_secrets(url)
    expected = "a folder, s3://bucket/…, gs://bucket/… or https://host/…"
    raise ConfigError(f"cannot open {shown!r}: expected {expected}", thing=shown)


def _folder(url: str) -> Path | None:
    if url.startswith("file://"):
        return Path(unquote(urlsplit(url).path)).absolute()
    return None if "://" in url else Path(url).expanduser().absolute()


def _local(folder: Path, options: StoreOptions) -> Backend:
    if folder.exists() and not folder.is_dir():
        cause = "it is a file, not a folder; choose another root"
        raise ConfigError(f"cannot open {str(folder)!r}: {cause}", thing=str(folder))
    return Backend(str(folder), LocalReader(folder), LocalWriter(folder), options, folder)


def _bucket(root: str, options: StoreOptions) -> Backend:
    store, once = connect_bucket(root, options)
    backoff = backoff_seconds(root, options)
    writer = RemoteWriter(store, once, retries=options.retries, backoff_seconds=backoff)
    return Backend(root, RemoteReader(store), writer, options)
