"""Every record of sixty difficult institutional pages is exactly right."""

import pytest

from news_platform_tests.source_records.adversaries import Adversary, read_adversaries

PAGES = read_adversaries()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_gives_exactly_its_records(page: Adversary) -> None:
    assert page.found() == list(page.records)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_dropped_block_names_its_rule_and_numbers(page: Adversary) -> None:
    dropped = [d for d in page.segment().decisions if d.reason not in (None, "attached")]
    assert [(d.reason, d.block.text) for d in dropped if not d.detail] == []
