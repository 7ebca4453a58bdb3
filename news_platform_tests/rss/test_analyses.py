"""Analyses by a model: once per text, and nothing waits for it."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import sqlalchemy as sa

from news_platform.errors import InputError
from news_platform.rss.analyses import (
    AnalysisOptions,
    AnalysisReport,
    ModelAccess,
    analyse_articles,
    has_unanalysed,
    parse_answer,
)
from news_platform.rss.ledger.tables import ANALYSES
from news_platform.rss.ledger.transactions import newest_seq
from news_platform.storage.sql.engine import read_transaction
from news_platform_tests.rss.ledger_rows import NOW, add_article, add_articles, change_article

ANSWER = {
    "summary": "In short.",
    "keywords": ["a", "b"],
    "topics": ["City"],
    "sentiment": "neutral",
}


def run(engine: sa.Engine, model: ModelAccess, **options: Any) -> AnalysisReport:
    given = AnalysisOptions(model, **options)
    return analyse_articles(engine, options=given, clock=lambda: NOW)


def analyses(engine: sa.Engine) -> list[sa.Row[Any]]:
    with read_transaction(engine) as connection:
        return list(connection.execute(sa.select(ANALYSES).order_by(ANALYSES.c.row_id)))


def article(**values: Any) -> dict[str, Any]:
    text = "The council voted to rebuild the bridge over the river after the flood."
    return {"stored_at": NOW, "clean_text": text, "language": "en", **values}


@contextmanager
def model_server(answer: Callable[[dict[str, Any]], tuple[int, bytes]]) -> Iterator[ModelAccess]:
    """Serve an OpenAI-compatible endpoint on loopback."""

    class Model(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = {"path": self.path, "key": self.headers["Authorization"], **body}
            status, content = answer(found)
            self.send_response(status)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: object) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Model)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield ModelAccess(f"http://127.0.0.1:{server.server_port}/v1", "small-1", "planted")
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def chat(content: object) -> bytes:
    text = content if isinstance(content, str) else json.dumps(content)
    return json.dumps({"choices": [{"message": {"content": text}}]}).encode()


@pytest.fixture
def model() -> Iterator[ModelAccess]:
    """Yield a model that always gives the same answer."""
    with model_server(lambda _: (200, chat(ANSWER))) as access:
        yield access


def test_every_stored_article_with_a_text_is_analysed_once(
    ledger: sa.Engine, model: ModelAccess
) -> None:
    add_articles(ledger, [article(), article(clean_text=""), article(status="duplicate")])
    add_article(ledger, status="pending")
    assert has_unanalysed(ledger)
    assert run(ledger, model) == AnalysisReport(analysed=1)
    before = newest_seq(ledger)
    assert run(ledger, model) == AnalysisReport() and not has_unanalysed(ledger)
    assert newest_seq(ledger) == before


def test_a_changed_text_is_analysed_again_and_another_change_is_not(
    ledger: sa.Engine, model: ModelAccess
) -> None:
    add_article(ledger, **article())
    run(ledger, model)
    change_article(ledger, 1, section="Local")
    assert run(ledger, model).analysed == 0
    change_article(ledger, 1, clean_text="A new text about a harbour.", text_hash="n")
    assert run(ledger, model).analysed == 1
    assert analyses(ledger)[0].text_hash == "n"


def test_a_backlog_is_worked_off_run_by_run(ledger: sa.Engine, model: ModelAccess) -> None:
    add_articles(ledger, [article() for _ in range(7)])
    add_articles(ledger, [article() for _ in range(2)])
    reports = [run(ledger, model, per_run=4) for _ in range(3)]
    assert [report.analysed for report in reports] == [4, 4, 1]
    assert [report.left for report in reports] == [True, True, False]
    assert len(analyses(ledger)) == 9


def test_a_model_is_asked_with_the_article_and_its_answer_is_kept(ledger: sa.Engine) -> None:
    asked: list[dict[str, Any]] = []

    def answer(request: dict[str, Any]) -> tuple[int, bytes]:
        asked.append(request)
        return 200, chat(ANSWER)

    add_article(ledger, **article(section="Local"))
    with model_server(answer) as model:
        assert run(ledger, model).analysed == 1
    [request] = asked
    assert (request["path"], request["model"]) == ("/v1/chat/completions", "small-1")
    assert request["key"] == "Bearer planted" and "planted" not in repr(model)
    assert "rebuild the bridge" in request["messages"][1]["content"]
    [row] = analyses(ledger)
    assert (row.summary, row.keywords, row.topics) == ("In short.", ("a", "b"), ("City",))
    assert (row.sentiment, row.model) == ("neutral", "small-1")


def test_an_article_whose_answer_is_not_an_analysis_is_not_asked_about_again(
    ledger: sa.Engine,
) -> None:
    add_articles(ledger, [article(), article()])
    # JSON in a block of Markdown is an answer.
    answers = [chat("I cannot do that."), chat(f"```json\n{json.dumps(ANSWER)}\n```")]
    with model_server(lambda _: (200, answers.pop(0))) as model:
        assert run(ledger, model) == AnalysisReport(analysed=2, model_failures=1)
    assert [row.summary for row in analyses(ledger)] == ["", "In short."]
    assert not has_unanalysed(ledger)


def test_a_model_that_is_down_leaves_the_articles_for_the_next_run(ledger: sa.Engine) -> None:
    add_articles(ledger, [article() for _ in range(9)])
    asked: list[int] = []

    def down(_request: object) -> tuple[int, bytes]:
        asked.append(1)
        return 503, b""

    with model_server(down) as model:
        report = run(ledger, model)
    assert report == AnalysisReport(analysed=0, model_failures=3, left=True)
    assert len(asked) == 3 and has_unanalysed(ledger)
    with model_server(lambda _: (200, chat(ANSWER))) as model:
        assert run(ledger, model).analysed == 9


def test_a_slow_model_ends_with_its_time(sqlite_ledger: sa.Engine) -> None:
    add_articles(sqlite_ledger, [article() for _ in range(9)])
    now = [NOW]

    def clock() -> datetime:
        now[0] += timedelta(seconds=30)
        return now[0]

    with model_server(lambda _: (200, chat(ANSWER))) as model:
        report = analyse_articles(sqlite_ledger, options=AnalysisOptions(model), clock=clock)
    assert 0 < report.analysed < 9 and report.left


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"choices": []}',
        b"\xff",
        *map(chat, ("{", {"a": 1}, {**ANSWER, "keywords": "a"})),
        chat({**ANSWER, "sentiment": "angry"}),
    ],
)
def test_only_an_analysis_is_accepted(body: bytes) -> None:
    with pytest.raises(InputError, match="not an analysis"):
        parse_answer(body)
