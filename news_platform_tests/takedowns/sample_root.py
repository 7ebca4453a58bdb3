"""A sample root, in a folder or in an S3 emulator, with the processes that work on it."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from news_platform.composition.takedown_parts import apply_root, has_work
from news_platform.composition.takedown_verification import verify_root
from news_platform.sample.world import SampleResources
from news_platform.settings import load_settings
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.verify import VerificationReport

_LEDGER = "NEWS_PLATFORM_LEDGER_URL"


@dataclass(frozen=True, slots=True)
class SampleRoot:
    """The URL of a root, and the settings by which processes find it and its ledger."""

    url: str
    settings: Mapping[str, str]

    @classmethod
    def in_folder(cls, folder: Path) -> "SampleRoot":
        """Return a root in a local folder."""
        return cls(str(folder), {"NEWS_PLATFORM_SAMPLE": "1"})

    @classmethod
    def in_bucket(cls, server: str, bucket: str, *, folder: Path) -> "SampleRoot":
        """Return a root in an S3 emulator; its ledger and the world lie in a folder."""
        settings = {
            "NEWS_PLATFORM_SAMPLE": "1",
            "NEWS_PLATFORM_SAMPLE_WORLD": str(folder / "world"),
            "NEWS_PLATFORM_S3_ENDPOINT": server,
            "NEWS_PLATFORM_S3_ACCESS_KEY": "test-key",
            "NEWS_PLATFORM_S3_SECRET_KEY": "test-secret",
            "NEWS_PLATFORM_ALLOW_HTTP": "1",
            _LEDGER: f"sqlite:///{folder}/ledger.sqlite",
        }
        return cls(f"s3://{bucket}/root", settings)

    def upload(self, root: Path) -> None:
        """Fill an empty root with the files of a local one; its ledger is a file elsewhere."""
        store = self.store
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            if path.is_file() and not name.startswith(("world/", "ledger.sqlite", ".incoming")):
                store.put(name, path)
        shutil.copy(root / "ledger.sqlite", self.settings[_LEDGER].removeprefix("sqlite:///"))

    def copy(self, folder: Path) -> "SampleRoot":
        """Copy a local root to another place."""
        shutil.copytree(self.url, folder)
        return SampleRoot(str(folder), self.settings)

    @property
    def store(self) -> ObjectStore:
        """Open the root."""
        return self._resources().data_root.store

    def _resources(self) -> SampleResources:
        environ = {**self.settings, "NEWS_PLATFORM_ROOT": self.url}
        return SampleResources(load_settings(environ), frozen_clock=True)

    @contextmanager
    def opened(self) -> Iterator[SampleResources]:
        """Open the root with its ledger."""
        resources = self._resources()
        try:
            yield resources
        finally:
            resources.ledger.close()

    def start(self, *words: str) -> "subprocess.Popen[bytes]":
        """Start a command on the root."""
        kept = {key: value for key, value in os.environ.items() if key != "DAGSTER_HOME"}
        is_demo = words == ("demo",)
        module = "news_platform_tests.takedowns.build_sample" if is_demo else "news_platform.cli"
        return subprocess.Popen(
            [sys.executable, "-m", module, *words, "--root", self.url],
            env={**kept, **self.settings},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def run(self, *words: str) -> None:
        """Run a command to its end, which must be a good one."""
        assert self.start(*words).wait() == 0, words

    def apply(self) -> None:
        """Serve all requests; nothing may be left."""
        with self.opened() as resources:
            assert apply_root(resources).left == {}

    def verified(self) -> VerificationReport:
        """Read everything; nothing may wait to be removed."""
        with self.opened() as resources:
            assert not has_work(resources)
            return verify_root(resources)


def kill_after(process: "subprocess.Popen[bytes]", seconds: float) -> None:
    """End a process with kill -9 if it runs longer than this."""
    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        os.kill(process.pid, signal.SIGKILL)
    process.wait()
