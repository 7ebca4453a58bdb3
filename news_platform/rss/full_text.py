"""Store the full text of each article as one gzip file per URL, and delete old files."""

import gzip
from datetime import datetime, timedelta

import sqlalchemy as sa

from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.sql.engine import read_transaction

# In the root, unless FULLTEXT_DIR names another place. References begin with it and not with the
# place of the root, so that a root can be copied.
FULL_TEXT_FOLDER = "articles/full_text"
# Rows per write transaction; other writers wait while one is open.
_BATCH = 500


def cut_at_word_end(text: str, limit: int) -> str:
    """Return at most `limit` characters, cut at the end of a word where there is one."""
    if len(text) <= limit:
        return text
    # One character more shows whether a word ends exactly at the limit.
    cut = text[: limit + 1].rsplit(maxsplit=1)[0] if not text[limit].isspace() else text[:limit]
    return cut.rstrip() if len(cut) <= limit else text[:limit]


def full_text_path(url_hash: str) -> str:
    """Return the path of a URL's full text in its store."""
    return f"{url_hash[:2]}/{url_hash}.txt.gz"


def write_full_text(
    store: ObjectStore, url_hash: str, text: str, *, folder: str = FULL_TEXT_FOLDER
) -> str:
    """Write the text and return its path in `folder`, as the row refers to it.

    Equal texts give equal bytes.
    """
    path = full_text_path(url_hash)
    # Broken pages contain lone surrogates, which UTF-8 cannot encode. No time in the gzip header.
    store.put(path, gzip.compress(text.encode("utf-8", "replace"), compresslevel=6, mtime=0))
    return f"{folder.rstrip('/')}/{path}"


def find_expired_full_texts(
    engine: sa.Engine, store: ObjectStore, *, before: datetime
) -> list[ObjectInfo]:
    """Return the files fetched earlier than `before`, and those that no row refers to any more.

    A process that died between the two steps of `expire_full_texts` left the latter.
    """
    chosen = sa.select(RAW.c.url_hash).where(sa.or_(_is_old(before), _IS_LEFT))
    with read_transaction(engine) as connection:
        paths = {full_text_path(row.url_hash) for row in connection.execute(chosen)}
    return [info for info in store.list() if info.path in paths]


# Its row says that the file is gone, and no worker is writing a new one.
_IS_LEFT = sa.and_(
    RAW.c.full_text_ref == "",
    RAW.c.full_text_expired_at.is_not(None),
    RAW.c.status != "processing",
)


def _is_old(before: datetime) -> sa.ColumnElement[bool]:
    # A worker may be writing the file of a claimed article.
    return sa.and_(
        RAW.c.full_text_ref != "", RAW.c.fetched_at < before, RAW.c.status != "processing"
    )


def expire_full_texts(
    engine: sa.Engine, store: ObjectStore, *, keep_days: int, now: datetime
) -> int:
    """Delete full texts fetched more than `keep_days` ago; the rows keep their `clean_text`."""
    old = _is_old(now - timedelta(days=keep_days))
    chosen = sa.select(RAW.c.row_id, RAW.c.url_hash).where(old).limit(_BATCH)
    removed = 0
    while True:
        with read_transaction(engine) as connection:
            rows = connection.execute(chosen).all()
        if not rows:
            return removed
        # The row first, then the file: a row must never refer to a deleted file.
        with write_transaction(engine) as transaction:
            transaction.connection.execute(
                sa.update(RAW)
                .where(RAW.c.row_id.in_([row.row_id for row in rows]))
                .values(full_text_ref="", full_text_expired_at=now, changed_seq=transaction.seq)
            )
        store.delete([full_text_path(row.url_hash) for row in rows])
        removed += len(rows)
