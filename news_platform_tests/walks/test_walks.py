"""The walks of docs/architecture.md are what the code does."""

from itertools import chain
from pathlib import Path

import pytest

from news_platform_tests.walks.record import (
    WALKS,
    parse_log,
    parse_walk,
    read_page_walk,
    render_walk,
)

# A newcomer reads these modules to follow one record through the platform. The aim is 45 and 60;
# until it is reached, the numbers may only fall.
MOST_MODULES = {"crawl": 47, "feed": 60}


@pytest.mark.parametrize("name", WALKS)
def test_the_page_lists_the_modules_that_a_record_passes(
    name: str, sample_world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWS_PLATFORM_SAMPLE_WORLD", str(sample_world))
    traced = WALKS[name](tmp_path)
    listed = parse_walk(read_page_walk(name))
    # Threads may enter two modules in either order, so the order within a step is the page's.
    assert {step: sorted(modules) for step, modules in listed.items()} == {
        step: sorted(modules) for step, modules in traced.items()
    }, "run `python -m news_platform_tests.walks`"
    assert len(list(chain(*listed.values()))) <= MOST_MODULES[name]


def test_a_rendered_walk_reads_back() -> None:
    steps = parse_log("early\n# one\na.b\ndatasets.x\na.b\n# two\nc\na.b\n# three\na.b\n")
    assert steps == {"one": ["a.b"], "two": ["c"], "three": []}
    assert parse_walk(render_walk(steps)) == steps
