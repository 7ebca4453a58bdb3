"""Own networks and the outgoing proxy: what is listed is open, and nothing else."""

import asyncio
from collections.abc import Iterator, Sequence

import pytest

from news_platform.errors import ConfigError, FetchError
from news_platform.web.fetch import FetchOptions, Response, WebFetcher
from news_platform.web.guard import NetworkAllowlist, checked_proxy, parse_allowed
from news_platform.web.resolver import ResolverOptions
from news_platform_tests.web.site import Site, body, redirect, serve_in_thread

# A proxy is asked with the whole address.
ANSWERS = dict.fromkeys(("/", "/feed", "http://post.example/feed"), body(b"ok"))


@pytest.fixture
def site() -> Iterator[Site]:
    with serve_in_thread(ANSWERS) as served:
        yield served


@pytest.fixture
def moved(site: Site) -> Iterator[Site]:
    """Serve a redirect to the other site."""
    with serve_in_thread({"/": redirect(f"http://127.0.0.1:{site.port}/")}) as served:
        yield served


def lookup(host: str) -> Sequence[str]:
    """Resolve all names but one to loopback, as the name server of an own network would."""
    return ["8.8.8.8"] if host == "post.example" else ["127.0.0.1"]


def fetch(
    url: str, *allowed: str, proxy: str = "", private: dict[str, str] | None = None
) -> Response:
    options = FetchOptions(
        allowed=parse_allowed(allowed),
        proxy=proxy,
        resolver=ResolverOptions(control_name=""),
        total_timeout_seconds=5,
    )

    async def run() -> Response:
        async with WebFetcher(options, lookup=lookup) as fetcher:
            return await fetcher.fetch(url, private_headers=private or {})

    return asyncio.run(run())


def reason(url: str, *allowed: str, proxy: str = "") -> str:
    with pytest.raises(FetchError) as caught:
        fetch(url, *allowed, proxy=proxy)
    return caught.value.reason


def test_a_listed_host_or_network_is_open_at_its_port(site: Site) -> None:
    url = f"http://rsshub.intranet:{site.port}/feed"
    assert fetch(url, f"rsshub.intranet:{site.port}").body == b"ok"
    assert fetch(f"http://127.0.0.1:{site.port}/", f"127.0.0.1:{site.port}").status == 200
    assert fetch(url, f"127.0.0.0/8:{site.port}").body == b"ok"


@pytest.mark.parametrize(
    ("url", "allowed", "why"),
    [
        ("http://rsshub.intranet:{port}/", (), "blocked_port"),
        ("http://rsshub.intranet/", (), "blocked_address"),
        ("http://other.intranet:{port}/", ("rsshub.intranet:{port}",), "blocked_port"),
        ("http://127.0.0.1:{port}/", ("rsshub.intranet:{port}",), "blocked_port"),
        ("http://rsshub.intranet:{port}/", ("127.0.0.0/8",), "blocked_port"),
        ("http://rsshub.intranet:{port}/", ("10.0.0.0/8:{port}",), "blocked_address"),
    ],
)
def test_all_else_stays_closed(site: Site, url: str, allowed: tuple[str, ...], why: str) -> None:
    listed = [entry.format(port=site.port) for entry in allowed]
    assert reason(url.format(port=site.port), *listed) == why
    assert site.requests == []


def test_a_redirect_out_of_the_list_is_refused(site: Site, moved: Site) -> None:
    url = f"http://rsshub.intranet:{moved.port}/"
    assert reason(url, f"rsshub.intranet:{moved.port}") == "blocked_port"
    assert (len(moved.requests), site.requests) == (1, [])


def test_the_refusal_names_the_cure(site: Site) -> None:
    for url in (f"http://rsshub.intranet:{site.port}/", "http://rsshub.intranet/"):
        with pytest.raises(FetchError, match="add it as host:port to NEWS_PLATFORM_WEB_ALLOW"):
            fetch(url)


def test_a_login_does_not_follow_a_redirect_to_another_origin(site: Site, moved: Site) -> None:
    listed = [f"127.0.0.1:{one.port}" for one in (site, moved)]
    fetch(f"http://{listed[1]}/", *listed, private={"Authorization": "Bearer abc"})
    assert [headers["authorization"] for headers in moved.headers] == ["Bearer abc"]
    assert ["authorization" in headers for headers in site.headers] == [False]


def test_public_sites_are_fetched_through_the_proxy(site: Site) -> None:
    proxy = f"http://proxy.intranet:{site.port}"
    assert fetch("http://post.example/feed", proxy=proxy).body == b"ok"
    assert site.requests == [("post.example", "http://post.example/feed")]


def test_a_listed_place_is_reached_past_the_proxy(site: Site) -> None:
    url = f"http://rsshub.intranet:{site.port}/feed"
    fetch(url, f"rsshub.intranet:{site.port}", proxy="http://proxy.intranet:9")
    assert len(site.requests) == 1


def test_private_places_and_the_proxy_itself_stay_closed_behind_it(site: Site) -> None:
    proxy = f"http://proxy.intranet:{site.port}"
    assert reason("http://127.0.0.1/", proxy=proxy) == "blocked_address"
    assert reason("http://hidden.intranet/", proxy=proxy) == "blocked_address"
    assert reason("http://proxy.intranet/", proxy=proxy) == "blocked_address"
    assert site.requests == []


@pytest.mark.parametrize(
    "entry",
    ["rsshub", "rsshub:0", "10.0.0.1/8", "http://a:80", "a b:80"],
)
def test_an_entry_that_is_not_explicit_is_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match="NEWS_PLATFORM_WEB_ALLOW"):
        parse_allowed([entry])


def test_entries_are_read_as_written() -> None:
    found = parse_allowed(["Intra.Example:8080", "[fd00::7]:80", "10.1.0.0/16", "[fd00::/8]:81"])
    assert found.hosts == {("intra.example", 8080), ("fd00::7", 80)}
    assert found.has_address("10.1.2.3", 443)
    assert not found.has_address("10.1.2.3", 8080)
    assert found.has_address("fd12::1", 81)
    assert NetworkAllowlist() == parse_allowed([])


@pytest.mark.parametrize("url", ["proxy:3128", "https://proxy:3128", "http://proxy", "http://[x"])
def test_a_proxy_is_named_by_host_and_port(url: str) -> None:
    with pytest.raises(ConfigError, match="NEWS_PLATFORM_WEB_PROXY"):
        checked_proxy(url)
