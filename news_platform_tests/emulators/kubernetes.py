"""A small Kubernetes API over TLS that runs the pod of each Job as a process of this machine.

It knows what Dagster's K8sRunLauncher asks for: the jobs, pods, logs and events of one namespace.
A request needs the token and a right that the role grants. A Job must be valid, and what it names
(service account, Secrets, ConfigMaps) must exist, or its container is not created.
"""

import json
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from threading import RLock
from typing import Any

import kubernetes_validate

from news_platform_tests.emulators.pods import Pod, start_pod
from news_platform_tests.emulators.relay import Answer, Request, serve

# What the Helm values are validated against too.
_VERSION = "1.31"
_VERBS = {"POST": "create", "DELETE": "delete", "GET": "get"}
Document = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Namespace:
    """What exists in the namespace before the first Job: objects by name, and who may do what."""

    name: str
    token: str
    service_account: str
    config_maps: Mapping[str, Mapping[str, str]]
    secrets: Mapping[str, Mapping[str, str]]
    rules: Sequence[Document]
    """The rules of the Role of the token's owner."""

    def allows(self, verb: str, group: str, resource: str) -> bool:
        """Return whether a rule of the role grants this."""
        return any(
            verb in rule["verbs"] and group in rule["apiGroups"] and resource in rule["resources"]
            for rule in self.rules
        )


class Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: HTTPStatus, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass
class FakeKubernetes:
    """The API server and the kubelet of one namespace."""

    namespace: Namespace
    folder: Path
    jobs: dict[str, Document] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)
    _lock: RLock = field(default_factory=RLock)

    def answer(self, request: Request) -> Answer:
        """Answer one request."""
        try:
            with self._lock:
                return _answer(HTTPStatus.OK, self._route(request))
        except Refused as error:
            self.refused.append(f"{error.status.value} {error}")
            status = {"kind": "Status", "status": "Failure", "message": str(error)}
            reason = error.status.phrase.replace(" ", "")
            return _answer(error.status, {**status, "reason": reason, "code": error.status.value})

    def job_statuses(self) -> dict[str, Document]:
        """Return the status of every Job."""
        return {name: self._status(name) for name in self.jobs}

    def _route(self, request: Request) -> Document | str:
        if request.headers.get("authorization") != f"Bearer {self.namespace.token}":
            raise Refused(HTTPStatus.UNAUTHORIZED, "Unauthorized")
        group, resource, name, part = self._address(request.path)
        verb = "list" if request.method == "GET" and not name else _VERBS[request.method]
        granted = f"{resource}/{part}" if part else resource
        if not self.namespace.allows(verb, group, granted):
            raise Refused(HTTPStatus.FORBIDDEN, f"cannot {verb} resource {granted!r}")
        route: Callable[..., Document | str] | None = _ROUTES.get((verb, granted))
        if route is None:
            raise Refused(HTTPStatus.NOT_FOUND, f"the emulator cannot {verb} {granted}")
        return route(self, name, request)

    def _address(self, path: str) -> tuple[str, str, str, str]:
        words = path.strip("/").split("/")
        group = words[1] if words[0] == "apis" else ""
        namespace, resource, *rest = words[words.index("namespaces") + 1 :]
        if namespace != self.namespace.name:
            raise Refused(HTTPStatus.FORBIDDEN, f"no rights in namespace {namespace!r}")
        name, part = [*rest, "", ""][:2]
        return group, resource, name, part

    def create_job(self, _: str, request: Request) -> Document:
        """Store a Job and start its pod."""
        job: Document = json.loads(request.body)
        name = job["metadata"]["name"]
        if name in self.jobs:
            raise Refused(HTTPStatus.CONFLICT, f"jobs.batch {name!r} already exists")
        try:
            kubernetes_validate.validate(job, _VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, error.message) from error
        account = job["spec"]["template"]["spec"]["serviceAccountName"]
        if account != self.namespace.service_account:
            raise Refused(HTTPStatus.FORBIDDEN, f"service account {account!r} not found")
        self.jobs[name] = job
        pod = start_pod(
            job,
            config_maps=self.namespace.config_maps,
            secrets=self.namespace.secrets,
            folder=self.folder,
        )
        self.pods[pod.name] = pod
        return self._job(name)

    def list_jobs(self, _: str, request: Request) -> Document:
        """Return the Jobs that a selector names."""
        items = [self._job(name) for name in self.jobs]
        return {"kind": "JobList", "apiVersion": "batch/v1", "items": _select(items, request)}

    def read_job(self, name: str, _: Request) -> Document:
        """Return one Job with its status."""
        return self._job(name)

    def delete_job(self, name: str, _: Request) -> Document:
        """Forget a Job; its pods stay, as with the API's default for batch/v1."""
        self._job(name)
        del self.jobs[name]
        return {"kind": "Status", "apiVersion": "v1", "status": "Success"}

    def list_pods(self, _: str, request: Request) -> Document:
        """Return the pods that a selector names."""
        items = [pod.document() for pod in self.pods.values() if not pod.is_gone()]
        return {"kind": "PodList", "apiVersion": "v1", "items": _select(items, request)}

    def read_pod(self, name: str, _: Request) -> Document:
        """Return one pod."""
        return self._pod(name).document()

    def delete_pod(self, name: str, _: Request) -> Document:
        """Tell a pod to end; it is killed after its grace period."""
        pod = self._pod(name)
        pod.end()
        return pod.document()

    def read_log(self, name: str, request: Request) -> str:
        """Return the last lines of a pod's output."""
        lines = self._pod(name).log_lines()
        count = int(request.query.get("tailLines", [str(len(lines))])[0])
        return "\n".join(lines[-count:])

    def list_events(self, _: str, __: Request) -> Document:
        """Return no events: nothing schedules or pulls here."""
        return {"kind": "EventList", "apiVersion": "v1", "items": []}

    def _job(self, name: str) -> Document:
        if name not in self.jobs:
            raise Refused(HTTPStatus.NOT_FOUND, f"jobs.batch {name!r} not found")
        return {**self.jobs[name], "status": self._status(name)}

    def _status(self, job: str) -> Document:
        (pod,) = (pod for pod in self.pods.values() if pod.job == job)
        return {"startTime": pod.started_at, pod.outcome(): 1}

    def _pod(self, name: str) -> Pod:
        if name not in self.pods or self.pods[name].is_gone():
            raise Refused(HTTPStatus.NOT_FOUND, f"pods {name!r} not found")
        return self.pods[name]


_ROUTES: Mapping[tuple[str, str], Callable[..., Document | str]] = {
    ("create", "jobs"): FakeKubernetes.create_job,
    ("list", "jobs"): FakeKubernetes.list_jobs,
    ("get", "jobs/status"): FakeKubernetes.read_job,
    ("delete", "jobs"): FakeKubernetes.delete_job,
    ("list", "pods"): FakeKubernetes.list_pods,
    ("get", "pods"): FakeKubernetes.read_pod,
    ("delete", "pods"): FakeKubernetes.delete_pod,
    ("get", "pods/log"): FakeKubernetes.read_log,
    ("list", "events"): FakeKubernetes.list_events,
}


@contextmanager
def fake_kubernetes(
    namespace: Namespace, folder: Path, *, tls: ssl.SSLContext
) -> Iterator[tuple[FakeKubernetes, str]]:
    """Serve the API on loopback and yield it with its port; kill all pods at the end."""
    api = FakeKubernetes(namespace, folder)
    try:
        with serve(api, tls=tls) as url:
            yield api, url.rpartition(":")[2]
    finally:
        for pod in api.pods.values():
            pod.kill()


def _select(items: list[Document], request: Request) -> list[Document]:
    """Apply the selectors that the launcher uses: one label, or the name."""
    for text in request.query.get("labelSelector", []):
        label, _, value = text.partition("=")
        items = [item for item in items if item["metadata"]["labels"].get(label) == value]
    for text in request.query.get("fieldSelector", []):
        path, _, value = text.partition("=")
        if path != "metadata.name":
            raise Refused(HTTPStatus.BAD_REQUEST, f"unknown field selector {path!r}")
        items = [item for item in items if item["metadata"]["name"] == value]
    return items


def _answer(status: HTTPStatus, content: Document | str) -> Answer:
    kind = "text/plain" if isinstance(content, str) else "application/json"
    body = (content if isinstance(content, str) else json.dumps(content)).encode()
    return Answer(status.value, {"Content-Type": kind}, body, len(body))
