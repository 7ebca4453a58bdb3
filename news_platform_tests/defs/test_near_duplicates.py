"""The assets of near-duplicates on small inputs."""

from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
import pytest
import sqlalchemy as sa

from news_platform.defs.graph import dagster_resources
from news_platform.defs.near_duplicates import (
    ARTICLES_STALENESS,
    PAGES_STALENESS,
    article_clusters,
    defs,
    every_member_has_a_twin,
    near_duplicates,
)
from news_platform.resources import Resources
from news_platform.rss.ledger.tables import RAW, Moment
from news_platform.settings import Settings
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.sql.engine import migrate, open_engine
from news_platform_tests.defs.over import over
from news_platform_tests.near_duplicates.rows import collect_warc, export_articles
from news_platform_tests.near_duplicates.stories import story, variant

DAY = "2025-11-01"


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as opened:
        yield opened


def run(
    store: ObjectStore,
    instance: dg.DagsterInstance,
    *assets: dg.AssetsDefinition | dg.AssetChecksDefinition,
    partition: str | None = None,
) -> dg.ExecuteInProcessResult:
    resources = dagster_resources(Resources(Settings(root=store.url)))
    return dg.materialize(
        list(assets), resources=dict(resources), partition_key=partition, instance=instance
    )


def test_a_day_is_clustered_checked_and_then_rests(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    collect_warc(local_store, DAY, {"a": story(1), "b": variant(1, changed=4)}, warc="w.warc.gz")
    assert PAGES_STALENESS.stale(over(local_store)).keys() == {DAY}
    done = run(
        local_store, instance, near_duplicates, every_member_has_a_twin.definition, partition=DAY
    )
    assert done.success
    (materialization,) = done.asset_materializations_for_node("near_duplicates")
    assert materialization.metadata["dagster/partition_row_count"].value == 2
    assert materialization.metadata["clusters"].value == 1
    assert [check.passed for check in done.get_asset_check_evaluations()] == [True]
    assert PAGES_STALENESS.stale(over(local_store)) == {}


def _fill_ledger(store: ObjectStore) -> None:
    """Put one article into the ledger: an empty one beside exported articles is refused."""
    assert store.local_folder is not None
    engine = open_engine(f"sqlite:///{store.local_folder / 'ledger.sqlite'}")
    migrate(engine)
    with engine.begin() as connection:
        required = [column for column in RAW.c if not column.nullable]
        connection.execute(sa.insert(RAW).values({one.name: _filling(one) for one in required}))
    engine.dispose()


def _filling(column: sa.Column[object]) -> object:
    """Return a value of the column's type."""
    return datetime(2025, 11, 1, tzinfo=UTC) if isinstance(column.type, Moment) else "1"


def test_articles_are_clustered_and_then_rest(
    local_store: ObjectStore, instance: dg.DagsterInstance
) -> None:
    export_articles(local_store, DAY, {"h1": story(1), "h2": story(1).upper()})
    _fill_ledger(local_store)
    assert ARTICLES_STALENESS.stale(over(local_store)).keys() == {"all"}
    done = run(local_store, instance, article_clusters)
    (materialization,) = done.asset_materializations_for_node("article_clusters")
    assert materialization.metadata["dagster/row_count"].value == 2
    assert materialization.metadata["joined"].value == 1
    assert ARTICLES_STALENESS.stale(over(local_store)) == {}


def test_every_asset_is_described_owned_and_followed() -> None:
    for spec in (*near_duplicates.specs, *article_clusters.specs):
        assert spec.description
        assert spec.group_name == "near_duplicates"
        assert spec.owners == ["team:near_duplicates"]
        assert "dagster/column_schema" in spec.metadata
    names = {sensor.name for sensor in defs.sensors or ()}
    assert names == {"follow_near_duplicates", "follow_article_clusters"}
