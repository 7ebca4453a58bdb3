"""The first hour of an analyst, an editor and an engineer, with the wheel and a browser.

No checkout is in reach: the commands run in an empty folder, on a copy of the finished demo.
"""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Page

from news_platform_tests.servers.browser import browsing
from news_platform_tests.servers.dagster_ui import free_port
from news_platform_tests.servers.demo import Demo

PARTS = """
import news_platform
news = news_platform.open("data-demo")
print(repr(news))
print(news["all_articles"].select("domain").unique().collect().height)
"""


@dataclass(frozen=True, slots=True)
class Desk:
    """A folder with the demo's data, and the commands of the installed wheel."""

    folder: Path
    environ: dict[str, str]
    page: Page
    url: str

    def run(self, *words: str, code: int = 0) -> str:
        """Run a command on the demo's root; return what it prints to both outputs."""
        command = [sys.executable, "-m", "news_platform.cli", *words, "--root", "data-demo"]
        return self._run(command, code)

    def python(self, program: str) -> str:
        return self._run([sys.executable, "-c", program], 0)

    def _run(self, command: list[str], code: int) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == code, (command[3:], done.stdout)
        return done.stdout

    def open(self, path: str) -> Page:
        self.page.goto(self.url + path)
        return self.page


@pytest.fixture(scope="module")
def desk(
    finished_demo: Demo, installed_wheel: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Desk]:
    folder = tmp_path_factory.mktemp("roles") / "desk"
    finished_demo.copy(folder)
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "LANG")}
    own = {"PYTHONPATH": str(installed_wheel), "HOME": str(folder), "COLUMNS": "400"}
    environ = {**kept, **own, "DAGSTER_HOME": str(folder / "home")}
    port = free_port()
    serve = ["serve", "--port", str(port), "--root", "data-demo"]
    command = [sys.executable, "-m", "news_platform.cli", *serve]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=folder, env=environ, stderr=subprocess.DEVNULL) as serving:
        try:
            _wait_for(url)
            with browsing(width=1200, height=900) as page:
                yield Desk(folder, environ, page, url)
        finally:
            serving.send_signal(signal.SIGINT)
            serving.wait(60)


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with contextlib.suppress(urllib.error.URLError):
            urllib.request.urlopen(url, timeout=30).close()
            return
        time.sleep(0.2)
    pytest.fail("the explorer did not answer")


def test_an_analyst_sees_what_is_there_asks_and_keeps_the_answer(desk: Desk) -> None:
    assert "crawl" in desk.run("sql", "select source, count(*) from all_articles group by 1")
    assert "file    top.parquet" in desk.run(
        "sql", "select * from domain_catalog", "--output", "top.parquet"
    )
    shown = desk.python(PARTS)
    assert "all_articles" in shown and "2025-11-03" in shown
    assert "did you mean 'articles'?" in desk.run("sql", "select * from artcles", code=1)
    assert "calderpost.example" in desk.run("search", "bridge", "--facets")
    page = desk.open("/")
    assert page.locator("ul.figures li").count() == 4
    page.locator("svg.chart a").first.click()
    assert page.get_by_role("heading", name="Articles of 2025-11-01").is_visible()
    page.locator("main ul.list a").first.click()
    assert page.get_by_role("link", name="Provenance").is_visible()
    page = desk.open("/attention?q=bridge&q=council")
    assert page.locator("svg.chart polyline").count() == 2
    page = desk.open("/search?q=bridge&language=english")
    assert "expected one of en" in page.get_by_role("alert").inner_text()


def test_an_editor_finds_feeds_stories_and_a_newsletter(desk: Desk) -> None:
    feed = "https://www.kupfertaler.example/rss/aktuell.xml"
    assert "it is not in a wanted language" in desk.run("feeds", "why", feed)
    assert "invalid address 'not-a-url'" in desk.run("feeds", "add", "not-a-url", code=1)
    assert "xmlUrl=" in desk.run("feeds", "export")
    assert "\n## [" in desk.run("rss", "export", "--format", "markdown")
    assert list((desk.folder / "data-demo/article_sheets").glob("*.xlsx"))
    page = desk.open("/feeds")
    page.get_by_label("Status").select_option("rejected")
    page.get_by_role("button", name="Show").click()
    assert page.locator("table tbody tr").count() == 13
    page.locator("tr", has_text=feed).get_by_role("link", name="Explain").click()
    assert feed in page.locator("main").inner_text()
    page = desk.open("/stories")
    page.locator("main table a").first.click()
    assert page.locator("main svg").count() == 1
    assert "fetched again" in desk.open("/edits").locator("main").inner_text()


def test_an_engineer_exports_what_may_be_trained_on_and_proves_it(desk: Desk) -> None:
    domain = "meridian.example"
    assert "left out: refused" in desk.run("corpus", "export", "--output", "first")
    assert (desk.folder / "first/README.md").read_text().partition("\n---")[0].count("\nlicense")
    manifest = ("--like", "first/manifest.json")
    assert "the same export" in desk.run("corpus", "export", "--output", "again", *manifest)
    assert "ai_train: refuse" in desk.run("domains", "policy", domain, "--bot", "GPTBot")
    policies = desk.open(f"/policies?domain={domain}&bot=GPTBot").locator("main table").first
    assert "refuse" in policies.inner_text()
    desk.open("/api").get_by_role("link", name="Try it").first.click()
    hits = json.loads(desk.page.locator("body").inner_text())["hits"]
    url = hits[0]["url"]
    desk.run("takedown", "add", url, "--reason", "a request")
    assert "1 request served" in desk.run("takedown", "apply")
    assert "nothing taken down is stored" in desk.run("takedown", "verify")
    assert url not in desk.run("search", "bridge", "--json")
