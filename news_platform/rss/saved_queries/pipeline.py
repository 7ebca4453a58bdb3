"""Run saved queries: read the file, find new matches, deliver them, write their feeds."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import sqlalchemy as sa

from news_platform.errors import ConfigError
from news_platform.rss.saved_queries.delivery import (
    DeliveryOptions,
    DeliveryReport,
    deliver_matches,
    write_match_feeds,
)
from news_platform.rss.saved_queries.matches import MatchReport, find_matches
from news_platform.rss.saved_queries.query_file import DEFAULT_PATH, SavedQuery, parse_queries
from news_platform.storage.objects.store import NotFound, ObjectStore


@dataclass(frozen=True, slots=True)
class SavedQueriesReport:
    """What one run of the saved queries did."""

    queries: int
    found: MatchReport
    delivery: DeliveryReport
    feeds: tuple[str, ...] = ()


def read_queries(store: ObjectStore, path: str | None) -> tuple[SavedQuery, ...]:
    """Read the file that the settings name, else `alerts.toml` in the root; none is no query."""
    if path is not None:
        return parse_queries(_file_text(path), thing=path)
    try:
        body = store.read(DEFAULT_PATH)
    except NotFound:
        return ()
    thing = store.uri(DEFAULT_PATH)
    return parse_queries(_text(body, thing), thing=thing)


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
    feeds = write_match_feeds(engine, store, queries, options=chosen)
    delivery = deliver_matches(engine, queries, variables=variables, options=chosen, clock=clock)
    return SavedQueriesReport(len(queries), found, delivery, tuple(feeds))
