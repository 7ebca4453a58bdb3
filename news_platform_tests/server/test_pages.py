"""The pages in a real browser: from a search to an explanation, and with hostile texts."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from lxml import html
from playwright.sync_api import ConsoleMessage, Page

from news_platform.web.urls import url_hash
from news_platform_tests.server.explorer import Explorer
from news_platform_tests.server.hostile import HOSTILE
from news_platform_tests.servers.browser import browsing

LARGEST_PAGE = 100 * 1024
PAGES = (
    *("/", "/?q=bridge", "/search?from=2025-11-01&to=2025-11-01", "/attention?q=bridge&q=council"),
    *("/domains", "/feeds", "/edits", "/policies", "/api", "/explain", "/status"),
)


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browsing(width=1200, height=900) as opened:
        yield opened


@pytest.fixture
def problems(page: Page) -> Iterator[list[str]]:
    """Collect what the browser complains about during a test."""
    found: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            found.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: found.append(str(error)))
    page.on("dialog", lambda dialog: found.append(dialog.message))
    yield found
    page.remove_listener("console", note)


def test_a_reader_walks_from_a_search_to_an_explanation(
    demo_explorer: Explorer, page: Page, problems: list[str]
) -> None:
    page.goto(demo_explorer.url)
    page.get_by_label("Words to search for").fill("bridge OR mayor")
    page.keyboard.press("Enter")
    assert page.get_by_role("status").inner_text().endswith(" articles")
    assert page.locator("mark").count() > 3
    page.locator(".hits a").first.click()
    title = page.locator("h1").inner_text()
    assert title and "WARC" in page.locator("main").inner_text()
    domain = page.locator("main a[href^='/domains/']").first
    name = domain.inner_text()
    domain.click()
    assert page.locator("h1").inner_text() == name
    assert page.locator("svg.chart rect").count() >= 1
    page.get_by_role("link", name="Explain").nth(1).click()
    assert page.get_by_role("status").inner_text().startswith("This domain is known")
    assert page.locator(".evidence li").count() >= 3
    assert problems == []


def test_the_form_works_without_a_mouse_and_without_scripts(
    demo_explorer: Explorer, page: Page, problems: list[str]
) -> None:
    page.goto(f"{demo_explorer.url}/domains")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    assert page.locator("script").count() == 0
    assert problems == []


def test_a_reader_walks_from_the_home_page_to_a_day(
    demo_explorer: Explorer, page: Page, problems: list[str]
) -> None:
    page.goto(demo_explorer.url)
    day = page.locator("svg.chart a").last
    label = day.get_attribute("aria-label") or ""
    day.click()
    assert f"Articles of {label.partition(':')[0]}" in page.locator("main").inner_text()
    assert page.locator(".list li").count() > 10
    assert problems == []


def test_filters_narrow_and_policies_link_to_domains(
    demo_explorer: Explorer, page: Page, problems: list[str]
) -> None:
    page.goto(f"{demo_explorer.url}/?q=the")
    before = page.get_by_role("status").inner_text()
    page.locator(".facets a").first.click()
    assert page.get_by_role("status").inner_text() != before
    page.goto(f"{demo_explorer.url}/policies")
    page.locator("select[name=bot]").select_option("GPTBot")
    page.get_by_role("button", name="Show").click()
    page.locator("table a[href^='/domains/']").first.click()
    assert "Robots and AI policy" in page.locator("main").inner_text()
    assert problems == []


@pytest.mark.parametrize("path", [*PAGES, "/domains/meridian.example"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_fits_a_phone_and_is_readable(
    demo_explorer: Explorer, page: Page, problems: list[str], path: str, scheme: str
) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    page.set_viewport_size({"width": 400, "height": 800})
    page.goto(demo_explorer.url + path)
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert page.evaluate(_CONTRASTS) == []
    unnamed = "[...document.querySelectorAll('input,select')].filter(it => !it.labels.length)"
    assert page.evaluate(f"{unnamed}.length") == 0
    assert page.locator("h1").count() == 1
    assert problems == []
    page.set_viewport_size({"width": 1200, "height": 900})


# Texts whose contrast with the background behind them is below 4.5, by the formula of WCAG 2.
_CONTRASTS = """() => {
  const channels = text => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map(it => it / 255)
    .map(it => it <= 0.03928 ? it / 12.92 : ((it + 0.055) / 1.055) ** 2.4)
    .reduce((sum, it, place) => sum + it * [0.2126, 0.7152, 0.0722][place], 0);
  const behind = it => {
    for (; it; it = it.parentElement) {
      const colour = channels(getComputedStyle(it).backgroundColor);
      if (colour.length < 4 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  return [...document.querySelectorAll('body *')]
    .filter(it => it.innerText && [...it.childNodes].some(c => c.nodeType == 3 && c.data.trim()))
    .map(it => {
      const [one, other] = [channels(getComputedStyle(it).color), behind(it)].map(light);
      return [(Math.max(one, other) + .05) / (Math.min(one, other) + .05), it.outerHTML];
    })
    .filter(([contrast]) => contrast < 4.5)
    .map(([contrast, html]) => contrast.toFixed(1) + ' ' + html.slice(0, 80));
}"""


def test_hostile_articles_are_only_text(small: Explorer, page: Page, problems: list[str]) -> None:
    for number, hostile in enumerate(HOSTILE):
        address = f"https://hostile.example/{number}"
        page.goto(f"{small.url}/articles/{url_hash(address)}?day=2025-11-01")
        assert page.locator("h1").count() == 1, hostile[:80]
        assert f"hostileword number{number}" in page.content() or len(hostile) > 10_000
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        _is_clean(page)
    page.goto(f"{small.url}/?q=hostileword")
    assert page.locator(".hits li").count() == 20
    _is_clean(page)
    assert problems == []


def _is_clean(page: Page) -> None:
    """Nothing of the page runs, loads or leads to another place than the web."""
    assert page.locator("script, iframe, base, object, embed, style, main img").count() == 0
    assert page.locator("meta[http-equiv]").count() == 0
    assert "News Platform" in page.title()
    handlers = "[...document.querySelectorAll('*')].flatMap(it => it.getAttributeNames())"
    names = set(page.evaluate(handlers))
    assert not {name for name in names if name.startswith("on")}
    assert "style" not in names
    for address in page.evaluate("[...document.links].map(it => it.getAttribute('href'))"):
        assert re.match(r"[/#]|https?://", address), address


def test_a_link_to_another_site_tells_it_nothing(small: Explorer) -> None:
    page = html.fromstring(small.get(f"/articles/{url_hash('https://a.example/plain')}").text)
    links = page.iter("a")
    (foreign,) = [link for link in links if link.get("href", "").startswith("http")]
    assert foreign.get("href") == "https://a.example/plain"
    assert foreign.get("rel") == "noopener noreferrer nofollow"


def test_no_page_is_larger_than_100_kb(small: Explorer, demo_explorer: Explorer) -> None:
    sizes = {path: len(demo_explorer.get(path).body) for path in (*PAGES, "/policies?bot=GPTBot")}
    sizes["domain"] = len(demo_explorer.get("/domains/meridian.example").body)
    for number in range(len(HOSTILE)):
        key = url_hash(f"https://hostile.example/{number}")
        sizes[f"hostile {number}"] = len(small.get(f"/articles/{key}").body)
    sizes["hits"] = len(small.get("/?q=hostileword").body)
    sizes["most hits"] = len(small.get("/?q=hostileword&limit=100").body)
    assert {name: size for name, size in sizes.items() if size > LARGEST_PAGE} == {}


def test_a_page_that_is_not_there_is_a_page(small: Explorer, small_root: Path) -> None:
    for path in ("/nothing", "/articles/zz", "/domains/nobody.example", "/static/../app.py"):
        reply = small.get(path)
        assert reply.status == 404 and "<h1>Nothing here</h1>" in reply.text
        assert str(small_root) not in reply.text
