"""Choose articles of the ledger by filters and stream them, newest or most popular first.

Rows come from one read transaction as the reader takes them, so memory does not depend on how many
articles there are, and an index gives the newest article without sorting the others.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice
from typing import Any, Literal

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.feeds import ARTICLES
from news_platform.rss.ledger.feed_rows import all_addresses, all_groups, in_group
from news_platform.rss.ledger.tables import FEEDS, LINKS, RAW
from news_platform.rss.text_query import TextQuery
from news_platform.storage.chunks import chunked
from news_platform.storage.sql.engine import read_transaction
from news_platform.web.urls import canonical_url, plain_host

Order = Literal["newest", "sources", "stored"]

# The dataset's columns, and what feeds and pages say beside them.
SCHEMA: dict[str, pl.DataType] = {
    **ARTICLES.schema,
    "text_source": pl.String(),
    "summary": pl.String(),
    "image_url": pl.String(),
    "is_paywalled": pl.Boolean(),
    "popularity": pl.Int64(),
}
COLUMNS = tuple(SCHEMA)
_LEDGER_COLUMNS = tuple(RAW.c[name] for name in COLUMNS if name != "popularity")
# Not `status == "stored"`: an article that is fetched again is pending and still stored.
IS_ARTICLE = (RAW.c.stored_at.is_not(None), RAW.c.status != "duplicate")
# An article without a stated date counts by the time it was found.
NEWS_TIME = sa.func.coalesce(RAW.c.published_at, RAW.c.found_at)
# Rows fetched at once: few enough for the largest texts, enough to hide the cost of a call.
_ROWS_AT_ONCE = 200

REPOSTS = sa.Table(
    "export_reposts",
    sa.MetaData(),
    sa.Column("url_hash", sa.Text, primary_key=True),
    sa.Column("reposts", sa.Integer, nullable=False),
    prefixes=["TEMPORARY"],
)


@dataclass(frozen=True, slots=True)
class Selection:
    """Which articles to export; None and empty mean any.

    `feeds` and `groups` choose articles that any of these feeds carries.
    """

    category: str | None = None
    languages: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    feeds: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    is_paywalled: bool | None = None
    has_text: bool | None = None
    query: TextQuery | None = None
    since: datetime | None = None
    until: datetime | None = None
    order: Order = "newest"
    limit: int | None = None
    # Whether an address must not be exported.
    covers: Callable[[str], bool] | None = None
    # How many other sources carry the text, by URL hash; counted in the popularity.
    reposts: Mapping[str, int] = field(default_factory=dict)


def iter_articles(engine: sa.Engine, selection: Selection) -> Iterator[sa.Row[Any]]:
    """Yield the chosen articles with their `popularity`: feeds, links here, and reposts."""
    chosen = _chosen(selection, engine.dialect.name)
    accepts = _row_filter(engine, selection)
    # Filters that run here decide how many rows a limit needs.
    if accepts is None and selection.limit is not None:
        chosen = chosen.limit(selection.limit)
    with (
        read_transaction(engine) as connection,
        _with_reposts(connection, selection.reposts),
        closing(connection.execute(chosen.execution_options(yield_per=_ROWS_AT_ONCE))) as rows,
    ):
        yield from rows if accepts is None else islice(filter(accepts, rows), selection.limit)


def _chosen(selection: Selection, dialect: str) -> sa.Select[Any]:
    popularity = _popularity(dialect, reposts=bool(selection.reposts))
    chosen = sa.select(*_LEDGER_COLUMNS, popularity.label("popularity")).where(
        *IS_ARTICLE, *_conditions(selection)
    )
    if selection.order == "stored":
        return chosen.order_by(RAW.c.row_id)
    newest = (NEWS_TIME.desc(), RAW.c.row_id.desc())
    if selection.order == "newest":
        return chosen.order_by(*newest)
    return chosen.order_by(popularity.desc(), *newest)


def _conditions(selection: Selection) -> Iterator[sa.ColumnElement[bool]]:
    """Yield the filters that both databases evaluate alike."""
    if selection.category:
        yield RAW.c.category_guess == selection.category
    for column, wanted in (
        (RAW.c.language, tuple(map(plain_host, selection.languages))),
        (RAW.c.source, tuple(map(plain_host, selection.sources))),
        (RAW.c.article_type, selection.types),
    ):
        if wanted:
            yield column.in_(wanted)
    if selection.is_paywalled is not None:
        # An article is free unless its page or feed says otherwise.
        is_paywalled = RAW.c.is_paywalled.is_(sa.true())
        yield is_paywalled if selection.is_paywalled else sa.not_(is_paywalled)
    if selection.has_text is not None:
        yield RAW.c.clean_text_len > 0 if selection.has_text else RAW.c.clean_text_len == 0
    if selection.since:
        yield selection.since <= NEWS_TIME
    if selection.until:
        yield selection.until > NEWS_TIME


def _row_filter(engine: sa.Engine, selection: Selection) -> Callable[[sa.Row[Any]], bool] | None:
    """Return the filter of what only Python can read: lists of feeds, and words in any script."""
    by_feed, query = bool(selection.feeds or selection.groups), selection.query
    covers = selection.covers
    if not by_feed and query is None and covers is None:
        return None
    feeds = _feeds(engine, selection) if by_feed else frozenset()

    def accepts(row: sa.Row[Any]) -> bool:
        if by_feed and feeds.isdisjoint(row.sources_list or ()):
            return False
        if covers is not None and covers(row.article_url_canon):
            return False
        return query is None or query.matches((row.title, row.subtitle, row.clean_text))

    return accepts


def _feeds(engine: sa.Engine, selection: Selection) -> frozenset[str]:
    """Return the addresses of the chosen feeds, and of those in the groups and those below them."""
    chosen = sa.select(FEEDS.c.feed_url_canon)
    with read_transaction(engine) as connection:
        in_groups = chosen.where(sa.or_(sa.false(), *map(in_group, selection.groups)))
        urls = (*selection.feeds, *connection.execute(in_groups).scalars())
        return all_addresses(connection, urls)


def unknown_values(engine: sa.Engine, selection: Selection) -> Iterator[tuple[str, str, set[str]]]:
    """Yield filters whose values no article or feed has: the name, a value, and the known ones."""
    for name, given, column in (
        ("language", selection.languages, RAW.c.language),
        ("source", selection.sources, RAW.c.source),
        ("type", selection.types, RAW.c.article_type),
        ("feed", selection.feeds, FEEDS.c.feed_url_canon),
        ("group", selection.groups, FEEDS.c.feed_group),
    ):
        if given:
            with read_transaction(engine) as connection:
                found = set(connection.execute(sa.select(column).distinct()).scalars()) - {""}
            known = all_groups(found) if name == "group" else found
            folded = canonical_url if name == "feed" else plain_host
            if known.isdisjoint(given) and known.isdisjoint(map(folded, given)):
                yield name, given[0], known


def exported_columns(dialect: str) -> tuple[sa.ColumnElement[Any], ...]:
    """Return the columns of an exported article, for statements that join it to other tables."""
    return (*_LEDGER_COLUMNS, _popularity(dialect).label("popularity"))


def _popularity(dialect: str, *, reposts: bool = False) -> sa.ColumnElement[int]:
    """Return the feeds that carry an article, the articles that link to it, and its reposts."""
    links = (
        sa.select(sa.func.count())
        .where(LINKS.c.target_url_hash == RAW.c.url_hash)
        .correlate(RAW)
        .scalar_subquery()
    )
    stored = sa.type_coerce(RAW.c.sources_list, sa.Text)
    array: sa.ColumnElement[Any] = sa.func.coalesce(sa.func.nullif(stored, ""), "[]")
    if dialect == "postgresql":
        array = sa.cast(array, sa.JSON)
    popularity = sa.func.json_array_length(array, type_=sa.Integer) + links
    if not reposts:
        return popularity
    counted = sa.select(REPOSTS.c.reposts).where(REPOSTS.c.url_hash == RAW.c.url_hash)
    return popularity + sa.func.coalesce(counted.correlate(RAW).scalar_subquery(), 0)


def count_reposts(engine: sa.Engine, clusters: Mapping[str, str]) -> dict[str, int]:
    """Return how many other sources carry a near-identical text, by URL hash, where any does.

    `clusters` maps URL hashes to the clusters of near-duplicate detection. A copy on the article's
    own site is not a repost.
    """
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
def _with_reposts(connection: sa.Connection, reposts: Mapping[str, int]) -> Iterator[None]:
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
