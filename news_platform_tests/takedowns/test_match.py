"""The matcher: all spellings of a page, prefixes, domains and aliases, and nothing else."""

import json
import time
from datetime import timedelta
from itertools import islice

import polars as pl
import pytest

from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.datasets.takedowns import TakedownScope
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.build_filters import without_covered
from news_platform.takedowns.lists import parse_list
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import (
    TakedownTerms,
    add_aliases,
    withdraw_request,
    write_applied,
)
from news_platform.takedowns.rows import TakedownTarget, covered_hashes, may_be_covered, names_page
from news_platform.web.urls import canonical_url, registrable_domain, url_hash, url_host
from news_platform_tests.servers.dagster_ui import PROJECT
from news_platform_tests.takedowns.asked import NOW, ask, asked
from news_platform_tests.takedowns.spellings import SPELLINGS, drawn_spellings, spellings

PAGE = "https://www.harbour.example/news/one?id=7"
HOST, PATH = "harbour.example", "/news/one"
OTHERS = [
    "https://harbour.example/news/one",
    "https://harbour.example/news/one-more?id=7",
    "https://sub.harbour.example/news/one?id=7",
    "https://other.example/?u=https://harbour.example/news/one?id=7",
    "mailto:someone@harbour.example",
    "",
]


def test_a_page_is_covered_in_every_spelling() -> None:
    page = f"https://{HOST}{PATH}"
    found = Takedowns.of([asked("url", page)])
    all_of_them = [*spellings(HOST, PATH), *islice(drawn_spellings(HOST, PATH, seed=8), 2_000)]
    assert [url for url in all_of_them if not found.covers_url(url)] == []
    asked_so = ((url, Takedowns.of([asked("url", url)])) for url in spellings(HOST, PATH))
    assert [url for url, covering in asked_so if not covering.covers_url(page)] == []


@pytest.mark.parametrize("end", ["?id=7&amp", "?utm_source=rss&id=7#top", "/amp?id=7"])
def test_what_chooses_the_page_counts(end: str) -> None:
    assert Takedowns.of([asked("url", PAGE)]).covers_url(f"http://m.{HOST}{PATH}{end}")


def test_the_documentation_lists_every_kind_of_spelling() -> None:
    page = (PROJECT / "docs" / "takedown.md").read_text()
    table = page.partition("| spelling |")[2].partition("\n\n")[0].splitlines()[2:]
    assert [line.split(" | ")[0].removeprefix("| ") for line in table] == list(SPELLINGS)


@pytest.mark.parametrize("url", OTHERS)
def test_another_page_is_not(url: str) -> None:
    assert not Takedowns.of([asked("url", PAGE)]).covers_url(url)


@pytest.mark.parametrize(
    ("prefix", "url", "expected"),
    [
        ("https://a.example/2024/", "http://www.a.example/2024/05/x", True),
        ("https://a.example/2024/", "https://a.example/2024", False),
        ("https://a.example/2024", "https://a.example/20245/x", True),
        ("https://a.example/", "https://b.a.example/x", False),
        ("https://a.example/2024/", "https://amp.a.example/2024/x", True),
        ("https://a.example/2024/", "https://u@m.a.example/amp/2024/x", True),
        ("https://m.a.example/amp/", "https://a.example/2024/x", False),
    ],
)
def test_a_prefix_covers_what_begins_with_it(prefix: str, url: str, expected: bool) -> None:
    assert Takedowns.of([asked("prefix", prefix)]).covers_url(url) is expected


def test_a_prefix_inside_another_hides_nothing() -> None:
    found = Takedowns.of([asked("prefix", "https://a.example/", "https://a.example/b/c")])
    assert found.covers_url("https://a.example/z")
    assert found.prefixes == ("a.example/",)


@pytest.mark.parametrize(
    ("domain", "url", "expected"),
    [
        ("a.example", "https://deep.sub.a.example:8080/x", True),
        ("a.example", "https://ba.example/", False),
        ("www.a.example", "https://b.a.example/", True),
        ("b.a.example", "https://a.example/", False),
        ("bücher.example", "https://xn--bcher-kva.example/x", True),
    ],
)
def test_a_domain_covers_all_its_hosts(domain: str, url: str, expected: bool) -> None:
    assert Takedowns.of([asked("domain", domain)]).covers_url(url) is expected


SUFFIX_SITE = [
    ("https://www.gov.uk/x", True),
    ("https://sub.www.gov.uk:8080/x", True),
    ("https://m.www.gov.uk/x/amp", True),
    ("https://www.google.com/amp/s/www.gov.uk/x", True),
    ("https://hmrc.gov.uk/x", False),
    ("https://www.hmrc.gov.uk/x", False),
    ("https://amp.gov.uk/x", False),
]
"""Pages, and whether the site www.gov.uk has them, which lies directly under a public suffix."""


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("domain", "www.gov.uk"),
        ("domain", "https://WWW.www.gov.uk./"),
        ("prefix", "https://www.gov.uk/"),
        ("url", "https://www.gov.uk/x"),
        ("list", "www.gov.uk"),
        ("list", "*.www.gov.uk"),
        ("list", "www.gov.uk/x*"),
    ],
)
def test_a_site_under_a_public_suffix_does_not_cover_its_neighbours(kind: str, value: str) -> None:
    values = parse_list(value.encode(), file="list.txt") if kind == "list" else (value,)
    target = TakedownTarget(found := Takedowns.of([asked(kind, *values)]))
    for url, is_covered in SUFFIX_SITE:
        # A subdomain is another host for addresses and prefixes.
        expected = is_covered and ("sub." not in url or bool(found.domains))
        row = {"canonical_url": [url], "domain": [registrable_domain(url_host(url))]}
        rows = pl.DataFrame(row)
        likely = rows.filter(may_be_covered("canonical_url", found)).height
        document = json.dumps({"url": url}).encode()
        ways = {
            "covers": found.covers(canonical_url(url)),
            "covers_export": found.covers_export(canonical_url(url)),
            "covered": target.covered(CRAWL_ARTICLES, rows).item(),
            "without_covered": without_covered(rows, CRAWL_ARTICLES, found).is_empty(),
            "left_of": target.left_of(document) is None,
            "name_pages": names_page(f"see {url} there", found),
        }
        assert ways == dict.fromkeys(ways, expected), url
        assert likely or not expected, url
        assert expected or url_hash(url) not in covered_hashes(found), url
    assert not found.covers_domain("hmrc.gov.uk")
    assert found.covers_domain("www.gov.uk") is bool(found.domains)


def test_aliases_lead_on_from_page_to_page() -> None:
    groups = [("https://s.example/1", "https://t.example/2"), ("https://t.example/2", PAGE)]
    found = Takedowns.of([asked("url", PAGE)], aliases=groups)
    assert found.covers_url("http://s.example/1")
    assert not Takedowns.of([asked("url", PAGE)]).covers_url("http://s.example/1")


def test_a_withdrawn_or_expired_request_covers_nothing(local_store: ObjectStore) -> None:
    nothing = Takedowns.read(local_store)
    assert not nothing and nothing.fingerprint == ""
    until = NOW + timedelta(days=1)
    request = ask(local_store, "url", PAGE, terms=TakedownTerms("x", expires_at=until))
    assert Takedowns.read(local_store, now=NOW).covers_url(PAGE)
    assert not Takedowns.read(local_store, now=until)
    withdraw_request(local_store, request.id, reason="", now=NOW)
    assert not Takedowns.read(local_store, now=NOW)


def test_the_scope_decides_between_stored_and_future(local_store: ObjectStore) -> None:
    stored = ask(local_store, "url", PAGE, terms=TakedownTerms("x", scope=TakedownScope.stored))
    ask(local_store, "domain", "b.example", terms=TakedownTerms("x", scope=TakedownScope.future))
    collecting = Takedowns.read(local_store, now=NOW)
    removing = Takedowns.read(local_store, now=NOW, use="removal")
    assert not collecting.covers_url(PAGE) and collecting.covers_url("https://b.example/")
    assert removing.covers_url(PAGE) and not removing.covers_url("https://b.example/")
    # Served once: what is collected later may stay.
    write_applied(local_store, stored.id, {})
    assert not Takedowns.read(local_store, now=NOW, use="removal")


def test_stored_aliases_count_without_the_ledger(local_store: ObjectStore) -> None:
    ask(local_store, "url", PAGE)
    before = Takedowns.read(local_store).fingerprint
    add_aliases(local_store, ["https://s.example/1", PAGE], now=NOW)
    found = Takedowns.read(local_store)
    assert found.covers_url("https://s.example/1") and found.fingerprint != before


def test_a_lookup_among_many_entries_is_fast() -> None:
    """The benchmark measures 2 µs; this fails when a lookup grows with the number of entries."""
    many = 3_000
    found = Takedowns.of(
        [
            asked("url", *(f"https://s{n}.example/a/{n}" for n in range(many))),
            asked("prefix", *(f"https://p{n}.example/a/" for n in range(many))),
            asked("domain", *(f"d{n}.example" for n in range(many))),
        ]
    )
    start = time.process_time()
    assert not any(found.covers(f"https://www.other{n}.example/some/story") for n in range(10_000))
    assert time.process_time() - start < 0.2
