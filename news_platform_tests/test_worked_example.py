"""The demo has the rows that it had, and the outputs that the docs show are its own."""

import json
import runpy
from pathlib import Path

import pytest

from news_platform_tests.goldens import read_goldens
from news_platform_tests.servers.demo import Demo

EXAMPLES = runpy.run_path(str(Path(__file__).parent.parent / "docs" / "examples.py"))
KNOWN = Path(__file__).with_name("goldens.json")


# The commands of a page start a process each; the worked example runs in this one.
PAGES = [
    pytest.param(
        page, id=page.name, marks=() if page.stem == "worked_example" else pytest.mark.live
    )
    for page in EXAMPLES["PAGES"]
]


@pytest.mark.parametrize("page", PAGES)
def test_every_output_that_a_page_shows_is_what_the_demo_gives(
    page: Path, finished_demo: Demo
) -> None:
    shown = page.read_text(encoding="utf-8")
    now = EXAMPLES["answered_page"](page, finished_demo.root)
    assert shown == now, "run `python docs/examples.py` over a finished demo"


def test_the_demo_has_the_same_rows_as_before(finished_demo: Demo) -> None:
    known, found = json.loads(KNOWN.read_text()), read_goldens(finished_demo.root)
    differ = {name for name in known.keys() | found.keys() if known.get(name) != found.get(name)}
    assert not differ, "if they are right, run `python -m news_platform_tests.goldens DEMO_ROOT`"
