"""The configuration files of deploy/, parsed by their consumers without a cluster."""

import os
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

import dagster as dg
import kubernetes
import pytest
import sqlalchemy as sa
import yaml
from dagster._config import Field, validate_config
from dagster_k8s.container_context import K8sContainerContext
from dagster_k8s.job import DagsterK8sJobConfig, construct_dagster_k8s_job
from dagster_postgres.utils import pg_url_from_config

from deploy import helm_check
from news_platform.cluster.compute_logs import RootComputeLogManager
from news_platform.cluster.instance import write_config
from news_platform.definitions import build_definitions
from news_platform.defs.services.webserver import serve
from news_platform.resources import Resources
from news_platform.settings import Settings, load_settings, setting_infos
from news_platform.web.allowed_hosts import LOOPBACK_NAMES
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
        job_image="registry.example/news-platform:0.3.0", dagster_home="/opt/dagster"
    )
    return construct_dagster_k8s_job(
        config,
        args=["dagster", "api", "execute_run"],
        job_name="dagster-run-1",
        component="run_worker",
        user_defined_k8s_config=context.run_k8s_config,
        labels={"dagster/run-id": "1"},
    )


def test_a_run_has_limits_and_no_privileges(job: kubernetes.client.V1Job) -> None:
    container = job.spec.template.spec.containers[0]
    assert container.resources.limits == {"memory": "4Gi"}
    assert container.security_context.run_as_non_root
    assert container.security_context.allow_privilege_escalation is False


def test_a_run_takes_its_secrets_by_reference(job: kubernetes.client.V1Job) -> None:
    container = job.spec.template.spec.containers[0]
    assert [source.secret_ref.name for source in container.env_from] == ["news-platform"]
    assert not any("PASSWORD" in variable.name and variable.value for variable in container.env)


def _cluster() -> Any:
    return _read("dagster.yaml")


def test_the_connection_of_the_values_opens_an_engine() -> None:
    """Plain `postgresql://` is psycopg 3 in SQLAlchemy 2.1, which the image does not have."""
    given = _read("kubernetes/values.yaml")["postgresql"]
    url = pg_url_from_config(
        {
            "postgres_db": {
                "username": given["postgresqlUsername"],
                "password": "secret",
                "hostname": given["postgresqlHost"],
                "db_name": given["postgresqlDatabase"],
                "port": 5432,
                "params": {},
                "scheme": given["postgresqlScheme"],
            }
        }
    )
    assert sa.create_engine(url).driver == "psycopg2"


def test_the_values_say_what_the_instance_of_a_cluster_says() -> None:
    values, cluster = _read("kubernetes/values.yaml"), _cluster()
    monitoring, ours = values["dagsterDaemon"]["runMonitoring"], cluster["run_monitoring"]
    assert values["telemetry"] == cluster["telemetry"]
    pools = values["concurrency"]["pools"]
    assert pools == {"granularity": "run", "defaultLimit": 4}
    assert cluster["concurrency"]["pools"] == {"granularity": "run", "default_limit": 4}
    assert monitoring["freeSlotsAfterRunEndSeconds"] == ours["free_slots_after_run_end_seconds"]
    assert monitoring["maxRuntimeSeconds"] == ours["max_runtime_seconds"]
    assert monitoring["cancelTimeoutSeconds"] == ours["cancel_timeout_seconds"]
    assert monitoring["maxResumeRunAttempts"] == ours["max_resume_run_attempts"]
    assert (
        values["dagsterDaemon"]["runRetries"]["maxRetries"] == cluster["run_retries"]["max_retries"]
    )
    retention = cluster["retention"]
    assert (
        values["retention"]["schedule"]["purgeAfterDays"]
        == retention["schedule"]["purge_after_days"]
    )
    kept = values["retention"]["sensor"]["purgeAfterDays"]
    assert retention["sensor"]["purge_after_days"].items() <= kept.items()
    (backfills,) = values["concurrency"]["runs"]["tagConcurrencyLimits"]
    assert backfills["limit"] < values["concurrency"]["runs"]["maxConcurrentRuns"]


def test_the_output_of_runs_is_kept_in_the_object_store_everywhere() -> None:
    ours = _cluster()["compute_logs"]
    values = _read("kubernetes/values.yaml")["computeLogManager"]["config"]
    assert values["customComputeLogManager"] == ours
    result = validate_config(Field(RootComputeLogManager.config_type()).config_type, ours["config"])
    assert result.success, result.errors


def test_every_process_has_probes_limits_and_no_privileges() -> None:
    values = _read("kubernetes/values.yaml")
    (code,) = values["dagster-user-deployments"]["deployments"]
    for process in (values["dagsterWebserver"], values["dagsterDaemon"], code):
        assert process["resources"]["limits"]["memory"]
        assert process["securityContext"]["runAsUser"] == 10001
        assert process["image"]["tag"] == version("news-platform")
    assert values["dagsterWebserver"]["livenessProbe"]["httpGet"]["path"] == "/server_info"
    assert values["dagsterDaemon"]["livenessProbe"]["exec"]


def test_kubernetes_has_the_explorer_and_the_metrics_of_the_compose_file() -> None:
    services = _read("docker-compose.yaml")["services"]
    deployment, service = _read("kubernetes/values.yaml")["extraManifests"]
    containers = {one["name"]: one for one in deployment["spec"]["template"]["spec"]["containers"]}
    assert containers.keys() == {"explorer", "metrics"}
    ports = {one["name"]: one["port"] for one in service["spec"]["ports"]}
    for name, one in containers.items():
        assert one["command"] == services[name]["command"]
        assert one["image"].endswith(f":{version('news-platform')}")
        assert one["resources"]["limits"]["memory"] and one["livenessProbe"]
        assert one["securityContext"]["runAsUser"] == 10001
        assert ports[name] == one["ports"][0]["containerPort"] == int(one["command"][-1])


def test_the_values_render_to_valid_objects() -> None:
    data = load_settings(os.environ).bench_data
    chart = Path(data or "") / "helm/dagster"
    if not (chart / "Chart.yaml").is_file():
        pytest.skip("needs Dagster's Helm chart below NEWS_PLATFORM_BENCH_DATA")
    assert helm_check.check(chart) == []
    objects = helm_check.render(chart)
    config = helm_check.instance_of(objects)
    assert config["telemetry"] == {"enabled": False}
    assert config["run_storage"]["config"]["postgres_db"]["scheme"] == "postgresql+psycopg2"
    [webserver] = [it for it in objects if it["metadata"]["name"] == "news-dagster-webserver"][-1:]
    [container] = webserver["spec"]["template"]["spec"]["containers"]
    name, *words = container["command"][-1].split()
    assert name == "dagster-webserver" and serve.make_context(name, words)
    for probe in ("readinessProbe", "livenessProbe"):
        [host] = container[probe]["httpGet"]["httpHeaders"]
        assert host["value"] in LOOPBACK_NAMES


def test_the_webserver_of_the_image_is_ours() -> None:
    """The chart of Dagster has no value for the command, which is `dagster-webserver`."""
    lines = (DEPLOY / "Dockerfile").read_text()
    ours = "exec /opt/venv/bin/python -m news_platform.defs.services.webserver"
    assert f'{ours} "$@"\\n\' \\\n    > /opt/venv/bin/dagster-webserver' in lines
    command = _read("docker-compose.yaml")["services"]["webserver"]["command"]
    assert command[:3] == ["python", "-m", "news_platform.defs.services.webserver"]


def test_redis_asks_for_a_password_and_shows_it_to_nobody() -> None:
    services = _read("docker-compose.yaml")["services"]
    start = " ".join(services["redis"]["command"])
    assert "requirepass" in start and "exec redis-server /tmp/redis.conf" in start
    assert "--requirepass" not in start
    broker = services["worker"]["environment"]["NEWS_PLATFORM_BROKER_URL"]
    assert broker.startswith("redis://:${REDIS_PASSWORD:?}@")


def test_the_compose_file_uses_nothing_that_podman_drops() -> None:
    compose = _read("docker-compose.yaml")
    assert "configs" not in compose
    assert compose["services"]["worker"]["deploy"] == {"mode": "replicated", "replicas": 2}
    for name in ("daemon", "webserver", "worker"):
        assert compose["services"][name]["env_file"] == [".env"]
        check = compose["services"][name]["healthcheck"]["test"]
        assert "HOSTNAME" not in str(check), "podman does not set it for commands in a container"


def test_the_compose_file_asks_for_no_variable_that_every_process_refuses() -> None:
    """All of .env goes to the processes, and those refuse a NEWS_PLATFORM_* they do not know."""
    asked = re.findall(r"\$\{(\w+)", (DEPLOY / "docker-compose.yaml").read_text())
    assert "IMAGE_TAG" in asked
    known = {info.env for info in setting_infos()}
    assert {name for name in asked if name.startswith("NEWS_PLATFORM_")} <= known


def test_the_example_of_settings_names_only_settings() -> None:
    lines = (DEPLOY / "env.example").read_text().splitlines()
    given = dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))
    load_settings({name: value for name, value in given.items() if value})


def test_the_image_is_installed_from_the_pins_of_all() -> None:
    """The image has no development tools, and no version that was not tested."""
    whole = _pins(DEPLOY.parent / "requirements.lock")
    image = _pins(DEPLOY / "requirements.lock")
    assert image <= whole
    names = {pin.split("==")[0] for pin in image}
    assert {"dagster", "celery", "psycopg2-binary", "polars"} <= names
    assert not {"pytest", "mypy", "moto", "ruff"} & names


def _pins(path: Path) -> set[str]:
    return {line.split()[0] for line in path.read_text().splitlines() if "==" in line.split("#")[0]}


def test_the_number_of_runs_comes_from_the_settings(tmp_path: Path) -> None:
    settings = load_settings({"NEWS_PLATFORM_MAX_CONCURRENT_RUNS": "8"}).cluster
    write_config(DEPLOY / "dagster.yaml", tmp_path, settings)
    runs = yaml.safe_load((tmp_path / "dagster.yaml").read_text())["concurrency"]["runs"]
    assert runs["max_concurrent_runs"] == 8
    assert runs["tag_concurrency_limits"] == [{"key": "dagster/backfill", "limit": 7}]


def test_the_compose_file_shows_its_servers_to_this_host_alone() -> None:
    services = _read("docker-compose.yaml")["services"]
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert {port.rpartition(":")[2] for port in published} == {"3000", "8000", "9464"}
    assert all(port.startswith("127.0.0.1:") for port in published)
    assert all(service["restart"] == "always" for service in services.values())


@pytest.mark.parametrize("name", ["docker-compose.yaml", "dagster.yaml", "kubernetes/values.yaml"])
def test_no_file_holds_a_password(name: str) -> None:
    for line in (DEPLOY / name).read_text().splitlines():
        if "password" in line.lower() and not line.strip().startswith("#"):
            named = ("${", "$$REDIS_PASSWORD", "Secret", "secretKeyRef", "#")
            assert any(sign in line for sign in named), line


@pytest.mark.parametrize(
    ("asset", "pool"),
    [("raw_news", "crawl"), ("article_sheets", "sheets"), ("articles", "ledger")],
)
def test_what_shares_an_endpoint_shares_a_pool(asset: str, pool: str) -> None:
    graph = build_definitions(Resources(Settings())).resolve_asset_graph()
    assert graph.get(dg.AssetKey(asset)).pools == {pool}


@pytest.mark.parametrize("name", ["dagster.yaml", "../news_platform/composition/dagster.yaml"])
def test_a_backfill_cannot_take_every_slot_of_a_cluster(name: str) -> None:
    concurrency = _read(name)["concurrency"]
    assert concurrency["pools"]["granularity"] == "run"
    for limit in concurrency["runs"].get("tag_concurrency_limits", ()):
        assert limit["key"] == "dagster/backfill"
        assert limit["limit"] < concurrency["runs"]["max_concurrent_runs"]
