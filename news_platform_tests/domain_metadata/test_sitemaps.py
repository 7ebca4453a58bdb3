"""Sitemaps of real sites, truncated ones, and attacks."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news_platform.domain_metadata.sitemaps import MAX_URLS, Sitemap, parse_sitemap
from news_platform_tests.domain_metadata.attacks import ATTACKS

NS = "http://www.sitemaps.org/schemas/sitemap/0.9"
URL = "https://a.test/sitemap.xml"


def urlset(*entries: str, root: str = f'urlset xmlns="{NS}"') -> bytes:
    return f"<?xml version='1.0'?><{root}>{''.join(entries)}</{root.split()[0]}>".encode()


def entry(path: str, more: str = "") -> str:
    return f"<url><loc>https://a.test/{path}</loc>{more}</url>"


def parse(body: bytes | str) -> Sitemap:
    return parse_sitemap(body if isinstance(body, bytes) else body.encode(), URL)


def test_a_plain_sitemap_gives_its_urls_in_order() -> None:
    found = parse(urlset(entry("b"), entry("a"), entry("b")))
    assert found.kind == "urlset" and found.problems == () and found.children == ()
    assert found.urls == ("https://a.test/b", "https://a.test/a", "https://a.test/b")


def test_an_index_gives_its_children() -> None:
    body = urlset("<sitemap><loc> https://a.test/1.xml\n</loc></sitemap>", root="sitemapindex")
    assert parse(body) == Sitemap("index", children=("https://a.test/1.xml",))


def test_images_and_videos_are_not_pages() -> None:
    image = "<i:image xmlns:i='i'><i:loc>https://a.test/x.png</i:loc></i:image>"
    assert parse(urlset(entry("a", image))).urls == ("https://a.test/a",)
    assert parse(urlset(f"<url>{image}<loc>https://a.test/a</loc></url>")).urls == (
        "https://a.test/a",
    )


def test_rss_gives_links_or_permanent_guids() -> None:
    items = (
        "<item><link>https://a.test/1</link></item>"
        "<item><guid>https://a.test/2</guid></item>"
        "<item><guid isPermaLink='false'>https://a.test/3</guid></item>"
    )
    found = parse(f"<rss><channel><link>https://a.test/</link>{items}</channel></rss>")
    assert (found.kind, found.urls) == ("rss", ("https://a.test/1", "https://a.test/2"))


def test_atom_gives_alternate_links_of_entries_only() -> None:
    links = "<link rel='self' href='https://a.test/s'/><link href='https://a.test/1'/>"
    body = f"<feed xmlns='http://www.w3.org/2005/Atom'><link href='https://a.test/'/><entry>{links}</entry></feed>"
    assert parse(body) == Sitemap("atom", urls=("https://a.test/1",))


def test_text_gives_its_lines_that_are_urls() -> None:
    assert parse("# my pages\nhttps://a.test/1\r\n\nHTTP://a.test/2\nftp://x\n").urls == (
        "https://a.test/1",
        "HTTP://a.test/2",
    )


@pytest.mark.parametrize(
    "body",
    [
        b"\xef\xbb\xbf" + urlset(entry("a")),
        b"\n\n  " + urlset(entry("a")),
        urlset(entry("a")).decode().encode("utf-16"),
        gzip.compress(urlset(entry("a"))),
        gzip.compress(gzip.compress(urlset(entry("a")))),
        gzip.compress(urlset(entry("a"))) + b"\0\0",
        urlset(entry("a"), root="urlset"),
        urlset(entry("a"), root=f'urlset xmlns="{NS.replace("http:", "https:")}"'),
        urlset("<s:url><s:loc>https://a.test/a</s:loc></s:url>", root=f'urlset xmlns:s="{NS}"'),
        urlset("<url><loc><![CDATA[https://a.test/a]]></loc></url>"),
        urlset("<url><loc>https://a.test/\x01a</loc></url>"),
        urlset("<url><lastmod/>https://a.test/no<loc>https://a.test/a</loc></url>"),
        b"<?xml version='1.0' encoding='bogus-9'?>" + urlset(entry("a"))[21:],
    ],
    ids=[
        "byte order mark", "leading blanks", "UTF-16", "gzip", "gzip twice", "padded gzip",
        "no namespace", "https namespace", "prefix", "CDATA", "control character", "odd order",
        "unknown encoding",
    ],
)  # fmt: skip
def test_a_sitemap_is_read_however_it_is_wrapped(body: bytes) -> None:
    assert parse(body) == Sitemap("urlset", urls=("https://a.test/a",))


@pytest.mark.parametrize(
    "written", ["?a=1&amp;b=2", "?a=1&b=2", "?a=1&amp;amp;b=2", "?a=1&#38;b=2"]
)
def test_ampersands_are_read_however_they_are_written(written: str) -> None:
    assert parse(urlset(entry(written))).urls == ("https://a.test/?a=1&b=2",)
    assert (
        parse(urlset(f"<url><loc><![CDATA[https://a.test/{written}]]></loc></url>"))
        .urls[0]
        .startswith("https://a.test/?a=1&")
    )


def test_an_entity_on_the_border_of_two_pieces_is_not_torn() -> None:
    for shift in range(12):
        padding = f"<!--{'x' * (65_536 - 120 + shift)}-->"
        found = parse(urlset(padding, *(entry(f"?a&amp;b&{n}") for n in range(3))))
        assert found.urls == tuple(f"https://a.test/?a&b&{n}" for n in range(3))


def test_a_latin_1_sitemap_keeps_its_letters() -> None:
    body = "<?xml version='1.0' encoding='ISO-8859-1'?>" + urlset(entry("café")).decode()[21:]
    assert parse(body.encode("latin-1")).urls == ("https://a.test/café",)


@pytest.mark.parametrize("keep", [1, 5, 10])
def test_a_file_that_breaks_off_loses_its_last_entry_only(keep: int) -> None:
    body = urlset(*(entry(str(n)) for n in range(20)))
    cut = body.index(f"<url><loc>https://a.test/{keep}</loc>".encode()) + 34
    found = parse(body[:cut])
    assert (len(found.urls), found.problems) == (keep, ("truncated",))


def test_a_gzip_that_breaks_off_keeps_what_came_whole() -> None:
    body = gzip.compress(urlset(*(entry(f"{n:09}") for n in range(30_000))))
    found = parse(body[: len(body) // 2])
    assert (
        found.kind == "urlset" and found.problems == ("bad_gzip",) and 0 < len(found.urls) < 30_000
    )


def test_the_protocol_s_limit_of_urls_holds() -> None:
    found = parse(urlset(*(entry(str(n)) for n in range(MAX_URLS + 10))))
    assert len(found.urls) == MAX_URLS and found.problems == ("too_many_urls",)


def test_relative_urls_are_joined_and_foreign_schemes_dropped_both_reported() -> None:
    body = urlset(
        "<url><loc>/a</loc></url>", "<url><loc>mailto:x</loc></url>", "<url></url>", entry("b")
    )
    found = parse(body)
    assert found.urls == ("https://a.test/a", "https://a.test/b")
    assert found.problems == ("relative_url", "bad_url")


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"", "empty"),
        (b" \n\t", "empty"),
        (b"\xef\xbb\xbf", "empty"),
        (b"<html><body>404</body></html>", "not_xml"),
        (b"<!doctype html><html></html>", "doctype"),
        (b"not a sitemap", "not_xml"),
        (b"<", "not_xml"),
        (b"\x1f\x8bjunk", "bad_gzip"),
        (b'{"a": 1}', "not_xml"),
        (b"\x89PNG\r\n\x1a\n\0\0", "not_xml"),
    ],
)
def test_a_page_that_is_not_a_sitemap_is_invalid_with_a_reason(body: bytes, problem: str) -> None:
    found = parse(body)
    assert found.kind == "invalid" and problem in found.problems
    assert found.urls == found.children == ()


def test_each_attack_costs_less_than_a_second_and_64_mb() -> None:
    program = [sys.executable, "-m", "news_platform_tests.domain_metadata.attacks"]
    done = subprocess.run(program, check=True, capture_output=True, timeout=60)
    costs = json.loads(done.stdout)
    assert set(costs) == set(ATTACKS)
    assert sum(mib for _, mib, _ in costs.values()) < 64
    for name, (seconds, _, urls) in costs.items():
        assert seconds < 1, (name, seconds)
        assert urls == (MAX_URLS if name == "a gigabyte of entries" else 0), name


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-16"])
def test_a_document_type_is_refused_in_every_encoding(encoding: str) -> None:
    body = '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY a "b">]><urlset><url>&a;</url></urlset>'
    assert parse(body.encode(encoding)) == Sitemap("invalid", problems=("doctype",))


@given(st.binary(max_size=300))
def test_no_bytes_raise(body: bytes) -> None:
    parse(body)
    parse(b"<urlset>" + body)


def test_every_stored_case_has_its_expected_count_and_kind(bench_data: Path) -> None:
    cases = sorted((bench_data / "sitemaps/cases").glob("*.bin"))
    assert len(cases) >= 17
    for path in cases:
        count, kind = json.loads(path.with_suffix(".json").read_text())
        found = parse(path.read_bytes())
        assert len(found.urls) + len(found.children) == count, path.name
        assert found.kind == kind or kind == "attack", path.name
