"""A sync against an emulator in another process, whose faults the fault port sets."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests
import sqlalchemy as sa

from news_platform.rss.discovery import DiscoveryReport
from news_platform.rss.sheets.books import CallTiming, SheetAccess
from news_platform.rss.sheets.google import ApiClient, QuotaExceeded, open_spreadsheet
from news_platform.rss.sheets.sync import SyncReport, run_sync
from news_platform.rss.sheets.tabs import TABS
from news_platform_tests.rss.ledger_rows import NOW, add_articles
from news_platform_tests.rss.sheets.harness import ledger_rows


@dataclass
class Remote:
    """An emulator in another process; sleeping here advances its clock, so no test waits."""

    engine: sa.Engine
    access: SheetAccess
    fault_url: str
    seconds: float = 0.0

    def order(self, method: str, path: str, **body: Any) -> Any:
        answer = requests.request(method, self.fault_url + path, json=body, timeout=10)
        answer.raise_for_status()
        return answer.json()

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds
        self.order("POST", "/clock", advance_seconds=seconds)

    @property
    def timing(self) -> CallTiming:
        return CallTiming(lambda: self.seconds, self.sleep, timeout_seconds=1.0)

    def sync(self) -> SyncReport:
        return run_sync(
            self.engine,
            self.access,
            owner="remote",
            timing=self.timing,
            clock=lambda: NOW + timedelta(seconds=self.seconds),
            discover=lambda _: DiscoveryReport(0, 0, 0, 0, {}, ()),
        )

    def shown_keys(self, tab: str) -> list[object]:
        spreadsheet = open_spreadsheet(ApiClient(self.access, self.timing))
        [rows] = spreadsheet.fetch_values([f"{tab}!A2:A"])
        return [row[0] for row in rows]


@pytest.fixture
def remote(sqlite_ledger: sa.Engine, tmp_path: Path) -> Iterator[Remote]:
    key = tmp_path / "key.json"
    command = [sys.executable, "-m", "news_platform_tests.emulators.sheets", "--fault-port", "0"]
    with subprocess.Popen([*command, "--key", str(key)], stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        url, fault_url = (server.stdout.readline().decode().strip() for _ in range(2))
        access = SheetAccess(str(key), spreadsheet_title="Desk", endpoint=url)
        yield Remote(sqlite_ledger, access, fault_url)
        server.kill()


def test_a_quota_window_is_waited_out_and_counted(remote: Remote) -> None:
    add_articles(remote.engine, [{} for _ in range(5)])
    remote.order("PUT", "/faults", over_quota_seconds=100)
    report = remote.sync()
    assert report.appended == 10 and report.quota_waits >= 6
    assert remote.seconds >= 100
    assert remote.shown_keys("Raw") == [1, 2, 3, 4, 5]


def test_a_window_without_end_is_an_error_and_the_next_sync_goes_on(remote: Remote) -> None:
    add_articles(remote.engine, [{} for _ in range(5)])
    remote.sync()
    add_articles(remote.engine, [{} for _ in range(5)])
    remote.order("PUT", "/faults", over_quota_seconds=86_400)
    with pytest.raises(QuotaExceeded, match="Quota exceeded"):
        remote.sync()
    remote.order("DELETE", "/faults")
    remote.sync()
    assert remote.shown_keys("Raw") == list(range(1, 11))


def test_a_batch_applied_after_the_client_timed_out_is_there_once(remote: Remote) -> None:
    remote.sync()
    add_articles(remote.engine, [{} for _ in range(5)])
    remote.order("PUT", "/faults", planned=["late", "late"], stall_seconds=20, latest=1_000)
    report = remote.sync()
    assert report.doubts == 2
    assert remote.order("POST", "/late") == {"applied": 2}
    assert remote.shown_keys("Raw") == [1, 2, 3, 4, 5]


def test_a_seeded_share_of_faults_costs_no_row(remote: Remote) -> None:
    remote.order("PUT", "/faults", share=0.3, seed=4)
    add_articles(remote.engine, [{} for _ in range(40)])
    remote.sync()
    assert sum(remote.order("GET", "/faults")["happened"].values()) > 0
    remote.order("DELETE", "/faults")
    remote.order("POST", "/late")
    remote.sync()
    for tab in TABS[1:3]:
        assert len(remote.shown_keys(tab.name)) == len(ledger_rows(remote.engine, tab)) == 40
