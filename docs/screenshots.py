"""Take the screenshots of the docs from a finished demo: `PYTHONPATH=. python docs/screenshots.py`.

They show a copy of the demo with the results of a night in which a check failed.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path

from playwright.sync_api import Page

from news_platform.definitions import defs
from news_platform.storage.commit.root import pause
from news_platform.storage.objects.store import open_store
from news_platform_tests.server.explorer import exploring
from news_platform_tests.servers.browser import browsing
from news_platform_tests.servers.dagster_ui import PROJECT, running_ui
from news_platform_tests.servers.demo import Demo, report_a_red_day

IMAGES = Path(__file__).parent / "images"
SETTLE_MS = 8_000


def main(root: Path, home: Path) -> None:
    """Serve a copy of the demo and write one screenshot per page."""
    IMAGES.mkdir(exist_ok=True)
    write_shown_assets()
    with tempfile.TemporaryDirectory() as scratch:
        demo = Demo(Path(scratch))
        shutil.copytree(root, demo.root, copy_function=os.link)
        shutil.copytree(home, demo.home, symlinks=False)
        pause(open_store(str(demo.root)))  # sensors must not change what is shown
        with (
            running_ui(demo.home, demo.environ) as ui,
            browsing(width=1600, height=1000) as page,
        ):
            _take_lineage(page, ui.url)
            _take_asset(page, ui.url)
            _take_explorer(page, demo)
            report_a_red_day(demo, "2025-11-01")
            page.goto(f"{ui.url}/assets/raw_news?view=checks&checkDetail=rows_equal_markers")
            _settled(page, "check")


def write_shown_assets() -> None:
    """Record which assets the pictures show; a test compares them with the graph of today."""
    names = sorted(
        key.to_user_string() for key in defs.get_repository_def().asset_graph.get_all_asset_keys()
    )
    (IMAGES / "assets.json").write_text(json.dumps(names, indent=1) + "\n", encoding="utf-8")


def _take_lineage(page: Page, url: str) -> None:
    page.goto(f"{url}/asset-groups")
    page.get_by_text("ccnews").first.wait_for()
    page.keyboard.press("Alt+E")
    _settled(page, "lineage")


def _take_asset(page: Page, url: str) -> None:
    page.goto(f"{url}/assets/raw_news?view=overview")
    _settled(page, "raw_news")
    row = page.locator("tr", has=page.get_by_text("languages_per_day", exact=True))
    row.get_by_text("[Show Markdown]").first.click()
    _settled(page, "languages")
    page.keyboard.press("Escape")
    page.get_by_text("Materialize…").first.click()
    days = page.get_by_placeholder("ex: 2025-11-01, 2025-11-02")
    days.fill("[2025-11-01...2025-11-02]")
    days.press("Enter")
    _settled(page, "backfill")


def _take_explorer(page: Page, demo: Demo) -> None:
    environ = {"NEWS_PLATFORM_SAMPLE": "1", "DAGSTER_HOME": str(demo.home)}
    with exploring(demo.root, **environ) as explorer:
        page.set_viewport_size({"width": 1200, "height": 800})
        page.goto(f"{explorer.url}/?q=bridge+OR+mayor")
        page.screenshot(path=IMAGES / "explorer.png")
        page.locator(".hits a").first.click()
        page.locator("#provenance").scroll_into_view_if_needed()
        page.screenshot(path=IMAGES / "explorer_article.png")
    page.set_viewport_size({"width": 1600, "height": 1000})


def _settled(page: Page, name: str) -> None:
    page.wait_for_timeout(SETTLE_MS)
    page.screenshot(path=IMAGES / f"{name}.png")


if __name__ == "__main__":
    main(PROJECT / "data-demo", PROJECT / "data-demo" / ".dagster")
