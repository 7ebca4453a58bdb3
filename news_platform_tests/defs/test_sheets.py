"""The editors' view as an asset: written once, then nothing is due until the ledger changes."""

from collections.abc import Iterator
from pathlib import Path

import dagster as dg
import pytest

from news_platform.defs import rss
from news_platform.defs.graph import definitions_of
from news_platform.defs.rss import SHEETS_RULE, run_article_sheets
from news_platform.resources import Resources
from news_platform.sample.world import SampleResources
from news_platform.setting_sections.features import SheetsSettings
from news_platform.settings import Settings
from news_platform.storage.commit.root import pause
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)
from news_platform_tests.rss.ledger_rows import add_article, add_feed


@pytest.fixture
def resources(sample_world: Path, tmp_path: Path) -> Iterator[Resources]:
    settings = Settings(
        root=str(tmp_path / "root"),
        sample=True,
        sample_world=str(sample_world),
    )
    resources = SampleResources(settings, frozen_clock=True)
    yield resources
    resources.ledger.close()


def build(resources: Resources) -> dg.ExecuteInProcessResult:
    shell = dg.Definitions(resources={"platform": resources}, executor=dg.in_process_executor)
    job = dg.Definitions.merge(definitions_of(rss), shell).resolve_implicit_global_asset_job_def()
    return job.execute_in_process(asset_selection=[dg.AssetKey("article_sheets")])


def test_the_workbook_is_written_once_and_again_when_the_ledger_changed(
    resources: Resources,
) -> None:
    add_feed(resources.ledger.engine, "https://outlet.example/feed")
    assert SHEETS_RULE.stale(resources).keys() == {"all"}
    result = build(resources)
    [event] = result.get_asset_materialization_events()
    assert event.materialization.metadata["dagster/row_count"].value == 1
    assert SHEETS_RULE.stale(resources) == {}
    add_article(resources.ledger.engine)
    assert SHEETS_RULE.stale(resources).keys() == {"all"}


@pytest.fixture
def emulator() -> SheetsEmulator:
    return SheetsEmulator()


@pytest.fixture
def google_doors(resources: Resources, emulator: SheetsEmulator) -> Iterator[Resources]:
    """Give resources whose settings name a Google Sheet at the emulator."""
    with sheets_server(emulator) as url:
        sheets = SheetsSettings(
            service_account=service_account_key(url), spreadsheet_title="News", endpoint=url
        )
        resources = SampleResources(
            resources.settings.model_copy(update={"sheets": sheets}), frozen_clock=True
        )
        yield resources
        resources.ledger.close()


def test_a_google_sheet_takes_the_place_of_the_workbook(
    google_doors: Resources, emulator: SheetsEmulator
) -> None:
    add_article(google_doors.ledger.engine)
    assert SHEETS_RULE.stale(google_doors).keys() == {"all"}
    [event] = build(google_doors).get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert metadata["appended"].value == 2
    assert "docs.google.com" in str(metadata["sheet"].value)
    [book] = emulator.books.values()
    assert [row[0] for row in book.titled("Raw").rows] == ["row_id", 1]
    assert SHEETS_RULE.stale(google_doors) == {}
    assert not google_doors.data_root.store.exists("article_sheets/articles.xlsx")


def test_an_admins_address_is_looked_at_by_the_run(
    google_doors: Resources, emulator: SheetsEmulator
) -> None:
    build(google_doors)
    [book] = emulator.books.values()
    good, bad = (
        "https://wire.meridian.example/rss.xml",
        "https://news.northmoor.example/comments.xml",
    )
    book.titled("Feeds").append([[good], [bad]])
    [event] = build(google_doors).get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert (metadata["edits_taken"].value, metadata["edits_refused"].value) == (1, 1)
    _, first, second = book.titled("Feeds").rows
    assert (first[0], first[3]) == (good, "active")
    assert (second[0], second[3], second[10]) == (bad, "rejected", "[missing: status 404]")


def test_the_schedule_runs_when_there_is_something_to_show(resources: Resources) -> None:
    with (
        dg.instance_for_test() as instance,
        dg.build_schedule_context(instance=instance, resources={"platform": resources}) as context,
    ):
        request = run_article_sheets(context)
        assert isinstance(request, dg.RunRequest)
        assert request.asset_selection == [dg.AssetKey("article_sheets")]
        build(resources)
        assert isinstance(run_article_sheets(context), dg.SkipReason)
        add_article(resources.ledger.engine)
        pause(resources.data_root.store)
        assert isinstance(run_article_sheets(context), dg.SkipReason)
