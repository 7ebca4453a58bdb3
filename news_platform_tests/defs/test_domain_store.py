"""The assets of the domain store on small inputs."""

from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.definitions.data_version import (
    DATA_VERSION_TAG,
    CachingStaleStatusResolver,
    StaleStatus,
)
from dagster._core.loader import LoadingContextForTest

from news_platform.datasets.dataset import WHOLE
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.definitions import defs
from news_platform.defs.checks import Reporter
from news_platform.defs.domain_store import (
    BUCKETS_RULE,
    CATALOG_RULE,
    STORE_RULE,
    counts_equal_stage_1,
    domain_buckets,
    domain_catalog,
    domain_store,
    index_readable,
    no_orphans,
)
from news_platform.defs.partitions import RANGES
from news_platform.defs.planning import Plan
from news_platform.defs.runs import Work
from news_platform.defs.sensor_state import SensorState
from news_platform.defs.sensors import plan_of
from news_platform.domain_store.lookup import DomainStore
from news_platform.errors import DamagedInput, StorageError
from news_platform.resources import Resources
from news_platform.setting_sections.features import DomainStoreSettings
from news_platform.settings import Settings
from news_platform.storage.engines import ALLOW_REMOVAL_TAG
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import unit_states
from news_platform_tests.defs.over import over
from news_platform_tests.domain_store.pages import collect, uncollect

DAYS = {"2025-11-01": ["uk.co.bbc", "org.a"], "2025-11-02": ["org.a"]}
BUCKETS = 20
KEYS = ["0000-0015", "0016-0031"]


class Graph:
    """Runs assets of the domain store on a local root."""

    def __init__(self, store: ObjectStore, instance: dg.DagsterInstance) -> None:
        self.store = store
        self.instance = instance
        settings = Settings(root=store.url, domain_store=DomainStoreSettings(buckets=BUCKETS))
        self._resources = {"platform": Resources(settings)}

    def run(
        self,
        asset: dg.AssetsDefinition,
        partition: str | None = None,
        *,
        allow_removal: bool = False,
    ) -> dg.ExecuteInProcessResult:
        return dg.materialize(
            [asset],
            tags={ALLOW_REMOVAL_TAG: "true"} if allow_removal else {},
            resources=self._resources,
            partition_key=partition,
            instance=self.instance,
            selection=[asset],
        )

    def run_all(self, *, allow_removal: bool = False) -> None:
        for day in sorted(BUCKETS_RULE.stale(over(self.store))):
            assert self.run(domain_buckets, day, allow_removal=allow_removal).success
        self.instance.add_dynamic_partitions(str(RANGES.name), KEYS)
        for key in STORE_RULE.stale(over(self.store)):
            assert self.run(domain_store, key, allow_removal=allow_removal).success
        for _ in CATALOG_RULE.stale(over(self.store)):
            assert self.run(domain_catalog).success


@pytest.fixture
def graph(local_store: ObjectStore) -> Iterator[Graph]:
    """Return the assets over a root with two collected days."""
    collect(local_store, DAYS)
    with dg.DagsterInstance.ephemeral() as instance:
        yield Graph(local_store, instance)


def test_each_edge_is_stale_until_its_asset_ran_and_then_rests(graph: Graph) -> None:
    assert sorted(BUCKETS_RULE.stale(over(graph.store))) == sorted(DAYS)
    assert STORE_RULE.stale(over(graph.store)) == {}
    graph.run_all()
    for rule in (BUCKETS_RULE, STORE_RULE, CATALOG_RULE):
        assert rule.stale(over(graph.store)) == {}
    assert DomainStore(graph.store).count("a.org") == 2


def test_the_catalog_waits_an_hour_at_most_until_all_ranges_are_built(graph: Graph) -> None:
    graph.run_all()
    # Enough domains that both ranges get rows: a range without rows is not behind.
    collect(graph.store, {"2025-11-03": [f"org.{letter}" for letter in "abcdefgh"]})
    graph.run(domain_buckets, "2025-11-03")
    assert CATALOG_RULE.stale(over(graph.store)) == {}
    graph.run(domain_store, KEYS[0])
    seen = _plan(graph, SensorState())
    assert seen.text().startswith("1 stale: 1 waiting until ")
    assert "domain_store is behind" in seen.text()
    old = SensorState(stale_since=dict.fromkeys(seen.state.stale_since, 0.0))
    assert len(_plan(graph, old).requests) == 1
    graph.run(domain_store, KEYS[1])
    assert len(_plan(graph, SensorState()).requests) == 1


def _plan(graph: Graph, state: SensorState) -> Plan:
    resources, instance = over(graph.store), graph.instance
    work, stale = Work.read(instance), CATALOG_RULE.stale(resources)
    return plan_of(CATALOG_RULE, resources, stale=stale, state=state, work=work, instance=instance)


def test_a_day_that_vanished_is_requested_once_more_and_removed(graph: Graph) -> None:
    graph.run_all()
    uncollect(graph.store, "2025-11-02")
    assert list(BUCKETS_RULE.stale(over(graph.store))) == ["2025-11-02"]
    graph.run_all(allow_removal=True)
    assert DomainStore(graph.store).count("a.org") == 1
    assert BUCKETS_RULE.stale(over(graph.store)) == {}


CHECKS = (counts_equal_stage_1, index_readable, no_orphans)


def test_several_ranges_in_one_run_report_each_for_itself(graph: Graph) -> None:
    for day in DAYS:
        graph.run(domain_buckets, day)
    graph.instance.add_dynamic_partitions(str(RANGES.name), KEYS)
    result = dg.materialize(
        [domain_store, *(one.definition for one in CHECKS)],
        resources=graph._resources,
        instance=graph.instance,
        tags={
            "dagster/asset_partition_range_start": KEYS[0],
            "dagster/asset_partition_range_end": KEYS[1],
        },
    )
    events = result.get_asset_materialization_events()
    assert sorted(event.partition or "" for event in events) == KEYS
    found = [event.materialization.metadata for event in events]
    assert all({"domains", "bytes", "top_domains"} <= metadata.keys() for metadata in found)
    assert sum(int(str(one["dagster/partition_row_count"].value)) for one in found) == 3
    checks = result.get_asset_check_evaluations()
    assert {check.check_name for check in checks} == {check.name for check in CHECKS}
    assert all(check.passed for check in checks)


def test_a_day_whose_pages_are_red_is_not_staged(graph: Graph) -> None:
    from news_platform.defs.ccnews_checks import rows_equal_markers

    reporter = Reporter(graph.instance, "a-run")
    reporter.report(rows_equal_markers, "2025-11-01", dg.AssetCheckResult(passed=False))
    with pytest.raises(DamagedInput, match="check rows_equal_markers of raw_news 2025-11-01 is re"):
        graph.run(domain_buckets, "2025-11-01")
    assert graph.run(domain_buckets, "2025-11-02").success
    reporter.report(rows_equal_markers, "2025-11-01", dg.AssetCheckResult(passed=True))
    assert graph.run(domain_buckets, "2025-11-01").success


def test_a_run_that_would_empty_the_store_needs_its_tag(graph: Graph) -> None:
    graph.run_all()
    uncollect(graph.store, "2025-11-01")
    uncollect(graph.store, "2025-11-02")
    with pytest.raises(StorageError, match="refused to remove 3 of 3 records"):
        graph.run(domain_buckets, "2025-11-02")
    assert DomainStore(graph.store).count("a.org") == 2
    for day in DAYS:
        assert graph.run(domain_buckets, day, allow_removal=True).success
    graph.run_all(allow_removal=True)
    assert DomainStore(graph.store).count("a.org") == 0


def _unsynced(graph: Graph) -> dict[str, set[str]]:
    """Return what Dagster's UI marks as unsynced.

    It leaves out domain_store: Dagster does not compare a partition with 100 parents or more.
    """
    resolver = CachingStaleStatusResolver(
        graph.instance, defs.resolve_asset_graph(), LoadingContextForTest(graph.instance)
    )
    keys: dict[str, list[str | None]] = {"domain_buckets": [*DAYS], "domain_catalog": [None]}
    return {
        name: {
            key or WHOLE
            for key in keys[name]
            if resolver.get_status(dg.AssetKey(name), key) is StaleStatus.STALE
        }
        for name in keys
    }


def test_dagster_marks_as_unsynced_what_our_sensors_request(graph: Graph) -> None:
    def our_view() -> dict[str, set[str]]:
        rules = (BUCKETS_RULE, CATALOG_RULE)
        return {rule.asset: set(rule.stale(over(graph.store))) for rule in rules}

    def report_crawl() -> None:
        for day, state in unit_states(graph.store, RAW_NEWS).items():
            tags = {DATA_VERSION_TAG: state}
            graph.instance.report_runless_asset_event(
                dg.AssetMaterialization("raw_news", partition=day, tags=tags)
            )

    nothing: dict[str, set[str]] = {"domain_buckets": set(), "domain_catalog": set()}
    report_crawl()
    graph.run_all()
    assert _unsynced(graph) == our_view() == nothing
    report_crawl()  # the same again changes nothing
    assert _unsynced(graph) == our_view()
    collect(graph.store, {"2025-11-02": ["org.a", *(f"org.{letter}" for letter in "bcdefgh")]})
    report_crawl()
    assert _unsynced(graph) == our_view() == {**nothing, "domain_buckets": {"2025-11-02"}}
    graph.run(domain_buckets, "2025-11-02")
    assert _unsynced(graph) == our_view() == nothing
    for key in STORE_RULE.stale(over(graph.store)):
        graph.run(domain_store, key)
    assert _unsynced(graph) == our_view() == {**nothing, "domain_catalog": {WHOLE}}
    graph.run_all()
    assert _unsynced(graph) == our_view() == nothing
