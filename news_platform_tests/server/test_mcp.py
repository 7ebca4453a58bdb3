"""The MCP server as the library's own client sees it: tools, sizes, citations, refusals."""

import csv
import json
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

import news_platform
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.errors import InputError
from news_platform.resources import open_resources
from news_platform.server.answers import MAX_CHARACTERS, NOTICE, SqlProcesses
from news_platform.server.app_state import AppState
from news_platform.server.guards import ServerOptions, guarded
from news_platform.server.mcp import create_mcp
from news_platform.settings import load_settings
from news_platform.storage.commit.root import RootAccess
from news_platform.web.urls import url_hash
from news_platform_tests.cli.runner import Commands
from news_platform_tests.server.explorer import Explorer, serving
from news_platform_tests.server.hostile import HOSTILE
from news_platform_tests.servers.dagster_ui import free_port
from news_platform_tests.servers.demo import Demo

TOOLS = ["search", "article", "domain", "explain", "policy", "sql", "stories"]


def _state(root: Path, cache: str, **environ: str) -> AppState:
    settings = load_settings(
        {"NEWS_PLATFORM_ROOT": str(root), "NEWS_PLATFORM_SEARCH_CACHE": cache, **environ}
    )
    return AppState(open_resources(settings, access=RootAccess.READ), ServerOptions())


@pytest.fixture(scope="module")
def demo_state(finished_demo: Demo, search_cache: str) -> Iterator[AppState]:
    state = _state(finished_demo.root, search_cache, NEWS_PLATFORM_SAMPLE="1")
    yield state
    state.sql.close()


@pytest.fixture(scope="module")
def hostile_state(small_root: Path, search_cache: str) -> Iterator[AppState]:
    state = _state(small_root, search_cache)
    yield state
    state.sql.close()


def _called(state: AppState, *calls: tuple[str, Mapping[str, Any]]) -> list[tuple[bool, str]]:
    """Call tools over the library's own client; return whether each failed, and its text."""

    async def call(client: Client) -> list[tuple[bool, str]]:
        found = []
        for name, arguments in calls:
            result = await client.call_tool(name, dict(arguments))
            (content,) = result.content
            found.append((bool(result.is_error), content.text))  # type: ignore[union-attr]
        return found

    found: list[tuple[bool, str]] = _with(Client(create_mcp(state)), call)
    return found


def _with(client: Client, use: Callable[[Client], Awaitable[Any]]) -> Any:
    async def run() -> Any:
        async with client as opened:
            return await use(opened)

    return anyio.run(run)


def _data(answer: tuple[bool, str]) -> Any:
    assert answer[0] is False, answer[1]
    document = json.loads(answer[1])
    assert document["notice"] == NOTICE
    return document


def test_every_tool_only_reads(demo_state: AppState) -> None:
    async def tools(client: Client) -> Any:
        return (await client.list_tools()).tools

    found = _with(Client(create_mcp(demo_state)), tools)
    assert [tool.name for tool in found] == TOOLS
    assert all(tool.annotations.read_only_hint for tool in found)
    assert all(tool.description and tool.input_schema["properties"] for tool in found)


def test_every_tool_answers_and_cites(demo_state: AppState) -> None:
    domain = {"name": "meridian.example"}
    answers = _called(
        demo_state,
        ("search", {"query": "bridge", "limit": 3, "language": "en"}),
        ("domain", domain),
        ("explain", {"subject": "meridian.example"}),
        ("policy", {"domain": "meridian.example", "bot": "GPTBot"}),
        ("sql", {"query": "select url, day from all_articles order by url, day limit 3"}),
        ("sql", {"query": "show"}),
    )
    found, about, explained, policy, rows, datasets = map(_data, answers)
    assert len(found["data"]["hits"]) == 3
    assert found["sources"] == [hit["url"] for hit in found["data"]["hits"]]
    assert about["data"]["domain"] == "meridian.example" and about["sources"]
    assert explained["data"]["known"] is True
    verdicts = {one["purpose"]: one["verdict"] for one in policy["data"]["policies"]}
    assert verdicts["ai_train"] == "refuse"
    assert len(rows["data"]["rows"]) == 3 and rows["sources"]
    assert "all_articles" in datasets["data"]["datasets"]
    url = found["sources"][0]
    (article,) = map(_data, _called(demo_state, ("article", {"url": url})))
    assert article["data"]["url"] == url and article["sources"][0] == url


def test_every_way_out_gives_the_same_verdict_on_a_site(
    demo_state: AppState, demo_explorer: Explorer, finished_demo: Demo
) -> None:
    root, domains = finished_demo.root, Commands("domains")
    table = news_platform.open(str(root))["usage_verdicts"].collect().to_dicts()
    expected = _of_everybody(table)
    names = sorted({domain for domain, _ in expected})
    assert len(names) > 10 and {"refuse", "partial"} <= set(expected.values())
    # Its tdmrep.json reserves everything but /press/: other pages are refused, those are not.
    assert expected["calderpost.example", "ai_train"] == "partial"
    assert _of_everybody(domains.json(root, "verdicts")) == expected
    listed = demo_explorer.get("/api/v1/policies?bot=*&limit=100").json
    assert listed["next_cursor"] is None and _of_everybody(listed["verdicts"]) == expected
    downloaded = demo_explorer.get("/policies.csv?bot=*").text.splitlines()
    assert _of_everybody(list(csv.DictReader(downloaded))) == expected
    for name in names:
        wanted = {purpose: expected[name, purpose] for purpose in PURPOSES}
        asked = (("policy", {"domain": name}), ("domain", {"name": name}))
        policy, page = (_data(one)["data"] for one in _called(demo_state, *asked))
        history = domains.json(root, "history", name)["surveys"][-1]
        explained = Commands("explain").json(root, name)["evidence"]
        stated = [one for one in explained if "purpose" in one["details"]]
        assert [
            _by_purpose(policy["policies"]),
            _by_purpose([one for one in page["policies"] if one["bot"] == "*"]),
            _by_purpose(domains.json(root, "policy", name)),
            domains.json(root, "show", name)["usage"]["verdicts"],
            {purpose: history[f"usage_{purpose}"] for purpose in PURPOSES},
            {one["details"]["purpose"]: one["state"] for one in stated},
        ] == [wanted] * 6, name


def _of_everybody(rows: list[dict[str, Any]]) -> dict[tuple[str, str], str]:
    return {(row["domain"], row["purpose"]): row["verdict"] for row in rows if row["bot"] == "*"}


def _by_purpose(rows: list[dict[str, Any]]) -> dict[str, str]:
    return {row["purpose"]: row["verdict"] for row in rows}


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_both_protocol_versions_give_structured_answers_and_resources(
    demo_state: AppState, mode: str
) -> None:
    async def use(client: Client) -> Any:
        tools = (await client.list_tools()).tools
        answers = [
            await client.call_tool("search", {"query": "bridge", "limit": 2}),
            await client.call_tool("domain", {"name": "meridian.example"}),
            await client.call_tool("sql", {"query": "select 1 as one"}),
        ]
        templates = (await client.list_resource_templates()).resource_templates
        listed = (await client.list_resources()).resources
        key = answers[0].structured_content["data"]["hits"][0]["url_hash"]
        uris = ("news://datasets", f"news://articles/{key}", "news://domains/meridian.example")
        read = [json.loads((await client.read_resource(uri)).contents[0].text) for uri in uris]  # type: ignore[union-attr]
        with pytest.raises(MCPError, match="nothing is known"):
            await client.read_resource("news://domains/nobody.example")
        return client.protocol_version, tools, answers, [*templates, *listed], read

    version, tools, answers, resources, read = _with(Client(create_mcp(demo_state), mode=mode), use)
    assert (version < "2026") is (mode == "legacy")
    for tool in tools:
        assert {"notice", "sources", "is_cut", "data"} == tool.output_schema["properties"].keys()
    for answer in answers:
        assert json.loads(answer.content[0].text) == answer.structured_content
        assert answer.structured_content["notice"] == NOTICE
    assert answers[2].structured_content["data"]["rows"] == [{"one": 1}]
    assert len(resources) == 3 and all(one["notice"] == NOTICE for one in read)
    assert "all_articles" in read[0]["data"]["datasets"]
    assert read[2]["data"] == answers[1].structured_content["data"]


def test_no_answer_exceeds_its_size_and_hidden_characters_are_gone(hostile_state: AppState) -> None:
    keys = [url_hash(f"https://hostile.example/{number}") for number in range(len(HOSTILE))]
    calls: list[tuple[str, Mapping[str, Any]]] = [("article", {"url": key}) for key in keys]
    calls += [("search", {"query": "hostileword", "limit": 50})]
    calls += [("sql", {"query": "select * from all_articles"})]
    for answer in _called(hostile_state, *calls):
        document = _data(answer)
        assert len(answer[1]) <= MAX_CHARACTERS
        assert not set(answer[1]) & set("\u202e\u2066\u200b\ufeff\U000e0067")
        assert document["data"] is not None


def test_a_wrong_question_is_an_error_that_a_model_can_read(demo_state: AppState) -> None:
    calls: list[tuple[str, Mapping[str, Any]]] = [
        ("search", {"query": "bridge", "limit": 1000}),
        ("article", {"url": "nothing"}),
        ("domain", {"name": "nobody.example"}),
        ("policy", {"domain": "meridian.example", "at": "soon"}),
        ("sql", {"query": "copy (select 1) to 'stolen.csv'"}),
        ("sql", {"query": "select * from read_text('/etc/passwd')"}),
    ]
    for call, (is_error, text) in zip(calls, _called(demo_state, *calls), strict=True):
        assert is_error, (call, text)
        assert "Traceback" not in text and len(text) < 2_000


TOO_MUCH = {
    "select count(*) from range(1000000000) a, range(1000000) b where a.range = -b.range": "longer",
    "select length(repeat('x', 4000000000))": "MB|emory",
    "select 'infinity'::date": "out-of-range date",
    "select interval 1 month": "VARCHAR",
}


def test_no_query_ends_the_server_or_takes_more_than_its_limits(hostile_state: AppState) -> None:
    limited = SqlProcesses(hostile_state.resources.settings, seconds=2)
    started = time.monotonic()
    for query, expected in TOO_MUCH.items():
        with pytest.raises(InputError, match=expected):
            limited.answer(query)
    assert time.monotonic() - started < 2 * len(TOO_MUCH) + 15  # processes start in between
    document = json.loads(limited.answer("select * from range(1000)"))
    assert len(document["data"]["rows"]) == 200
    limited.close()


def test_an_error_has_the_notice_and_no_hidden_characters(hostile_state: AppState) -> None:
    query = "select '\u202egnp.exe\x1b[31m \ud83d'::int"
    (answer,) = _called(hostile_state, ("sql", {"query": query.encode(errors="replace").decode()}))
    assert answer[0]
    document = json.loads(answer[1].partition(": ")[2])
    assert document["notice"] == NOTICE
    assert "Could not convert" in document["error"] or "onversion" in document["error"]
    assert not set(answer[1]) & set("\u202e\x1b")


def test_the_command_answers_every_line_of_standard_input(
    small_root: Path, search_cache: str
) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}}
    start = {**client, "clientInfo": {"name": "test", "version": "1"}}
    lines = [
        json.dumps({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": start}),
        '{"jsonrpc": "2.0", "method": "notifications/initialized"}',
    ]
    # A lone half of a character, which no UTF-8 spells, a whole one, and an escaped backslash.
    for number, query in enumerate((r"bridge\ud800", r"bridge", r"\ud83d\ude00 \\\\ud800 \udc00")):
        call = f'{{"name": "search", "arguments": {{"query": "{query}"}}}}'
        lines.append(
            f'{{"jsonrpc": "2.0", "id": {number + 1}, "method": "tools/call", "params": {call}}}'
        )
    process = subprocess.Popen(
        [sys.executable, "-m", "news_platform.cli", "mcp", "--root", str(small_root)],
        env={**os.environ, "NEWS_PLATFORM_SEARCH_CACHE": search_cache},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdin is not None and process.stdout is not None
    with process:
        answers = []
        for line in lines:
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            if '"id"' in line:
                answers.append(json.loads(process.stdout.readline()))
        process.stdin.close()
    assert [answer["id"] for answer in answers] == [0, 1, 2, 3]
    texts = [json.loads(one["result"]["content"][0]["text"]) for one in answers[1:3]]
    assert [text["data"]["count"] for text in texts] == [2, 2]


@pytest.fixture
def http_port(hostile_state: AppState) -> Iterator[int]:
    app = create_mcp(hostile_state).streamable_http_app(stateless_http=True, json_response=True)
    options = ServerOptions(token="a-long-and-secret-token", requests_per_minute=0)
    with serving(guarded(app, options, methods=("POST",)), free_port()) as running:
        yield running.port


def test_over_http_the_guards_of_the_pages_hold(http_port: int) -> None:
    from mcp.client.streamable_http import streamable_http_client
    from mcp.shared._httpx_utils import create_mcp_http_client

    url = f"http://127.0.0.1:{http_port}/mcp"
    header = {"Authorization": "Bearer a-long-and-secret-token"}

    async def names() -> list[str]:
        async with (
            create_mcp_http_client(headers=header) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return [tool.name for tool in (await client.list_tools()).tools]

    async def refused() -> int:
        async with create_mcp_http_client() as http:
            return int((await http.post(url, json={})).status_code)

    async def foreign() -> int:
        async with create_mcp_http_client(headers={**header, "Host": "evil.example"}) as http:
            return int((await http.post(url, json={})).status_code)

    assert anyio.run(names) == TOOLS
    assert anyio.run(refused) == 401
    assert anyio.run(foreign) == 400
