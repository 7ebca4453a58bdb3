"""`make soak` goes on where it ended, and its report says what ran."""

import ast
from pathlib import Path

from news_platform_tests import soak
from news_platform_tests.soak import Result, promised_tests, wanted, write_report

PARTS = [
    "news_platform_tests/a/test_one.py::test_kills",
    "news_platform_tests/b/test_two.py::test_fuzz[1|2]",
]


def test_what_passed_at_this_commit_is_not_run_again() -> None:
    here = soak._commit()
    passed = Result(PARTS[0], "passed", 1.0, "2026-01-01 00:00", here)
    assert wanted(PARTS, [], {PARTS[0]: passed}) == PARTS[1:]
    for outcome, commit in (("failed", here), ("passed", "another")):
        result = Result(PARTS[0], outcome, 1.0, "2026-01-01 00:00", commit)
        assert wanted(PARTS, [], {PARTS[0]: result}) == PARTS
    assert wanted(PARTS, ["fuzz"], {}) == PARTS[1:]


def test_the_report_names_every_result_also_those_of_other_machines(tmp_path: Path) -> None:
    report = tmp_path / "soak.md"
    for part in PARTS:
        write_report({part: Result(part, "passed", 61.4, "2026-01-01 00:00", "c")}, report)
    assert report.read_text().splitlines()[-2:] == [
        "| `a/test_one.py::test_kills` | passed | 61 | 2026-01-01 00:00 | c |",
        "| `b/test_two.py::test_fuzz[1\\|2]` | passed | 61 | 2026-01-01 00:00 | c |",
    ]


def test_every_promise_names_tests_that_exist() -> None:
    tests = promised_tests()
    assert len(tests) > 50
    for test in tests:
        file, _, name = test.partition("::")
        module = ast.parse((Path(__file__).parent / file).read_text())
        assert name in {node.name for node in module.body if isinstance(node, ast.FunctionDef)}
