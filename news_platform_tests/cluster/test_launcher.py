"""Decisions of the launcher without a broker: queues, names, and an unreachable broker."""

import dagster as dg
import pytest
import yaml
from dagster._core.launcher import WorkerStatus
from dagster._core.storage.dagster_run import DagsterRun
from dagster_celery.tags import DAGSTER_CELERY_TASK_ID_TAG

from news_platform.cluster.launcher import LiveCeleryRunLauncher
from news_platform.cluster.queues import HEAVY, LIGHT
from news_platform_tests.cluster.live import DEPLOY
from news_platform_tests.emulators.redis import free_port


@pytest.fixture
def launcher() -> LiveCeleryRunLauncher:
    return LiveCeleryRunLauncher(broker=f"redis://127.0.0.1:{free_port()}/0")


def _run(*assets: str, **tags: str) -> DagsterRun:
    selection = frozenset(dg.AssetKey(name) for name in assets)
    return DagsterRun(job_name="job", asset_selection=selection, tags=tags)


def test_heavy_assets_go_to_the_heavy_queue(launcher: LiveCeleryRunLauncher) -> None:
    for heavy in ("raw_news", "crawl_articles", "domain_buckets", "takedowns"):
        assert launcher.queue_of(_run(heavy)) == HEAVY
    assert launcher.queue_of(_run("feeds")) == LIGHT
    assert launcher.queue_of(_run()) == LIGHT


def test_a_run_without_a_task_is_lost(launcher: LiveCeleryRunLauncher) -> None:
    health = launcher.check_run_worker_health(_run("feeds"))
    assert health.status is WorkerStatus.FAILED
    assert health.msg == "the run was never sent to a worker"


def test_a_run_is_not_lost_while_the_broker_is_away(launcher: LiveCeleryRunLauncher) -> None:
    run = _run("feeds", **{DAGSTER_CELERY_TASK_ID_TAG: "some-task"})
    assert launcher.check_run_worker_health(run).status is WorkerStatus.RUNNING


def test_a_run_that_no_worker_was_given_cannot_be_stopped(
    launcher: LiveCeleryRunLauncher,
) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        launcher.register_instance(instance)
        run = instance.add_run(_run("feeds"))
        assert launcher.terminate(run.run_id) is False
        assert launcher.terminate("unknown") is False


def test_the_cluster_file_is_a_valid_instance(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWS_PLATFORM_BROKER_URL", "redis://127.0.0.1:1/0")
    monkeypatch.setenv("NEWS_PLATFORM_DAGSTER_POSTGRES_URL", "postgresql+psycopg2://127.0.0.1:1/d")
    home = tmp_path_factory.mktemp("home")
    config = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())
    del config["storage"]  # the only section that would connect
    (home / "dagster.yaml").write_text(yaml.safe_dump(config))
    with dg.DagsterInstance.from_config(str(home)) as instance:
        assert isinstance(instance.run_launcher, LiveCeleryRunLauncher)
        assert instance.run_monitoring_max_resume_run_attempts == 0
