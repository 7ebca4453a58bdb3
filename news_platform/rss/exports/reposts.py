"""Count how many other sources carry a near-identical text of an article.

The clusters come from near-duplicate detection. A copy on the article's own site is no repost.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import sqlalchemy as sa

from news_platform.rss.ledger.tables import RAW
from news_platform.storage.chunks import chunked
from news_platform.storage.sql.engine import read_transaction

REPOSTS = sa.Table(
    "export_reposts",
    sa.MetaData(),
    sa.Column("url_hash", sa.Text, primary_key=True),
    sa.Column("reposts", sa.Integer, nullable=False),
    prefixes=["TEMPORARY"],
)


def count_reposts(engine: sa.Engine, clusters: Mapping[str, str]) -> dict[str, int]:
    """Return the reposts of each URL hash that has any; `clusters` maps it to its cluster."""
    sources = _sources(engine, list(clusters))
    by_cluster: dict[str, set[str]] = {}
    for url_hash, source in sources.items():
        by_cluster.setdefault(clusters[url_hash], set()).add(source)
    counts = {key: len(by_cluster[clusters[key]]) - 1 for key in sources}
    return {key: count for key, count in counts.items() if count > 0}


def _sources(engine: sa.Engine, hashes: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    with read_transaction(engine) as connection:
        for part in chunked(hashes):
            chosen = sa.select(RAW.c.url_hash, RAW.c.source).where(RAW.c.url_hash.in_(part))
            found.update((key, source) for key, source in connection.execute(chosen))
    return found


@contextmanager
def with_reposts(connection: sa.Connection, reposts: Mapping[str, int]) -> Iterator[None]:
    """Provide the counts as a temporary table of this connection, for sorting in SQL."""
    if not reposts:
        yield
        return
    REPOSTS.create(connection)
    try:
        rows = [{"url_hash": key, "reposts": count} for key, count in reposts.items()]
        connection.execute(sa.insert(REPOSTS), rows)
        yield
    finally:
        REPOSTS.drop(connection)
