"""A pytest plugin that runs the test suite of gspread against the Sheets emulator.

The suite replays recordings with vcrpy. They are not needed here, nor is vcrpy: what the suite
imports of it is replaced, and its client is connected to the emulator.
"""

import os
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from news_platform.rss.sheets.google import EndpointAdapter
from news_platform_tests.emulators.sheets.changes import Book
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)

# The suite opens this spreadsheet of Google's to be refused.
_PRIVATE = "1jIKzPs8LsiZZdLdeMEP-5ZIHw6RkjiOmj1LrJN706Yc"
_servers = ExitStack()
_url = ""


class Recorder:
    """What the suite's configuration calls of vcrpy."""

    @staticmethod
    def ensure_suffix(suffix: str) -> str:
        """Return the suffix; nothing is recorded."""
        return suffix


class RecordingMissing(Exception):
    """Never raised: nothing is replayed."""


def _replace_vcrpy() -> None:
    vcr, errors = ModuleType("vcr"), ModuleType("vcr.errors")
    vcr.VCR, vcr.errors = Recorder, errors  # type: ignore[attr-defined]  # a module made here
    errors.CannotOverwriteExistingCassetteException = RecordingMissing  # type: ignore[attr-defined]
    sys.modules |= {"vcr": vcr, "vcr.errors": errors}


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Start the emulator before the suite's configuration is read."""
    global _url
    early_config.addinivalue_line("markers", "vcr: a recorded test of gspread")
    emulator = SheetsEmulator(reads_per_minute=100_000, writes_per_minute=100_000)
    # An account that a person uses holds more than the spreadsheet of one test.
    emulator.new_book("Another spreadsheet")
    emulator.books[_PRIVATE] = Book(_PRIVATE, "Private")
    _url = _servers.enter_context(sheets_server(emulator))
    key = Path(_servers.enter_context(tempfile.TemporaryDirectory())) / "key.json"
    key.write_text(service_account_key(_url), encoding="utf-8")
    os.environ["GS_CREDS_FILENAME"] = str(key)


def pytest_unconfigure() -> None:
    """Stop the emulator."""
    _servers.close()


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: pytest.FixtureDef[Any]) -> Generator[None, Any, Any]:
    """Connect the suite's client to the emulator."""
    made = yield
    if fixturedef.argname == "client":
        made.http_client.session.mount("https://", EndpointAdapter(_url))
    return made


_replace_vcrpy()
