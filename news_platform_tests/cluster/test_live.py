"""Real workers on a real broker and database, killed in the middle of their work."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from news_platform_tests.cluster import toy
from news_platform_tests.cluster.live import (
    BROKER_SECRET,
    DATABASE_SECRET,
    SECRETS,
    LeapingClock,
    ToyCluster,
    toy_cluster,
    wait_until,
)
from news_platform_tests.emulators.postgres import new_database, postgres_server, restart_postgres

# The allowed recovery time after a fault; the regular test allows for a busy machine.
_RECOVERY_SECONDS = 120.0


def _expected(keys: list[str]) -> dict[str, str]:
    return {key: f"{key}\n" * 3 for key in keys}


def _start_work(cluster: ToyCluster, keys: list[str]) -> None:
    cluster.backfill(keys)
    wait_until(lambda: len(list(cluster.folder.glob("*.began"))) >= 2, seconds=180)


def test_a_killed_worker_loses_no_partition_and_shows_its_runs_and_no_secret(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = toy.KEYS[:4]
    with toy_cluster(tmp_path, postgres_url=postgres_url, patch=monkeypatch, seconds=3) as cluster:
        _start_work(cluster, keys)
        cluster.workers[0].kill()
        wait_until(lambda: cluster.done() == set(keys), seconds=240)
        assert cluster.found() == _expected(keys)
        assert cluster.worker_in() >= {"one@local", "two@local"}
        shown = cluster.all_text()
        began = {
            (line["run_id"], line["asset"], line["partition"]) for line in cluster.worker_lines()
        }
        runs = {
            (run.run_id, "toy", run.tags["dagster/partition"])
            for run in cluster.instance.get_runs()
        }
    assert began <= runs
    assert {partition for _, _, partition in began} == set(keys)
    assert "p00" in shown  # the text contains what is there
    assert not [s for s in (*SECRETS.values(), BROKER_SECRET, DATABASE_SECRET) if s in shown]


def _kill_worker(cluster: ToyCluster, database: str) -> None:
    cluster.workers[0].kill()


def _kill_daemon(cluster: ToyCluster, database: str) -> None:
    cluster.daemon.kill()
    time.sleep(5)
    cluster.daemon.start()  # as a supervisor would


def _restart_redis(cluster: ToyCluster, database: str) -> None:
    cluster.redis.restart(away_seconds=5)


def _restart_postgres(cluster: ToyCluster, database: str) -> None:
    restart_postgres(database)


_FAULTS: dict[str, Callable[[ToyCluster, str], None]] = {
    "worker": _kill_worker,
    "daemon": _kill_daemon,
    "redis": _restart_redis,
    "postgres": _restart_postgres,
}


@pytest.mark.soak
@pytest.mark.parametrize("fault", _FAULTS)
def test_twenty_partitions_complete_when_a_part_fails(
    fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with postgres_server() as server:
        database = new_database(server)
        with toy_cluster(tmp_path, postgres_url=database, patch=monkeypatch, seconds=2) as cluster:
            _start_work(cluster, toy.KEYS)
            _FAULTS[fault](cluster, database)
            wait_until(lambda: cluster.done() == set(toy.KEYS), seconds=_RECOVERY_SECONDS)
            assert cluster.found() == _expected(toy.KEYS)


@pytest.mark.soak
def test_twenty_partitions_complete_when_every_clock_leaps(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Set the clock of broker, workers and daemon a month ahead, then two days back.

    Dagster's daemon measures its pauses by the wall clock, so it is restarted after the clock
    was set back, as the runbook says.
    """
    clock = LeapingClock(tmp_path / "clock")
    clock.install(monkeypatch)
    with toy_cluster(tmp_path, postgres_url=postgres_url, patch=monkeypatch, seconds=2) as cluster:
        _start_work(cluster, toy.KEYS)
        clock.leap(days=30)
        wait_until(lambda: len(cluster.done()) >= 8, seconds=_RECOVERY_SECONDS)
        clock.leap(days=-2)
        _kill_daemon(cluster, postgres_url)
        wait_until(lambda: cluster.done() == set(toy.KEYS), seconds=_RECOVERY_SECONDS)
        assert cluster.found() == _expected(toy.KEYS)
