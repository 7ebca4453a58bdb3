"""What the UI shows of a finished demo, in a real browser, and what it does not let pages do."""

import shutil
import time
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import dagster as dg
import polars as pl
import pytest
from playwright.sync_api import Page, Request, Response, expect

from news_platform.datasets.registry import DATASETS
from news_platform.defs.metadata import preview, run_metadata
from news_platform.storage.commit.collected import collected_names
from news_platform.storage.commit.root import pause
from news_platform.storage.objects.store import open_store
from news_platform_tests.server.hostile import MARKDOWN
from news_platform_tests.servers.browser import browsing
from news_platform_tests.servers.dagster_ui import DagsterUi, running_ui
from news_platform_tests.servers.demo import Demo, report_a_red_day

PATIENCE_SECONDS = 600
BACKFILLED = ("2025-11-01", "2025-11-02")
LAUNCH = """mutation launch($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}"""
STATUS = """query status($id: String!) {
  partitionBackfillOrError(backfillId: $id) {
    ... on PartitionBackfill { status error { message } }
  }
}"""


@pytest.fixture(scope="module")
def demo(finished_demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Demo:
    """Return a demo without two of its days."""
    demo = finished_demo.copy(tmp_path_factory.mktemp("ui") / "demo")
    pause(open_store(str(demo.root)))  # the sensors would mend all before a person could look
    for day in BACKFILLED:
        shutil.rmtree(demo.root / "news" / "collected" / day.replace("-", "/"))
    return demo


@pytest.fixture(scope="module")
def ui(demo: Demo) -> Iterator[DagsterUi]:
    with running_ui(demo.home, demo.environ) as running:
        yield running


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    with browsing(width=1800, height=1200) as page:
        yield page


def test_an_asset_page_tells_what_it_is_and_shows_a_plot_and_a_preview(
    ui: DagsterUi, page: Page
) -> None:
    page.goto(f"{ui.url}/assets/raw_news?view=overview")
    for text in (
        "A row is one HTML response of the crawl",  # the description
        "Target URI of the WARC record",  # a column
        "Latest materialization",
        "2025-11-03",
        "sensitivity: third-party-text",
        "build_raw_news",  # the job that builds it
    ):
        expect(page.get_by_text(text).first).to_be_visible()
    _open(page, "languages_per_day")
    picture = page.locator('img[alt="languages per day"]')
    expect(picture).to_be_visible()
    assert picture.evaluate("image => image.naturalWidth") > 300, "the PNG is drawn"
    _close(page)
    _open(page, "preview")
    # No addresses: those are shown by the explorer alone.
    preview = page.locator("table", has_text="main_lang").last
    expect(preview).to_be_visible()
    expect(preview).not_to_contain_text("https://")


def _open(page: Page, entry: str) -> None:
    """Open a long metadata entry, which the UI keeps behind a link."""
    row = page.locator("tr", has=page.get_by_text(entry, exact=True))
    row.get_by_text("[Show Markdown]").first.click()


def _close(page: Page) -> None:
    """Close the open dialog, which ignores keys until it is drawn."""
    for _ in range(100):
        page.wait_for_timeout(50)
        page.keyboard.press("Escape")
        if not page.locator("[role=dialog]").count():
            return
    raise AssertionError("the dialog stays open")


@pytest.fixture(scope="module")
def planted(demo: Demo, ui: DagsterUi) -> dict[str, str]:
    """Let every asset report hostile text as its runs do; return the link to each."""
    with dg.DagsterInstance.from_config(str(demo.home)) as instance:
        for name, dataset in DATASETS.items():
            columns = [it.name for it in dataset.all_columns if it.dtype == pl.String()]
            rows = pl.DataFrame({column: MARKDOWN for column in (*columns, "computed")})
            tables = {
                f"table_{start}": preview(dataset, rows[start:])
                for start in range(0, len(MARKDOWN), 20)
            }
            told = run_metadata(dataset, {**tables, "text": " ".join(MARKDOWN)})
            instance.report_runless_asset_event(dg.AssetMaterialization(name, metadata=told))
    return {name: f"{ui.url}/assets/{name}?view=events" for name in DATASETS}


def _requests(page: Page, address: str, tables: int) -> list[tuple[str, str, int]]:
    """Open an asset's newest event and all its Markdown; return what the browser asked for."""
    sent: list[tuple[str, str, int]] = []

    def answered(response: Response) -> None:
        sent.append((response.request.method, response.url, response.status))

    def failed(request: Request) -> None:
        sent.append((request.method, request.url, 0))

    page.on("response", answered)
    page.on("requestfailed", failed)
    page.goto(address)
    links = page.get_by_text("[Show Markdown]")
    expect(links.nth(tables - 1)).to_be_visible()
    for number in range(tables):
        links.nth(number).click()
        expect(page.locator("[role=dialog] table, [role=dialog] img").first).to_be_attached()
        _close(page)
    page.remove_listener("response", answered)
    page.remove_listener("requestfailed", failed)
    return [it for it in sent if not it[1].startswith(("data:", "blob:"))]


def test_hostile_text_in_the_metadata_of_any_asset_asks_for_nothing(
    ui: DagsterUi, page: Page, planted: dict[str, str]
) -> None:
    for name, address in planted.items():
        for method, url, status in _requests(page, address, 3):
            assert url.startswith(f"{ui.url}/"), (name, url)
            assert "leak" not in url and (method, "/graphql?" in url) != ("GET", True), (name, url)
            assert status < 400, (name, url, status)


def test_the_webserver_refuses_what_raw_markdown_asks_for(
    ui: DagsterUi, page: Page, demo: Demo
) -> None:
    """Show that the test above could fail, and that escaping is not the only guard."""
    raw = dg.MetadataValue.md(f"![](/graphql?query=mutation{{x}})\n\n{'x ' * 2000}")
    with dg.DagsterInstance.from_config(str(demo.home)) as instance:
        instance.report_runless_asset_event(
            dg.AssetMaterialization("captures", metadata={"raw": raw})
        )
    sent = _requests(page, f"{ui.url}/assets/captures?view=events", 1)
    assert [it for it in sent if it[0] == "GET" and "/graphql?" in it[1]] == [
        ("GET", f"{ui.url}/graphql?query=mutation%7Bx%7D", 400)
    ]


def test_a_backfill_of_two_days_completes(ui: DagsterUi, demo: Demo) -> None:
    params = {"assetSelection": [{"path": ["raw_news"]}], "partitionNames": list(BACKFILLED)}
    launched = ui.query(LAUNCH, params=params)["launchPartitionBackfill"]
    assert isinstance(launched, dict)
    assert launched["__typename"] == "LaunchBackfillSuccess", launched
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (status := str(ui.query(STATUS, id=launched["backfillId"]))).find("COMPLETED") < 0:
        assert "FAILED" not in status and time.monotonic() < deadline, status
        time.sleep(1)
    assert "COMPLETED_SUCCESS" in status
    store = open_store(str(demo.root))
    for day in BACKFILLED:
        assert len(collected_names(store, day=date.fromisoformat(day))) == 2


BADGE = """query badge($asset: AssetKeyInput!) {
  assetNodeOrError(assetKey: $asset) {
    ... on AssetNode {
      assetChecksOrError {
        ... on AssetChecks { checks { name executionForLatestMaterialization { status } } }
      }
    }
  }
}"""


def test_the_runbooks_screens_show_a_red_check_as_red(
    demo: Demo, ui: DagsterUi, page: Page, tmp_path: Path
) -> None:
    """A night with one damaged day: the badge of its check is red, on the graph and on its page."""
    report_a_red_day(demo, "2025-11-01")
    found = str(ui.query(BADGE, asset={"path": ["raw_news"]}))
    badge = "'rows_equal_markers', 'executionForLatestMaterialization': {'status': 'FAILED'}"
    assert badge in found
    page.goto(f"{ui.url}/assets/raw_news?view=checks&checkDetail=rows_equal_markers")
    expect(page.get_by_text("Failed").first).to_be_visible()
    page.screenshot(path=tmp_path / "check.png")
    page.goto(f"{ui.url}/asset-groups")
    page.get_by_text("ccnews").first.wait_for()
    page.keyboard.press("Alt+E")  # opens all groups
    expect(page.get_by_text("raw_news").first).to_be_visible()
    page.screenshot(path=tmp_path / "lineage.png")
    assert all(path.stat().st_size > 20_000 for path in tmp_path.glob("*.png"))
