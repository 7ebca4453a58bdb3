"""Keep the bytes of fetched pages, so that articles can be extracted again without the network.

A page lies under the hash of its bytes, compressed with zstd: equal pages share one file.
"""

import hashlib
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.errors import StorageError
from news_platform.rss.ledger.tables import RAW
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.storage.sql.engine import read_transaction

PAGES_FOLDER = "articles/pages"
# Rows per write transaction; other writers wait while one is open.
_BATCH = 500
# The largest page that is fetched is 10 MB; a longer one is not ours.
_MAX_PAGE_BYTES = 64 << 20


def page_path(page_ref: str) -> str:
    """Return the path of a page in its store."""
    return f"{page_ref[:2]}/{page_ref}.html.zst"


def write_page(store: ObjectStore, body: bytes) -> str:
    """Write the bytes of a page and return their SHA-256, the reference of its rows."""
    import pyarrow as pa  # here, because loading it takes a while and few processes need it

    page_ref = hashlib.sha256(body).hexdigest()
    store.put(page_path(page_ref), pa.Codec("zstd", 3).compress(body, asbytes=True))
    return page_ref


def read_page(store: ObjectStore, page_ref: str) -> bytes | None:
    """Return the bytes of a page, or None if it is not kept any more.

    Raise StorageError if the file is damaged.
    """
    import pyarrow as pa

    path = page_path(page_ref)
    try:
        packed = store.read(path)
    except NotFound:
        return None
    try:
        with pa.input_stream(pa.py_buffer(packed), compression="zstd") as stream:
            body = bytes(stream.read(_MAX_PAGE_BYTES))
    except (OSError, pa.ArrowException) as error:
        raise _damaged(store, path, str(error)) from error
    if hashlib.sha256(body).hexdigest() != page_ref:
        raise _damaged(store, path, "its content does not match its name")
    return body


def _damaged(store: ObjectStore, path: str, cause: str) -> StorageError:
    thing = store.uri(path)
    return StorageError(f"cannot read the page {thing!r}: {cause}; delete the file", thing=thing)


def find_expired_pages(
    engine: sa.Engine, store: ObjectStore, *, before: datetime
) -> list[ObjectInfo]:
    """Return the files that only articles fetched before this moment refer to."""
    is_kept = sa.and_(RAW.c.page_ref != "", sa.not_(_is_old(before)))
    with read_transaction(engine) as connection:
        kept = set(connection.execute(sa.select(RAW.c.page_ref).where(is_kept)).scalars())
        old = set(connection.execute(sa.select(RAW.c.page_ref).where(_is_old(before))).scalars())
    paths = {page_path(ref) for ref in old - kept}
    return [info for info in store.list() if info.path in paths]


def expire_pages(engine: sa.Engine, store: ObjectStore, *, keep_days: int, now: datetime) -> int:
    """Delete pages fetched more than `keep_days` ago; return how many articles lost theirs."""
    chosen = sa.select(RAW.c.row_id, RAW.c.page_ref).where(_is_old(now - timedelta(days=keep_days)))
    removed = 0
    while True:
        # Not a numbered change: no reader of the ledger sees these references.
        with engine.begin() as connection:
            rows = connection.execute(chosen.limit(_BATCH)).all()
            if not rows:
                return removed
            gone = {row.page_ref for row in rows}
            ids = [row.row_id for row in rows]
            connection.execute(sa.update(RAW).where(RAW.c.row_id.in_(ids)).values(page_ref=""))
            left = sa.select(RAW.c.page_ref).where(RAW.c.page_ref.in_(gone))
            shared = set(connection.execute(left).scalars())
        # The row first, then the file: a row must never refer to a deleted file.
        store.delete([page_path(ref) for ref in sorted(gone - shared)])
        removed += len(rows)


def _is_old(before: datetime) -> sa.ColumnElement[bool]:
    # A worker may be writing the page of a claimed article.
    return sa.and_(RAW.c.page_ref != "", RAW.c.fetched_at < before, RAW.c.status != "processing")
