"""The survey of one domain: what is fetched in which order, and the outcomes."""

import asyncio
import gzip
from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from news_platform.datasets.research_datasets import DomainQueueMessage, PartitionInfo
from news_platform.domain_metadata.fetchers import SurveyFetchOptions
from news_platform.domain_metadata.survey import SurveyResult, survey_domain
from news_platform.domain_metadata.table import facts_frame
from news_platform.domain_metadata.usage_files import SMALL_FILES
from news_platform.errors import FetchError
from news_platform.web.fetch import Response
from news_platform_tests.fakes import SurveyedWeb, response

NOW = datetime(2025, 11, 3, 12, tzinfo=UTC)
SITE = "https://a.example"
ROBOTS, SITEMAP = f"{SITE}/robots.txt", f"{SITE}/sitemap.xml"
URLSET = b"<urlset><url><loc>https://a.example/1</loc></url></urlset>"
INDEX = b"<sitemapindex>%s</sitemapindex>"
CHILD = b"<sitemap><loc>https://a.example/%d.xml</loc></sitemap>"


def error(reason: str) -> FetchError:
    return FetchError("no answer", reason=reason)


def survey(
    web: Mapping[str, object],
    *,
    url: str = f"{SITE}/",
    tries: int = 1,
    options: SurveyFetchOptions = SurveyFetchOptions(),  # noqa: B008  # frozen
) -> tuple[SurveyResult, SurveyedWeb]:
    fetcher = SurveyedWeb(web)
    message = DomainQueueMessage(
        domain_id="media:de:a.example",
        domain_url=url,
        registrable_domain="a.example",
        authority="media",
        partition_info=PartitionInfo.of("de", "media", "2025-11-01"),
    )
    found = asyncio.run(
        survey_domain(message, fetcher=fetcher, clock=lambda: NOW, options=options, tries=tries)
    )
    return found, fetcher


@pytest.mark.parametrize(
    ("answer", "word", "verdict"),
    [
        (b"", "ok", "final"),
        (response(ROBOTS, status=204), "ok", "final"),
        (response(ROBOTS, status=404), "no_robots", "final"),
        (response(ROBOTS, status=403), "no_robots", "final"),
        (response(ROBOTS, status=302), "no_robots", "final"),
        (response(ROBOTS, status=429), "http_429", "retry"),
        (response(ROBOTS, status=408), "http_408", "retry"),
        (response(ROBOTS, status=101), "http_101", "retry"),
        (response(ROBOTS, status=500), "http_500", "retry"),
        (response(ROBOTS, status=503), "http_503", "retry"),
        (error("timeout"), "timeout", "retry"),
        (error("dns"), "dns", "retry"),
        (error("incomplete"), "incomplete", "retry"),
        (error("nxdomain"), "nxdomain", "retry"),
        (error("blocked_address"), "blocked_address", "give_up"),
        (error("too_many_redirects"), "too_many_redirects", "give_up"),
        (error("bad_url"), "bad_url", "give_up"),
    ],
)
def test_the_answer_to_robots_txt_decides(answer: object, word: str, verdict: str) -> None:
    found, _ = survey({ROBOTS: answer, SITEMAP: response(SITEMAP, status=404)})
    assert (found.outcome.name, found.outcome.status) == (word, verdict)
    assert found.metadata.outcome == word and found.metadata.final is (verdict == "final")


CHALLENGE = {"cf-mitigated": "challenge"}


@pytest.mark.parametrize(
    ("answer", "unread", "outcome"),
    [
        (response(ROBOTS, status=403, headers=CHALLENGE), "challenge", "challenge"),
        (response(ROBOTS, status=503, headers=CHALLENGE), "challenge", "http_503"),
        (response(ROBOTS, status=402), "payment_required", "payment_required"),
        (b"<!doctype html><p>Back soon", "markup", "ok"),
        (
            response(ROBOTS, status=403, headers={"x-datadome": "protected"}),
            "challenge",
            "challenge",
        ),
        (response(ROBOTS, status=404, headers={"x-datadome": "protected"}), "", "no_robots"),
    ],
)
def test_an_answer_that_says_nothing_about_robots_txt_is_named(
    answer: object, unread: str, outcome: str
) -> None:
    found, _ = survey({ROBOTS: answer, SITEMAP: URLSET})
    facts = found.metadata
    assert (facts.robots.unread, facts.outcome) == (unread, outcome)
    assert (facts.ai_policy is None) is bool(unread) and facts.robots.exists is False
    row = facts_frame([facts]).row(0, named=True)
    assert (row["challenged"], row["payment_required"]) == (
        unread == "challenge",
        unread == "payment_required",
    )


def test_a_missing_name_is_final_only_when_it_is_missing_twice() -> None:
    found, _ = survey({ROBOTS: error("nxdomain")}, tries=2)
    assert (found.outcome.name, found.outcome.status) == ("nxdomain", "final")


@pytest.mark.parametrize(
    ("answer", "word"),
    [
        (error("timeout"), "sitemap_timeout"),
        (error("refused"), "sitemap_refused"),
        (response(SITEMAP, status=502), "sitemap_http_502"),
        (error("nxdomain"), "ok"),
        (error("blocked_address"), "ok"),
        (error("too_many_redirects"), "ok"),
        (response(SITEMAP, status=410), "ok"),
        (b"<html>", "ok"),
    ],
)
def test_a_sitemap_in_doubt_keeps_the_domain_open(answer: object, word: str) -> None:
    found, _ = survey({ROBOTS: b"", SITEMAP: answer})
    assert found.outcome.name == word
    assert found.outcome.status == ("final" if word == "ok" else "retry")


@pytest.mark.parametrize("reason", ["tls", "refused"])
def test_http_is_tried_once_when_https_is_not_available(reason: str) -> None:
    web = {
        ROBOTS: error(reason),
        "http://a.example/robots.txt": b"x",
        "http://a.example/sitemap.xml": URLSET,
    }
    found, fetcher = survey(web)
    assert found.outcome.name == "ok" and found.metadata.robots.tls_failed
    assert fetcher.requests == list(web)
    assert found.metadata.final_origin == "http://a.example"


def test_the_host_of_the_url_is_fetched_too_and_its_file_is_stored_separately() -> None:
    web = {
        ROBOTS: b"one",
        "https://www.a.example/robots.txt": b"Sitemap: https://www.a.example/map.xml",
        "https://www.a.example/map.xml": URLSET,
    }
    found, fetcher = survey(web, url="https://www.a.example/start")
    assert fetcher.requests == list(web)
    assert list(found.files) == [
        "robots.txt",
        "robots.www.a.example.txt",
        "sitemap.xml",
    ]
    assert [facts.host for facts in found.metadata.other_hosts] == ["www.a.example"]


def test_a_domain_whose_www_host_alone_answers_is_judged_by_it() -> None:
    web = {
        ROBOTS: error("timeout"),
        "https://www.a.example/robots.txt": b"user-agent: CCBot\ndisallow: /",
        "https://www.a.example/sitemap.xml": URLSET,
    }
    found, _ = survey(web, url="https://www.a.example/")
    assert found.outcome.name == "ok" and found.metadata.final_origin == "https://www.a.example"
    assert found.metadata.ai_policy is not None
    assert found.metadata.ai_policy.own["CCBot"] == "disallow_all"


def test_named_sitemaps_are_tried_in_order_and_the_usual_place_last() -> None:
    lines = "Sitemap: /relative.xml\nSitemap: https://cdn.example/2.xml\nSitemap: ftp://x/3.xml"
    web = {
        ROBOTS: lines.encode(),
        f"{SITE}/relative.xml": response(f"{SITE}/relative.xml", status=404),
        "https://cdn.example/2.xml": b"<html>soft 404</html>",
        SITEMAP: URLSET,
    }
    found, fetcher = survey(web)
    assert fetcher.requests == list(web)
    assert found.metadata.sitemap.url == SITEMAP and found.metadata.sitemap.found_by == "default"


def test_the_first_sitemap_that_answers_is_taken() -> None:
    web = {
        ROBOTS: f"Sitemap: {SITE}/1.xml\nSitemap: {SITE}/2.xml".encode(),
        f"{SITE}/1.xml": URLSET,
    }
    found, fetcher = survey(web)
    assert fetcher.requests == list(web) and found.metadata.sitemap.found_by == "robots"


@pytest.mark.parametrize(
    ("robots", "asked"),
    [
        (b"User-agent: NewsPlatformBot\nDisallow: /", []),
        (b"User-agent: *\nDisallow: /\n\nUser-agent: newsplatformbot\nAllow: /", [SITEMAP]),
        (b"User-agent: NewsPlatformBot/0.1\nDisallow: /\nUser-agent: *\nAllow: /", []),
    ],
)
def test_robots_txt_knows_us_by_our_product_token(robots: bytes, asked: list[str]) -> None:
    for agent in (
        "NewsPlatformBot/0.1",
        "NewsPlatformBot",
        "Mozilla/5.0 (compatible; NewsPlatformBot/0.1; +https://a.example/bot)",
    ):
        options = SurveyFetchOptions(user_agent=agent)
        _, fetcher = survey({ROBOTS: robots, SITEMAP: URLSET}, options=options)
        assert fetcher.requests == [ROBOTS, *asked]
        assert bool(fetcher.usage_requests) is bool(asked)


def test_neither_listed_sitemaps_nor_children_that_robots_txt_disallows_are_fetched() -> None:
    rules = f"User-agent: *\nDisallow: /private/\nDisallow: /1.xml\nSitemap: {SITE}/private/s.xml"
    index = INDEX % b"".join(CHILD % n for n in range(2))
    web = {ROBOTS: rules.encode(), SITEMAP: index, f"{SITE}/0.xml": URLSET}
    found, fetcher = survey(web)
    assert fetcher.requests == list(web)
    assert found.metadata.sitemap.problems == ["child_disallowed"]


def test_children_of_an_index_are_counted_within_bounds() -> None:
    index = INDEX % b"".join(CHILD % n for n in range(5))
    web = {
        ROBOTS: b"",
        SITEMAP: index,
        f"{SITE}/0.xml": URLSET,
        f"{SITE}/1.xml": gzip.compress(URLSET),
        f"{SITE}/2.xml": error("timeout"),
        f"{SITE}/3.xml": INDEX % b"",
    }
    found, fetcher = survey(web, options=SurveyFetchOptions(max_children=4))
    facts = found.metadata.sitemap
    assert (facts.kind, facts.child_count, facts.children_fetched, facts.url_count) == (
        "index",
        5,
        3,
        2,
    )
    assert facts.problems == ["child_timeout", "child_index"] and found.outcome.name == "ok"
    assert fetcher.requests == list(web)


@pytest.mark.parametrize(
    "page", [b"<!DOCTYPE html><html><p>404", b'<?xml version="1.0"?>\n<!-- x --><html/>']
)
def test_a_page_that_says_not_found_is_not_stored_as_the_sitemap(page: bytes) -> None:
    found, _ = survey({ROBOTS: b"", SITEMAP: page})
    assert list(found.files) == ["robots.txt"] and found.metadata.sitemap.problems == ["html"]


def test_a_sitemap_past_the_cap_is_not_stored() -> None:
    cut = Response(SITEMAP, SITEMAP, 200, {}, b"<urlset>", truncated=True)
    found, _ = survey({ROBOTS: b"", SITEMAP: cut})
    assert found.metadata.sitemap.problems == ["too_large"]
    assert list(found.files) == ["robots.txt"]


@pytest.mark.parametrize(
    "url",
    [
        "https://a.example\\@other.example/",
        "https://a b.a.example/",
        "https://a\0b.a.example/",
        f"https://{'a' * 64}.a.example/",
    ],
)
def test_an_address_that_reads_in_two_ways_leads_to_no_stranger(url: str) -> None:
    _, fetcher = survey({ROBOTS: b"", SITEMAP: URLSET}, url=url)
    assert fetcher.requests == [ROBOTS, SITEMAP]


def test_the_policies_of_a_site_without_robots_txt_are_unspecified() -> None:
    web = {ROBOTS: response(ROBOTS, status=404), SITEMAP: response(SITEMAP, status=404)}
    found, _ = survey(web)
    assert found.metadata.ai_policy is not None
    assert (found.metadata.ai_policy.everyone, found.metadata.ai_policy.own) == ("unspecified", {})


def test_a_host_with_a_conclusive_answer_comes_before_one_with_a_temporary_failure() -> None:
    other = "https://www.a.example"
    web = {
        ROBOTS: response(ROBOTS, status=503),
        f"{other}/robots.txt": response(f"{other}/robots.txt", status=404),
        f"{other}/sitemap.xml": URLSET,
    }
    found, _ = survey(web, url=f"{other}/")
    assert (found.outcome.name, found.metadata.final_origin) == ("no_robots", other)
    assert found.metadata.ai_policy is not None and found.metadata.sitemap.url_count == 1


@pytest.mark.parametrize(
    "page",
    [
        b" <!DOCTYPE html>",
        b"\xef\xbb\xbf<!doctype html>",
        b'<?xml version="1.0"?><html/>',
        b"<!-- moved -->",
    ],
)
def test_an_html_page_instead_of_rules_is_recognised(page: bytes) -> None:
    assert survey({ROBOTS: page, SITEMAP: URLSET})[0].metadata.robots.is_html
    assert not survey({ROBOTS: b"# <html>", SITEMAP: URLSET})[0].metadata.robots.is_html


def test_a_site_is_asked_for_all_that_it_may_state_in_order() -> None:
    web = {
        ROBOTS: b"User-agent: *\nAllow: /\nContent-Signal: ai-train=no\nLicense: https://a.example/l",
        f"{SITE}/": response(f"{SITE}/", headers={"x-robots-tag": "noai"}, body=b"<p>Hello"),
        f"{SITE}/l": b'<rsl xmlns="https://rslstandard.org/rsl"><content url="/"><license>'
        b'<permits type="usage">search</permits></license></content></rsl>',
        f"{SITE}/.well-known/tdmrep.json": b'[{"location": "/", "tdm-reservation": 1}]',
        SITEMAP: URLSET,
    }
    found, fetcher = survey(web)
    assert fetcher.requests == [ROBOTS, f"{SITE}/l", SITEMAP]
    assert fetcher.usage_requests == [
        "/",
        "/.well-known/tdmrep.json",
        "/ai.txt",
        "/trust.txt",
        "/.well-known/trust.txt",
    ]
    usage = found.metadata.usage
    assert usage is not None and usage.requests == 8
    assert usage.deferred == ["llms.txt", "security.txt"]
    systems = {one.system: one.value for one in usage.statements if one.label != "license"}
    assert systems == {
        "content_signal": "no",
        "robots_tag": "yes",
        "tdmrep": "1",
        "rsl": "not_listed",
    }
    assert {one.name: one.exists for one in usage.files if one.exists} == {
        "home": True,
        "tdmrep": True,
        "rsl": True,
    }


def test_a_host_that_leaves_us_waiting_is_asked_for_the_other_files_next_time() -> None:
    found, fetcher = survey({ROBOTS: b"", SITEMAP: URLSET, f"{SITE}/": error("timeout")})
    usage = found.metadata.usage
    assert fetcher.usage_requests == ["/"] and usage is not None
    assert usage.deferred == ["tdmrep", *SMALL_FILES]
    assert found.outcome.name == "ok" and found.metadata.sitemap.exists


def test_a_site_that_refuses_us_is_asked_for_robots_txt_only() -> None:
    found, fetcher = survey({ROBOTS: f"User-agent: *\nDisallow: /\nSitemap: {SITEMAP}".encode()})
    assert fetcher.requests == [ROBOTS] and fetcher.usage_requests == []
    assert found.outcome.name == "ok" and found.metadata.sitemap.url is None
    assert found.metadata.usage is not None and found.metadata.usage.requests == 1
