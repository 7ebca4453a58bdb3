"""Run commands of the command line, in this process or in one of their own."""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from news_platform.cli.main import main, run_command
from news_platform.errors import NewsPlatformError
from news_platform.storage.objects.store import ObjectStore

Root = Path | str | ObjectStore


@dataclass(frozen=True)
class Commands:
    """The commands of one group, such as `ccnews` or `rss alerts`."""

    group: str
    env: Mapping[str, str] = field(default_factory=dict)

    def run(self, root: Root, *words: str) -> Result:
        """Run a command over a root, whatever its exit code."""
        place = root.url if isinstance(root, ObjectStore) else str(root)
        line = [*self.group.split(), *words, "--root", place]
        return CliRunner(env=self.env).invoke(main, line)

    def text(self, root: Root, *words: str) -> str:
        """Return what a successful command prints."""
        done = self.run(root, *words)
        assert done.exit_code == 0, (done.output, done.exception)
        return done.stdout

    def json(self, root: Root, *words: str) -> Any:
        """Return the JSON document of a successful command."""
        return json.loads(self.text(root, *words, "--json"))

    def error(self, root: Root, *words: str) -> str:
        """Return the message of a command that fails."""
        done = self.run(root, *words)
        assert isinstance(done.exception, NewsPlatformError), (done.output, done.exception)
        return str(done.exception)


def invoke(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    """Run a command in this process; return its exit code, standard error and output."""
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit) as ended:
        patch.setattr(sys, "argv", ["news-platform", *words])
        sys.exit(run_command())
    assert isinstance(ended.value.code, int)
    out, error = capsys.readouterr()
    return ended.value.code, error, out


def process(*words: str, **environ: str) -> "subprocess.CompletedProcess[str]":
    """Run a command as a process of its own with these variables; one that hangs fails."""
    return subprocess.run(
        [sys.executable, "-m", "news_platform.cli", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=environ.get("HOME"),
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(Path.cwd()), **environ},
    )
