"""Write pages that news sitemaps list to the ledger, as if a feed had listed them.

An article found this way has `sitemap:` and the URL of the sitemap in place of a feed URL.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

import sqlalchemy as sa

from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import AddedEntries, add_entries, entries_by_url_hash
from news_platform.rss.ledger.feed_rows import feed_urls
from news_platform.rss.ledger.transactions import note_metrics, write_transaction
from news_platform.takedowns.match import NO_TAKEDOWNS, Takedowns
from news_platform.web.urls import registrable_domain


class ListedPage(Protocol):
    """A page in a news sitemap."""

    @property
    def url(self) -> str:
        """Return the address of the page."""
        ...

    @property
    def title(self) -> str:
        """Return its title, or ''."""
        ...

    @property
    def published_at(self) -> datetime:
        """Return when it was published, in UTC."""
        ...

    @property
    def sitemap_url(self) -> str:
        """Return the sitemap that lists it."""
        ...


def domains_with_feeds(engine: sa.Engine) -> frozenset[str]:
    """Return the domains whose feeds are polled: their articles need no sitemap."""
    return frozenset(registrable_domain(url) for url, _ in feed_urls(engine))


def add_sitemap_pages(
    engine: sa.Engine,
    pages: Iterable[ListedPage],
    *,
    now: datetime,
    takedowns: Takedowns = NO_TAKEDOWNS,
) -> AddedEntries:
    """Add the pages of each sitemap in one transaction each; return what was new and known.

    Pages that are taken down are left out.
    """
    sitemaps: dict[str, list[FeedEntry]] = {}
    for page in pages:
        if takedowns.covers_url(page.url):
            continue
        entry = FeedEntry(page.url, page.title, page.published_at, id=page.url, summary="")
        sitemaps.setdefault(page.sitemap_url, []).append(entry)
    added = [_add(engine, f"sitemap:{url}", entries, now=now) for url, entries in sitemaps.items()]
    total = AddedEntries(sum(one.new for one in added), sum(one.known for one in added))
    with write_transaction(engine) as transaction:
        metrics = {"new_articles": float(total.new), "known_articles": float(total.known)}
        note_metrics(transaction, "sitemaps", metrics, now=now)
    return total


def _add(
    engine: sa.Engine, feed_url: str, entries: list[FeedEntry], *, now: datetime
) -> AddedEntries:
    keyed = entries_by_url_hash(entries)
    with write_transaction(engine) as transaction:
        return add_entries(transaction, feed_url, keyed, max_new=len(keyed), now=now)
