"""The lock is exact and free of addresses; the built wheel works from any folder."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

PROJECT = Path(__file__).parent.parent
PIN = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==\S+")


@pytest.fixture(scope="module")
def lock_text() -> str:
    return (PROJECT / "requirements.lock").read_text(encoding="utf-8")


def _names(requirements: list[str]) -> set[str]:
    return {re.split(r"[\[<>=;~! ]", text)[0].lower().replace(".", "-") for text in requirements}


def test_every_line_of_the_lock_is_pinned_with_hashes_and_names_no_address(lock_text: str) -> None:
    assert "://" not in lock_text
    entries = re.split(r"\n(?=[A-Za-z0-9])", lock_text.strip())
    assert len(entries) > 100
    assert [
        entry for entry in entries if not PIN.match(entry) or "--hash=sha256:" not in entry
    ] == []


def test_the_lock_covers_all_extras(lock_text: str) -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    wanted = _names(project["dependencies"]).union(*map(_names, extras))
    locked = {
        m[1].lower().replace(".", "-") for line in lock_text.splitlines() if (m := PIN.match(line))
    }
    assert wanted <= locked


@pytest.fixture(scope="module")
def installed_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the sdist, the wheel from the sdist, and install the wheel into a folder."""
    out = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(out), "."]
    subprocess.run(build, cwd=_copy_of_sources(out), check=True, capture_output=True, timeout=120)
    (wheel,) = out.glob("*.whl")
    assert len(list(out.glob("*.tar.gz"))) == 1
    uv = str(Path(sys.executable).parent / "uv")
    install = [uv, "pip", "install", "--no-deps", "--offline", "--target", str(out / "site")]
    subprocess.run([*install, str(wheel)], check=True, capture_output=True, timeout=120)
    return out / "site"


def _copy_of_sources(out: Path) -> Path:
    """Copy what a wheel is built from, so that the build leaves nothing in the checkout."""
    sources = out / "sources"
    listed = ["pyproject.toml", "README.md", "LICENSE", "news_platform"]
    sources.mkdir()
    subprocess.run(["cp", "-r", *listed, str(sources)], cwd=PROJECT, check=True)
    return sources


def test_the_wheel_holds_its_package_data(installed_wheel: Path) -> None:
    package = installed_wheel / "news_platform"
    assert (package / "py.typed").exists()
    assert list((package / "sample").rglob("*.toml"))
    assert (package / "composition" / "migrations" / "env.py").exists()
    assert list((package / "server" / "templates").glob("*.html"))
    assert list((package / "server" / "static").glob("*.css"))
    assert not (installed_wheel / "news_platform_tests").exists()


def test_the_wheel_works_from_any_folder(installed_wheel: Path, tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path\n"
        f"sys.path.insert(0, {str(installed_wheel)!r})\n"
        "import news_platform\n"
        f"assert news_platform.__file__.startswith({str(installed_wheel)!r})\n"
        "from news_platform.resources import open_resources\n"
        "from news_platform.settings import Settings\n"
        "resources = open_resources(Settings(root='root', sample=True))\n"
        "assert resources.world.folder.is_dir(); resources.ledger.engine.connect().close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
