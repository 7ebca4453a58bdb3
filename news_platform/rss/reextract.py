"""Extract stored articles again from the kept bytes of their pages, without the network."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from news_platform.articles.article import EXTRACTOR_VERSION, Article
from news_platform.errors import StorageError
from news_platform.isolation.boundary import INTERNAL_ERROR, boundary
from news_platform.isolation.pool import Done, Outcome, Pool
from news_platform.rss.article_columns import article_columns, merge_article, read_item
from news_platform.rss.article_files import WorkPlaces, read_page
from news_platform.rss.feed_settings import FeedSettings
from news_platform.rss.ledger.article_store import lock_stored, rewrite_article
from news_platform.rss.ledger.feed_rows import read_own_settings
from news_platform.rss.ledger.status import HAS_PAGE, is_older
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import note_metrics, write_transaction
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import read_transaction
from news_platform.web.urls import url_hash

# Rows that are read, extracted and written together.
_BATCH = 64
_DEFAULT = FeedSettings()
_COLUMNS = (
    RAW.c.row_id,
    RAW.c.feed_url,
    RAW.c.article_url_canon,
    RAW.c.url_hash,
    RAW.c.page_ref,
    RAW.c.page_url,
    RAW.c.page_charset,
)


@dataclass(frozen=True, slots=True)
class Reextraction:
    """Which articles to extract again.

    `older_than` is a version of the extractor; '' takes every version. `source` is a domain.
    """

    older_than: str = EXTRACTOR_VERSION
    source: str = ""
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class ReextractReport:
    """How many articles were extracted again, by outcome.

    `rewritten` have another text or other facts, `unchanged` the same, `no_page` no kept page,
    `no_text` gave no text and keep what they had.
    """

    articles: int
    outcomes: Mapping[str, int]


def reextract_articles(
    engine: sa.Engine, *, places: WorkPlaces, pool: Pool, wanted: Reextraction, now: datetime
) -> ReextractReport:
    """Rewrite the texts of stored articles; a difference is not a revision of the publisher."""
    pages = places.pages
    if pages is None:
        return ReextractReport(0, {})
    own = read_own_settings(engine)
    outcomes: Counter[str] = Counter()
    for rows in _batches(engine, wanted):
        waiting = [_submit(pool, pages, row, own) for row in rows]
        for row, extracted in zip(rows, waiting, strict=True):
            outcomes[_finish(engine, places, row, extracted, now=now)] += 1
    if outcomes:
        with write_transaction(engine) as transaction:
            note_metrics(transaction, "reextract", outcomes, now=now)
    return ReextractReport(outcomes.total(), dict(outcomes))


def _batches(engine: sa.Engine, wanted: Reextraction) -> Iterator[Sequence[Any]]:
    """Yield the rows in order; each is seen once, whatever happens to it."""
    last, left = 0, wanted.limit
    while left is None or left > 0:
        size = _BATCH if left is None else min(_BATCH, left)
        chosen = sa.select(*_COLUMNS, RAW.c.extractor_version).where(RAW.c.row_id > last, *HAS_PAGE)
        if wanted.source:
            chosen = chosen.where(RAW.c.source == wanted.source)
        if wanted.older_than:
            chosen = chosen.where(is_older(wanted.older_than))
        with read_transaction(engine) as connection:
            rows = connection.execute(chosen.order_by(RAW.c.row_id).limit(size)).all()
        if not rows:
            return
        last = rows[-1].row_id
        left = None if left is None else left - len(rows)
        yield rows


_Extracted = Future[Outcome] | str
"""What the pool is working on, or the word for why there is nothing to work on."""


def _submit(
    pool: Pool, pages: ObjectStore, row: sa.Row[Any], own: Mapping[str, FeedSettings]
) -> _Extracted:
    if not row.page_ref:
        return "no_page"
    try:
        body = read_page(pages, row.page_ref)
    except StorageError:
        return "damaged_page"
    if body is None:
        return "no_page"
    selector = own.get(row.feed_url, _DEFAULT).body_selector
    return pool.submit((body, row.page_url, row.page_charset or None, selector))


def _finish(
    engine: sa.Engine,
    places: WorkPlaces,
    row: sa.Row[Any],
    extracted: _Extracted,
    *,
    now: datetime,
) -> str:
    if isinstance(extracted, str):
        return extracted
    with boundary("article", row.article_url_canon):
        result = extracted.result()
        if not isinstance(result, Done):
            return "failed"
        return _rewrite(engine, places, row, result.value.article, now=now)
    return INTERNAL_ERROR


def _rewrite(
    engine: sa.Engine, places: WorkPlaces, row: sa.Row[Any], found: Article, *, now: datetime
) -> str:
    with read_transaction(engine) as connection:
        item = read_item(connection, row.row_id, row.feed_url)
    article = merge_article(found, item)
    if not article.clean_text.strip():
        return "no_text"
    columns = article_columns(article, item, url=row.article_url_canon, now=now)
    links = tuple(url_hash(link) for link in article.out_links)
    with write_transaction(engine) as transaction:
        stored = lock_stored(transaction, row.row_id, row.page_ref)
        if stored is None:
            return "gone"
        # While the row is locked: the file of a newer text must not be overwritten.
        reference = places.write_full_text(row.url_hash, article.full_text)
        columns |= {"full_text_ref": reference, "full_text_expired_at": None}
        return rewrite_article(transaction, stored, columns, link_hashes=links, now=now)
