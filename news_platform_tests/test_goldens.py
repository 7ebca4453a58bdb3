"""The demo has the rows that it had: a change of the code changes them only on purpose."""

import json
from pathlib import Path

from news_platform_tests.goldens import read_goldens
from news_platform_tests.servers.demo import Demo

KNOWN = Path(__file__).with_name("goldens.json")


def test_the_demo_has_the_same_rows_as_before(finished_demo: Demo) -> None:
    known, found = json.loads(KNOWN.read_text()), read_goldens(finished_demo.root)
    differ = {name for name in known.keys() | found.keys() if known.get(name) != found.get(name)}
    assert not differ, "if they are right, run `python -m news_platform_tests.goldens DEMO_ROOT`"
