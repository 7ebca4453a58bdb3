"""The counters of every run are in its metadata, in the ledger and in the Diagnostics tab."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import pytest
import sqlalchemy as sa

from news_platform.defs import rss, rss_checks, sheets
from news_platform.defs.graph import definitions_of
from news_platform.resources import Resources
from news_platform.rss.ledger.tables import DIAGNOSTICS, FEEDS
from news_platform.sample.world import SampleResources, place_inputs
from news_platform.setting_sections.features import SheetsSettings
from news_platform.settings import Settings
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)
from news_platform_tests.rss.sheets.harness import tab_rows

# The counters, by their names in the asset's metadata and in the ledger.
COUNTERS = {
    ("pending_articles", "new_articles"): ("poll", "new_articles"),
    ("pending_articles", "not_modified"): ("poll", "feeds_not_modified"),
    ("articles", "stored"): ("work", "stored"),
    ("articles", "duplicates_found"): ("work", "duplicate_"),
    ("articles", "errors"): ("work", "error"),
    ("article_sheets", "quota_waits"): ("sheets", "quota_waits"),
}


@dataclass
class Shell:
    """The assets of rss over a sample root and an emulated Google Sheet."""

    resources: Resources
    emulator: SheetsEmulator
    shown: Counter[tuple[str, str]] = field(default_factory=Counter)

    def build(self, asset: str) -> None:
        """Run an asset and sum the counters that its run shows in the UI."""
        shell = dg.Definitions(
            resources={"platform": self.resources}, executor=dg.in_process_executor
        )
        merged = dg.Definitions.merge(definitions_of(rss, rss_checks, sheets), shell)
        job = merged.resolve_implicit_global_asset_job_def()
        result = job.execute_in_process(asset_selection=[dg.AssetKey(asset)])
        [event] = result.get_asset_materialization_events()
        for of_asset, name in COUNTERS:
            if of_asset == asset:
                value = event.materialization.metadata[name]
                assert isinstance(value, dg.IntMetadataValue), name
                self.shown[asset, name] += value.value or 0

    def ledger_counters(self) -> Counter[tuple[str, str]]:
        chosen = sa.select(DIAGNOSTICS.c.stage, DIAGNOSTICS.c.metric, DIAGNOSTICS.c.value)
        with self.resources.ledger.engine.begin() as connection:
            return added_up(tuple(row) for row in connection.execute(chosen))

    def tab_counters(self) -> Counter[tuple[str, str]]:
        [book] = self.emulator.books.values()
        rows = tab_rows(book.titled("Diagnostics"))
        return added_up((row["stage"], row["metric"], row["value"]) for row in rows)


def added_up(rows: Iterator[tuple[object, ...]]) -> Counter[tuple[str, str]]:
    """Sum the counters of the ledger, under the names of the metadata."""
    total: Counter[tuple[str, str]] = Counter()
    for stage, metric, value in rows:
        for shown, (of_stage, name) in COUNTERS.items():
            if stage == of_stage and (metric == name or name == str(metric)[: len("duplicate_")]):
                total[shown] += int(float(str(value)))
    return total


@pytest.fixture
def shell(sample_world: Path, tmp_path: Path) -> Iterator[Shell]:
    emulator = SheetsEmulator()
    with sheets_server(emulator) as url:
        google = SheetsSettings(
            service_account=service_account_key(url), spreadsheet_title="News", endpoint=url
        )
        settings = Settings(
            root=str(tmp_path / "root"),
            sample=True,
            sample_world=str(sample_world),
            sheets=google,
        )
        resources = SampleResources(settings, frozen_clock=True)
        place_inputs(sample_world, resources.data_root.store)
        yield Shell(resources, emulator)
        resources.ledger.close()


def test_every_counter_of_every_run_is_in_the_ui_the_ledger_and_the_tab(shell: Shell) -> None:
    for asset in ("feeds", "pending_articles", "articles"):
        shell.build(asset)
    with shell.resources.ledger.engine.begin() as connection:
        connection.execute(sa.update(FEEDS).values(next_poll_at=None))
    shell.build("pending_articles")
    shell.emulator.faults.planned.append("over_quota")
    shell.build("article_sheets")
    assert shell.shown.keys() == COUNTERS.keys() and min(shell.shown.values()) > 0, shell.shown
    assert shell.ledger_counters() == shell.shown
    # A sync writes its counters to the ledger; the next one shows them in the tab.
    shell.build("article_sheets")
    assert shell.tab_counters() == shell.ledger_counters() == shell.shown
