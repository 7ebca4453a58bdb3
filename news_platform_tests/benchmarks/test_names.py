"""`make bench` runs what there is, and every figure has its page."""

import importlib
from pathlib import Path

import pytest

from benchmarks.__main__ import BENCHMARKS

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("name", BENCHMARKS)
def test_every_benchmark_can_be_run(name: str) -> None:
    assert callable(importlib.import_module(f"benchmarks.{name}").main)


def test_every_page_of_figures_stands_in_the_index() -> None:
    index = (DOCS / "benchmarks.md").read_text(encoding="utf-8")
    pages = sorted(path.name for path in (DOCS / "benchmarks").glob("*.md"))
    assert pages
    assert [page for page in pages if f"(benchmarks/{page})" not in index] == []
