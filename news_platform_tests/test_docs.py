"""Generated pages are up to date, and the files, settings and commands that docs name exist."""

import json
import re
import runpy
from pathlib import Path

import click
import pytest

from news_platform.cli.main import main as cli
from news_platform.definitions import defs
from news_platform.defs.graph import VIEWS
from news_platform.settings import setting_infos

PROJECT = Path(__file__).parent.parent
GENERATED: dict[str, str] = runpy.run_path(str(PROJECT / "docs" / "generate.py"))["pages"]()
PAGES = sorted([PROJECT / "README.md", PROJECT / "CONTRIBUTING.md", *PROJECT.glob("docs/**/*.md")])
PATH = re.compile(r"`((?:news_platform|news_platform_tests|benchmarks|deploy)/[\w/]+\.\w+)`")
LINK = re.compile(r"\]\(([^)#\s]+)")


@pytest.mark.parametrize("name", GENERATED)
def test_a_generated_page_is_up_to_date(name: str) -> None:
    stored = (PROJECT / name).read_text(encoding="utf-8")
    assert stored == GENERATED[name], "run `python docs/generate.py`"


def test_every_link_and_every_file_that_a_page_names_leads_somewhere() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        links = [page.parent / target for target in LINK.findall(text) if "://" not in target]
        # docs/extending.md names files to be added; `test_extending.py` follows its steps.
        files = [
            PROJECT / path
            for path in PATH.findall(text)
            if "headlines" not in path and "NAME" not in path
        ]
        assert [path for path in (*links, *files) if not path.exists()] == [], page


def _texts() -> str:
    return "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def test_every_setting_that_the_docs_name_exists() -> None:
    known = {info.env for info in setting_infos()}
    named = set(re.findall(r"\bNEWS_PLATFORM_[A-Z0-9_]*[A-Z0-9]\b", _texts()))
    assert named <= known


def test_every_command_that_the_docs_name_exists() -> None:
    named = re.findall(r"news-platform ([a-z]+)(?: ([a-z]+)\b)?", _texts())
    assert len(named) > 20
    for command, sub in named:
        found = cli.get_command(click.Context(cli), command)
        assert found is not None, command
        if isinstance(found, click.Group):
            assert sub == "" or sub in found.commands, f"{command} {sub}"


def test_the_pictures_show_the_assets_of_today() -> None:
    shown = json.loads((PROJECT / "docs" / "images" / "assets.json").read_text(encoding="utf-8"))
    keys = defs.get_repository_def().asset_graph.get_all_asset_keys()
    now = sorted(key.to_user_string() for key in keys)
    assert shown == now, "run `PYTHONPATH=. python docs/screenshots.py` after `make demo`"


def test_the_readme_fits_on_a_few_screens() -> None:
    assert len((PROJECT / "README.md").read_text(encoding="utf-8").splitlines()) <= 110


def test_the_quick_start_lists_the_views_that_are_tested() -> None:
    page = (PROJECT / "docs" / "quick_start.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| (.+?) \| `(.+)` \|$", page, re.MULTILINE))
    assert rows == VIEWS
