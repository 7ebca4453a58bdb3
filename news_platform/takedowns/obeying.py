"""What builders share: leave covered rows out, and notice requests that came during a run."""

from datetime import datetime

import polars as pl

from news_platform.datasets.takedowns import APPLIED, SEARCHED
from news_platform.errors import Conflict
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns, TakedownUse
from news_platform.takedowns.rows import covered_urls
from news_platform.web.urls import reversed_domain


def without_covered(rows: pl.DataFrame, takedowns: Takedowns) -> pl.DataFrame:
    """Return rows of raw_news without those that are taken down."""
    if not takedowns:
        return rows
    hosts = [reversed_domain(domain) for domain in takedowns.registrable_domains]
    likely = rows.filter(pl.col("host").is_in(hosts))["uri"]
    gone = covered_urls(likely, takedowns) if likely.len() else frozenset()
    return rows.filter(~pl.col("uri").is_in(list(gone)).fill_null(False)) if gone else rows


def require_same_takedowns(
    store: ObjectStore,
    takedowns: Takedowns,
    *,
    now: datetime | None,
    use: TakedownUse = "removal",
) -> None:
    """Raise Conflict if requests came since they were read: what was built may hold too much.

    Called right before a commit, so that nothing built from older requests follows a removal.
    """
    if Takedowns.read(store, now=now, use=use).fingerprint != takedowns.fingerprint:
        raise Conflict("takedowns changed during the build: try again", thing=store.url)


def has_removed(store: ObjectStore) -> bool:
    """Return whether anything was ever removed from a root by a takedown."""
    return any(next(iter(store.list(folder)), None) for folder in (SEARCHED, APPLIED))
