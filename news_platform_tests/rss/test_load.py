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
ARTICLES = 5_000
WORKERS = 4


@pytest.mark.soak
def test_five_thousand_articles_in_one_day(
    sqlite_ledger: sa.Engine, sqlite_ledger_url: str, local_store: ObjectStore
) -> None:
    """The seed's load test: 5,000 articles per day on SQLite without a lock error."""
    with ThreadPoolExecutor(WORKERS + 1) as threads:
        work = [threads.submit(_poll_all_day, sqlite_ledger_url)]
        for number in range(WORKERS):
            work.append(threads.submit(_work_all_day, sqlite_ledger_url, f"w{number}"))
        for one in work:
            one.result(timeout=600)
    with read_transaction(sqlite_ledger) as connection:
        statuses = Counter(connection.execute(sa.select(RAW.c.status)).scalars())
    assert statuses == {"stored": ARTICLES}
    assert export_days(sqlite_ledger, local_store, now=START).rows == ARTICLES


def _poll_all_day(url: str) -> None:
    engine = open_engine(url)
    for start in range(0, ARTICLES, 20):
        numbers = range(start, start + 20)
        add_pending(engine, *(f"https://post.example/{number}" for number in numbers))
    engine.dispose()


def _work_all_day(url: str, owner: str) -> None:
    engine = open_engine(url)
    while _stored(engine) < ARTICLES:
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
