"""Start and stop the processes of a cluster on this machine, each in its own group."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

# A worker that receives TERM finishes its run first; the demo does not wait longer than this.
_STOP_SECONDS = 20.0
# Starts a command and ends its group when the pipe to its own parent closes: so nothing outlives a
# demo or a test, even if that is killed. TERM goes on to the command.
_GUARD = """
import os, signal, subprocess, sys, threading
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL)
signal.signal(signal.SIGTERM, lambda *_: child.terminate())
def end_with_parent():
    os.read(0, 1)
    os.killpg(0, signal.SIGKILL)
threading.Thread(target=end_with_parent, daemon=True).start()
sys.exit(child.wait())
"""


@dataclass
class Process:
    """One command and its log; stopped or killed together with its children."""

    name: str
    command: tuple[str, ...]
    environ: Mapping[str, str] = field(repr=False)
    log: Path
    running: "subprocess.Popen[bytes] | None" = field(default=None, repr=False)

    def start(self) -> None:
        """Start the command in a new process group; its output is appended to the log."""
        with self.log.open("ab") as log:
            self.running = subprocess.Popen(
                (sys.executable, "-S", "-E", "-c", _GUARD, *self.command),
                env=dict(self.environ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """Kill the process and its children with -9, as a power cut would."""
        self._signal(signal.SIGKILL)

    def stop(self) -> None:
        """Terminate the process, and kill its group if it does not end."""
        if self.running is not None and self.running.poll() is None:
            self.running.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.running.wait(timeout=_STOP_SECONDS)
        self.kill()

    def _signal(self, number: signal.Signals) -> None:
        if self.running is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.running.pid, number)
        self.running.wait(timeout=_STOP_SECONDS)
        if self.running.stdin is not None:
            self.running.stdin.close()
        self.running = None


@dataclass(frozen=True)
class Machine:
    """The environment of a cluster's processes: DAGSTER_HOME, workspace file and variables."""

    home: Path
    workspace: Path
    environ: Mapping[str, str] = field(repr=False)

    def worker(self, name: str) -> Process:
        """Return a Celery worker with one slot for both queues."""
        return self._python(
            name, "celery", "-A", "news_platform.cluster.app", "worker", "-n", f"{name}@local",
            "-Q", "heavy,light", "-c", "1", "-l", "WARNING",
        )  # fmt: skip

    def daemon(self) -> Process:
        """Return Dagster's daemon, which runs sensors, queue, backfills, monitoring and retries."""
        return self._python("daemon", "dagster._daemon", "run", "-w", str(self.workspace))

    def webserver(self, port: int) -> Process:
        """Return the webserver, on loopback and for allowed hosts only."""
        module = "news_platform.defs.services.webserver"
        words = ("-h", "127.0.0.1", "-p", str(port), "-w", str(self.workspace))
        return self._python("webserver", module, *words)

    def _python(self, name: str, module: str, *arguments: str) -> Process:
        environ = {**self.environ, "DAGSTER_HOME": str(self.home)}
        command = (sys.executable, "-m", module, *arguments)
        return Process(name, command, environ, self.home / f"{name}.log")
