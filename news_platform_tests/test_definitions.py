"""The one Definitions object: it loads fast, everywhere, and every asset says who it is."""

import os
import shutil
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


@pytest.fixture(scope="module")
def defs(tmp_path_factory: pytest.TempPathFactory) -> dg.Definitions:
    return build_definitions(Resources(Settings(root=str(tmp_path_factory.mktemp("root")))))


def test_every_asset_has_an_owner_a_group_and_a_description(defs: dg.Definitions) -> None:
    specs = list(defs.resolve_all_asset_specs())
    assert specs
    for spec in specs:
        assert spec.description, spec.key
        assert spec.group_name, spec.key
        assert list(spec.owners) == [f"team:{spec.group_name}"], spec.key


def test_the_code_server_can_send_the_definitions(defs: dg.Definitions) -> None:
    sent = serialize_value(RepositorySnap.from_def(defs.get_repository_def()))
    assert '"search_index"' in sent


def _run(*words: str, home: Path) -> str:
    """Run a program over a new root and Dagster home; return what it printed."""
    home.mkdir()
    shutil.copy(PROJECT / "news_platform/composition/dagster.yaml", home)
    done = subprocess.run(
        words,
        cwd=PROJECT,
        env={**os.environ, "DAGSTER_HOME": str(home), "NEWS_PLATFORM_ROOT": str(home / "root")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_dg_command_reads_the_project(tmp_path: Path) -> None:
    _run(str(Path(sys.executable).with_name("dg")), "check", "defs", home=tmp_path / "home")


# Each costs 0.1 to 0.6 s of CPU, and every run, sensor process and worker loads the definitions.
_HEAVY = (
    "boto3",
    "dagster_aws",
    "dagster_gcp",
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
        ("news_platform.cli.main", (*_HEAVY, "dagster", "polars", "pydantic", "sqlalchemy")),
    ],
)
def test_a_start_is_short_loads_no_heavy_library_and_opens_nothing(
    module: str, heavy: tuple[str, ...], tmp_path: Path
) -> None:
    code = (
        f"import sys, time, {module}\n"
        f"print([name for name in {heavy!r} if name in sys.modules], time.process_time())"
    )
    printed = _run(sys.executable, "-W", "ignore", "-c", code, home=tmp_path / "home")
    loaded, seconds = printed.rsplit(maxsplit=1)
    assert loaded == "[]"
    assert float(seconds) < 5
    assert not (tmp_path / "home" / "root").exists()
