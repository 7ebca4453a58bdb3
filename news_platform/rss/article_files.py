"""Keep the full text and the page of each article as files, and delete those that are old.

A full text is one gzip file per URL. The bytes of a page lie under their hash, compressed with
zstd: equal pages share one file, and articles can be extracted again without the network.
"""

import gzip
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa

from news_platform.errors import StorageError
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import unnumbered_transaction, write_transaction
from news_platform.storage.objects.store import NotFound, ObjectInfo, ObjectStore
from news_platform.storage.sql.engine import read_transaction

# In the root, unless FULLTEXT_DIR names another place. References begin with it and not with the
# place of the root, so that a root can be copied.
FULL_TEXT_FOLDER = "articles/full_text"
PAGES_FOLDER = "articles/pages"
# Rows per write transaction; other writers wait while one is open.
_BATCH = 500
# The largest page that is fetched is 10 MB; a longer one is not ours.
_MAX_PAGE_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class WorkPlaces:
    """Where a worker writes: full texts, what references to them begin with, and pages.

    `pages` is None if the bytes of pages are not kept.
    """

    full_texts: ObjectStore
    full_text_folder: str = FULL_TEXT_FOLDER
    pages: ObjectStore | None = None

    def write_full_text(self, url_hash: str, text: str) -> str:
        """Write the text and return the reference of its row; equal texts give equal bytes."""
        path = full_text_path(url_hash)
        # Broken pages contain lone surrogates, which UTF-8 cannot encode. No time in the header.
        packed = gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0)
        self.full_texts.put(path, packed)
        return f"{self.full_text_folder.rstrip('/')}/{path}"

    def write_page(self, body: bytes) -> str:
        """Write the bytes of a page and return the reference of its rows; '' if none are kept."""
        import pyarrow as pa  # here, because loading it takes a while and few processes need it

        if self.pages is None:
            return ""
        page_ref = hashlib.sha256(body).hexdigest()
        self.pages.put(page_path(page_ref), pa.Codec("zstd", 3).compress(body, asbytes=True))
        return page_ref

    def delete_unowned(self, engine: sa.Engine, references: Iterable[str]) -> None:
        """Delete those of these full texts and pages that no row refers to any more.

        The full text of an article that is still to be stored stays: its own worker may have
        written it.
        """
        given = {one for one in references if one}
        texts = {_url_hash(one): one for one in given if "/" in one}
        with read_transaction(engine) as connection:
            pages = sa.select(RAW.c.page_ref).where(RAW.c.page_ref.in_(given))
            given -= set(connection.execute(pages).scalars())
            is_open = sa.or_(RAW.c.full_text_ref != "", RAW.c.status.in_(("pending", "processing")))
            owners = sa.select(RAW.c.url_hash).where(RAW.c.url_hash.in_(texts), is_open)
            given -= {texts[key] for key in connection.execute(owners).scalars()}
        gone = given & set(texts.values())
        self.full_texts.delete(sorted(map(_text_path, gone)))
        if self.pages is not None:
            self.pages.delete(sorted(map(page_path, given - gone)))


def work_places(
    root: ObjectStore, full_texts: ObjectStore, *, fulltext_dir: str | None, keeps_pages: bool
) -> WorkPlaces:
    """Return where workers write; `fulltext_dir` is set if full texts lie outside the root."""
    return WorkPlaces(
        full_texts=full_texts,
        full_text_folder=fulltext_dir or FULL_TEXT_FOLDER,
        pages=root.child(PAGES_FOLDER) if keeps_pages else None,
    )


def full_text_path(url_hash: str) -> str:
    """Return the path of a URL's full text in its store."""
    return f"{url_hash[:2]}/{url_hash}.txt.gz"


def page_path(page_ref: str) -> str:
    """Return the path of a page in its store."""
    return f"{page_ref[:2]}/{page_ref}.html.zst"


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


def _is_old(reference: sa.Column[str], before: datetime) -> sa.ColumnElement[bool]:
    # A worker may be writing the file of a claimed article.
    return sa.and_(reference != "", RAW.c.fetched_at < before, RAW.c.status != "processing")


def read_references(engine: sa.Engine, row_id: int) -> tuple[str, ...]:
    """Return the full text and the page that a row refers to."""
    chosen = sa.select(RAW.c.full_text_ref, RAW.c.page_ref).where(RAW.c.row_id == row_id)
    with read_transaction(engine) as connection:
        return tuple(ref or "" for row in connection.execute(chosen) for ref in row)


@dataclass(frozen=True, slots=True)
class OwnedFiles:
    """The paths of full texts and pages, each in its store, that rows of the ledger refer to."""

    full_texts: frozenset[str] = frozenset()
    pages: frozenset[str] = frozenset()

    @classmethod
    def read(cls, engine: sa.Engine | None) -> "OwnedFiles":
        """Return those of a ledger; without one, no file has an owner."""
        if engine is None:
            return cls()
        text, page = RAW.c.full_text_ref, RAW.c.page_ref
        with read_transaction(engine) as connection:
            texts = connection.execute(sa.select(text).where(text != "")).scalars()
            pages = connection.execute(sa.select(page).where(page != "")).scalars()
            return cls(frozenset(map(_text_path, texts)), frozenset(map(page_path, pages)))


def find_orphans(
    store: ObjectStore, owned: frozenset[str], *, before: datetime
) -> list[ObjectInfo]:
    """Return the files that no row refers to, such as those of a worker that was killed.

    Newer ones than `before` may get their row soon.
    """
    return [it for it in store.list() if it.path not in owned and it.modified_at < before]


def _url_hash(reference: str) -> str:
    return reference.rpartition("/")[2].partition(".")[0]


def _text_path(reference: str) -> str:
    return "/".join(reference.split("/")[-2:])


def find_expired_full_texts(
    engine: sa.Engine, store: ObjectStore, *, before: datetime
) -> list[ObjectInfo]:
    """Return the files fetched earlier than `before`."""
    chosen = sa.select(RAW.c.url_hash).where(_is_old(RAW.c.full_text_ref, before))
    with read_transaction(engine) as connection:
        paths = set(map(full_text_path, connection.execute(chosen).scalars()))
    return [info for info in store.list() if info.path in paths]


def find_expired_pages(
    engine: sa.Engine, store: ObjectStore, *, before: datetime
) -> list[ObjectInfo]:
    """Return the files that only articles fetched before this moment refer to."""
    reference, is_old = RAW.c.page_ref, _is_old(RAW.c.page_ref, before)
    with read_transaction(engine) as connection:
        is_kept = sa.and_(reference != "", sa.not_(is_old))
        kept = set(connection.execute(sa.select(reference).where(is_kept)).scalars())
        old = set(connection.execute(sa.select(reference).where(is_old)).scalars())
    paths = set(map(page_path, old - kept))
    return [info for info in store.list() if info.path in paths]


def expire_full_texts(
    engine: sa.Engine, store: ObjectStore, *, keep_days: int, now: datetime
) -> int:
    """Delete full texts fetched more than `keep_days` ago; the rows keep their `clean_text`."""
    removed = 0
    for rows in _old_rows(engine, RAW.c.full_text_ref, now - timedelta(days=keep_days)):
        # The row first, then the file: a row must never refer to a deleted file.
        with write_transaction(engine) as transaction:
            transaction.connection.execute(
                sa.update(RAW)
                .where(RAW.c.row_id.in_([row.row_id for row in rows]))
                .values(full_text_ref="", full_text_expired_at=now, changed_seq=transaction.seq)
            )
        store.delete([full_text_path(row.url_hash) for row in rows])
        removed += len(rows)
    return removed


def expire_pages(engine: sa.Engine, store: ObjectStore, *, keep_days: int, now: datetime) -> int:
    """Delete pages fetched more than `keep_days` ago; return how many articles lost theirs."""
    removed = 0
    for rows in _old_rows(engine, RAW.c.page_ref, now - timedelta(days=keep_days)):
        gone = {row.page_ref for row in rows}
        # Not a numbered change: no reader of the ledger sees these references.
        with unnumbered_transaction(engine) as connection:
            old = RAW.c.row_id.in_([row.row_id for row in rows])
            connection.execute(sa.update(RAW).where(old).values(page_ref=""))
            left = sa.select(RAW.c.page_ref).where(RAW.c.page_ref.in_(gone))
            shared = set(connection.execute(left).scalars())
        store.delete([page_path(ref) for ref in sorted(gone - shared)])
        removed += len(rows)
    return removed


def _old_rows(
    engine: sa.Engine, reference: sa.Column[str], before: datetime
) -> Iterator[Sequence[Any]]:
    """Yield batches of rows whose file is old; each must have lost it before the next is read."""
    chosen = sa.select(RAW.c.row_id, RAW.c.url_hash, RAW.c.page_ref)
    while True:
        with read_transaction(engine) as connection:
            rows = connection.execute(chosen.where(_is_old(reference, before)).limit(_BATCH)).all()
        if not rows:
            return
        yield rows
