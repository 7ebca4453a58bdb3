"""The Celery application: its broker setting, and the run id of a task."""

import pytest
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._grpc.types import ExecuteRunArgs
from dagster._serdes import pack_value

from news_platform.errors import ConfigError


@pytest.fixture(autouse=True)
def _broker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NEWS_PLATFORM_BROKER_URL", "redis://127.0.0.1:1/0")


def test_a_worker_without_a_broker_says_which_setting_is_missing() -> None:
    from news_platform.cluster.app import build_app
    from news_platform.setting_sections.platform import ClusterSettings

    with pytest.raises(ConfigError, match="NEWS_PLATFORM_BROKER_URL is not set"):
        build_app(ClusterSettings())


def test_a_task_tells_its_run() -> None:
    from news_platform.cluster.app import run_id_of

    origin = JobPythonOrigin(
        "job", RepositoryPythonOrigin("python", ModuleCodePointer("module", "defs"))
    )
    args = ExecuteRunArgs(
        job_origin=origin, run_id="run-1", instance_ref=None, set_exit_code_on_failure=True
    )
    assert run_id_of({"execute_job_args_packed": pack_value(args)}) == "run-1"
    assert run_id_of({"other": 3}) is None
