"""The demo has the rows that it had, and the answers of the docs' worked example are its own."""

import doctest
import json
import runpy
from pathlib import Path

from news_platform_tests.goldens import read_goldens
from news_platform_tests.servers.demo import Demo

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "worked_example.md"
KNOWN = Path(__file__).with_name("goldens.json")


def test_every_answer_of_the_worked_example_is_what_the_demo_gives(finished_demo: Demo) -> None:
    page_format = runpy.run_path(str(DOCS / "worked_example.py"))["page_format"]
    names = {"ROOT": str(finished_demo.root)}
    text = PAGE.read_text(encoding="utf-8")
    page = doctest.DocTestParser().get_doctest(text, names, PAGE.name, str(PAGE), 0)
    with page_format():
        failed, tried = doctest.DocTestRunner().run(page)
    assert failed == 0, "run `python docs/worked_example.py` over a finished demo"
    assert tried > 15


def test_the_demo_has_the_same_rows_as_before(finished_demo: Demo) -> None:
    known, found = json.loads(KNOWN.read_text()), read_goldens(finished_demo.root)
    differ = {name for name in known.keys() | found.keys() if known.get(name) != found.get(name)}
    assert not differ, "if they are right, run `python -m news_platform_tests.goldens DEMO_ROOT`"
