"""Canonical URLs, domains and SURTs: our own table, five libraries' vectors, and random garbage."""

import hashlib
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from news_platform.web.urls import (
    canonical_url,
    is_tracker,
    registrable_domain,
    reversed_domain,
    surt,
    url_hash,
)
from news_platform_tests.web.url_pairs import different_articles, same_article

CANONICAL = {
    "host and scheme in lower case": ("HTTPS://WWW.Site.ORG/A", "https://www.site.org/A"),
    "an empty path is a slash": ("http://site.org", "http://site.org/"),
    "a default port goes": ("https://site.org:443/a", "https://site.org/a"),
    "another port stays": ("https://site.org:80/a", "https://site.org:80/a"),
    "the root dot goes": ("http://site.org./a", "http://site.org/a"),
    "a login goes": ("http://Me:pw@site.org/", "http://site.org/"),
    "punycode for other scripts": ("http://bücher.de/", "http://xn--bcher-kva.de/"),
    "an IPv6 host keeps brackets": ("http://[::1]:80/", "http://[::1]/"),
    "dot segments go": ("http://site.org/a/./b/../c", "http://site.org/a/c"),
    "escaped dots count": ("http://site.org/a/%2e%2E/b", "http://site.org/b"),
    "doubled slashes fold": ("http://site.org//a///b", "http://site.org/a/b"),
    "a URL inside a path survives": (
        "http://site.org/web/https://other.org/a",
        "http://site.org/web/https://other.org/a",
    ),
    "backslashes are slashes": ("http:\\\\site.org\\a", "http://site.org/a"),
    "needed escapes in capitals": ("http://site.org/a%2fb", "http://site.org/a%2Fb"),
    "bytes that are not UTF-8 stay": ("http://site.org/caf%e9", "http://site.org/caf%E9"),
    "letters become UTF-8 escapes": ("http://site.org/é", "http://site.org/%C3%A9"),
    "blanks around go": (" \n http://site.org/a\t", "http://site.org/a"),
    "the query is sorted": ("http://site.org/?b=2&a=3&a=1", "http://site.org/?a=1&a=3&b=2"),
    "one spelling of a blank": ("http://site.org/?q=a%20b&r=c+d", "http://site.org/?q=a+b&r=c+d"),
    "HTML's ampersands": ("http://site.org/?b=1&amp;amp;a=2", "http://site.org/?a=2&b=1"),
    "trackers go in any case": ("http://site.org/?UTM_Source=x&id=1", "http://site.org/?id=1"),
    "click ids go": ("http://site.org/a?fbclid=x&gclid=y&mc_eid=z", "http://site.org/a"),
    "a foreign ref stays": ("http://site.org/?ref=home", "http://site.org/?ref=home"),
    "a ref to itself goes": ("http://www.site.org/?ref=site.org", "http://www.site.org/"),
    "a fragment goes": ("http://site.org/a#top", "http://site.org/a"),
    "#! stays": ("http://site.org/#!/story/é", "http://site.org/#!/story/%C3%A9"),
    "no scheme means https": ("www.site.org/a", "https://www.site.org/a"),
    "a lost slash": ("http:/site.org/a", "http://site.org/a"),
    "a relative path stays": ("/a/../b", "/a/../b"),
    "other schemes stay": ("mailto:me@site.org", "mailto:me@site.org"),
    "nothing stays nothing": ("  ", ""),
}


@pytest.mark.parametrize(("url", "expected"), CANONICAL.values(), ids=CANONICAL.keys())
def test_the_canonical_url_is(url: str, expected: str) -> None:
    assert canonical_url(url) == expected


def test_the_hash_is_the_sha256_of_the_canonical_url() -> None:
    spellings = ("HTTP://site.org:80?b=1&utm_source=x&a=2#top", "http://site.org/?a=2&b=1")
    expected = hashlib.sha256(b"http://site.org/?a=2&b=1").hexdigest()
    assert {url_hash(url) for url in spellings} == {expected}


DOMAINS = {
    "two levels": ("www.bbc.co.uk", "bbc.co.uk", "uk.co.bbc"),
    "private suffixes are off": ("me.github.io", "github.io", "io.github"),
    "capitals and the root dot": ("WWW.Site.ORG.", "site.org", "org.site"),
    "punycode": ("новости.пример.рф", "xn--e1afmkfd.xn--p1ai", "xn--p1ai.xn--e1afmkfd"),
    "the sample world": ("www.outlet.example", "outlet.example", "example.outlet"),
    "an unknown suffix": ("a.b.lan", "a.b.lan", "lan.b.a"),
    "an address": ("192.168.0.1", "192.168.0.1", "1.0.168.192"),
    "an IPv6 address": ("[2001:db8::1]", "2001:db8::1", "2001:db8::1"),
}


@pytest.mark.parametrize(("host", "domain", "reverse"), DOMAINS.values(), ids=DOMAINS.keys())
def test_the_domain_of_a_host_and_of_its_urls_is(host: str, domain: str, reverse: str) -> None:
    assert registrable_domain(host) == domain
    assert reversed_domain(host) == reverse
    assert reversed_domain(f"https://user:pw@{host}:8443/a.html?b=http://c.org#d") == reverse


SURTS = {
    "every label": ("http://news.bbc.co.uk/", "uk,co,bbc,news)/"),
    "a query": ("http://site.org?b=2&A=1", "org,site)/?b=2&A=1"),
    "no fragment": ("http://site.org/a#b", "org,site)/a"),
    "another port": ("http://site.org:8080/", "org,site:8080)/"),
    "www alone is a name": ("http://www.com/", "com,www)/"),
    "punycode": ("http://bücher.de/ü", "de,xn--bcher-kva)/ü"),
    "an address": ("http://10.0.0.1/a", "1,0,0,10)/a"),
    "angle brackets": ("<http://site.org/a>", "org,site)/a"),
}


@pytest.mark.parametrize(("url", "expected"), SURTS.values(), ids=SURTS.keys())
def test_the_surt_is(url: str, expected: str) -> None:
    assert surt(url) == expected


URL_LIKE = st.one_of(
    st.text(max_size=60),
    st.builds(
        "{}{}{}{}".format,
        st.sampled_from(["http://", "https:", "//", "HTTP:\\", "ftp://", ""]),
        st.sampled_from(["site.org", "é.рф", "[::1]:80", "a:b@x.co.uk:090", "%41.com", ""]),
        st.text(alphabet="/.%aA2eE \\;:é\ud800", max_size=20),
        st.text(alphabet="?&=#!%+amp;utm_ source\n\x00é", max_size=30),
    ),
)


@given(URL_LIKE)
def test_a_canonical_url_is_its_own_canonical_url(url: str) -> None:
    once = canonical_url(url)
    assert canonical_url(once) == once


@given(URL_LIKE)
def test_no_text_makes_a_url_function_raise(url: str) -> None:
    domain = registrable_domain(url)
    assert reversed_domain(url) == ".".join(reversed(domain.split(".")))
    assert ")" in surt(url)
    assert len(url_hash(url)) == 64


def test_the_libraries_agree_wherever_we_did_not_decide_otherwise(bench_data: Path) -> None:
    lines = (bench_data / "urls" / "url_vectors.jsonl").read_text(encoding="utf-8").splitlines()
    vectors = [json.loads(line) for line in lines]
    web = [v for v in vectors if v["input"].strip().lower().startswith(("http", "//"))]
    same = [v for v in web if canonical_url(v["input"]) == canonical_url(v["expected"])]
    # The rest are one library's taste against the others': dropping `www.` and https (mcmetadata),
    # `?a` to `?a=` (w3lib), following share links and cutting paths (courlan), rewriting `#!` and
    # escapes that are not UTF-8 (url-normalize).
    assert len(same) >= 124
    assert len(web) - len(same) <= 27


def test_a_known_service_parameter_is_a_tracker_and_one_that_may_choose_the_page_is_not() -> None:
    assert all(map(is_tracker, ("utm_source", "UTM_anything", "mtm_kwd", "FbClid", "xtor")))
    assert not any(map(is_tracker, ("source", "ref", "id", "from", "utm", "at", "ns", "p", "")))


def test_200_pairs_of_publishers_are_one_article_or_two_as_they_should_be() -> None:
    same, different = list(same_article()), list(different_articles())
    assert len(same) + len(different) > 200
    assert [pair for pair in same if len(set(map(canonical_url, pair))) > 1] == []
    assert [pair for pair in different if len(set(map(canonical_url, pair))) == 1] == []
