"""The fetcher against a real server on loopback, friendly and hostile."""

import asyncio
import gzip
import resource
import time
import zlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import brotli  # type: ignore[import-untyped]  # ships no types
import pytest

from news_platform.errors import FetchError
from news_platform.web.fetch import FetchOptions, Response, WebFetcher
from news_platform.web.rate_limits import ConcurrencyLimits
from news_platform.web.resolver import Lookup
from news_platform_tests.web.site import (
    Answer,
    Site,
    after,
    body,
    closing,
    dripping,
    endless,
    raw,
    redirect,
    serve,
    status,
)

QUICK = FetchOptions(
    user_agent="TestBot/1.0",
    contact="https://bot.example/about",
    total_timeout_seconds=2,
    read_timeout_seconds=1,
    max_body_bytes=1_000_000,
)


def no_names(host: str) -> list[str]:
    raise AssertionError(f"the test asked for the address of {host!r}")


@asynccontextmanager
async def fetching(
    answers: Mapping[str, Answer], *, options: FetchOptions = QUICK, lookup: Lookup = no_names
) -> AsyncIterator[tuple[WebFetcher, Site]]:
    """Fetch from a loopback server that is two hosts."""
    async with serve(answers) as site:
        places = {host: ("127.0.0.1", site.port) for host in ("a.example", "b.example")}
        async with WebFetcher(replace(options, host_map=places), lookup=lookup) as fetcher:
            yield fetcher, site


async def fetch_all(
    urls: list[str],
    answers: Mapping[str, Answer],
    *,
    options: FetchOptions = QUICK,
    lookup: Lookup = no_names,
) -> tuple[list[Response | FetchError], Site]:
    """Ask for all URLs at once."""
    async with fetching(answers, options=options, lookup=lookup) as (fetcher, site):
        found = await asyncio.gather(*map(fetcher.fetch, urls), return_exceptions=True)
    for one in found:
        if isinstance(one, BaseException) and not isinstance(one, FetchError):
            raise one
    return found, site  # type: ignore[return-value]  # the loop above is the proof


def fetch(
    url: str,
    answers: Mapping[str, Answer],
    *,
    options: FetchOptions = QUICK,
    lookup: Lookup = no_names,
) -> Response:
    """Ask for one URL; raise what the fetcher raised."""
    [found], _ = asyncio.run(fetch_all([url], answers, options=options, lookup=lookup))
    if isinstance(found, FetchError):
        raise found
    return found


def reason(
    url: str,
    answers: Mapping[str, Answer],
    *,
    options: FetchOptions = QUICK,
    lookup: Lookup = no_names,
) -> str:
    """Return why a URL could not be fetched."""
    with pytest.raises(FetchError) as caught:
        fetch(url, answers, options=options, lookup=lookup)
    assert repr(url) in str(caught.value) or (caught.value.thing or "?") in url
    return caught.value.reason


def test_an_answer_carries_status_headers_body_and_the_url_asked_for() -> None:
    answers = {"/robots.txt": body(b"hello", ETag="x", X_Two="1")}
    found = fetch("https://a.example/robots.txt", answers)
    assert (found.status, found.body, found.truncated) == (200, b"hello", False)
    assert found.url == found.final_url == "https://a.example/robots.txt"
    assert found.headers["etag"] == "x" and found.headers["x-two"] == "1"
    assert 0 < found.elapsed_seconds < 2


def test_a_request_says_who_we_are_and_what_we_have() -> None:
    async def go() -> Site:
        async with fetching({"/": status(304)}) as (fetcher, site):
            await fetcher.fetch("http://a.example/", headers={"If-None-Match": '"x"'})
        return site

    headers = asyncio.run(go()).headers[0]
    assert headers["user-agent"] == "TestBot/1.0 (+https://bot.example/about)"
    assert (headers["host"], headers["if-none-match"]) == ("a.example", '"x"')


@pytest.mark.parametrize("code", [204, 404, 503])
def test_any_status_is_an_answer(code: int) -> None:
    assert fetch("http://a.example/", {"/": status(code)}).status == code


def test_redirects_are_followed_and_told() -> None:
    answers = {
        "/": redirect("/two", 301),
        "/two": redirect("https://b.example/three"),
        "/three": body(b"x"),
    }
    found = fetch("http://a.example/", answers)
    assert found.final_url == "https://b.example/three"
    assert found.redirects == ("http://a.example/", "http://a.example/two")


def test_a_redirect_is_followed_however_its_own_body_is_encoded() -> None:
    moved = status(301, b"x", Location="/two", Content_Encoding="zstd")
    assert fetch("http://a.example/", {"/": moved, "/two": body(b"two")}).body == b"two"


def test_the_fifth_redirect_is_followed_and_the_sixth_is_not() -> None:
    answers = {f"/{n}": redirect(f"/{n + 1}") for n in range(10)}
    answers["/5"] = body(b"end")
    assert len(fetch("http://a.example/0", answers).redirects) == 5
    answers |= {"/5": redirect("/6"), "/6": body(b"end")}
    assert reason("http://a.example/0", answers) == "too_many_redirects"


def test_a_redirect_loop_ends_at_once() -> None:
    answers = {"/": redirect("/b"), "/b": redirect("/")}
    [found], site = asyncio.run(fetch_all(["http://a.example/"], answers))
    assert isinstance(found, FetchError) and found.reason == "too_many_redirects"
    assert len(site.requests) == 2


@pytest.mark.parametrize(
    ("to", "expected"),
    [
        ("http://127.0.0.1/", "blocked_address"),
        ("http://169.254.169.254/latest/meta-data", "blocked_address"),
        ("http://127.0.0.1:{port}/", "blocked_port"),
        ("file:///etc/passwd", "bad_url"),
    ],
)
def test_every_hop_is_judged_like_the_first(to: str, expected: str) -> None:
    async def go() -> str:
        answers: dict[str, Answer] = {}
        async with fetching(answers) as (fetcher, site):
            answers["/"] = redirect(to.replace("{port}", str(site.port)))
            with pytest.raises(FetchError) as caught:
                await fetcher.fetch("http://a.example/")
            assert site.requests == [("a.example", "/")]
            return caught.value.reason

    assert asyncio.run(go()) == expected


@pytest.mark.parametrize("url", ["ftp://a.example/", "a.example", "http://a..b:x/"])
def test_what_is_no_web_url_is_refused(url: str) -> None:
    assert reason(url, {}) == "bad_url"


@pytest.mark.parametrize("address", ["10.0.0.1", "::1"])
def test_a_name_that_answers_with_a_private_address_is_blocked(address: str) -> None:
    assert reason("http://evil.test/", {}, lookup=lambda host: [address]) == "blocked_address"


@pytest.mark.parametrize("url", ["http://2130706433/", "http://0x7f.1/", "http://localhost/"])
def test_odd_spellings_of_loopback_are_blocked_whatever_the_system_makes_of_them(url: str) -> None:
    blocked = reason(url, {}, lookup=lambda host: ["127.0.0.1"])
    assert blocked in ("blocked_address", "bad_url")


@pytest.mark.parametrize(
    ("answer", "total_seconds", "read_seconds"),
    [(dripping(0.05), 0.3, 5), (after(5, body(b"")), 10, 0.2)],
    ids=["a slow loris", "a silent server"],
)
def test_a_slow_server_costs_no_more_than_its_timeout(
    answer: Answer, total_seconds: float, read_seconds: float
) -> None:
    options = replace(QUICK, total_timeout_seconds=total_seconds, read_timeout_seconds=read_seconds)
    started = time.monotonic()
    assert reason("http://a.example/", {"/": answer}, options=options) == "timeout"
    assert time.monotonic() - started < 1.5


def test_a_body_longer_than_the_cap_is_cut() -> None:
    found = fetch("http://a.example/", {"/": endless()})
    assert found.truncated and len(found.body) == QUICK.max_body_bytes
    whole = fetch("http://a.example/", {"/": body(b"x" * QUICK.max_body_bytes)})
    assert not whole.truncated and len(whole.body) == QUICK.max_body_bytes


def test_endless_headers_are_an_error() -> None:
    head = b"HTTP/1.1 200 x\r\n"
    answers = {"/": endless(b"X-A: " + b"y" * 60_000 + b"\r\n", head)}
    assert reason("http://a.example/", answers) in ("protocol", "timeout", "network")


def gzip_bomb() -> bytes:
    """One gigabyte of zeros in a megabyte."""
    member = gzip.compress(bytes(64 * 1024 * 1024), 9)
    return member * 16


@pytest.mark.parametrize(
    ("encoding", "make"),
    [
        ("gzip", gzip_bomb),
        ("deflate", lambda: zlib.compress(bytes(64 * 1024 * 1024), 9)),
        ("br", lambda: brotli.compress(bytes(64 * 1024 * 1024), quality=4)),
        ("gzip, gzip", lambda: gzip.compress(gzip_bomb())),
    ],
    ids=["gzip", "deflate", "brotli", "gzip twice"],
)
def test_a_bomb_is_cut_at_the_cap_in_little_memory(encoding: str, make: object) -> None:
    bomb = make()  # type: ignore[operator]  # the table holds functions
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    found = fetch("http://a.example/", {"/": body(bomb, Content_Encoding=encoding)})
    assert found.truncated and found.body == bytes(QUICK.max_body_bytes)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


@pytest.mark.parametrize(
    ("encoding", "content"),
    [
        ("gzip", gzip.compress(b"hello ") + gzip.compress(b"world")),
        ("GZIP", b"hello world"),
        ("deflate", zlib.compress(b"hello world")),
        ("deflate", zlib.compress(b"hello world", wbits=-15)),
        ("br", brotli.compress(b"hello world")),
        ("UTF-8", b"hello world"),
        ("br, gzip", gzip.compress(brotli.compress(b"hello world"))),
    ],
    ids=[
        "members",
        "a lie",
        "zlib",
        "raw deflate",
        "brotli",
        "charset",
        "two layers",
    ],
)
def test_encodings_are_undone_as_servers_really_send_them(encoding: str, content: bytes) -> None:
    found = fetch("http://a.example/", {"/": body(content, Content_Encoding=encoding)})
    assert found.body == b"hello world"


@pytest.mark.parametrize(
    ("encoding", "content", "expected"),
    [
        ("gzip", gzip.compress(b"hello" * 100)[:20], "incomplete"),
        ("gzip", b"\x1f\x8b" + b"junk" * 9, "bad_encoding"),
        ("br", brotli.compress(b"hello" * 1000)[:8], "incomplete"),
        ("gzip, gzip, gzip, gzip", b"x", "bad_encoding"),
    ],
    ids=["cut gzip", "junk gzip", "cut brotli", "layers"],
)
def test_damaged_encodings_are_told(encoding: str, content: bytes, expected: str) -> None:
    assert reason("http://a.example/", {"/": body(content, Content_Encoding=encoding)}) == expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (closing(b"HTTP/1.1 200 x\r\nContent-Length: 100\r\n\r\nhalf"), "incomplete"),
        (closing(b""), "reset"),
        (closing(b"this is not HTTP\r\n\r\n"), "protocol"),
        (raw(b"HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\nZZ\r\n"), "protocol"),
    ],
    ids=["body breaks off", "hangs up", "not HTTP", "bad chunk"],
)
def test_broken_answers_have_a_reason(answer: Answer, expected: str) -> None:
    assert reason("http://a.example/", {"/": answer}) == expected


def test_a_closed_port_is_refused() -> None:
    async def go() -> str:
        async with serve({}) as site:
            pass
        options = replace(QUICK, host_map={"a.example": ("127.0.0.1", site.port)})
        async with WebFetcher(options) as fetcher:
            with pytest.raises(FetchError) as caught:
                await fetcher.fetch("https://a.example/")
        return caught.value.reason

    assert asyncio.run(go()) == "refused"


def test_a_host_never_has_more_requests_than_its_limit_and_hosts_do_not_wait_for_each_other() -> (
    None
):
    slow = after(0.05, body(b""))
    urls = [f"http://{host}/{n}" for host in ("a.example", "b.example") for n in range(8)]
    answers = {f"/{n}": slow for n in range(8)}
    started = time.monotonic()
    found, site = asyncio.run(fetch_all(urls, answers))
    assert all(isinstance(one, Response) for one in found)
    assert site.most_open == {"a.example": 2, "b.example": 2}
    assert time.monotonic() - started < 0.8


def test_waiting_for_our_own_limits_does_not_count_against_the_timeout() -> None:
    options = replace(QUICK, per_host=1, total_timeout_seconds=0.5)
    answers = {f"/{n}": after(0.2, body(b"")) for n in range(5)}
    urls = [f"http://a.example/{n}" for n in range(5)]
    found, _ = asyncio.run(fetch_all(urls, answers, options=options))
    assert all(isinstance(one, Response) for one in found)


def test_a_crawl_delay_keeps_requests_apart() -> None:
    async def go() -> tuple[float, int]:
        options = replace(QUICK, max_crawl_delay_seconds=0.2)
        async with fetching({"/": body(b"")}, options=options) as (fetcher, site):
            fetcher.set_crawl_delay("a.example", 3600)
            started = time.monotonic()
            await asyncio.gather(*(fetcher.fetch("http://a.example/") for _ in range(3)))
            return time.monotonic() - started, site.most_open["a.example"]

    seconds, most = asyncio.run(go())
    assert 0.6 <= seconds < 2 and most == 1


def test_a_cookie_lives_within_one_fetch_and_goes_to_its_own_site() -> None:
    """Many sites set a cookie and lead to the same page, which they show only with it."""

    async def go() -> None:
        async def gate(writer: asyncio.StreamWriter) -> None:
            is_in = "seen=yes" in site.headers[-1].get("cookie", "")
            found = redirect("https://b.example/end") if is_in else set_cookie
            await found(writer)

        set_cookie = status(302, Location="/page", Set_Cookie="seen=yes; Path=/; Secure")
        end = body(b"the page", Set_Cookie="late=1")
        async with fetching({"/page": gate, "/end": end}) as (fetcher, site):
            for _ in range(2):
                found = await fetcher.fetch("https://a.example/page")
                assert (found.status, found.body) == (200, b"the page")
            cookies = [headers.get("cookie") for headers in site.headers]
            assert cookies == [None, "seen=yes", None] * 2

    asyncio.run(go())


def test_a_site_that_sets_the_same_cookie_for_ever_is_a_loop() -> None:
    answers = {"/": status(302, Location="/", Set_Cookie="a=b")}
    [found], site = asyncio.run(fetch_all(["http://a.example/"], answers))
    assert isinstance(found, FetchError) and found.reason == "too_many_redirects"
    assert len(site.requests) == 2


def test_a_visitor_who_is_cancelled_or_fails_gives_the_slot_back() -> None:
    async def go() -> int:
        limits = ConcurrencyLimits(1)
        holder = asyncio.create_task(_hold(limits))
        await asyncio.sleep(0)
        waiter = asyncio.create_task(_hold(limits))
        await asyncio.sleep(0)
        holder.cancel()
        waiter.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        with pytest.raises(ValueError, match="inside"):
            async with limits.enter("a"):
                raise ValueError("inside")
        async with asyncio.timeout(1), limits.enter("a"):
            return len(limits)

    assert asyncio.run(go()) == 1


async def _hold(limits: ConcurrencyLimits) -> None:
    async with limits.enter("a"):
        await asyncio.sleep(60)
