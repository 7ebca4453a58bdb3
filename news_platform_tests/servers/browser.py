"""A real browser for tests that look at the UI as a person does."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from news_platform.settings import load_settings

# As root, Chromium needs to be told to do without its sandbox; nothing here needs the outside.
CHROMIUM_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
# Lay-out of a whole graph takes its time on a busy machine.
PATIENCE_MS = 90_000


@contextmanager
def browsing(*, width: int = 2400, height: int = 1400) -> Iterator[Page]:
    """Open a page of the system's Chromium; skip where there is none."""
    found = load_settings(os.environ).chromium or shutil.which("chromium")
    if found is None:
        pytest.skip("no Chromium found: install one or set NEWS_PLATFORM_CHROMIUM")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": width, "height": height})
        page.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        yield page
        browser.close()
