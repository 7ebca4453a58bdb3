"""Run the walks in traced processes, and render their modules as the lists of the docs."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import chain, count
from pathlib import Path

from news_platform_tests.ccnews.crawl import mixed_pages, warc_path, write_crawl
from news_platform_tests.emulators.sheets.server import (
    SheetsEmulator,
    service_account_key,
    sheets_server,
)
from news_platform_tests.rss.sheets.harness import tab_rows

PROJECT = Path(__file__).parents[2]
STARTUP = Path(__file__).with_name("startup")
PAGE = PROJECT / "docs" / "architecture.md"
_END = "<!-- end of walk -->"
FEED = "https://wire.meridian.example/rss.xml"
_OPML = f'<opml version="2.0"><body><outline xmlUrl="{FEED}"/></body></opml>'
# Schemas, errors, log lines and settings serve all; the others present or check a finished run.
NOT_ON_THE_WAY = (
    "datasets.",
    "errors",
    "logs",
    "setting_sections",
    "settings",
    "defs.assets",
    "defs.metadata",
    "ccnews.scan",
    "text.days",
    "domain_store.catalog",
    "domain_store.building.verify",
    "rss.ledger.status",
)
# Modules behind a front module: who follows a record need not look inside.
FRONT_MODULES = {
    "storage.objects.": "storage.objects.store",
    "isolation.": "isolation.pool",
    "defs.sensor_state": "defs.sensors",
    "defs.planning": "defs.sensors",
    "defs.runs": "defs.sensors",
    "defs.retry_requests": "defs.sensors",
    "web.rate_limits": "web.fetch",
    "web.resolver": "web.fetch",
    "web.guard": "web.fetch",
}
# The step of a walk, and the modules first called in it.
Steps = Mapping[str, list[str]]


def record_crawl_walk(folder: Path) -> Steps:
    """Walk a record of a small crawl of yesterday."""
    day = datetime.now(UTC).date() - timedelta(days=1)
    write_crawl(folder / "crawl", {warc_path(day): mixed_pages(1)})
    environ = {
        "NEWS_PLATFORM_ROOT": str(folder / "root"),
        "NEWS_PLATFORM_CRAWL_URL": str(folder / "crawl"),
        "NEWS_PLATFORM_BUCKETS": "16",
        "NEWS_PLATFORM_WORKERS": "1",
        # The day of the crawl is settled at its end.
        "NEWS_PLATFORM_LATE_HOURS": "0",
        "NEWS_PLATFORM_SETTLED_HOURS": "0",
    }
    return _record("crawl", [str(folder / "root"), "example.com"], environ, folder / "walk.log")


def record_feed_walk(folder: Path) -> Steps:
    """Walk one article of the sample world to an emulated Google Sheet."""
    root = folder / "root"
    root.mkdir(parents=True)
    (root / "feeds.opml").write_text(_OPML)
    emulator = SheetsEmulator()
    with sheets_server(emulator) as url:
        environ = {
            "NEWS_PLATFORM_ROOT": str(root),
            "NEWS_PLATFORM_SAMPLE": "1",
            "MAX_ITEMS_PER_FEED_PER_POLL": "1",
            "NEWS_PLATFORM_WORKERS": "1",
            "GOOGLE_SERVICE_ACCOUNT_JSON": service_account_key(url),
            "SPREADSHEET_TITLE": "News",
            "NEWS_PLATFORM_SHEETS_ENDPOINT": url,
        }
        steps = _record("feed", [], environ, folder / "walk.log")
    [book] = emulator.books.values()
    statuses = [row["status"] for row in tab_rows(book.titled("Raw"))]
    # The limit of one item per poll skips all others.
    assert statuses.count("stored") == 1 and set(statuses) == {"stored", "skipped"}, statuses
    return steps


WALKS = {"crawl": record_crawl_walk, "feed": record_feed_walk}


def _record(name: str, words: list[str], environ: Mapping[str, str], log: Path) -> Steps:
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith("NEWS_PLATFORM") or key == "NEWS_PLATFORM_SAMPLE_WORLD"
    }
    kept.pop("DAGSTER_HOME", None)
    path = os.pathsep.join([str(STARTUP), str(PROJECT)])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", f"news_platform_tests.walks.{name}", *words],
        env={**kept, **environ, "PYTHONPATH": path, "PYTHON_WALK_LOG": str(log)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return parse_log(log.read_text())


def parse_log(text: str) -> Steps:
    """Return the modules by step, each in the step that calls it first.

    Calls before the first step load the definitions.
    """
    steps: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("# "):
            steps[line[2:]] = []
        elif steps and not line.startswith(NOT_ON_THE_WAY):
            module = _front(line)
            if module not in chain(*steps.values()):
                steps[list(steps)[-1]].append(module)
    return steps


def _front(module: str) -> str:
    """Return the module that stands for this one in a walk."""
    for package, front in FRONT_MODULES.items():
        if module.startswith(package):
            return front
    return module


def render_walk(steps: Steps) -> str:
    """Return a walk as a numbered list of modules under its steps."""
    lines: list[str] = []
    numbers = count(1)
    for step, modules in steps.items():
        listed = [f"{next(numbers)}. `{module.replace('.', '/')}.py`" for module in modules]
        lines += [f"**{step}**", "", *(listed or ["(no new module)"]), ""]
    return "\n".join(lines).rstrip()


def parse_walk(text: str) -> Steps:
    """Read a rendered walk back."""
    steps: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("**"):
            steps[line.strip("*")] = []
        elif found := re.match(r"\d+\. `(.+)\.py`$", line):
            steps[list(steps)[-1]].append(found[1].replace("/", "."))
    return steps


def read_page_walk(name: str) -> str:
    """Return a walk as the page has it."""
    return PAGE.read_text(encoding="utf-8").split(_mark(name))[1].split(_END)[0].strip()


def write_page_walk(name: str, walk: str) -> None:
    """Replace a walk in the page."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(_mark(name))
    after = rest.partition(_END)[2]
    PAGE.write_text(f"{before}{_mark(name)}\n{walk}\n{_END}{after}", encoding="utf-8")


def _mark(name: str) -> str:
    return f"<!-- walk: {name} -->"
