"""Roots of earlier releases open with the code of today, and can be built on."""

import json
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from news_platform.cli.main import main
from news_platform_tests.roots.contents import read_contents

HERE = Path(__file__).parent
RELEASES = sorted(path.name.removesuffix(".tar.xz") for path in HERE.glob("*.tar.xz"))


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def root(release: str, tmp_path: Path) -> Path:
    with tarfile.open(HERE / f"{release}.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    return tmp_path / "root"


def test_there_is_a_root_of_the_first_release() -> None:
    assert "root-0.1" in RELEASES


def test_it_reads_as_its_own_release_read_it(release: str, root: Path) -> None:
    before = sorted(path for path in root.rglob("*") if path.is_file())
    expected = json.loads((HERE / f"{release}.json").read_text(encoding="utf-8"))
    assert read_contents(str(root)) == expected
    # SQLite's side files come and go with every connection.
    after = {path for path in root.rglob("*") if path.is_file() and ".sqlite-" not in path.name}
    assert after == {path for path in before if ".sqlite-" not in path.name}


def test_its_store_verifies_and_can_be_built_on(release: str, root: Path) -> None:
    expected = json.loads((HERE / f"{release}.json").read_text(encoding="utf-8"))
    for command in ("verify", "build", "verify"):
        result = CliRunner().invoke(main, ["store", command, "--root", str(root), "--json"])
        assert result.exit_code == 0, result.output
    assert read_contents(str(root))["domains"] == expected["domains"]
