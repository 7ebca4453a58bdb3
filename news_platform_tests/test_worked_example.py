"""The worked example of the docs, typed again over a finished demo: every answer is the same."""

import doctest
import runpy
from pathlib import Path

from news_platform_tests.servers.demo import Demo

DOCS = Path(__file__).parent.parent / "docs"
PAGE = DOCS / "worked_example.md"


def test_every_answer_of_the_worked_example_is_what_the_demo_gives(finished_demo: Demo) -> None:
    page_format = runpy.run_path(str(DOCS / "worked_example.py"))["page_format"]
    names = {"ROOT": str(finished_demo.root)}
    text = PAGE.read_text(encoding="utf-8")
    page = doctest.DocTestParser().get_doctest(text, names, PAGE.name, str(PAGE), 0)
    with page_format():
        failed, tried = doctest.DocTestRunner().run(page)
    assert failed == 0, "run `python docs/worked_example.py` over a finished demo"
    assert tried > 15
