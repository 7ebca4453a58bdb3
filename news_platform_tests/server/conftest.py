"""One small root and one finished demo for all tests of the explorer, each served once."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from news_platform.search.pipeline import build_day
from news_platform.storage.commit.root import claim_root
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.text.normalize import scrub_text
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.server.explorer import Explorer, exploring
from news_platform_tests.server.hostile import HOSTILE
from news_platform_tests.servers.demo import Demo

DAY = "2025-11-01"


def write_root(folder: Path, scratch: Path) -> ObjectStore:
    """Write a root with one day: two plain articles and the hostile ones, with their index."""
    store = open_store(str(folder))
    claim_root(store, sample=False)
    rows = [
        article("https://a.example/plain", "The old bridge is open again. " * 30, title="Bridge"),
        article("https://b.example/copy", "The old bridge is open again. " * 30, title="Copy"),
        *(_hostile(number, scrub_text(text)) for number, text in enumerate(HOSTILE)),
    ]
    store_articles(store, DAY, rows, scratch)
    build_day(store, DAY, now=datetime.now(UTC))
    return store


def _hostile(number: int, text: str) -> Mapping[str, object]:
    """Return an article with the text in every field, and with an address that is no link."""
    row = article(
        f"https://hostile.example/{number}",
        f"{text}\nhostileword number{number}\n{text}",
        title=text,
        subtitle=text,
        authors=[text] * 3,
        tags=[text] * 3,
        section=text,
        language="en\" onclick='x'" if number % 3 else "en",
    )
    return {**row, "url": f"javascript:alert({number})"} if number % 2 else row


@pytest.fixture(scope="session")
def small_root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a root that tests read and never change."""
    folder = tmp_path_factory.mktemp("explorer")
    write_root(folder / "root", folder)
    return folder / "root"


@pytest.fixture(scope="session")
def search_cache(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return a folder for copies of indexes."""
    return str(tmp_path_factory.mktemp("search-cache"))


@pytest.fixture(scope="session")
def small(small_root: Path, search_cache: str) -> Iterator[Explorer]:
    """Serve the small root."""
    with exploring(small_root, NEWS_PLATFORM_SEARCH_CACHE=search_cache) as running:
        yield running


@pytest.fixture(scope="session")
def demo_explorer(finished_demo: Demo, search_cache: str) -> Iterator[Explorer]:
    """Serve the finished demo."""
    environ = {
        "NEWS_PLATFORM_SAMPLE": "1",
        "DAGSTER_HOME": str(finished_demo.home),
        "NEWS_PLATFORM_SEARCH_CACHE": search_cache,
        "NEWS_PLATFORM_DAGSTER_URL": "http://127.0.0.1:3000",
    }
    with exploring(finished_demo.root, **environ) as running:
        yield running
