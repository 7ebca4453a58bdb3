"""The whole graph on a cluster whose parts fail in turn, compared with one machine's result."""

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from dagster import AssetKey, DagsterRunStatus, RunsFilter

from deploy.compare import differences, read_contents
from deploy.sample_cluster import SampleCluster, run_on_one_machine, sample_cluster
from news_platform.datasets.dataset import WHOLE
from news_platform.defs.graph import BUILD_ORDER
from news_platform.defs.rebuild_rules import RebuildRule
from news_platform.defs.sensors import add_partitions
from news_platform.errors import NewsPlatformError
from news_platform_tests.cluster.live import wait_until
from news_platform_tests.emulators.fault_proxy import FaultProxy, fault_proxy
from news_platform_tests.emulators.postgres import restart_postgres

# The allowed recovery time after a fault, on a machine that may be busy.
_RECOVERY_SECONDS = 3 * 120.0
_AWAY_SECONDS = 5.0
_STORE_AWAY_SECONDS = 20.0
_BEGUN = (DagsterRunStatus.STARTING, DagsterRunStatus.STARTED)
_UNDER_WAY = (DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED, *_BEGUN)


class _Trouble:
    """The faults, by the asset during whose runs they are injected."""

    def __init__(self, cluster: SampleCluster, store: FaultProxy) -> None:
        self._cluster = cluster
        self._store = store
        self.of: dict[str, Callable[[], None]] = {
            "raw_news": lambda: self._kill("one"),
            "domain_buckets": lambda: self._kill("daemon"),
            "domain_store": self._push_back,
            "domain_metadata": lambda: cluster.redis.restart(away_seconds=_AWAY_SECONDS),
            "articles": lambda: restart_postgres(cluster.resources.settings.ledger_url or ""),
            "source_records": lambda: self._kill("two"),
        }

    def _kill(self, name: str) -> None:
        """Kill -9 a process with its children, and start it again as its supervisor would."""
        process = self._cluster.processes[name]
        process.kill()
        time.sleep(_AWAY_SECONDS)
        process.start()

    def _push_back(self) -> None:
        """Let the object store respond with 503 to every request for a while."""
        for method in ("GET", "PUT", "POST", "DELETE", "HEAD"):
            self._store.inject("slow_down", method, times=1_000_000)
        threading.Timer(_STORE_AWAY_SECONDS, self._store.faults.clear).start()


@pytest.mark.soak
def test_the_graph_is_the_same_when_every_part_has_failed_once(tmp_path: Path) -> None:
    proxies: list[FaultProxy] = []

    @contextmanager
    def behind_a_proxy(url: str) -> Iterator[str]:
        with fault_proxy(url) as (proxy, door):
            proxies.append(proxy)
            yield door

    one = run_on_one_machine(tmp_path)
    with sample_cluster(tmp_path, store_proxy=behind_a_proxy) as cluster:
        trouble = _Trouble(cluster, proxies[0])
        for step in BUILD_ORDER:
            _build(step, cluster, fault=trouble.of.pop(step.asset, None))
        many = read_contents(cluster.resources.data_root.store, cluster.resources.ledger.engine)
    assert not trouble.of, "each fault has had its asset"
    assert differences(one, many) == []


def _build(step: RebuildRule, cluster: SampleCluster, *, fault: Callable[[], None] | None) -> None:
    """Request the stale partitions of an asset, inject the fault meanwhile, and wait."""
    keys = tuple(sorted(step.stale(cluster.resources)))
    if not keys:
        assert fault is None, f"{step.asset} has nothing to build"
        return
    wait_until(lambda: _is_asked_for(step, keys, cluster), seconds=_RECOVERY_SECONDS)
    if fault is not None:
        wait_until(lambda: bool(_runs(cluster, step, _BEGUN)), seconds=_RECOVERY_SECONDS)
        fault()
    wait_until(lambda: _is_built(step, cluster), seconds=_RECOVERY_SECONDS)


def _is_asked_for(step: RebuildRule, keys: tuple[str, ...], cluster: SampleCluster) -> bool:
    """Send a request, and again if the webserver has lost its database meanwhile."""
    try:
        if keys == (WHOLE,):
            cluster.dagster.launch(step.asset)
        else:
            add_partitions(cluster.instance, cluster.defs, step.asset, keys)
            cluster.dagster.launch_backfill(step.asset, keys)
    except (NewsPlatformError, sa.exc.DBAPIError):
        return False
    return True


def _is_built(step: RebuildRule, cluster: SampleCluster) -> bool:
    """Return whether nothing is stale and no run is in progress; False while a part is down."""
    try:
        return not step.stale(cluster.resources) and not _runs(cluster, step, _UNDER_WAY)
    except (NewsPlatformError, sa.exc.DBAPIError):
        return False


def _runs(
    cluster: SampleCluster, step: RebuildRule, statuses: Sequence[DagsterRunStatus]
) -> list[str]:
    runs = cluster.instance.get_runs(RunsFilter(statuses=statuses))
    wanted = AssetKey(step.asset)
    return [run.run_id for run in runs if wanted in (run.asset_selection or ())]
