"""Run saved queries: read the file, find new matches, deliver them.

Articles are taken by the number of their last change. The matches and the number up to which a
query has seen the ledger are written in one transaction: an article is matched once, whatever
process dies when. A new query begins with the articles that are stored after it: what re-extraction
or retention changes in older ones is not news.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from news_platform.errors import ConfigError
from news_platform.rss.exports.selection import IS_ARTICLE
from news_platform.rss.ledger.tables import ALERT_MATCHES, RAW
from news_platform.rss.ledger.transactions import (
    LedgerTransaction,
    newest_seq,
    read_config,
    write_config,
    write_transaction,
)
from news_platform.rss.saved_queries.delivery import (
    DeliveryOptions,
    DeliveryReport,
    deliver_matches,
)
from news_platform.rss.saved_queries.query_file import DEFAULT_PATH, SavedQuery, parse_queries
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.outlets import with_outlets
from news_platform.storage.sql.engine import read_transaction

_COLUMNS: tuple[sa.Column[Any], ...] = (
    RAW.c.row_id,
    RAW.c.changed_seq,
    RAW.c.stored_at,
    RAW.c.source,
    RAW.c.language,
    RAW.c.category_guess,
    RAW.c.section,
    RAW.c.tags,
    RAW.c.title,
    RAW.c.subtitle,
    RAW.c.clean_text,
)


@dataclass(frozen=True, slots=True)
class MatchReport:
    """How many articles were compared, and how many new matches each query has."""

    articles: int = 0
    matches: dict[str, int] = field(default_factory=dict)


def find_matches(engine: sa.Engine, queries: Sequence[SavedQuery], *, now: datetime) -> MatchReport:
    """Compare the articles that changed since the last call with the queries."""
    newest = newest_seq(engine)
    known = {query.name: _read_cursor(engine, query) for query in queries}
    cursors = {name: _Cursor(newest, now) for name, cursor in known.items() if cursor is None}
    found: list[tuple[str, int]] = []
    articles, reached = 0, 0
    since = min((cursor.seq for cursor in known.values() if cursor is not None), default=newest)
    for row in _changed_articles(engine, since, newest):
        articles, reached = articles + 1, max(reached, row.changed_seq)
        for query in queries:
            cursor = known[query.name]
            is_news = cursor is not None and cursor.is_before(row)
            if is_news and is_match(query, row):
                found.append((query.name, row.row_id))
    # Only what was compared counts: our own write would otherwise call for the next one.
    for name, cursor in known.items():
        if cursor is not None and reached > cursor.seq:
            cursors[name] = _Cursor(reached, cursor.began_at)
    counts = _write(engine, cursors, found, now=now) if cursors else {}
    return MatchReport(articles, counts)


@dataclass(frozen=True, slots=True)
class _Cursor:
    """Up to which change a query has seen the ledger, and when it began."""

    seq: int
    began_at: datetime

    def is_before(self, row: sa.Row[Any]) -> bool:
        """Return whether an article is stored since the query began, and not yet compared."""
        return bool(row.changed_seq > self.seq and row.stored_at >= self.began_at)

    def __str__(self) -> str:
        """Return the value of its Config key."""
        return f"{self.seq} {self.began_at.isoformat()}"


def is_match(query: SavedQuery, row: sa.Row[Any]) -> bool:
    """Return whether an article meets every criterion of a query."""
    if query.sources and row.source.lower() not in {text.lower() for text in query.sources}:
        return False
    if query.languages and row.language not in query.languages:
        return False
    if query.topics:
        topics = {row.category_guess, row.section, *row.tags}
        if {text.casefold() for text in topics}.isdisjoint(t.casefold() for t in query.topics):
            return False
    return query.text_query.matches((row.title, row.subtitle, row.clean_text))


def delivery_id(query: str, row_id: int) -> str:
    """Return the id of a match; a message that is sent again has the same one."""
    return hashlib.sha256(f"{query}\n{row_id}".encode()).hexdigest()[:32]


def _changed_articles(engine: sa.Engine, since: int, newest: int) -> Iterator[sa.Row[Any]]:
    if since >= newest:
        return
    chosen = sa.select(*_COLUMNS).where(
        *IS_ARTICLE, RAW.c.changed_seq > since, RAW.c.changed_seq <= newest
    )
    with read_transaction(engine) as connection:
        yield from connection.execute(chosen.execution_options(yield_per=200))


def _cursor_key(name: str) -> str:
    return f"alert {name} seen"


def _read_cursor(engine: sa.Engine, query: SavedQuery) -> _Cursor | None:
    text = read_config(engine, _cursor_key(query.name))
    if text is None:
        return None
    seq, _, began_at = text.partition(" ")
    return _Cursor(int(seq), datetime.fromisoformat(began_at))


def _write(
    engine: sa.Engine,
    cursors: Mapping[str, _Cursor],
    found: Sequence[tuple[str, int]],
    *,
    now: datetime,
) -> dict[str, int]:
    counts: dict[str, int] = {}
    with write_transaction(engine) as change:
        for name, row_id in found:
            if _add_match(change, name, row_id, now=now):
                counts[name] = counts.get(name, 0) + 1
        for name, cursor in cursors.items():
            write_config(change, _cursor_key(name), str(cursor), now=now)
    return counts


def _add_match(change: LedgerTransaction, name: str, row_id: int, *, now: datetime) -> bool:
    """Add a match; return False for an article that matched before it changed."""
    matches = ALERT_MATCHES.c
    where = (matches.alert == name, matches.row_id == row_id)
    if change.connection.execute(sa.select(matches.row_id).where(*where)).first() is not None:
        return False
    row = {"alert": name, "row_id": row_id, "delivery_id": delivery_id(name, row_id)}
    change.connection.execute(sa.insert(ALERT_MATCHES).values(matched_at=now, **row))
    return True


@dataclass(frozen=True, slots=True)
class SavedQueriesReport:
    """What one run of the saved queries did."""

    queries: int
    found: MatchReport
    delivery: DeliveryReport


def read_queries(store: ObjectStore, path: str | None) -> tuple[SavedQuery, ...]:
    """Read the file that the settings name, else `alerts.toml` in the root; none is no query."""
    if path is not None:
        text, thing = _file_text(path), path
    else:
        thing = store.uri(DEFAULT_PATH)
        try:
            text = _text(store.read(DEFAULT_PATH), thing)
        except NotFound:
            return ()
    queries = parse_queries(text, thing=thing)
    return tuple(
        query.model_copy(update={"sources": with_outlets(store, query.sources)})
        for query in queries
    )


def _file_text(path: str) -> str:
    try:
        return _text(Path(path).read_bytes(), path)
    except OSError as error:
        raise ConfigError(f"cannot read {path!r}: {error.strerror}", thing=path) from error


def _text(body: bytes, thing: str) -> str:
    try:
        return body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read {thing!r}: expected UTF-8 text", thing=thing) from error


def run_saved_queries(
    engine: sa.Engine,
    store: ObjectStore,
    *,
    path: str | None,
    variables: Mapping[str, str],
    clock: Callable[[], datetime],
    options: DeliveryOptions | None = None,
) -> SavedQueriesReport:
    """Find the new matches of all queries and deliver what is due."""
    queries, chosen = read_queries(store, path), options or DeliveryOptions()
    if not queries:
        return SavedQueriesReport(0, MatchReport(), DeliveryReport())
    found = find_matches(engine, queries, now=clock())
    delivery = deliver_matches(engine, queries, variables=variables, options=chosen, clock=clock)
    return SavedQueriesReport(len(queries), found, delivery)
