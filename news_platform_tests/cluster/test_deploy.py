"""The configuration files of deploy/, parsed by their consumers without a cluster."""

from typing import Any

import dagster as dg
import kubernetes
import pytest
import yaml
from dagster._config import Field, validate_config
from dagster_aws.s3.compute_log_manager import S3ComputeLogManager
from dagster_gcp.gcs.compute_log_manager import GCSComputeLogManager
from dagster_k8s.container_context import K8sContainerContext
from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job

from news_platform.definitions import build_definitions
from news_platform.resources import Resources
from news_platform.settings import Settings
from news_platform_tests.cluster.live import DEPLOY


def _read(name: str) -> Any:
    return yaml.safe_load((DEPLOY / name).read_text())


def _launcher_values() -> Any:
    values = _read("kubernetes/values.yaml")
    assert values["runLauncher"]["type"] == "K8sRunLauncher"
    return values["runLauncher"]["config"]["k8sRunLauncher"]


@pytest.fixture
def job() -> kubernetes.client.V1Job:
    """Render the job of one run, as the launcher would send it to Kubernetes."""
    values = _launcher_values()
    context = K8sContainerContext.create_from_config(
        {
            "k8s": {
                "image_pull_policy": values["imagePullPolicy"],
                "env_secrets": [secret["name"] for secret in values["envSecrets"]],
                "namespace": values["jobNamespace"],
                "resources": values["resources"],
                "run_k8s_config": {
                    "pod_spec_config": values["runK8sConfig"]["podSpecConfig"],
                    "container_config": values["runK8sConfig"]["containerConfig"],
                    "job_spec_config": values["runK8sConfig"]["jobSpecConfig"],
                },
            }
        }
    )
    config = DagsterK8sJobConfig(
        job_image="registry.example/news-platform:0.1.0", dagster_home="/opt/dagster"
    )
    return construct_dagster_k8s_job(
        config,
        args=["dagster", "api", "execute_run"],
        job_name="dagster-run-1",
        component="run_worker",
        user_defined_k8s_config=context.run_k8s_config,
        labels={"dagster/run-id": "1"},
    )


def test_a_run_becomes_a_kubernetes_job_of_our_image(job: kubernetes.client.V1Job) -> None:
    pod = job.spec.template.spec
    container = pod.containers[0]
    assert container.image == "registry.example/news-platform:0.1.0"
    assert container.args == ["dagster", "api", "execute_run"]
    assert job.spec.template.metadata.labels["dagster/run-id"] == "1"
    assert pod.termination_grace_period_seconds == 3600
    assert job.spec.ttl_seconds_after_finished == 86400


def test_a_run_has_limits_and_no_privileges(job: kubernetes.client.V1Job) -> None:
    container = job.spec.template.spec.containers[0]
    assert container.resources.limits == {"memory": "4Gi"}
    assert container.security_context.run_as_non_root
    assert container.security_context.allow_privilege_escalation is False


def test_a_run_takes_its_secrets_by_reference(job: kubernetes.client.V1Job) -> None:
    container = job.spec.template.spec.containers[0]
    assert [source.secret_ref.name for source in container.env_from] == ["news-platform"]
    assert not any("PASSWORD" in variable.name and variable.value for variable in container.env)


@pytest.mark.parametrize(
    ("name", "manager"),
    [
        ("compute_logs_s3.yaml", S3ComputeLogManager),
        ("compute_logs_gcs.yaml", GCSComputeLogManager),
    ],
)
def test_compute_logs_can_go_to_an_object_store(name: str, manager: Any) -> None:
    given = _read(name)["compute_logs"]
    assert given["class"] == manager.__name__
    assert manager.__module__ == given["module"]
    result = validate_config(Field(manager.config_type()).config_type, given["config"])
    assert result.success, result.errors


def test_the_compose_file_shows_the_webserver_to_this_host_alone() -> None:
    services = _read("docker-compose.yaml")["services"]
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert published == ["127.0.0.1:3000:3000"]
    assert all(service["restart"] == "always" for service in services.values())


@pytest.mark.parametrize("name", ["docker-compose.yaml", "dagster.yaml", "kubernetes/values.yaml"])
def test_no_file_holds_a_password(name: str) -> None:
    for line in (DEPLOY / name).read_text().splitlines():
        if "password" in line.lower() and not line.strip().startswith("#"):
            assert "${" in line or "Secret" in line or "#" in line, line


@pytest.mark.parametrize(
    ("asset", "pool"),
    [("raw_news", "crawl"), ("article_sheets", "sheets"), ("articles", "ledger")],
)
def test_what_shares_an_endpoint_shares_a_pool(asset: str, pool: str) -> None:
    graph = build_definitions(Resources(Settings())).resolve_asset_graph()
    assert graph.get(dg.AssetKey(asset)).pools == {pool}


@pytest.mark.parametrize("name", ["dagster.yaml", "../dagster.yaml"])
def test_a_backfill_cannot_take_every_slot_of_a_cluster(name: str) -> None:
    concurrency = _read(name)["concurrency"]
    assert concurrency["pools"]["granularity"] == "run"
    for limit in concurrency["runs"].get("tag_concurrency_limits", ()):
        assert limit["key"] == "dagster/backfill"
        assert limit["limit"] < concurrency["runs"]["max_concurrent_runs"]
