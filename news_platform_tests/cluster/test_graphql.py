"""Queries of the demo to a webserver, and how it handles the responses."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import pytest

from deploy.graphql import Dagster
from news_platform.errors import NewsPlatformError

_LAUNCHED = {"data": {"launchPartitionBackfill": {"backfillId": "b1"}}}


def _backfill(status: str) -> Any:
    return {"data": {"partitionBackfillOrError": {"status": status}}}


def _runs(*statuses: str) -> Any:
    tags = [{"key": "news_platform/worker", "value": "one@local"}]
    runs = [
        {"runId": "r", "status": status, "assetSelection": [{"path": ["toy"]}], "tags": tags}
        for status in statuses
    ]
    return {"data": {"runsOrError": {"results": runs}}}


@contextmanager
def _webserver(*answers: Any, status: int = 200) -> Iterator[tuple[Dagster, list[Any]]]:
    """Respond to each request with the next document, and record the requests."""
    waiting, asked = list(answers), []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            body = json.dumps(waiting.pop(0)).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Log nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield Dagster(f"http://127.0.0.1:{server.server_port}", "toy"), asked
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_backfill_is_waited_for() -> None:
    answers = (_LAUNCHED, _backfill("REQUESTED"), _runs("STARTED"), _backfill("COMPLETED_SUCCESS"))
    with _webserver(*answers) as (dagster, asked):
        dagster.backfill("toy", ["a", "b"])
    params = asked[0]["variables"]["params"]
    assert params == {"assetSelection": [{"path": ["toy"]}], "partitionNames": ["a", "b"]}


def test_a_backfill_whose_runs_have_all_succeeded_is_over() -> None:
    with _webserver(_LAUNCHED, _backfill("REQUESTED"), _runs("SUCCESS")) as (dagster, _):
        dagster.backfill("toy", ["a"], is_built=lambda: True)


def test_a_backfill_that_failed_says_so() -> None:
    with (
        _webserver(_LAUNCHED, _backfill("COMPLETED_FAILED")) as (dagster, _),
        pytest.raises(NewsPlatformError, match="backfill of toy ended as COMPLETED_FAILED"),
    ):
        dagster.backfill("toy", ["a"])


def test_a_run_is_waited_for_and_tells_its_worker() -> None:
    launched = {"data": {"launchRun": {"run": {"runId": "r"}}}}
    with _webserver(launched, _runs("SUCCESS"), _runs("SUCCESS")) as (dagster, _):
        dagster.materialize("toy")
        [run] = dagster.runs()
    assert (run.asset, run.tags["news_platform/worker"]) == ("toy", "one@local")


def test_the_reason_of_a_refusal_is_told() -> None:
    refusal = {"errors": [{"message": "no such field"}]}
    with (
        _webserver(refusal, status=500) as (dagster, _),
        pytest.raises(NewsPlatformError, match="Dagster rejected the query: no such field"),
    ):
        dagster.runs()


def test_code_that_cannot_be_loaded_is_told_at_once() -> None:
    entry = {"loadStatus": "LOADED", "locationOrLoadError": {"message": "ImportError: x"}}
    broken = {"data": {"workspaceOrError": {"locationEntries": [entry]}}}
    with (
        _webserver(broken) as (dagster, _),
        pytest.raises(NewsPlatformError, match="cannot load the code: ImportError: x"),
    ):
        dagster.wait_until_up()
