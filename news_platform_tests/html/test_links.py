"""Links of a page become absolute web addresses, or nothing."""

import pytest

from news_platform.html.links import absolute_link, base_url, join_link

PAGE = "https://post.example/news/today"


@pytest.mark.parametrize(
    ("link", "address"),
    [
        ("a.html", "https://post.example/news/a.html"),
        ("//cdn.example/x", "https://cdn.example/x"),
        ("?page=2", "https://post.example/news/today?page=2"),
        ("mailto:ada@post.example", None),
        ("data:text/html,x", None),
        ("http:///no-host", None),
        ("http://[broken/x", None),
    ],
)
def test_a_link_is_absolute_or_no_web_address(link: str, address: str | None) -> None:
    assert absolute_link(PAGE, link) == address


def test_a_link_that_cannot_be_parsed_is_empty() -> None:
    assert join_link(PAGE, "//[broken") == ""
    assert join_link(PAGE, "tel:1") == "tel:1"


@pytest.mark.parametrize(
    ("href", "base"),
    [
        (None, PAGE),
        (" /b/ ", "https://post.example/b/"),
        ("http://[broken", PAGE),
    ],
)
def test_relative_links_are_relative_to_the_base_element(href: str | None, base: str) -> None:
    assert base_url(PAGE, href) == base
