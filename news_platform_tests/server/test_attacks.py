"""Generated attacks on every way in: HTTP, MCP, SQL, CLI, metadata, webhooks, takedowns.

No answer is a 5xx, a traceback or slow, none shows a removed byte, and nothing asks a foreign
address. A way is a function that makes and checks one attack; a new one joins `WAYS`.
"""

import base64
import json
import random
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from click.testing import CliRunner
from markdown_it import MarkdownIt
from mcp import Client

from news_platform.cli.main import main
from news_platform.defs.metadata import markdown_table
from news_platform.errors import FetchError, InputError, NewsPlatformError
from news_platform.resources import open_resources
from news_platform.search.pipeline import build_day
from news_platform.server.answers import SqlProcesses
from news_platform.server.app_state import AppState
from news_platform.server.guards import ServerOptions
from news_platform.server.mcp import create_mcp
from news_platform.settings import load_settings
from news_platform.storage.commit.root import RootAccess
from news_platform.web.urls import url_hash
from news_platform.web.webhook import post_json
from news_platform_tests.corpus.articles import article, store_articles
from news_platform_tests.server.conftest import DAY, write_root
from news_platform_tests.server.explorer import Explorer, exploring
from news_platform_tests.server.hostile import HOSTILE, MARKDOWN
from news_platform_tests.takedowns.asked import ask
from news_platform_tests.takedowns.spellings import drawn_spellings
from news_platform_tests.web.test_webhook import ANSWERS, receiving

SHORT, LONG = 15, 800
MOST_SECONDS = 2.0
REMOVED_HOST, REMOVED_PATH = "gone.example", "/2025/secret-story"
REMOVED = "zqxremovedzqx"
PIECES = (
    *HOSTILE[:25], *MARKDOWN[::5], "", " ", "\x00", "\x1b[31m", "a" * 5_000, "é" * 3_000, "%00",
    "%", "../../etc/passwd", "..%2f..%2fetc", "' OR 1=1 --", '"', '"a', "(((((", "a AND", "NOT",
    "a:b", "title:", "day:2025-11-01..", "day:0001-01-01..9999-12-31", "domain:*", "a b c d " * 400,
    "x" * 300 + ".example", "http://[::1", "https://u@h:99999/", "javascript:1", "🏴\U000e0067",
    "漢字" * 900, "-" * 200, "9" * 400, "-1", "1e309", "NaN", "null", "true", "[]", "{}", "/" * 900,
)  # fmt: skip
QUERIES = (
    "select {}", "select '{}'", "select * from {}", "select * from all_articles where title = '{}'",
    "select '{}'::date", "select repeat('{}', 1000000000)", "select list_sort(range(100000000))",
    "select chr({})", "select regexp_matches(repeat('a', 100000), '(a*)*{}')", "{}; {}",
    "select * from read_text('/etc/passwd')", "select 'infinity'::timestamp",
    "with recursive t as (select 1 x union all select x + 1 from t) select count(*) from t",
)  # fmt: skip
PAGES = (
    "/?q={}", "/?q=bridge&from={}", "/?q=bridge&cursor={}", "/articles/{}", "/domains/{}", "/{}",
    "/explain?subject={}", "/policies?bot={}", "/policies?domain={}&limit={}", "/static/{}",
    "/attention?q={}&q={}&from={}", "/attention.csv?q={}", "/feeds?q={}&group={}&status={}",
    "/search?language={}&domain={}", "/search?to={}",
)  # fmt: skip
API = (
    "search?q={}", "search?q={}&sort={}", "search?q=bridge&cursor={}", "search?q=a&limit={}",
    "search?q=a&language={}&domain={}", "articles/{}?day={}", "domains/{}", "explain?subject={}",
    "policies?cursor={}", "attention?q={}&language={}", "feeds?q={}", "{}",
)  # fmt: skip
PATHS = (*PAGES, *(f"/api/v1/{path}" for path in API))


@dataclass(frozen=True, slots=True)
class Target:
    """What is attacked."""

    root: Path
    explorer: Explorer
    state: AppState
    sql: SqlProcesses


def _piece(chance: random.Random) -> str:
    text = chance.choice(PIECES)
    if chance.random() < 0.3:
        text = text[: chance.randrange(1, 60)] + chance.choice(PIECES)[:60]
    if chance.random() < 0.2:
        document: object = chance.choice(
            ({"offset": 2**63}, {"offset": [[[]]]}, [[]], "x", {"offset": -1})
        )
        text = base64.urlsafe_b64encode(json.dumps(document).encode()).decode().rstrip("=")
    return text


def _filled(form: str, chance: random.Random, spell: Callable[[str], str] = str) -> str:
    first, *rest = form.split("{}")
    return first + "".join(spell(_piece(chance)) + part for part in rest)


def _check(answer: str) -> None:
    assert REMOVED not in answer and "Traceback" not in answer, answer[:2_000]


def attack_http(target: Target, chance: random.Random) -> None:
    path = _filled(chance.choice(PATHS), chance, lambda text: quote(text, safe=""))
    headers = {"Accept": chance.choice(("text/html", "application/json", "*/*"))}
    if chance.random() < 0.2:
        name = chance.choice(("If_None_Match", "Origin", "X_Forwarded_For", "Authorization"))
        headers[name] = quote(_piece(chance)[:500])
    reply = target.explorer.get(path[:20_000], **headers)
    assert reply.status < 500, (path[:200], reply.status, reply.text[:300])
    _check(reply.text)


def attack_mcp(target: Target, chance: random.Random) -> None:
    tool, names = chance.choice((
        ("search", ("query", "first_day", "language")), ("article", ("url", "day")),
        ("domain", ("name",)), ("explain", ("subject",)), ("policy", ("domain", "bot", "at")),
    ))  # fmt: skip
    arguments = {
        name: _piece(chance) for name in names if name == names[0] or chance.random() < 0.3
    }

    async def call() -> Any:
        async with Client(create_mcp(target.state)) as client:
            return await client.call_tool(tool, arguments)

    (content,) = anyio.run(call).content
    assert len(content.text) <= 60_000
    _check(content.text)


def attack_sql(target: Target, chance: random.Random) -> None:
    try:
        answer = target.sql.answer(_filled(chance.choice(QUERIES), chance))
    except InputError as error:
        answer = str(error)
    _check(answer)


def attack_cli(target: Target, chance: random.Random) -> None:
    words = [chance.choice(("search", "explain")), "--root", str(target.root), "--", _piece(chance)]
    cache = {"NEWS_PLATFORM_SEARCH_CACHE": str(target.root.parent / "cli-cache")}
    done = CliRunner(env=cache).invoke(main, words)
    # `run` makes one line of these; anything else would be a traceback.
    assert isinstance(done.exception, SystemExit | NewsPlatformError | OSError | None), words
    _check(done.output)


def attack_metadata(_target: Target, chance: random.Random) -> None:
    cells = [[_piece(chance) + chance.choice(MARKDOWN)] for _ in range(20)]
    table = str(
        markdown_table([_piece(chance)], cells, longest=chance.choice((20, 80, 2_000))).value
    )
    tokens = MarkdownIt("commonmark", {"html": True}).enable("table").parse(table)
    found = [token for token in tokens if token.type == "inline"]
    assert len(found) == 21
    assert {one.type for it in found for one in it.children or ()} <= {"text", "code_inline"}


def attack_webhook(_target: Target, chance: random.Random) -> None:
    body = bytearray(chance.choice([body for body, _ in ANSWERS.values()])[:2_000])
    for _ in range(chance.randrange(1, 9) if body else 0):
        body[chance.randrange(len(body))] = chance.randrange(256)
    with receiving(lambda it: it.sendall(body)) as url:
        try:
            post_json(url, {"text": _piece(chance)}, secret="key", timeout_seconds=1)
        except FetchError as error:
            assert error.reason in ("answer", "status", "redirect", "timeout"), error


def attack_takedown(target: Target, chance: random.Random) -> None:
    seed = chance.randrange(1 << 30)
    address = next(drawn_spellings(REMOVED_HOST, REMOVED_PATH, seed=seed))
    for path in (
        f"/explain?subject={quote(address, safe='')}",
        f"/articles/{url_hash(address)}",
        f"/api/v1/articles/{url_hash(f'https://{REMOVED_HOST}{REMOVED_PATH}')}",
        f"/?q={chance.choice((REMOVED, 'removed', 'secret', f'domain:{REMOVED_HOST}', 'story'))}",
    ):
        reply = target.explorer.get(path)
        assert reply.status < 500, (path, reply.text[:300])
        # The page repeats the words that were asked for.
        _check(reply.text.replace(f'value="{REMOVED}"', "").replace(f"{REMOVED} ", ""))


WAYS: dict[str, Callable[[Target, random.Random], None]] = {
    "http": attack_http,
    "mcp": attack_mcp,
    "sql": attack_sql,
    "cli": attack_cli,
    "metadata": attack_metadata,
    "webhook": attack_webhook,
    "takedown": attack_takedown,
}


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Serve a root with hostile articles, and one that was taken down but not yet removed."""
    folder = tmp_path_factory.mktemp("attacked")
    store = write_root(folder / "root", folder)
    gone = article(f"https://{REMOVED_HOST}{REMOVED_PATH}", f"{REMOVED} secret story. " * 30)
    kept = article("https://a.example/plain", "The old bridge is open again. " * 30, title="Bridge")
    store_articles(store, DAY, [kept, {**gone, "title": f"A {REMOVED} title"}], folder)
    build_day(store, DAY, now=datetime.now(UTC))
    ask(store, "url", f"https://{REMOVED_HOST}{REMOVED_PATH}")
    environ = {"NEWS_PLATFORM_SEARCH_CACHE": str(folder / "cache")}
    settings = load_settings({**environ, "NEWS_PLATFORM_ROOT": str(folder / "root")})
    state = AppState(open_resources(settings, access=RootAccess.READ), ServerOptions())
    sql = SqlProcesses(settings, seconds=1.5)
    with exploring(folder / "root", **environ) as running:
        yield Target(folder / "root", running, state, sql)
    sql.close()


_foreign: list[str] = []


def _note_connections(event: str, arguments: tuple[Any, ...]) -> None:
    """Note whom this process calls, from whichever library."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        _foreign.extend({str(arguments[1][0])} - {"127.0.0.1", "::1", "localhost"})


@pytest.fixture(scope="module", autouse=True)
def _watched() -> None:
    sys.addaudithook(_note_connections)


def _attack(target: Target, way: str, count: int) -> None:
    _foreign.clear()
    for number in range(count):
        started = time.process_time()
        WAYS[way](target, random.Random(f"{way} {number}"))
        took = time.process_time() - started
        assert took < MOST_SECONDS, (way, number, took)
        assert _foreign == [], (way, number)


@pytest.mark.parametrize("way", WAYS)
def test_some_attacks_find_nothing(target: Target, way: str) -> None:
    _attack(target, way, 3 if way == "sql" else SHORT)


@pytest.mark.soak
@pytest.mark.parametrize("way", WAYS)
def test_five_thousand_attacks_find_nothing(target: Target, way: str) -> None:
    # A query may take all of its time.
    _attack(target, way, 200 if way == "sql" else LONG)
