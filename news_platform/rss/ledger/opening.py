"""Refuse a ledger without articles for a root that holds articles."""

import sqlalchemy as sa

from news_platform.errors import StorageError
from news_platform.rss.ledger.tables import RAW
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import has_table, read_transaction, shown_url

# Exports and full texts, which the ledger's articles leave in the root.
_ARTICLES = "articles"


def require_articles(engine: sa.Engine, store: ObjectStore) -> None:
    """Raise StorageError if the ledger is new or empty, but the root holds articles of another.

    Otherwise a lost ledger would pass for the truth: the workbook would lose its rows, and every
    article would be fetched again.
    """
    if _has_articles(engine):
        return
    proof = next(iter(store.list(_ARTICLES)), None)
    if proof is None:
        return
    thing, found = shown_url(engine.url), store.uri(proof.path)
    raise StorageError(
        f"ledger {thing!r} holds no articles, but the root does, such as {found!r}: "
        f"run `news-platform ledger check`, restore the ledger from a backup, or move the folder "
        f"{_ARTICLES!r} out of the root to begin anew",
        thing=thing,
    )


def _has_articles(engine: sa.Engine) -> bool:
    if not has_table(engine, RAW.name):
        return False
    with read_transaction(engine) as connection:
        return connection.execute(sa.select(RAW.c.row_id).limit(1)).first() is not None
