"""The loopback server answers for every host as real servers do."""

import gzip
import http.client
import socket
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote

import pytest

from news_platform.sample.newsroom import SampleArticle
from news_platform.sample.server import serve_world

HostMap = Mapping[str, tuple[str, int]]
POST = "www.calderpost.example"


def ask(
    hosts: HostMap, host: str, path: str, *, method: str = "GET", **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    line = http.client.HTTPConnection(*hosts.get(host, hosts[POST]), timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        line.request(method, path, headers={"Host": host, **named})
        response = line.getresponse()
        return response, response.read()
    finally:
        line.close()


def test_an_etag_that_matches_gives_304_without_a_body(sample_hosts: HostMap) -> None:
    first, body = ask(sample_hosts, POST, "/feeds/news.xml")
    etag = first.headers["ETag"]
    again, nothing = ask(sample_hosts, POST, "/feeds/news.xml", If_None_Match=f'"old", W/{etag}')
    assert body
    assert (again.status, nothing) == (304, b"")
    assert again.headers["ETag"] == etag
    other, full = ask(sample_hosts, POST, "/feeds/news.xml", If_None_Match='"old"')
    assert (other.status, full) == (200, body)


@pytest.mark.parametrize(
    ("host", "path", "status", "location"),
    [
        (POST, "/feed", 301, "https://www.calderpost.example/feeds/news.xml"),
        ("calderpost.example", "/robots.txt", 301, f"https://{POST}/robots.txt"),
        ("www.harbourhill.co.example", "/old-feed.xml", 410, None),
        ("news.northmoor.example", "/comments.xml", 404, None),
        ("unknown.example", "/", 421, None),
    ],
)
def test_redirects_and_errors(
    sample_hosts: HostMap, host: str, path: str, status: int, location: str | None
) -> None:
    response, _ = ask(sample_hosts, host, path)
    assert (response.status, response.headers["Location"]) == (status, location)


def test_gzip_is_used_only_where_it_is_asked_for(sample_hosts: HostMap) -> None:
    host, path = "wire.meridian.example", "/rss.xml"
    plain, body = ask(sample_hosts, host, path, Accept_Encoding="identity")
    packed, small = ask(sample_hosts, host, path, Accept_Encoding="br, gzip")
    assert plain.headers["Content-Encoding"] is None
    assert packed.headers["Content-Encoding"] == "gzip"
    assert packed.headers["Vary"] == plain.headers["Vary"] == "Accept-Encoding"
    assert gzip.decompress(small) == body
    assert packed.headers["ETag"].startswith('W/"')


def test_paths_in_another_script_are_found_however_they_are_escaped(
    sample_hosts: HostMap, articles: tuple[SampleArticle, ...]
) -> None:
    article = next(article for article in articles if article.outlet.link_style == "native")
    lower = article.path.replace("%D", "%d")
    assert lower != article.path
    for path in (article.path, lower):
        assert ask(sample_hosts, article.outlet.host, path)[0].status == 200
    assert quote("%") == "%25"


def test_the_server_ends_at_once_even_with_a_connection_open(sample_world: Path) -> None:
    with serve_world(sample_world) as hosts:
        line = http.client.HTTPConnection(*hosts[POST], timeout=10)
        line.request("GET", "/", headers={"Host": POST})
        line.getresponse().read()
        started = time.monotonic()
    assert time.monotonic() - started < 2
    line.close()
    with pytest.raises(ConnectionError):
        ask(hosts, POST, "/")


def test_a_reader_who_leaves_early_disturbs_nobody(
    sample_world: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serve_world(sample_world) as hosts:
        for _ in range(5):
            line = socket.create_connection(hosts[POST], timeout=10)
            line.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            line.sendall(f"GET / HTTP/1.1\r\nHost: {POST}\r\n\r\n".encode() * 20)
            line.close()
        assert ask(hosts, POST, "/")[0].status == 200
    assert capfd.readouterr().err == ""
