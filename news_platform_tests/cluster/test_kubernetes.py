"""Each run as a Kubernetes Job: Dagster's K8sRunLauncher against an emulated Kubernetes API."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import dagster as dg
import pytest

import news_platform
from deploy import sample_location
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.settings import load_settings
from news_platform_tests.cluster import toy
from news_platform_tests.cluster.kubernetes_cluster import (
    IMAGE,
    KubernetesCluster,
    kubernetes_cluster,
)
from news_platform_tests.cluster.live import wait_until

pytestmark = pytest.mark.soak
_PARTITION = "dagster/partition"
_ONE_ATTEMPT = {"dagster/max_retries": "0"}
Start = Callable[..., AbstractContextManager[KubernetesCluster]]


@pytest.fixture
def settings(tmp_path: Path, postgres_url: str) -> dict[str, str]:
    """Return the settings of the deployment; the toy asset takes five seconds."""
    (tmp_path / "toys").mkdir()
    return {
        "NEWS_PLATFORM_DAGSTER_POSTGRES_URL": postgres_url,
        "NEWS_PLATFORM_LOGS_URL": str(tmp_path / "logs"),
        "TOY_FOLDER": str(tmp_path / "toys"),
        "TOY_SECONDS": "5",
    }


@pytest.fixture
def start(
    tmp_path: Path, bench_data: Path, settings: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Start]:
    """Return what starts the deployment with the toy asset, unless told otherwise."""
    chart = bench_data / "helm/dagster"
    yield partial(
        kubernetes_cluster,
        tmp_path,
        chart,
        location=toy.__name__,
        settings=settings,
        patch=monkeypatch,
    )


def _begun(settings: dict[str, str]) -> list[Path]:
    return list(Path(settings["TOY_FOLDER"]).glob("*.began"))


def _built(settings: dict[str, str]) -> list[str]:
    return [path.name for path in Path(settings["TOY_FOLDER"]).glob("*.txt")]


def test_a_day_of_the_crawl_is_built_by_a_job(
    start: Start, settings: dict[str, str], tmp_path: Path
) -> None:
    settings |= {
        "NEWS_PLATFORM_ROOT": str(tmp_path / "root"),
        "NEWS_PLATFORM_SAMPLE": "1",
        "NEWS_PLATFORM_SAMPLE_WORLD": str(tmp_path / "world"),
    }
    resources = SampleResources(load_settings(settings), frozen_clock=True)
    place_inputs(resources.world.folder, resources.data_root.store)
    day = "2025-11-03"
    with start(location=sample_location.__name__, settings=settings) as cluster:
        run_id = cluster.dagster.launch("raw_news", **{_PARTITION: day})
        cluster.wait_for(run_id, dg.DagsterRunStatus.SUCCESS)
        wait_until(lambda: "active" not in str(cluster.api.job_statuses()), seconds=30)
        ((name, status),) = cluster.api.job_statuses().items()
        container = cluster.api.jobs[name]["spec"]["template"]["spec"]["containers"][0]
    assert status["succeeded"] == 1
    assert container["image"] == IMAGE
    assert container["securityContext"]["runAsUser"] == 10001
    assert cluster.api.refused == []
    assert news_platform.open(tmp_path / "root")["raw_news"].collect().height > 0


def test_a_failing_asset_fails_the_run_with_its_error(
    start: Start, settings: dict[str, str], tmp_path: Path
) -> None:
    settings["TOY_FOLDER"] = str(tmp_path / "missing")
    with start() as cluster:
        run_id = cluster.dagster.launch("toy", **{_PARTITION: "p00"}, **_ONE_ATTEMPT)
        cluster.wait_for(run_id, dg.DagsterRunStatus.FAILURE)
        assert "FileNotFoundError" in cluster.text_of(run_id)


def test_a_job_that_cannot_start_fails_the_run_with_the_last_lines_of_its_log(
    start: Start, settings: dict[str, str]
) -> None:
    """The Jobs' Secret lacks the address of the database, so the process ends at once."""
    secret = {k: v for k, v in settings.items() if not k.endswith("DAGSTER_POSTGRES_URL")}
    with start(secret=secret, start_timeout_seconds=90) as cluster:
        run_id = cluster.dagster.launch("toy", **{_PARTITION: "p00"}, **_ONE_ATTEMPT)
        cluster.wait_for(run_id, dg.DagsterRunStatus.FAILURE, seconds=300)
        (status,) = cluster.api.job_statuses().values()
        shown = cluster.text_of(run_id)
    assert status["failed"] == 1
    assert "NEWS_PLATFORM_DAGSTER_POSTGRES_URL" in shown
    assert "Last 25 log lines for container" in shown


def test_a_terminated_run_ends_its_job(start: Start, settings: dict[str, str]) -> None:
    settings["TOY_SECONDS"] = "120"
    with start() as cluster:
        run_id = cluster.dagster.launch("toy", **{_PARTITION: "p00"})
        wait_until(lambda: len(_begun(settings)) == 1, seconds=120)
        (pod,) = cluster.api.pods.values()
        cluster.dagster.terminate(run_id)
        cluster.wait_for(run_id, dg.DagsterRunStatus.CANCELED)
        wait_until(pod.is_gone, seconds=45)
        assert cluster.api.jobs == {}
    assert _built(settings) == []


def test_a_killed_job_is_noticed_and_its_run_started_again(
    start: Start, settings: dict[str, str]
) -> None:
    with start() as cluster:
        run_id = cluster.dagster.launch("toy", **{_PARTITION: "p00"})
        wait_until(lambda: len(_begun(settings)) == 1, seconds=120)
        (pod,) = cluster.api.pods.values()
        pod.kill()
        cluster.wait_for(run_id, dg.DagsterRunStatus.FAILURE, seconds=60)
        assert "K8s job has no active pods" in cluster.text_of(run_id)
        wait_until(lambda: _built(settings) == ["p00.txt"], seconds=120)
        assert pod.exit_code == 137
        assert len(cluster.api.jobs) == 2


def test_a_wrong_token_fails_the_run_and_says_so(start: Start) -> None:
    """The client repeats a refused token three times, ten seconds apart."""
    with start(token="a-wrong-token") as cluster:
        run_id = cluster.dagster.launch("toy", **{_PARTITION: "p00"}, **_ONE_ATTEMPT)
        cluster.wait_for(run_id, dg.DagsterRunStatus.FAILURE)
        assert "Unauthorized" in cluster.text_of(run_id)
        assert cluster.api.jobs == {}
        assert set(cluster.api.refused) == {"401 Unauthorized"}
