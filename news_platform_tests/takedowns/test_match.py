"""The matcher: all spellings of a page, prefixes, domains and aliases, and nothing else."""

import time
from datetime import timedelta
from itertools import islice

import pytest

from news_platform.datasets.takedowns import TakedownScope
from news_platform.storage.objects.store import ObjectStore
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.requests import (
    TakedownTerms,
    add_aliases,
    withdraw_request,
    write_applied,
)
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
