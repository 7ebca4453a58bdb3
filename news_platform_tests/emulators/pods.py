"""The pod of a Job as a process: its command, with the environment and files of the manifest."""

import signal
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Timer
from typing import Any, TypeVar

from deploy.processes import Process

# Kubernetes' own default.
_GRACE_SECONDS = 30
_Value = TypeVar("_Value")
Objects = Mapping[str, Mapping[str, str]]


@dataclass
class Pod:
    """One started pod; `problem` says why its container could not be created."""

    job: str
    template: dict[str, Any]
    process: Process
    started_at: str
    problem: str = ""
    is_deleted: bool = False

    @property
    def name(self) -> str:
        return f"{self.job}-pod"

    @property
    def exit_code(self) -> int | None:
        """Return how the process ended, or None while it runs; a signal counts from 128."""
        code = self.process.running.poll() if self.process.running is not None else None
        return code if code is None or code >= 0 else 128 - code

    def outcome(self) -> str:
        """Return the field of a Job's status that counts this pod."""
        return {None: "active", 0: "succeeded"}.get(self.exit_code, "failed")

    def is_gone(self) -> bool:
        """Return whether the pod was deleted and has ended."""
        return self.is_deleted and (bool(self.problem) or self.exit_code is not None)

    def end(self) -> None:
        """Send TERM now, and KILL after the grace period of the manifest."""
        self.is_deleted = True
        if self.process.running is not None and self.exit_code is None:
            self.process.running.send_signal(signal.SIGTERM)
            grace = self.template["spec"].get("terminationGracePeriodSeconds", _GRACE_SECONDS)
            timer = Timer(grace, self.kill)
            timer.daemon = True
            timer.start()

    def kill(self) -> None:
        """Kill the process with -9, if it runs; its exit code stays known."""
        if self.process.running is not None and self.exit_code is None:
            self.process.running.kill()
            self.process.running.wait(timeout=20)

    def log_lines(self) -> list[str]:
        """Return what the process has printed."""
        return self.process.log.read_text(errors="replace").splitlines()

    def document(self) -> dict[str, Any]:
        """Return the pod as the API shows it."""
        container = self.template["spec"]["containers"][0]
        status = {
            "name": container["name"],
            "image": container["image"],
            "imageID": container["image"],
            "ready": False,
            "restartCount": 0,
            "state": self._state(),
        }
        labels = {**self.template["metadata"]["labels"], "job-name": self.job}
        phases = {"active": "Running", "succeeded": "Succeeded", "failed": "Failed"}
        phase = "Pending" if self.problem else phases[self.outcome()]
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": self.name, "labels": labels},
            "spec": self.template["spec"],
            "status": {"phase": phase, "containerStatuses": [status]},
        }

    def _state(self) -> dict[str, Any]:
        if self.problem:
            reason = "CreateContainerConfigError"
            return {"waiting": {"reason": reason, "message": self.problem}}
        code = self.exit_code
        if code is None:
            return {"running": {"startedAt": self.started_at}}
        return {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}


class _Missing(Exception):
    """The manifest names an object that does not exist."""


def start_pod(job: dict[str, Any], *, config_maps: Objects, secrets: Objects, folder: Path) -> Pod:
    """Start the first container of a Job, or say what hinders it."""
    name = job["metadata"]["name"]
    template = job["spec"]["template"]
    container = template["spec"]["containers"][0]
    command = [*container.get("command", []), *container.get("args", [])]
    # The image has these on its PATH.
    bin_folder = Path(sys.executable).parent
    environ = {"PATH": f"{bin_folder}:/usr/bin:/bin", "PYTHONPATH": str(Path(__file__).parents[2])}
    log = folder / f"{name}.log"
    log.touch()
    problem = ""
    try:
        environ.update(_environment(container, config_maps=config_maps, secrets=secrets))
        for path, text in _files(template["spec"], config_maps=config_maps):
            _place(path, text, folder=folder)
    except _Missing as error:
        problem = str(error)
    process = Process(name, (str(bin_folder / command[0]), *command[1:]), environ, log)
    if not problem:
        process.start()
    return Pod(name, template, process, datetime.now(UTC).isoformat(), problem)


def _environment(
    container: Mapping[str, Any], *, config_maps: Objects, secrets: Objects
) -> Iterator[tuple[str, str]]:
    for source in container.get("envFrom", []):
        if "secretRef" in source:
            yield from _get(secrets, source["secretRef"]["name"]).items()
        else:
            yield from _get(config_maps, source["configMapRef"]["name"]).items()
    for variable in container.get("env", []):
        if "value" in variable:
            yield variable["name"], variable["value"]
        else:
            key = variable["valueFrom"]["secretKeyRef"]
            yield variable["name"], _get(_get(secrets, key["name"]), key["key"])


def _files(spec: Mapping[str, Any], *, config_maps: Objects) -> Iterator[tuple[Path, str]]:
    volumes = {volume["name"]: volume["configMap"]["name"] for volume in spec.get("volumes", [])}
    for mount in spec["containers"][0].get("volumeMounts", []):
        config_map = _get(config_maps, volumes[mount["name"]])
        yield Path(mount["mountPath"]), _get(config_map, mount["subPath"])


def _place(path: Path, text: str, *, folder: Path) -> None:
    if not path.is_relative_to(folder):
        raise _Missing(f"the emulator mounts files below {str(folder)!r} only, not {str(path)!r}")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def _get(objects: Mapping[str, _Value], name: str) -> _Value:
    if name not in objects:
        raise _Missing(f"{name!r} not found")
    return objects[name]
