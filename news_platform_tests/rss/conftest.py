"""Fixtures: a migrated ledger on both databases, and the two process pools."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.isolation.pool import Pool
from news_platform.rss import pipeline
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform_tests.rss.stages import FeedHarness, WorkerHarness


@pytest.fixture
def sqlite_ledger_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'ledger.sqlite'}"


@pytest.fixture
def sqlite_ledger(sqlite_ledger_url: str) -> Iterator[sa.Engine]:
    """Yield an empty ledger on SQLite."""
    yield from _migrated(sqlite_ledger_url)


@pytest.fixture(params=["sqlite", "postgres"])
def ledger_url(request: pytest.FixtureRequest) -> str:
    """Return the URL of an empty ledger, once per database."""
    names = {"sqlite": "sqlite_ledger_url", "postgres": "postgres_url"}
    return str(request.getfixturevalue(names[request.param]))


@pytest.fixture
def ledger(ledger_url: str) -> Iterator[sa.Engine]:
    """Yield an empty ledger, once per database."""
    yield from _migrated(ledger_url)


def _migrated(url: str) -> Iterator[sa.Engine]:
    engine = open_engine(url)
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def feeds(ledger: sa.Engine, parse_pool: Pool) -> FeedHarness:
    """Return what discovers and polls feeds over an empty ledger, once per database."""
    return FeedHarness(ledger, parse_pool)


@pytest.fixture
def sqlite_feeds(sqlite_ledger: sa.Engine, parse_pool: Pool) -> FeedHarness:
    """Return what discovers and polls feeds over an empty ledger on SQLite."""
    return FeedHarness(sqlite_ledger, parse_pool)


@pytest.fixture
def harness(ledger: sa.Engine, extract_pool: Pool, local_store: ObjectStore) -> WorkerHarness:
    """Return a worker over an empty ledger, once per database."""
    return WorkerHarness(ledger, extract_pool, local_store)


@pytest.fixture
def sqlite_harness(
    sqlite_ledger: sa.Engine, extract_pool: Pool, local_store: ObjectStore
) -> WorkerHarness:
    """Return a worker over an empty ledger on SQLite."""
    return WorkerHarness(sqlite_ledger, extract_pool, local_store)


@pytest.fixture(scope="session")
def parse_pool() -> Iterator[Pool]:
    """Yield a pool of one process that parses feeds."""
    with pipeline.parse_pool(1) as pool:
        yield pool


@pytest.fixture(scope="session")
def extract_pool() -> Iterator[Pool]:
    """Yield a pool of one process that extracts articles."""
    with pipeline.extract_pool(1) as pool:
        yield pool
