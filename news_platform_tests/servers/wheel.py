"""The wheel of this checkout, installed into a folder: what users run, without the checkout."""

import subprocess
import sys
from pathlib import Path

import pytest

_PROJECT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def installed_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, the wheel from the sdist, and install the wheel into a folder."""
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), "."]
    subprocess.run(build, cwd=_copy_of_sources(out), check=True, capture_output=True, timeout=240)
    (wheel,) = out.glob("*.whl")
    assert len(list(out.glob("*.tar.gz"))) == 1
    uv = str(Path(sys.executable).parent / "uv")
    install = [uv, "pip", "install", "--no-deps", "--offline", "--target", str(out / "site")]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=240)
    return out / "site"


def _copy_of_sources(out: Path) -> Path:
    """Copy what a wheel is built from, so that the build leaves nothing in the checkout."""
    sources = out / "sources"
    listed = ["pyproject.toml", "README.md", "LICENSE", "news_platform"]
    sources.mkdir()
    subprocess.run(["cp", "-r", *listed, str(sources)], cwd=_PROJECT, check=True)
    return sources
