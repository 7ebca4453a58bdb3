"""An exception at any step of one document leaves the clusters of the others as they are."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from tempfile import mkdtemp

import pytest
import sqlalchemy as sa

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES, near_duplicates_path
from news_platform.near_duplicates.bands import METADATA
from news_platform.near_duplicates.pipeline import cluster_articles, cluster_day, read_clusters
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import read_table
from news_platform.storage.sql.engine import open_engine
from news_platform_tests.isolation.every_step import Run, StageResult, fail_at_steps
from news_platform_tests.isolation.injection import Victim
from news_platform_tests.near_duplicates.rows import collect_warc, export_articles
from news_platform_tests.near_duplicates.stories import story, variant

DAY = "2025-11-01"
GOOD = ("neighbour1", "neighbour2", "neighbour3")
VICTIM = Victim("victim", GOOD)


def texts() -> dict[str, str]:
    """Return documents whose texts name them: two alike, one alone, and two victims, alike."""
    alike = {
        "neighbour1": story(1),
        "victim1": story(2),
        "neighbour2": variant(1, changed=4),
        "victim2": variant(2, changed=4),
        "neighbour3": story(3),
    }
    return {name: f"{text} {name}" for name, text in alike.items()}


def cluster_pages(store: ObjectStore) -> Run:
    collect_warc(store, DAY, texts(), warc="a.warc.gz")

    def run() -> StageResult:
        report = cluster_day(store, DAY)
        assert report is not None
        found = read_table(store, near_duplicates_path(DAY), NEAR_DUPLICATES).to_dicts()
        neighbours = [row for row in found if VICTIM.name not in row["uri"]]
        assert report.too_short == 0
        whole = report.documents - report.failed
        return StageResult(neighbours, {"compared": whole, "failed": report.failed})

    return run


def test_an_exception_at_any_step_of_a_page_leaves_the_others(
    local_store: ObjectStore, caplog: pytest.LogCaptureFixture
) -> None:
    fail_at_steps(partial(cluster_pages, local_store), VICTIM, caplog)


@contextmanager
def band_table(url: str) -> Iterator[sa.Engine]:
    """Open a band table without rows."""
    engine = open_engine(url)
    METADATA.create_all(engine)
    with engine.begin() as connection:
        for table in reversed(METADATA.sorted_tables):
            connection.execute(sa.delete(table))
    yield engine
    engine.dispose()


def cluster_exported(folder: Path, url: str) -> Run:
    store = open_store(mkdtemp(dir=folder))
    export_articles(store, DAY, texts())

    def run() -> StageResult:
        with band_table(url) as engine:
            report = cluster_articles(store, engine=engine)
            found = read_clusters(engine).to_dicts()
        neighbours = [row for row in found if VICTIM.name not in row["url_hash"]]
        return StageResult(neighbours, {"judged": report.judged, "failed": report.failed})

    return run


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_an_exception_at_any_step_of_an_article_leaves_the_others(
    database: str,
    request: pytest.FixtureRequest,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = f"sqlite:///{tmp_path}/ledger.sqlite"
    if database == "postgres":
        url = request.getfixturevalue("postgres_url")
    fail_at_steps(partial(cluster_exported, tmp_path, url), VICTIM, caplog)
