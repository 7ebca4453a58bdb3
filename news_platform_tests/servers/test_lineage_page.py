"""The Dagster UI on a sample root, as an analyst first sees it, in a real browser."""

import time
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from news_platform.definitions import defs
from news_platform_tests.servers.browser import PATIENCE_MS, browsing
from news_platform_tests.servers.dagster_ui import DagsterUi, running_ui

SPECS = {spec.key.to_user_string(): spec for spec in defs.resolve_all_asset_specs()}
GROUPS = sorted({spec.group_name or "" for spec in SPECS.values()})


@pytest.fixture(scope="module")
def ui(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DagsterUi]:
    folder = tmp_path_factory.mktemp("ui")
    environ = {"NEWS_PLATFORM_ROOT": str(folder / "root"), "NEWS_PLATFORM_SAMPLE": "1"}
    with running_ui(folder / "home", environ) as running:
        yield running


@pytest.fixture
def page() -> Iterator[Page]:
    # So high that no group lies outside: the graph draws only what is in view.
    with browsing(height=3600) as page:
        yield page


def test_the_daemon_is_healthy(ui: DagsterUi) -> None:
    ask = "{ instance { daemonHealth { allDaemonStatuses { daemonType healthy required } } } }"
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while time.monotonic() < deadline:
        text = str(ui.query(ask))
        if "'SENSOR', 'healthy': True" in text and "'SCHEDULER', 'healthy': True" in text:
            return
        time.sleep(1)
    pytest.fail(f"the daemon did not become healthy: {text}")


def test_the_lineage_page_shows_the_groups_and_expanded_their_assets(
    ui: DagsterUi, page: Page
) -> None:
    page.goto(f"{ui.url}/asset-groups")
    for group in GROUPS:
        expect(page.get_by_text(group, exact=True).first).to_be_visible(timeout=PATIENCE_MS)
    page.keyboard.press("Alt+E")
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while missing := _missing(page.locator("body").inner_text()):
        assert time.monotonic() < deadline, f"not shown: {missing}"
        page.wait_for_timeout(500)


def _missing(text: str) -> list[str]:
    """Return the assets that the page does not name; long ones are cut in the middle."""
    words = set(text.split())
    cut = [tuple(word.split("…")) for word in words if word.count("…") == 1]
    return [
        name
        for name in SPECS
        if name not in words
        and not any(name.startswith(head) and name.endswith(tail) for head, tail in cut if head)
    ]
