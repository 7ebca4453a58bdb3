"""Which query parameters are trackers, and which only look like one."""

import pytest

from news_platform.web.urls import TRACKER_NAMES, TRACKER_PREFIXES, is_tracker


@pytest.mark.parametrize("name", ["utm_source", "UTM_anything", "mtm_kwd", "FbClid", "xtor"])
def test_a_known_service_parameter_is_a_tracker(name: str) -> None:
    assert is_tracker(name)


@pytest.mark.parametrize("name", ["source", "ref", "id", "from", "utm", "at", "ns", "p", ""])
def test_a_parameter_that_may_choose_the_page_is_not(name: str) -> None:
    assert not is_tracker(name)


def test_the_list_is_written_as_it_is_compared() -> None:
    assert all(name == name.lower() for name in (*TRACKER_NAMES, *TRACKER_PREFIXES))
    assert not any(name.startswith(TRACKER_PREFIXES) for name in TRACKER_NAMES)
