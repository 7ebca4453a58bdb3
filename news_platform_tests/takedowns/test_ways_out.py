"""Between `takedown add` and `apply`: no way out shows what is still stored.

The ways come from the declarations: commands, formats, datasets, pages, endpoints and tools. A new
one must be listed here with what it is called with, or among those that show no pages.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import click
import pytest
from click.testing import CliRunner
from mcp import Client

import news_platform
import news_platform.api
from news_platform.cli.exports import FORMATS
from news_platform.cli.main import main
from news_platform.errors import NewsPlatformError
from news_platform.resources import open_resources
from news_platform.server.api import ENDPOINTS
from news_platform.server.app_state import AppState
from news_platform.server.cdx import cdx_routes
from news_platform.server.guards import server_options
from news_platform.server.mcp import create_mcp
from news_platform.server.pages import page_routes
from news_platform.server.response_cache import ResponseCache
from news_platform.settings import load_settings
from news_platform.storage.commit.root import RootAccess
from news_platform.takedowns.build_filters import read_hidden
from news_platform.takedowns.rows import TakedownTarget
from news_platform_tests.server.explorer import exploring
from news_platform_tests.servers.demo import Demo
from news_platform_tests.takedowns.asked import target

DOMAIN = "calderpost.example"
WORDS = "harbour OR council OR minister"


@dataclass(frozen=True, slots=True)
class Hidden:
    """A root with a request that is not applied, and an article and a feed that it covers."""

    root: Path
    page: str
    url_hash: str
    feed: str
    story: str
    # Addresses of its articles to which no page of another site links.
    traces: tuple[str, ...]

    def filled(self, text: str) -> str:
        """Return an argument with what it stands for."""
        given = {"domain": DOMAIN, "page": self.page, "feed": self.feed, "hash": self.url_hash}
        given["story"] = self.story
        return text.format(**given, folder=self.root.parent)

    def shown(self, text: str, *given: str) -> list[str]:
        """Return what an answer shows of the site; what was asked for may be repeated."""
        for one in sorted(given, key=len, reverse=True):
            text = text.replace(one, "")
        return [one for one in self.traces if one in text]


@pytest.fixture(scope="module")
def hidden(finished_demo: Demo, tmp_path_factory: pytest.TempPathFactory) -> Hidden:
    """Ask for the removal of a domain of the demo, of which much is stored."""
    root = finished_demo.copy(tmp_path_factory.mktemp("hidden") / "copy").root
    (root / "alerts.toml").write_text("[[alerts]]\nname = 'all'\nwords = ['the']\n")
    news = news_platform.open(root)
    (row,) = news.sql(f"from crawl_articles where domain = '{DOMAIN}' limit 1").to_dicts()
    ((feed,),) = news.sql(
        f"select feed_url from feeds where feed_url like '%{DOMAIN}%' limit 1"
    ).rows()
    assert _run(root, "search", WORDS, "--domain", DOMAIN, "--json").count(row["domain"]) > 2
    ((story,),) = news.sql(
        f"select story_id from story_members where url like '%{DOMAIN}%' "
        "and story_id in (select story_id from stories) order by url limit 1"
    ).rows()
    found = Hidden(root, row["url"], row["url_hash"], feed, story, _traces(news))
    assert found.shown(_run(root, "rss", "export")) and len(found.traces) > 10
    _run(root, "takedown", "add", "--domain", DOMAIN, "--reason", "x")
    return found


def _traces(news: news_platform.api.NewsData) -> tuple[str, ...]:
    rows = news.sql("select url, domain, text from all_articles").rows()
    links = news.sql("select array_to_string(out_links, ' ') from articles").to_series()
    others = " ".join((*links, *(text for _, domain, text in rows if domain != DOMAIN)))
    own = {url for url, domain, _ in rows if domain == DOMAIN}
    return tuple(url for url in sorted(own) if url not in others)


def _run(root: Path, *words: str) -> str:
    done = CliRunner().invoke(
        main, [*words, "--root", str(root)], env={"NEWS_PLATFORM_SAMPLE": "1"}
    )
    # Many refuse to speak of it, which is right; a traceback is not.
    assert done.exception is None or isinstance(done.exception, SystemExit | NewsPlatformError)
    return f"{done.output}\n{done.exception or ''}"


# What each command that shows something of pages, domains or feeds is called with.
COMMANDS: Mapping[str, Sequence[Sequence[str]]] = {
    "captures export": [("--cdxj", "{folder}/cdxj")],
    "captures get": [("{page}",), ("{page}", "--json")],
    "captures list": [("{page}",), ("*.{domain}", "--json")],
    "captures wacz": [("--domain", "{domain}", "--to", "{folder}/hidden.wacz")],
    "corpus export": [("--output", "{folder}/export")],
    "domains candidates": [()],
    "domains due": [()],
    "domains history": [("{domain}",)],
    "domains policy": [("{domain}",)],
    "domains show": [("{domain}",)],
    "domains verdicts": [(), ("--csv",), ("--domain", "{domain}")],
    "explain": [("{domain}",), ("{page}",), ("{feed}",)],
    "feeds export": [()],
    "feeds list": [()],
    "feeds show": [("{feed}",)],
    "feeds why": [("{feed}",)],
    "records changes": [()],
    "rss alerts try": [("all", "--latest", "1000")],
    "rss export": [
        *(("--format", one) for one in FORMATS if one != "parquet"),
        *(("--delta", "0"), ("--opml",)),
    ],
    "search": [(WORDS, "--facets", "--limit", "100"), (WORDS, "--domain", "{domain}")],
    "sql": [
        (f"select * from {name}",)
        for name in ("captures", "articles", "near_duplicates", "capture_index")
    ],
    "store get": [("{domain}",)],
    "stories": [(), ("--domain", "{domain}")],
    "story": [("{story}",)],
    "store stats": [()],
}
# They change the root, serve others, or show no page: counts, places, assets, requests.
OTHER_COMMANDS = """
adopt, captures build, demo, dev, doctor, mcp, metrics, pause, resume, retry, serve, status,
ccnews accept, ccnews collect, ccnews extract, ccnews index, ccnews list, ccnews status,
corpus build, corpus maintain, domains bots, domains estimate, domains fetch, domains import,
domains resurvey, domains status, feeds add, feeds import, feeds pause, feeds recheck,
feeds remove, feeds resume, feeds set, rss alerts test,
ledger backup, ledger check, ledger move, ledger restore, records build, records segment,
retention apply, retention plan, rss alerts list, rss alerts run, rss discovery, rss ensure,
rss poll, rss reextract, rss status, rss sync, rss work, store build, store compact, store repair,
store verify, takedown add, takedown apply, takedown import, takedown list, takedown lists,
takedown show, takedown verify, takedown withdraw
"""


def _commands(command: click.Command, *path: str) -> Iterator[str]:
    if not isinstance(command, click.Group):
        yield " ".join(path)
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from _commands(found, *path, name)


def test_every_command_is_known_as_a_way_out_or_not() -> None:
    others = {one.strip() for one in OTHER_COMMANDS.replace("\n", " ").split(",")}
    assert {*COMMANDS, *others} == set(_commands(main)) and not others & COMMANDS.keys()


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_shows_it(hidden: Hidden, command: str) -> None:
    for words in COMMANDS[command]:
        given = list(map(hidden.filled, words))
        assert hidden.shown(_run(hidden.root, *command.split(), *given), *given) == [], words


def test_nothing_counts_it(hidden: Hidden) -> None:
    counted = _run(hidden.root, "search", WORDS, "--domain", DOMAIN, "--count")
    assert "0 articles" in counted.splitlines()
    assert DOMAIN not in _run(hidden.root, "search", WORDS, "--facets")


def test_no_dataset_has_a_row_of_it_and_all_have_others(hidden: Hidden) -> None:
    news, down = news_platform.open(hidden.root), target("domain", DOMAIN)
    assert read_hidden(news._store)
    for name, dataset in news.tables.items():
        rows = news[name].collect()
        assert down.covered(dataset, rows).sum() == 0, name
        assert rows.height or name.endswith("_changes"), name
    assert list(news.domain_store.records(DOMAIN)) == [] and news.domain_store.count(DOMAIN) == 0
    assert DOMAIN not in news.domain_store.domains()


PAGES = {
    "/": [f"/?q={WORDS.replace(' ', '+')}&limit=100", "/"],
    "/articles/{url_hash}": ["/articles/{hash}"],
    "/domains": ["/domains"],
    "/domains/{domain}": ["/domains/{domain}"],
    "/search": [f"/search?q={WORDS.replace(' ', '+')}&limit=100", "/search?domain={domain}"],
    "/attention": [f"/attention?q={WORDS.replace(' ', '+')}"],
    "/attention.csv": [f"/attention.csv?q={WORDS.replace(' ', '+')}"],
    "/feeds": ["/feeds"],
    "/stories": ["/stories"],
    "/stories/{story_id}": ["/stories/{story}"],
    "/edits": ["/edits"],
    "/policies": ["/policies"],
    "/policies.csv": ["/policies.csv"],
    "/cdx": ["/cdx?url=*.{domain}", "/cdx?url={page}&output=json&page=0"],
    "/record": ["/record?url={page}"],
    "/explain": ["/explain?q={page}", "/explain?q={domain}"],
    "search": [f"/api/v1/search?q={WORDS.replace(' ', '+')}&limit=100"],
    "articles/{url_hash}": ["/api/v1/articles/{hash}"],
    "domains/{domain}": ["/api/v1/domains/{domain}"],
    "explain": ["/api/v1/explain?subject={page}"],
    "policies": ["/api/v1/policies"],
    "attention": [f"/api/v1/attention?q={WORDS.replace(' ', '+')}"],
    "feeds": ["/api/v1/feeds"],
    "stories": ["/api/v1/stories"],
    "stories/{story_id}": ["/api/v1/stories/{story}"],
    "edits": ["/api/v1/edits"],
}
OTHER_PAGES = {"/status", "/static/{name}", "status", "/api", "overview"}


@pytest.fixture(scope="module")
def state(hidden: Hidden) -> Iterator[AppState]:
    settings = load_settings({"NEWS_PLATFORM_ROOT": str(hidden.root), "NEWS_PLATFORM_SAMPLE": "1"})
    options = server_options(settings, host="127.0.0.1", port=1)
    state = AppState(open_resources(settings, access=RootAccess.READ), options)
    yield state
    state.sql.close()


def test_no_page_or_endpoint_shows_it(hidden: Hidden, state: AppState) -> None:
    answers = ResponseCache(state, lambda *_: None)  # type: ignore[arg-type]
    routes = {one.path for one in (*page_routes(answers), *cdx_routes(answers))}
    assert {*PAGES, *OTHER_PAGES} == routes | ENDPOINTS.keys()
    with exploring(hidden.root, NEWS_PLATFORM_SAMPLE="1") as explorer:
        for paths in PAGES.values():
            for path in map(hidden.filled, paths):
                reply = explorer.get(path)
                assert reply.status < 500, reply.text[:500]
                assert hidden.shown(reply.text, hidden.page) == [], path


TOOLS: Mapping[str, Mapping[str, Any]] = {
    "search": {"query": WORDS, "limit": 50},
    "article": {"url": "{page}"},
    "domain": {"name": "{domain}"},
    "explain": {"subject": "{page}"},
    "policy": {"domain": "{domain}"},
    "stories": {"story_id": "{story}"},
    "sql": {"query": "select url, title from all_articles where domain = '{domain}'"},
}


def test_no_tool_shows_it(hidden: Hidden, state: AppState) -> None:
    async def answers() -> dict[str, str]:
        async with Client(create_mcp(state)) as client:
            assert {one.name for one in (await client.list_tools()).tools} == TOOLS.keys()
            return {
                name: str((await client.call_tool(name, _given(hidden, name))).content)
                for name in TOOLS
            }

    for name, text in anyio.run(answers).items():
        assert hidden.shown(text, hidden.page) == [], name


def _given(hidden: Hidden, name: str) -> dict[str, Any]:
    given = TOOLS[name].items()
    return {key: hidden.filled(one) if isinstance(one, str) else one for key, one in given}


def test_what_was_hidden_is_removed_and_nothing_is_hidden_any_more(hidden: Hidden) -> None:
    _run(hidden.root, "takedown", "apply")
    assert "nothing taken down is stored" in _run(hidden.root, "takedown", "verify")
    assert not TakedownTarget(read_hidden(news_platform.open(hidden.root)._store)).takedowns
