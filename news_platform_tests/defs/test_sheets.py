"""The editors' view as an asset: written once, then nothing is due until the ledger changes."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import dagster as dg
import openpyxl
import pytest

from news_platform.defs.resources import resources
from news_platform.defs.sheets import STALE, defs, run_article_sheets
from news_platform.resources import Doors
from news_platform.settings import SheetsSettings, load_settings
from news_platform.storage.commit.root import pause
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)
from news_platform_tests.rss.ledger_rows import add_article, add_feed


@pytest.fixture
def doors(sample_world: Path, tmp_path: Path) -> Iterator[Doors]:
    settings = replace(
        load_settings({}),
        root=str(tmp_path / "root"),
        sample=True,
        sample_world=str(sample_world),
    )
    doors = Doors(settings, frozen_clock=True)
    yield doors
    doors.ledger.close()


def build(doors: Doors) -> dg.ExecuteInProcessResult:
    shell = dg.Definitions(resources=resources(doors), executor=dg.in_process_executor)
    job = dg.Definitions.merge(defs, shell).resolve_implicit_global_asset_job_def()
    return job.execute_in_process(asset_selection=[dg.AssetKey("article_sheets")])


def test_the_workbook_is_written_once_and_again_when_the_ledger_changed(doors: Doors) -> None:
    add_feed(doors.ledger.engine, "https://outlet.example/feed")
    assert STALE["article_sheets"](doors) == ["all"]
    result = build(doors)
    [event] = result.get_asset_materialization_events()
    assert event.materialization.metadata["dagster/row_count"].value == 1
    assert STALE["article_sheets"](doors) == []
    add_article(doors.ledger.engine)
    assert STALE["article_sheets"](doors) == ["all"]


def test_a_person_can_open_what_the_metadata_names(doors: Doors) -> None:
    [event] = build(doors).get_asset_materialization_events()
    path = str(event.materialization.metadata["dagster/uri"].value).removeprefix("file://")
    assert "Raw" in openpyxl.load_workbook(path).sheetnames


@pytest.fixture
def emulator() -> SheetsEmulator:
    return SheetsEmulator()


@pytest.fixture
def google_doors(doors: Doors, emulator: SheetsEmulator) -> Iterator[Doors]:
    """Give doors whose settings name a Google Sheet at the emulator."""
    with sheets_server(emulator) as url:
        sheets = SheetsSettings(
            service_account=service_account_key(url), spreadsheet_title="News", endpoint=url
        )
        doors = Doors(replace(doors.settings, sheets=sheets), frozen_clock=True)
        yield doors
        doors.ledger.close()


def test_a_google_sheet_takes_the_place_of_the_workbook(
    google_doors: Doors, emulator: SheetsEmulator
) -> None:
    add_article(google_doors.ledger.engine)
    assert STALE["article_sheets"](google_doors) == ["all"]
    [event] = build(google_doors).get_asset_materialization_events()
    metadata = event.materialization.metadata
    assert metadata["rows_added"].value == 3
    assert "docs.google.com" in str(metadata["sheet"].value)
    [book] = emulator.books.values()
    assert [row[0] for row in book.titled("Raw").rows] == ["row_id", 1]
    assert STALE["article_sheets"](google_doors) == []
    assert not google_doors.data_root.store.exists("article_sheets/articles.xlsx")


def test_an_admins_address_is_looked_at_by_the_run(
    google_doors: Doors, emulator: SheetsEmulator
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
    assert (second[0], second[3], second[10]) == (bad, "rejected", "[unreachable: status 404]")


def test_the_schedule_runs_when_there_is_something_to_show(doors: Doors) -> None:
    with dg.build_schedule_context(resources={"data_root": doors.data_root}) as context:
        assert isinstance(run_article_sheets(context), dg.RunRequest)
        build(doors)
        assert isinstance(run_article_sheets(context), dg.SkipReason)
        add_article(doors.ledger.engine)
        pause(doors.data_root.store)
        assert isinstance(run_article_sheets(context), dg.SkipReason)
