"""Redirects: where they lead, when they end, and which of them are permanent."""

import pytest
from yarl import URL

from news_platform.errors import FetchError
from news_platform.web.redirects import is_permanent_redirect, next_url

PAGE = "https://post.example/a/b?x=1"


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("/c", "https://post.example/c"),
        ("c", "https://post.example/a/c"),
        ("//other.example/", "https://other.example/"),
        ("https://other.example/x#part", "https://other.example/x"),
        ("?y=2", "https://post.example/a/b?y=2"),
    ],
)
def test_a_location_is_relative_to_the_url_that_sent_it(location: str, target: str) -> None:
    assert next_url(URL(PAGE), location, visited=[PAGE], max_redirects=5) == target


@pytest.mark.parametrize(
    ("location", "visited", "reason"),
    [
        (PAGE, [PAGE], "too_many_redirects"),
        ("/c", ["https://post.example/c", PAGE], "too_many_redirects"),
        ("/c", [f"https://post.example/{n}" for n in range(6)], "too_many_redirects"),
        ("http://[broken", [PAGE], "bad_url"),
    ],
    ids=["to itself", "loop", "too many", "not a URL"],
)
def test_a_redirect_that_leads_nowhere_is_an_error(
    location: str, visited: list[str], reason: str
) -> None:
    with pytest.raises(FetchError) as caught:
        next_url(URL(PAGE), location, visited=visited, max_redirects=5)
    assert caught.value.reason == reason


@pytest.mark.parametrize(
    ("statuses", "permanent"),
    [((), False), ((301,), True), ((308, 301), True), ((301, 302), False), ((307,), False)],
)
def test_only_permanent_redirects_throughout_are_permanent(
    statuses: tuple[int, ...], permanent: bool
) -> None:
    assert is_permanent_redirect(statuses) is permanent
