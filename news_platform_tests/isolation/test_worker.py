"""The worker's own functions, called in this process."""

import pytest

from news_platform.isolation.worker import load_target, report


def test_a_report_outside_a_worker_does_nothing() -> None:
    report({"offset": 1})


def test_a_target_is_found_by_module_and_name() -> None:
    assert load_target("news_platform_tests.isolation.targets:double")(21) == 42


@pytest.mark.parametrize("target", ["no.such.module:f", "json:no_such_function"])
def test_a_target_that_is_not_there_cannot_be_imported(target: str) -> None:
    with pytest.raises((ImportError, AttributeError)):
        load_target(target)
