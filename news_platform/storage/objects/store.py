"""Open a folder, bucket or web host by URL, and read, write, list and delete its objects.

All stored bytes go through this module. Paths are relative to the URL of the store and separated
by '/'. A put is atomic on every backend: a reader sees either the old or the new object.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlsplit

from news_platform.errors import ConfigError, Conflict, StorageError, StoreUnavailable
from news_platform.storage.objects.backends import (
    BACKENDS,
    backend_of,
    backoff_seconds,
    connect,
    delta_options,
    polars_options,
)
from news_platform.storage.objects.error_mapping import NotFound, map_errors, without_secrets
from news_platform.storage.objects.interfaces import (
    DEFAULT_OPTIONS,
    Body,
    ObjectInfo,
    StoreOptions,
    join_folder,
    join_path,
    valid_text,
)
from news_platform.storage.objects.local import LocalReader, LocalWriter
from news_platform.storage.objects.remote import RemoteReader, RemoteWriter
from news_platform.storage.objects.streams import ByteStream

__all__ = ["ByteStream", "NotFound", "ObjectInfo", "ObjectStore", "StoreOptions", "open_store"]


def open_store(url: str, *, options: StoreOptions = DEFAULT_OPTIONS) -> "ObjectStore":
    """Open a local path, file://, s3://bucket/prefix, gs://bucket/prefix or https://host/prefix."""
    folder = local_folder(url)
    if folder is not None:
        return ObjectStore(_local(folder, options))
    if backend_of(url, options) is None:
        shown, places = without_secrets(url), dict.fromkeys(it.example for it in BACKENDS.values())
        expected = ", ".join(["a folder", *places])
        raise ConfigError(f"cannot open {shown!r}: expected {expected}", thing=shown)
    parts = urlsplit(url)
    root, prefix = f"{parts.scheme}://{parts.netloc}", unquote(parts.path).strip("/")
    return ObjectStore(_remote(root, options), prefix)


@dataclass(frozen=True, slots=True)
class OpenBackend:
    """A folder, bucket or host with its reader and writer.

    `folder` is None if it is remote, `writer` if it is a web host, which is read-only.
    """

    root: str
    reader: LocalReader | RemoteReader
    writer: LocalWriter | RemoteWriter | None
    options: StoreOptions
    folder: Path | None = None


class ObjectStore:
    """The objects under one URL; safe to share between threads."""

    def __init__(self, backend: OpenBackend, prefix: str = "") -> None:
        self._backend = backend
        self._reader = backend.reader
        self._prefix = prefix

    def __repr__(self) -> str:
        return f"ObjectStore({self.url!r})"

    @property
    def url(self) -> str:
        """Return the folder or URL that paths are relative to."""
        return f"{self._backend.root}/{self._prefix}" if self._prefix else self._backend.root

    @property
    def local_folder(self) -> Path | None:
        """Return the folder that paths are relative to, or None if the store is remote."""
        folder = self._backend.folder
        return folder / self._prefix if folder is not None else None

    @property
    def options(self) -> StoreOptions:
        """Return the options of the store."""
        return self._backend.options

    def uri(self, path: str) -> str:
        """Return the full path or URL, as Polars and pyarrow open it."""
        return f"{self._backend.root}/{join_path(self._prefix, path)}"

    def child(self, prefix: str) -> "ObjectStore":
        """Return a store of the objects under `prefix`."""
        return ObjectStore(self._backend, join_folder(self._prefix, prefix))

    def read(self, path: str, *, expected_size: int | None = None) -> bytes:
        """Return the whole object; raise NotFound if it does not exist.

        Pass `expected_size` from a listing to detect a body that was silently truncated.
        """
        body, info = self.read_with_info(path)
        self._expect(path, len(body), info.size_bytes if expected_size is None else expected_size)
        return body

    def read_with_info(self, path: str) -> tuple[bytes, ObjectInfo]:
        """Return the whole object and the info of the same version, as compare_and_set needs it."""
        with self._map_errors("read", path), closing(self._reader.open(self._key(path))) as opened:
            return opened.read(), opened.info.under(self._prefix)

    def read_range(self, path: str, start: int, length: int) -> bytes:
        """Return exactly `length` bytes from `start`; raise StorageError if there are fewer."""
        return self.read_ranges(path, [start], [length])[0]

    def read_ranges(self, path: str, starts: Sequence[int], lengths: Sequence[int]) -> list[bytes]:
        """Return several ranges, like `read_range`, in as few requests as possible."""
        # An HTTP Range cannot express zero bytes, so empty ranges are not requested.
        wanted = [pair for pair in zip(starts, lengths, strict=True) if pair[1] > 0]
        found: Iterator[bytes] = iter(())
        if wanted:
            with self._map_errors("read", path):
                found = iter(self._reader.ranges(self._key(path), *zip(*wanted, strict=True)))
        pieces = [next(found) if length > 0 else b"" for length in lengths]
        for piece, length in zip(pieces, lengths, strict=True):
            self._expect(path, len(piece), length)
        return pieces

    def head(self, path: str) -> ObjectInfo:
        """Return the info of an object; raise NotFound if it does not exist."""
        with self._map_errors("read", path):
            return self._reader.head(self._key(path)).under(self._prefix)

    def find(self, path: str) -> ObjectInfo | None:
        """Return the info of an object, or None if it does not exist."""
        try:
            return self.head(path)
        except NotFound:
            return None

    def exists(self, path: str) -> bool:
        """Return whether the object exists."""
        return self.find(path) is not None

    def stream(self, path: str, *, start: int = 0, expected_size: int | None = None) -> ByteStream:
        """Open the object from `start` on.

        `expected_size` is the size of the whole object from a listing. Without it the size in the
        response counts, which is wrong after a silent truncation.
        """
        with self._map_errors("read", path):
            return ByteStream(
                self._thing(path),
                partial(self._reader.open, self._key(path)),
                start=start,
                expected_size=expected_size,
                backoff_seconds=backoff_seconds(self._backend.root, self.options),
            )

    def put(self, path: str, body: Body) -> ObjectInfo:
        """Write the object atomically and return its new info."""
        with self._map_errors("write", path):
            return self._writer(path).put(self._key(path), body).under(self._prefix)

    def put_if_absent(self, path: str, body: bytes) -> bool:
        """Write the object unless it exists; return whether this body was written.

        After a lost acknowledgement the object is read back, and equal bytes count as written. To
        distinguish writers, put an attempt id into the body.
        """
        with self._map_errors("write", path):
            return self._writer(path).put_if_absent(self._key(path), body) is not None

    def compare_and_set(self, path: str, body: bytes, *, etag: str | None) -> str:
        """Replace the version with this tag (None: create the object) and return the new tag.

        Raise Conflict if someone else changed the object first. Take the tag from `read_with_info`,
        or from a `head` before the `read`. Object stores derive tags from content: a change from A
        to B and back to A looks like no change.
        """
        writer, key, thing = self._writer(path), self._key(path), self._thing(path)
        with self._map_errors("write", path):
            if etag is None:
                written = writer.put_if_absent(key, body)
            else:
                written = writer.put_if_match(key, body, etag=etag)
        if written is None:
            raise Conflict(
                f"cannot replace {thing!r}: another writer changed it first; read it again",
                thing=thing,
            )
        return written

    def list_folders(self, prefix: str = "") -> list[str]:
        """Return the paths of the folders directly under `prefix`, sorted."""
        cut = len(self._prefix) + 1 if self._prefix else 0
        with suppress(NotFound), self._map_errors("list", prefix):
            # Object stores have no folders: a missing one is an empty one on every backend.
            found = self._reader.folders(join_folder(self._prefix, prefix))
            return [path[cut:] for path in found]
        return []

    def list(self, prefix: str = "", *, name_prefix: str = "") -> Iterator[ObjectInfo]:
        """Yield all objects under the folder `prefix`, sorted by path in UTF-8 byte order.

        `name_prefix` selects the paths whose part after `prefix/` begins with it. A folder that
        does not exist is empty.
        """
        folder = join_folder(self._prefix, prefix)
        start = f"{folder}/{name_prefix}" if folder else name_prefix
        with suppress(NotFound), self._map_errors("list", prefix):
            for info in self._reader.iter_objects(folder, start=start if name_prefix else ""):
                yield info.under(self._prefix)

    def delete(self, paths: Iterable[str]) -> None:
        """Delete the objects; missing ones are ignored."""
        keys = [self._key(path) for path in paths]
        with self._map_errors("delete from", ""):
            self._writer("").delete(keys)

    def polars_options(self) -> dict[str, str]:
        """Return the `storage_options` that let Polars read this store directly."""
        return polars_options(self._backend.root, self.options)

    def delta_options(self) -> dict[str, str]:
        """Return the `storage_options` for deltalake and Polars' Delta reader."""
        return delta_options(self._backend.root, self.options)

    def _key(self, path: str) -> str:
        return join_path(self._prefix, path)

    def _writer(self, path: str) -> LocalWriter | RemoteWriter:
        if self._backend.writer is None:
            thing = without_secrets(self._thing(path))
            raise StorageError(f"cannot write {thing!r}: a web address is read-only", thing=thing)
        return self._backend.writer

    def _thing(self, path: str) -> str:
        return f"{self.url}/{path}" if path else self.url

    def _map_errors(self, action: str, path: str) -> AbstractContextManager[None]:
        return map_errors(action, self._thing(path))

    def _expect(self, path: str, found: int, expected: int) -> None:
        if found != expected:
            thing = self._thing(path)
            cause = f"expected {expected} bytes, received {found}; try again"
            # A short local file is damage; a short answer is most likely one of the network.
            kind = StoreUnavailable if self.local_folder is None else StorageError
            raise kind(f"cannot read {thing!r}: {cause}", thing=thing)


def local_folder(url: str) -> Path | None:
    """Return the absolute folder of a path or file:// URL, or None for any other URL."""
    if "://" in url and not url.startswith("file://"):
        return None
    try:
        path = _file_path(url) if url.startswith("file://") else url
        return Path(valid_text(path)).expanduser().absolute()
    except (ValueError, RuntimeError) as error:  # RuntimeError: the home of an unknown user
        cause = str(error).lower().removesuffix(".")
        raise ConfigError(f"cannot open {url!r}: {cause}; choose another folder") from error


def _file_path(url: str) -> str:
    parts = urlsplit(url)
    if parts.netloc not in ("", "localhost") or not parts.path:
        raise ValueError("expected file:///PATH")
    return unquote(parts.path)


def _local(folder: Path, options: StoreOptions) -> OpenBackend:
    with map_errors("open", str(folder)):
        is_there, is_link = folder.exists(), folder.is_symlink()
    if is_there and not folder.is_dir():
        raise _unusable(folder, "it is a file, not a folder; choose another root")
    if is_link and not is_there:
        cause = f"it is a link to {str(folder.readlink())!r}, which does not exist"
        raise _unusable(folder, f"{cause}; create that folder or choose another root")
    return OpenBackend(str(folder), LocalReader(folder), LocalWriter(folder), options, folder)


def _unusable(folder: Path, cause: str) -> ConfigError:
    return ConfigError(f"cannot open {str(folder)!r}: {cause}", thing=str(folder))


def _remote(root: str, options: StoreOptions) -> OpenBackend:
    store = connect(root, options, retries=options.retries)
    backend = backend_of(root, options)
    if backend is None or not backend.is_writable:
        reader = RemoteReader(store, can_list=False)
        return OpenBackend(root, reader, None, options)
    once, backoff = connect(root, options, retries=0), backoff_seconds(root, options)
    writer = RemoteWriter(store, once, retries=options.retries, backoff_seconds=backoff)
    return OpenBackend(root, RemoteReader(store), writer, options)
