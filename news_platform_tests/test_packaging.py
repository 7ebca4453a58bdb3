"""The lock is exact and free of addresses; the built wheel works from any folder."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from deploy.release import bill_of_materials, licence_of, read_pins

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


def test_the_bill_of_materials_names_every_package_of_the_image_with_its_hashes() -> None:
    lock = PROJECT / "deploy" / "requirements.lock"
    bill = bill_of_materials(lock, name="news-platform", version="0.3.0")
    pins = [line.split()[0] for line in lock.read_text().splitlines() if PIN.match(line)]
    assert [f"{one['name']}=={one['version']}" for one in bill["components"]] == [
        re.sub(r"\[.*\]", "", pin) for pin in pins
    ]
    named = {one["bom-ref"]: one for one in bill["components"]}
    assert len(named) == len(pins) and bill["dependencies"][0]["dependsOn"] == list(named)
    for one in bill["components"]:
        assert one["hashes"], one["name"]
    json.dumps(bill)


# Each is used as it is and not changed; of a choice of licences, we take the one that is not GPL.
LESSER = {"certifi", "tqdm", "psycopg2-binary", "tld", "hypothesis", "pathspec"}
# Programs of their own that only developers run: neither the wheel nor the image has them.
DEVELOPMENT_ONLY = {"podman-compose", "text-unidecode", "ultimate-sitemap-parser"}
# The AGPL: asked for, because its keys are those of other CDX servers; see CONTRIBUTING.md.
AGREED = {"surt"}
PERMISSIVE = re.compile(
    r"MIT|BSD|Apache|ISC|PSF|Python Software Foundation|Unlicense|Public Domain|Zlib|HPND|0BSD|CC0"
    r"|PostgreSQL|CMU|Zope|WTFPL|BlueOak|3-Clause",
    re.IGNORECASE,
)
# They state none in their metadata; what their repositories say was read.
STATED_ELSEWHERE = {"mlcroissant": "Apache-2.0", "polars-hash": "MIT", "promql-parser": "MIT"}


@pytest.mark.parametrize("lock", ["requirements.lock", "deploy/requirements.lock"])
def test_every_licence_allows_what_we_do(lock: str) -> None:
    wrong = {}
    for pin in read_pins(PROJECT / lock):
        licence = STATED_ELSEWHERE.get(pin.name) or licence_of(pin.name)
        if (
            licence is None
            or pin.name in AGREED
            or (pin.name in DEVELOPMENT_ONLY and not lock.startswith("deploy"))
        ):
            continue
        is_lesser = re.search(r"LGPL|Lesser|MPL|Mozilla", licence)
        is_named = pin.name in LESSER if is_lesser else PERMISSIVE.search(licence)
        if not is_named:
            wrong[pin.name] = licence
    assert wrong == {}


def test_tools_that_build_are_pinned_by_hashes() -> None:
    pins = {pin.name: pin for pin in read_pins(PROJECT / "deploy" / "build.lock")}
    assert pins.keys() == {"uv", "setuptools"} and all(pin.hashes for pin in pins.values())
    locked = {pin.name: pin.version for pin in read_pins(PROJECT / "requirements.lock")}
    assert pins["setuptools"].version == locked["setuptools"]
    for path in ("Makefile", "deploy/Dockerfile", ".github/workflows/test.yaml"):
        for line in (PROJECT / path).read_text(encoding="utf-8").splitlines():
            if "pip install" in line and "uv pip install" not in line:
                assert "--require-hashes" in line, (path, line)
