"""The load of a day on SQLite: a poller and several workers at once without a lock error."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from news_platform.rss.export import export_days
from news_platform.rss.ledger.article_queue import claim_articles
from news_platform.rss.ledger.article_store import store_article
from news_platform.rss.ledger.tables import RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import open_engine, read_transaction
from news_platform_tests.rss.claiming import article_row
from news_platform_tests.rss.stages import add_pending

START = datetime(2025, 11, 3, tzinfo=UTC)
WORKERS = 4


def test_many_articles_by_pollers_and_workers_at_once(
    sqlite_ledger: sa.Engine, sqlite_ledger_url: str, local_store: ObjectStore
) -> None:
    _run_day(sqlite_ledger, sqlite_ledger_url, local_store, articles=120)


@pytest.mark.soak
def test_five_thousand_articles_in_one_day(
    sqlite_ledger: sa.Engine, sqlite_ledger_url: str, local_store: ObjectStore
) -> None:
    """The seed's load test: 5,000 articles per day on SQLite without a lock error."""
    _run_day(sqlite_ledger, sqlite_ledger_url, local_store, articles=5_000)


def _run_day(engine: sa.Engine, url: str, store: ObjectStore, *, articles: int) -> None:
    with ThreadPoolExecutor(WORKERS + 1) as threads:
        poller = threads.submit(_poll_all_day, url, articles)
        workers = [threads.submit(_work_all_day, url, f"w{n}", articles) for n in range(WORKERS)]
        poller.result(timeout=600)
        for worker in workers:
            worker.result(timeout=600)
    with read_transaction(engine) as connection:
        statuses = Counter(connection.execute(sa.select(RAW.c.status)).scalars())
    assert statuses == {"stored": articles}
    assert export_days(engine, store, now=START).rows == articles


def _poll_all_day(url: str, articles: int) -> None:
    engine = open_engine(url)
    for start in range(0, articles, 20):
        numbers = range(start, min(start + 20, articles))
        add_pending(engine, *(f"https://post.example/{number}" for number in numbers))
    engine.dispose()


def _work_all_day(url: str, owner: str, articles: int) -> None:
    engine = open_engine(url)
    while _stored(engine) < articles:
        now = START + timedelta(hours=12)
        for claim in claim_articles(engine, owner, limit=10, lease_seconds=600, now=now):
            with write_transaction(engine) as transaction:
                row = article_row(claim, fetched_at=now)
                result = store_article(transaction, claim, row, link_hashes=(), now=now)
            assert result == "stored"
    engine.dispose()


def _stored(engine: sa.Engine) -> int:
    with read_transaction(engine) as connection:
        count = sa.select(sa.func.count()).where(RAW.c.status == "stored")
        return int(connection.execute(count).scalar_one())
