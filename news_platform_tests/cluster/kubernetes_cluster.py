"""A deployment of the Helm values on this machine, with an emulated Kubernetes API.

Dagster's daemon and webserver, PostgreSQL, and the API that runs the Job of each run as a process.
"""

import base64
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from deploy import helm_check
from deploy.graphql import Dagster
from deploy.processes import Machine, Process
from news_platform_tests.cluster.live import wait_until
from news_platform_tests.emulators.kubernetes import FakeKubernetes, Namespace, fake_kubernetes
from news_platform_tests.emulators.redis import free_port
from news_platform_tests.web.certificates import new_authority

NAMESPACE, TOKEN = "news-platform", "the-token-of-the-service-account"
IMAGE = "registry.example/news-platform:0.3.0"
_INSTANCE = "news-dagster-instance"


@dataclass(frozen=True)
class KubernetesCluster:
    """The running parts."""

    api: FakeKubernetes
    dagster: Dagster
    instance: dg.DagsterInstance

    def run(self, run_id: str) -> dg.DagsterRun:
        """Return a run as the instance knows it."""
        run = self.instance.get_run_by_id(run_id)
        assert run is not None
        return run

    def wait_for(self, run_id: str, status: dg.DagsterRunStatus, *, seconds: float = 180) -> None:
        """Wait until a run has this status."""
        wait_until(lambda: self.run(run_id).status is status, seconds=seconds)

    def text_of(self, run_id: str) -> str:
        """Return all events of a run as text."""
        return "\n".join(str(entry) for entry in self.instance.all_logs(run_id))


@contextmanager
def kubernetes_cluster(
    folder: Path,
    chart: Path,
    *,
    location: str,
    settings: Mapping[str, str],
    patch: pytest.MonkeyPatch,
    token: str = TOKEN,
    secret: Mapping[str, str] | None = None,
    start_timeout_seconds: int = 600,
) -> Iterator[KubernetesCluster]:
    """Start every part; stop each of them at the end.

    The settings are the environment of daemon and webserver and the Secret that the Jobs name;
    `secret` replaces the latter, and `token` is what the launcher shows to the API.
    """
    home = folder / "home"
    home.mkdir()
    objects = helm_check.render(chart, f"global.dagsterHome={home}")
    namespace = _namespace(objects, settings if secret is None else secret)
    for name, value in {**settings, "DAGSTER_CURRENT_IMAGE": IMAGE}.items():
        patch.setenv(name, value)
    with ExitStack() as parts:
        authority = new_authority()
        tls = authority.serving("localhost", folder)
        api, port = parts.enter_context(fake_kubernetes(namespace, folder, tls=tls))
        config = folder / "kubeconfig"
        config.write_text(yaml.safe_dump(_kubeconfig(port, authority.pem(), token)))
        text = yaml.safe_dump(_instance(objects, config, start_timeout_seconds))
        (home / "dagster.yaml").write_text(text)
        config_maps = {**namespace.config_maps, _INSTANCE: {"dagster.yaml": text}}
        api.namespace = replace(namespace, config_maps=config_maps)
        instance = parts.enter_context(dg.DagsterInstance.from_config(str(home)))
        dagster = _start(home, location, parts)
        yield KubernetesCluster(api, dagster, instance)


def _start(home: Path, location: str, parts: ExitStack) -> Dagster:
    workspace = home / "workspace.yaml"
    module = {"module_name": location, "location_name": "news"}
    workspace.write_text(yaml.safe_dump({"load_from": [{"python_module": module}]}))
    machine, port = Machine(home, workspace, os.environ), free_port()
    processes: tuple[Process, ...] = (machine.daemon(), machine.webserver(port))
    for process in processes:
        parts.callback(process.stop)
        process.start()
    dagster = Dagster(f"http://127.0.0.1:{port}", "news")
    dagster.wait_until_up()
    return dagster


def _namespace(objects: list[dict[str, Any]], settings: Mapping[str, str]) -> Namespace:
    """Return the namespace as the chart and the documented secrets make it."""
    config_maps = {
        found["metadata"]["name"]: found.get("data") or {}
        for found in objects
        if found["kind"] == "ConfigMap"
    }
    (rules,) = (
        found["rules"]
        for found in objects
        if found["kind"] == "Role" and found["metadata"]["name"] == "news-dagster-role"
    )
    secrets = {
        "news-platform": settings,
        "dagster-postgresql": {"postgresql-password": "the-password"},
    }
    return Namespace(NAMESPACE, TOKEN, "news-dagster", config_maps, secrets, rules)


def _instance(
    objects: list[dict[str, Any]], kubeconfig: Path, start_timeout_seconds: int
) -> dict[str, Any]:
    """Return the chart's dagster.yaml with the addresses of this machine and shorter waits."""
    config = helm_check.instance_of(objects)
    launcher = config["run_launcher"]["config"]
    launcher.update(load_incluster_config=False, kubeconfig_file=str(kubeconfig))
    for name in ("run_storage", "event_log_storage", "schedule_storage"):
        del config[name]
    url = {"env": "NEWS_PLATFORM_DAGSTER_POSTGRES_URL"}
    config["storage"] = {"postgres": {"postgres_url": url}}
    config["run_monitoring"].update(
        poll_interval_seconds=2, start_timeout_seconds=start_timeout_seconds
    )
    return config


def _kubeconfig(port: str, certificate: bytes, token: str) -> dict[str, Any]:
    cluster = {
        "server": f"https://localhost:{port}",
        "certificate-authority-data": base64.b64encode(certificate).decode(),
    }
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "here", "cluster": cluster}],
        "users": [{"name": "dagster", "user": {"token": token}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "dagster"}}],
        "current-context": "here",
    }
