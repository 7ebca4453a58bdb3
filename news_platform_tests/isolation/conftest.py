"""Ignore workers of pools that other tests in this process still hold."""

import pytest

from news_platform_tests.isolation import processes


@pytest.fixture(autouse=True)
def _only_new_workers_count() -> None:
    processes.FOREIGN.clear()
    processes.FOREIGN.update(processes.own_children())
