"""The output of runs in an object store, as another machine than the worker's reads it."""

import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import dagster as dg
import pytest
import yaml
from dagster._core.events import ComputeLogsCaptureData
from dagster._core.storage.compute_log_manager import ComputeIOType
from dagster_aws.s3 import S3ComputeLogManager
from dagster_gcp.gcs import GCSComputeLogManager

from news_platform.cluster.clouds import cloud_resources
from news_platform.resources import store_options
from news_platform.settings import Settings, load_settings
from news_platform.storage.objects.store import open_store
from news_platform_tests.cluster.live import DEPLOY
from news_platform_tests.emulators.gcs import service_account_key


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


@pytest.fixture(params=["s3", "gs"])
def logs_url(
    request: pytest.FixtureRequest, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Return where the output goes; the settings of the root lead there."""
    settings = {"LOGS_URL": f"{request.param}://{bucket}/logs", "ALLOW_HTTP": "1"}
    if request.param == "s3":
        settings["S3_ENDPOINT"] = request.getfixturevalue("s3_server_url")
        settings |= {"S3_ACCESS_KEY": "key", "S3_SECRET_KEY": "secret"}
    else:
        url = settings["GCS_BASE_URL"] = request.getfixturevalue("gcs_server_url")
        settings["GCS_SERVICE_ACCOUNT"] = service_account_key(url)
    settings["ROOT"] = f"{request.param}://{bucket}/root"
    for name, value in settings.items():
        monkeypatch.setenv(f"NEWS_PLATFORM_{name}", value)
    # What Google's library reads is set by ours, in this process; it must not stay.
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", settings.get("GCS_BASE_URL", ""))
    monkeypatch.delenv("STORAGE_EMULATOR_HOST")
    yield settings["LOGS_URL"]


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
        assert isinstance(manager, S3ComputeLogManager | GCSComputeLogManager)
        data = manager.get_log_data(key)
        assert data.stdout == b"the mayor opened the bridge\n"
        # Google's manager shows the copy that it has just made.
        if isinstance(manager, S3ComputeLogManager):
            metadata = manager.get_log_metadata(key)
            assert metadata.stdout_location == f"{logs_url}/storage/{'/'.join(key)}.out"
        manager.delete_logs(log_key=key)
        assert not manager.cloud_storage_has_logs(key, ComputeIOType.STDOUT)


def test_an_asset_gets_the_client_of_the_cloud_that_the_root_is_in(logs_url: str) -> None:
    """By the resources of dagster-aws and dagster-gcp, with the keys of the settings."""
    settings = load_settings(os.environ)
    store = open_store(settings.root, options=store_options(settings))
    store.put("a/place", b"1")
    ((name, resource),) = cloud_resources(settings).items()
    bucket = urlsplit(logs_url).netloc

    @dg.asset(required_resource_keys={name})
    def reading(context: dg.AssetExecutionContext) -> None:
        client = getattr(context.resources, name)
        if name == "s3":
            found = client.get_object(Bucket=bucket, Key="root/a/place")["Body"].read()
        else:
            found = client.bucket(bucket).blob("root/a/place").download_as_bytes()
        assert found == b"1"

    assert dg.materialize([reading], resources={name: resource}).success
    assert not cloud_resources(Settings(root="data"))
