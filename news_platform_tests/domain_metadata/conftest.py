"""Fixtures: a ledger of each kind, and a batch."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from news_platform.datasets.research_datasets import PartitionInfo
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.storage.sql.engine import migrate, open_engine


@pytest.fixture
def batch() -> PartitionInfo:
    """Return the batch that the tests use."""
    return PartitionInfo.of("de", "media", "2025-11-01")


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[sa.Engine]:
    """Return a migrated SQLite ledger."""
    engine = open_engine(f"sqlite:///{tmp_path / 'ledger.sqlite'}")
    migrate(engine)
    yield engine
    engine.dispose()


@pytest.fixture
def queue(engine: sa.Engine) -> DomainQueue:
    """Return an empty queue on SQLite."""
    return DomainQueue(engine)


@pytest.fixture(params=["sqlite", "postgresql"])
def any_ledger_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Return the URL of an empty ledger, of each kind in turn."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'any.sqlite'}"
    url = request.getfixturevalue("postgres_url")
    assert isinstance(url, str)
    return url


@pytest.fixture
def any_queue(any_ledger_url: str) -> Iterator[DomainQueue]:
    """Return an empty queue on each kind of ledger in turn."""
    engine = open_engine(any_ledger_url)
    migrate(engine)
    yield DomainQueue(engine)
    engine.dispose()
