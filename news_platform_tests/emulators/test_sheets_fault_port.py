"""The fault port: faults are set, cleared and counted by HTTP, and the clock is advanced."""

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from news_platform_tests.emulators.relay import serve
from news_platform_tests.emulators.sheets.fault_port import FaultPort
from news_platform_tests.emulators.sheets.server import SheetsEmulator, sheets_server


@dataclass(frozen=True)
class Port:
    """The two URLs of an emulator with one spreadsheet, as another process sees them."""

    url: str
    fault_url: str
    book: str

    def order(self, method: str, path: str, body: Any = None) -> requests.Response:
        return requests.request(method, self.fault_url + path, json=body, timeout=10)

    def call(self, method: str = "GET", path: str = "", *, timeout: float = 10) -> int:
        """Make a call to the spreadsheet and return its status."""
        token = requests.post(f"{self.url}/token", timeout=10).json()["access_token"]
        return requests.request(
            method,
            f"{self.url}/v4/spreadsheets/{self.book}{path}",
            headers={"Authorization": f"Bearer {token}"},
            json={"requests": [{"addSheet": {"properties": {"title": "New"}}}]}
            if method == "POST"
            else None,
            timeout=timeout,
        ).status_code

    def add_sheet(self, *, timeout: float = 10) -> int:
        return self.call("POST", ":batchUpdate", timeout=timeout)


@pytest.fixture
def emulator() -> SheetsEmulator:
    return SheetsEmulator(clock=lambda: 0.0)


@pytest.fixture
def port(emulator: SheetsEmulator) -> Iterator[Port]:
    book = emulator.new_book("Book")
    with sheets_server(emulator) as url, serve(FaultPort(emulator)) as fault_url:
        yield Port(url, fault_url, book.id)


def titles(emulator: SheetsEmulator) -> list[str]:
    [book] = emulator.books.values()
    return [sheet.title for sheet in book.sheets]


def test_every_call_is_over_quota_until_the_clock_has_passed_the_window(port: Port) -> None:
    port.order("PUT", "/faults", {"over_quota_seconds": 90})
    assert [port.call(), port.add_sheet(), port.call()] == [429, 429, 429]
    port.order("POST", "/clock", {"advance_seconds": 89})
    assert port.call() == 429
    port.order("POST", "/clock", {"advance_seconds": 1})
    assert [port.call(), port.add_sheet()] == [200, 200]


def test_a_503_comes_before_or_after_the_change(port: Port, emulator: SheetsEmulator) -> None:
    port.order("PUT", "/faults", {"planned": ["before", "after"]})
    assert port.add_sheet() == 503 and titles(emulator) == ["Sheet1"]
    assert port.add_sheet() == 503 and titles(emulator) == ["Sheet1", "New"]
    assert port.order("GET", "/faults").json()["happened"] == {"before": 1, "after": 1}


def test_a_change_is_applied_after_its_client_has_timed_out(
    port: Port, emulator: SheetsEmulator
) -> None:
    port.order("PUT", "/faults", {"planned": ["late"], "stall_seconds": 5, "latest": 1000})
    with pytest.raises(requests.ConnectionError, match="timed out"):
        port.add_sheet(timeout=0.2)
    assert titles(emulator) == ["Sheet1"]
    assert port.order("POST", "/late").json() == {"applied": 1}
    assert titles(emulator) == ["Sheet1", "New"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("PUT", "/faults", {"shares": 1}, 400),
        ("POST", "/clock", {"advance_seconds": -1}, 400),
        ("POST", "/faults", {}, 404),
    ],
)
def test_an_order_that_cannot_be_meant_changes_nothing(
    port: Port, method: str, path: str, body: Any, status: int
) -> None:
    port.order("PUT", "/faults", {"share": 0.25})
    before = port.order("GET", "/faults").json()
    refused = port.order(method, path, body)
    assert refused.status_code == status and refused.json()["error"]
    assert port.order("GET", "/faults").json() == before


def test_it_starts_alone_with_its_faults_and_takes_orders(tmp_path: Path) -> None:
    module, key = "news_platform_tests.emulators.sheets", tmp_path / "key.json"
    options = ["--key", str(key), "--fault-share", "1", "--seed", "3", "--fault-port", "0"]
    with subprocess.Popen(
        [sys.executable, "-m", module, *options], stdout=subprocess.PIPE
    ) as server:
        assert server.stdout is not None
        url, fault_url = (server.stdout.readline().decode().strip() for _ in range(2))
        port = Port(url, fault_url, "none")
        assert requests.get(f"{url}/v4/spreadsheets/none", timeout=10).status_code == 401
        assert port.call() in (429, 503)
        port.order("DELETE", "/faults")
        assert port.call() == 404
        server.kill()
    assert url in key.read_text("utf-8")
