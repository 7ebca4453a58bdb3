"""Remove taken-down pages and articles from the clusters of near-identical texts.

A day of pages that had one in a cluster is clustered again. Articles that shared a cluster with one
that goes are compared again, because the one that goes may have held them together.
"""

from collections.abc import Callable, Collection, Mapping
from functools import partial

import sqlalchemy as sa

from news_platform.datasets.near_duplicates import ARTICLE_CLUSTERS, NEAR_DUPLICATES
from news_platform.near_duplicates.bands import BANDS, TEXTS
from news_platform.near_duplicates.pipeline import (
    COLLECTION,
    ExpiredRows,
    cluster_articles,
    cluster_day,
)
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values, read_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.rows import covered_urls

CoveredHashes = Callable[[Takedowns], Collection[str]]
"""From requests to the URL hashes of the covered articles in the ledger."""
_CHUNK = 500


def takedown_parts(
    store: ObjectStore,
    *,
    engine: sa.Engine | None,
    hashes: CoveredHashes,
    expired_rows: ExpiredRows | None,
) -> list[TakedownPart]:
    """Return the parts of the daily clusters and, with a ledger, of the articles' clusters."""
    days = SimplePart(
        NEAR_DUPLICATES.name,
        partial(find_days, store),
        lambda day, it: clean_day(store, day, it, expired_rows=expired_rows),
    )
    if engine is None:
        return [days]
    articles = SimplePart(
        ARTICLE_CLUSTERS.name,
        lambda it: find_articles(engine, hashes(it)),
        lambda _, it: clean_articles(store, engine, hashes(it)),
    )
    return [days, articles]


def find_days(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered members of clusters by day."""
    found: dict[str, int] = {}
    for info in store.list(NEAR_DUPLICATES.path.partition("/")[0]):
        uris = read_table(store, info.path, NEAR_DUPLICATES)["uri"]
        if count := int(uris.is_in(list(covered_urls(uris, takedowns))).sum()):
            found[path_values(info.path)["date"]] = count
    return found


def clean_day(
    store: ObjectStore, day: str, takedowns: Takedowns, *, expired_rows: ExpiredRows | None
) -> RemovedData:
    """Cluster a day again from the pages that stay; its marker keeps its fingerprint."""
    path = NEAR_DUPLICATES.path.replace("YYYY-MM-DD", day)
    before = store.find(path)
    if before is None or day not in find_days(store, takedowns):
        return RemovedData()
    lost = find_days(store, takedowns)[day]
    cluster_day(store, day, expired_rows=expired_rows)
    after = store.find(path)
    size = after.size_bytes if after else 0
    return RemovedData(lost, max(0, before.size_bytes - size), size)


def find_articles(engine: sa.Engine, hashes: Collection[str]) -> Mapping[str, int]:
    """Return how many covered articles have a place among the clusters."""
    found = 0
    with read_transaction(engine) as connection:
        for chunk in _chunks(hashes):
            known = sa.select(sa.func.count()).where(TEXTS.c.document_id.in_(chunk))
            found += int(connection.execute(known).scalar_one())
    return {"all": found} if found else {}


def clean_articles(store: ObjectStore, engine: sa.Engine, hashes: Collection[str]) -> RemovedData:
    """Forget covered articles, compare the others of their clusters again, write all clusters."""
    gone = 0
    with engine.begin() as connection:
        if connection.dialect.name == "sqlite":
            connection.exec_driver_sql("PRAGMA secure_delete = ON")
        for chunk in _chunks(hashes):
            ours = sa.and_(TEXTS.c.collection == COLLECTION, TEXTS.c.document_id.in_(chunk))
            named = sa.select(TEXTS.c.cluster_id).where(ours)
            shared = sa.and_(TEXTS.c.collection == COLLECTION, TEXTS.c.cluster_id.in_(named))
            sequences = connection.execute(sa.select(TEXTS.c.sequence).where(shared)).scalars()
            members = list(sequences)
            counted = sa.select(sa.func.count()).where(ours)
            gone += int(connection.execute(counted).scalar_one())
            connection.execute(sa.delete(BANDS).where(BANDS.c.sequence.in_(members)))
            connection.execute(sa.delete(TEXTS).where(TEXTS.c.sequence.in_(members)))
    if read_markers(store, ARTICLE_CLUSTERS.name):
        cluster_articles(store, engine=engine, compare_all=gone > 0)
    return RemovedData(gone)


def _chunks(hashes: Collection[str]) -> list[list[str]]:
    given = sorted(hashes)
    return [given[start : start + _CHUNK] for start in range(0, len(given), _CHUNK)]
