"""The output of runs in an object store, as another machine than the worker's reads it."""

from pathlib import Path

import dagster as dg
import pytest
import yaml
from dagster._core.events import ComputeLogsCaptureData
from dagster._core.storage.compute_log_manager import ComputeIOType
from dagster_aws.s3 import S3ComputeLogManager

from news_platform_tests.cluster.live import DEPLOY


@dg.asset
def talkative() -> None:
    """Print a line that somebody will look for."""
    print("the mayor opened the bridge")  # noqa: T201 (the output is what is tested)


def _home(folder: Path) -> Path:
    folder.mkdir()
    section = yaml.safe_load((DEPLOY / "dagster.yaml").read_text())["compute_logs"]
    section["config"]["local_dir"] = str(folder / "staged")
    (folder / "dagster.yaml").write_text(yaml.safe_dump({"compute_logs": section}))
    return folder


@pytest.fixture
def logs_url(s3_server_url: str, bucket: str, monkeypatch: pytest.MonkeyPatch) -> str:
    url = f"s3://{bucket}/logs"
    for name, value in {
        "LOGS_URL": url,
        "S3_ENDPOINT": s3_server_url,
        "S3_ACCESS_KEY": "key",
        "S3_SECRET_KEY": "secret",
        "ALLOW_HTTP": "1",
    }.items():
        monkeypatch.setenv(f"NEWS_PLATFORM_{name}", value)
    return url


def test_another_machine_shows_the_output_of_a_run(tmp_path: Path, logs_url: str) -> None:
    with dg.DagsterInstance.from_config(str(_home(tmp_path / "worker"))) as instance:
        run = dg.materialize([talkative], instance=instance)
        (captured,) = [
            event
            for event in run.all_events
            if event.event_type == dg.DagsterEventType.LOGS_CAPTURED
        ]
        assert isinstance(captured.event_specific_data, ComputeLogsCaptureData)
        key = [run.run_id, "compute_logs", captured.event_specific_data.file_key]
    with dg.DagsterInstance.from_config(str(_home(tmp_path / "webserver"))) as instance:
        manager = instance.compute_log_manager
        assert isinstance(manager, S3ComputeLogManager)
        data = manager.get_log_data(key)
        assert data.stdout == b"the mayor opened the bridge\n"
        metadata = manager.get_log_metadata(key)
        assert metadata.stdout_location == f"{logs_url}/storage/{'/'.join(key)}.out"
        manager.delete_logs(log_key=key)
        assert not manager.cloud_storage_has_logs(key, ComputeIOType.STDOUT)
