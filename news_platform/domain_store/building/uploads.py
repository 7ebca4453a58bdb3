"""Build files in spools and upload several of them at a time."""

import tempfile
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import BinaryIO, cast

from news_platform.errors import StorageError
from news_platform.storage.objects.error_mapping import mapped_error
from news_platform.storage.objects.store import ObjectStore

# A larger file waits for its upload on disk, not in memory.
SPOOL_BYTES = 4 << 20


class Uploads:
    """Uploads files in the background; at most `workers` files wait at a time."""

    def __init__(self, store: ObjectStore, pool: ThreadPoolExecutor, *, workers: int) -> None:
        self.paths: set[str] = set()
        self._spools: set[BinaryIO] = set()
        self._store = store
        self._pool = pool
        self._workers = workers
        self._pending: deque[Future[None]] = deque()

    def new_spool(self, scratch: str | None = None) -> BinaryIO:
        """Return an unnamed file that starts in memory and moves to disk when it grows."""
        file = tempfile.SpooledTemporaryFile(SPOOL_BYTES, dir=scratch)  # noqa: SIM115 - closed by `close`
        spool = cast(BinaryIO, file)
        self._spools.add(spool)
        return spool

    def put(self, path: str, body: bytes | BinaryIO) -> None:
        """Upload a file soon and close it; an earlier failure is raised here or by `finish`."""
        self.paths.add(path)
        # Finished files take memory or disk until they are uploaded, so the builder waits here.
        while len(self._pending) >= self._workers:
            self._pending.popleft().result()
        self._pending.append(self._pool.submit(self._put, path, body))

    def finish(self) -> None:
        """Wait until every file is uploaded."""
        while self._pending:
            self._pending.popleft().result()

    def close(self) -> None:
        """Close the spools that were never uploaded."""
        for spool in self._spools:
            spool.close()

    def _put(self, path: str, body: bytes | BinaryIO) -> None:
        if isinstance(body, bytes):
            self._store.put(path, body)
            return
        with body:
            body.seek(0)
            self._store.put(path, body)
        self._spools.discard(body)


@contextmanager
def scratch_errors(scratch: str | None) -> Iterator[None]:
    """Turn an OSError into a StorageError that names the scratch folder."""
    try:
        yield
    except OSError as error:
        # The object store raises our own errors, so this one comes from the scratch folder.
        said = mapped_error(error, "write to the scratch folder", scratch or tempfile.gettempdir())
        raise StorageError(str(said), thing=scratch) from error


@contextmanager
def open_uploads(store: ObjectStore, workers: int) -> Iterator[Uploads]:
    """Yield an `Uploads`; leaving without an error waits until every file is uploaded."""
    with ThreadPoolExecutor(workers, thread_name_prefix="upload") as pool:
        uploads = Uploads(store, pool, workers=workers)
        try:
            yield uploads
            uploads.finish()
        finally:
            uploads.close()
