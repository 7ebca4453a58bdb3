"""The one Definitions object: it loads fast, everywhere, and every asset says who it is."""

import os
import subprocess
import sys
from pathlib import Path

import dagster as dg
import pytest
from dagster._core.remote_representation.external_data import RepositorySnap
from dagster._serdes import serialize_value

from news_platform.definitions import build_definitions
from news_platform.resources import Resources
from news_platform.settings import Settings

PROJECT = Path(__file__).parent.parent


@pytest.fixture
def specs(tmp_path: Path) -> list[dg.AssetSpec]:
    defs = build_definitions(Resources(Settings(root=str(tmp_path))))
    return list(defs.resolve_all_asset_specs())


def _run(*words: str, home: Path) -> "subprocess.CompletedProcess[str]":
    home.mkdir()
    (home / "dagster.yaml").symlink_to(PROJECT / "dagster.yaml")
    return subprocess.run(
        words,
        cwd=PROJECT,
        env={**os.environ, "DAGSTER_HOME": str(home), "NEWS_PLATFORM_ROOT": str(home / "root")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_every_asset_has_an_owner_a_group_and_a_description(specs: list[dg.AssetSpec]) -> None:
    assert specs
    for spec in specs:
        assert spec.description, spec.key
        assert spec.group_name, spec.key
        assert list(spec.owners) == [f"team:{spec.group_name}"], spec.key


def test_the_workspace_loads_without_installing(tmp_path: Path) -> None:
    done = _run(
        sys.executable, "-m", "dagster", "definitions", "validate", "-w", "workspace.yaml",
        home=tmp_path / "home",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [("list", "defs"), ("check", "defs")], ids=" ".join)
def test_the_dg_command_reads_the_project(words: tuple[str, str], tmp_path: Path) -> None:
    dg_command = Path(sys.executable).with_name("dg")
    done = _run(str(dg_command), *words, home=tmp_path / "home")
    assert done.returncode == 0, done.stdout + done.stderr


def test_loading_the_definitions_opens_nothing_and_leaves_the_clouds_alone(tmp_path: Path) -> None:
    code = (
        "import sys, news_platform.definitions\n"
        "loaded = {'dagster_aws', 'dagster_gcp', 'boto3'} & set(sys.modules)\n"
        "assert not loaded, loaded"
    )
    done = _run(sys.executable, "-c", code, home=tmp_path / "home")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "home" / "root").exists()


# Each costs 0.1 to 0.6 s of CPU, and every run, sensor process and worker loads the definitions.
_HEAVY = (
    "duckdb",
    "fastwarc",
    "feedparser",
    "google.auth",
    "gspread",
    "matplotlib",
    "numpy",
    "py3langid",
    "pyarrow",
    "requests",
    "tldextract",
    "trafilatura",
    "xlsxwriter",
)


@pytest.mark.parametrize(
    ("module", "heavy"),
    [
        ("news_platform.definitions", _HEAVY),
        ("news_platform.settings", (*_HEAVY, "dagster", "polars", "sqlalchemy")),
        ("news_platform.cli.main", (*_HEAVY, "dagster", "polars", "pydantic", "sqlalchemy")),
    ],
)
def test_a_start_loads_no_heavy_library(module: str, heavy: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print([name for name in {heavy!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_code_server_can_send_the_definitions(tmp_path: Path) -> None:
    defs = build_definitions(Resources(Settings(root=str(tmp_path))))
    sent = serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
    assert '"search_index"' in sent
