"""Answers are kept by version, and a read that fails under a change is repeated."""

from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from news_platform.errors import StorageError
from news_platform.resources import open_resources
from news_platform.server.api import refused_json
from news_platform.server.app_state import AppState
from news_platform.server.guards import ServerOptions
from news_platform.server.response_cache import Answer, ResponseCache
from news_platform.settings import load_settings
from news_platform.storage.commit.root import RootAccess
from news_platform_tests.server.explorer import Explorer, serving
from news_platform_tests.servers.dagster_ui import free_port

FAILURES: tuple[Callable[[], Exception], ...] = (
    lambda: StorageError("the table changed"),
    lambda: FileNotFoundError("part-0.parquet"),
    lambda: pl.exceptions.ComputeError("the file is gone"),
    lambda: sa.exc.OperationalError("select 1", None, ValueError("no such table")),
)


class Maker:
    """Makes answers that fail a number of times first."""

    def __init__(self) -> None:
        self.failures: Iterator[Exception] = iter(())
        self.calls = 0

    def make(self, _state: AppState, request: Request) -> Answer:
        self.calls += 1
        if (error := next(self.failures, None)) is not None:
            raise error
        return Answer(f"{request.url.path} {self.calls}".encode(), "text/plain")


@pytest.fixture
def maker() -> Maker:
    return Maker()


@pytest.fixture
def running(maker: Maker, small_root: Path) -> Iterator[Explorer]:
    settings = load_settings({"NEWS_PLATFORM_ROOT": str(small_root)})
    state = AppState(open_resources(settings, access=RootAccess.READ), ServerOptions())
    endpoint = ResponseCache(state, refused_json).endpoint(maker.make)
    app = Starlette(routes=[Route("/{name}", endpoint)])
    with serving(app, free_port()) as explorer:
        yield explorer


def test_an_answer_is_made_once_and_kept_by_its_address(running: Explorer, maker: Maker) -> None:
    assert [running.get("/a").text for _ in range(3)] == ["/a 1"] * 3
    assert running.get("/a?q=1").text == "/a 2"
    assert running.get("/b").text == "/b 3"
    assert maker.calls == 3


@pytest.mark.parametrize("failure", FAILURES, ids=["storage", "file", "polars", "ledger"])
def test_a_read_that_fails_is_repeated_and_at_last_503(
    running: Explorer, maker: Maker, failure: Callable[[], Exception]
) -> None:
    maker.failures = iter([failure(), failure()])
    assert running.get("/a").text == "/a 3"
    maker.failures = iter([failure() for _ in range(3)])
    refused = running.get("/b")
    assert refused.status == 503 and "cannot be read" in refused.json["error"]["message"]
    # A failure is not kept.
    assert running.get("/b").status == 200
