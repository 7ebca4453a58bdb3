"""The full text of articles as gzip files, one a URL, and their removal by age."""

import gzip
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction

_BATCH = 500


def cut_at_word_end(text: str, limit: int) -> str:
    """Return at most `limit` characters, ending where a word ends."""
    if len(text) <= limit:
        return text
    cut = text[: limit + 1].rsplit(maxsplit=1)[0] if not text[limit].isspace() else text[:limit]
    return cut.rstrip() if len(cut) <= limit else text[:limit]


def full_text_path(url_hash: str) -> str:
    """Return where the full text of a URL lies in its store."""
    return f"{url_hash[:2]}/{url_hash}.txt.gz"


def write_full_text(store: ObjectStore, url_hash: str, text: str) -> str:
    """Store the text and return its full path or URL; equal texts give equal bytes."""
    path = full_text_path(url_hash)
    store.put(path, gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0))
    return store.uri(path)


def read_full_text(store: ObjectStore, url_hash: str) -> str:
    """Return the full text of a URL; raise NotFound when there is none."""
    return gzip.decompress(store.read(full_text_path(url_hash))).decode("utf-8")


def expire_full_texts(
    engine: sa.Engine, store: ObjectStore, *, keep_days: int, now: datetime
) -> int:
    """Remove full texts fetched more than `keep_days` ago; the rows and clean_text stay."""
    before = now - timedelta(days=keep_days)
    old = RAW.c.full_text_ref != "", RAW.c.fetched_at < before, RAW.c.status != "processing"
    chosen = sa.select(RAW.c.row_id, RAW.c.url_hash).where(*old).limit(_BATCH)
    removed = 0
    while True:
        with read_transaction(engine) as connection:
            rows = connection.execute(chosen).all()
        if not rows:
            return removed
        # First the row, then the file: a row never promises a file that is gone.
        with write_transaction(engine) as transaction:
            transaction.connection.execute(
                sa.update(RAW)
                .where(RAW.c.row_id.in_([row.row_id for row in rows]))
                .values(full_text_ref="", full_text_expired_at=now, changed_seq=transaction.seq)
            )
        store.delete([full_text_path(row.url_hash) for row in rows])
        removed += len(rows)
