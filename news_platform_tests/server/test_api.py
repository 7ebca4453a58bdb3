"""Every route of the API keeps the contract of its OpenAPI description."""

import csv
from typing import Any
from urllib.parse import quote, urlencode

import jsonschema
import polars as pl
import pytest

import news_platform
from news_platform.server.api import ENDPOINTS
from news_platform_tests.server.explorer import Explorer, Reply
from news_platform_tests.servers.demo import Demo

API = "/api/v1"


@pytest.fixture(scope="session")
def described(demo_explorer: Explorer) -> Any:
    return demo_explorer.get(f"{API}/openapi.json").json


@pytest.fixture(scope="session")
def some_hash(demo_explorer: Explorer) -> str:
    hits = demo_explorer.get(f"{API}/search?q=bridge").json["hits"]
    return str(hits[0]["url_hash"])


def _check(described: Any, path: str, reply: Reply) -> Any:
    """Check an answer against the schema that the description names for it."""
    answers = described["paths"][f"{API}/{path}"]["get"]["responses"]
    schema = answers["200" if reply.status == 200 else "4XX"]["content"]["application/json"]
    whole = {**schema["schema"], "components": described["components"]}
    jsonschema.Draft202012Validator(whole).validate(reply.json)
    return reply.json


def test_the_description_names_every_route(described: Any) -> None:
    assert described["openapi"].startswith("3.1")
    assert set(described["paths"]) == {f"{API}/{path}" for path in ENDPOINTS}
    for path in described["paths"].values():
        assert set(path) == {"get"}


def test_search_finds_marks_and_counts(demo_explorer: Explorer, described: Any) -> None:
    found = _check(described, "search", demo_explorer.get(f"{API}/search?q=bridge"))
    assert found["count"] >= len(found["hits"]) > 0
    start, end = found["hits"][0]["marks"][0]
    assert found["hits"][0]["snippet"][start:end].lower() == "bridge"
    assert sum(found["facets"]["day"].values()) == found["count"]


def _place(hit: dict[str, str]) -> str:
    """Return the key of a hit: an article that was captured on two days is found on both."""
    return f"{hit['day']} {hit['url_hash']}"


def test_cursors_lead_through_all_hits_once(demo_explorer: Explorer) -> None:
    whole = demo_explorer.get(f"{API}/search?q=the&limit=100&language=en").json
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        words = urlencode({"q": "the", "limit": 30, "language": "en", "cursor": cursor})
        page = demo_explorer.get(f"{API}/search?{words}").json
        seen += map(_place, page["hits"])
        cursor = page["next_cursor"]
    assert len(seen) == len(set(seen)) == whole["count"]
    assert seen[:100] == list(map(_place, whole["hits"]))


@pytest.mark.parametrize(
    ("path", "advice"),
    [
        ("search?q=bridge&language=english", "no article of language 'english' matches"),
        ("search?q=bridge&domain=www.meridian.example", "did you mean 'meridian.example'?"),
        ("attention?q=bridge&language=english", "no article of language 'english' matches"),
        ("policies?domain=meridian.exampel", "did you mean 'meridian.example'?"),
    ],
)
def test_an_empty_answer_names_the_values_that_have_some(
    demo_explorer: Explorer, path: str, advice: str
) -> None:
    (line,) = demo_explorer.get(f"{API}/{path}").json["advice"]
    assert advice in line
    assert line.replace("'", "&#39;") in demo_explorer.get(f"/{path}").text


def test_words_that_no_article_has_are_no_mistake_in_a_filter(demo_explorer: Explorer) -> None:
    assert demo_explorer.get(f"{API}/search?q=zzzz&language=en").json["advice"] == []


def test_filters_and_order_are_obeyed(demo_explorer: Explorer) -> None:
    words = "q=the&sort=date&from=2025-11-02&to=2025-11-02&limit=50"
    hits = demo_explorer.get(f"{API}/search?{words}").json["hits"]
    assert {hit["day"] for hit in hits} == {"2025-11-02"}
    times = [hit["at"] for hit in hits]
    assert times == sorted(times, reverse=True) and len(times) > 3
    domain = hits[0]["domain"]
    kept = demo_explorer.get(f"{API}/search?{words}&domain={domain}").json["hits"]
    assert {hit["domain"] for hit in kept} == {domain}


def test_an_article_has_text_captures_and_bytes(
    demo_explorer: Explorer, described: Any, some_hash: str
) -> None:
    path = "articles/{url_hash}"
    found = _check(described, path, demo_explorer.get(f"{API}/articles/{some_hash}"))
    assert found["url_hash"] == some_hash and found["text"]
    crawled = [one for one in found["captures"] if one["source"] == "crawl"]
    assert all(one["warc"].endswith(".warc.gz") and one["record_length"] for one in crawled)
    narrow = demo_explorer.get(f"{API}/articles/{some_hash}?day={found['day']}").json
    assert narrow["text"] == found["text"]


def test_a_cluster_lists_its_members(demo_explorer: Explorer) -> None:
    domain = demo_explorer.get(f"{API}/domains/meridian.example").json
    key = (domain["copied_by"] or domain["copied_from"])[0]["ours_hash"]
    cluster = demo_explorer.get(f"{API}/articles/{key}").json["cluster"]
    assert cluster["size"] >= 2 and key in [one["url_hash"] for one in cluster["members"]]


def test_a_domain_has_days_languages_feeds_and_policies(
    demo_explorer: Explorer, described: Any
) -> None:
    reply = demo_explorer.get(f"{API}/domains/meridian.example")
    found = _check(described, "domains/{domain}", reply)
    assert found["pages"] == sum(one["pages"] for one in found["days"])
    assert found["pages"] == sum(found["languages"].values())
    assert found["feeds"] and found["surveys"] and found["policies"] and found["articles"]
    # A host leads to its domain.
    again = demo_explorer.get(f"{API}/domains/WWW.Meridian.Example").json
    assert again["domain"] == "meridian.example"


def test_policies_name_who_refuses_whom(demo_explorer: Explorer, described: Any) -> None:
    reply = demo_explorer.get(f"{API}/policies?bot=gptbot&purpose=ai_train&verdict=refuse")
    found = _check(described, "policies", reply)
    assert found["count"] == len(found["verdicts"]) > 0
    # A crawler that a domain does not name is treated there as any other.
    assert {one["bot"] for one in found["verdicts"]} <= {"GPTBot", "*"}
    assert {one["verdict"] for one in found["verdicts"]} == {"refuse"}
    named = [one for one in found["verdicts"] if one["bot"] == "GPTBot"]
    assert len(named) == found["crawlers"]["GPTBot"]["refuse"]
    assert all(one["statement"] and one["since"] for one in named)
    everybody = demo_explorer.get(f"{API}/policies?bot=*&purpose=ai_train&verdict=refuse").json
    assert everybody["count"] == found["purposes"]["ai_train"]["refuse"]


def test_policies_can_be_downloaded(demo_explorer: Explorer) -> None:
    reply = demo_explorer.get("/policies.csv?purpose=ai_train&verdict=refuse")
    assert reply.headers["content-disposition"] == 'attachment; filename="ai_policies.csv"'
    rows = list(csv.DictReader(reply.text.splitlines()))
    count = demo_explorer.get(f"{API}/policies?purpose=ai_train&verdict=refuse").json["count"]
    assert len(rows) == count > 3 and {row["verdict"] for row in rows} == {"refuse"}


def test_the_overview_counts_what_the_tables_hold(
    demo_explorer: Explorer, described: Any, finished_demo: Demo
) -> None:
    found = _check(described, "overview", demo_explorer.get(f"{API}/overview"))
    rows = news_platform.open(finished_demo.root).sql(
        "select distinct day, url_hash, domain, language from all_articles"
    )
    assert found["articles"] == rows.select("day", "url_hash").n_unique()
    assert found["domains"] == rows["domain"].n_unique()
    assert sum(found["days"].values()) == sum(found["languages"].values()) == found["articles"]


def test_attention_is_the_share_of_articles_that_a_scan_finds(
    demo_explorer: Explorer, described: Any, finished_demo: Demo
) -> None:
    reply = demo_explorer.get(f"{API}/attention?q=%22bridge%22&q=%22council%22")
    found = _check(described, "attention", reply)
    rows = news_platform.open(finished_demo.root).sql(
        "select distinct day, url_hash, lower(coalesce(title, '') || ' ' || text) as text "
        "from all_articles"
    )
    for one, word in zip(found["series"], ("bridge", "council"), strict=True):
        for day, share in zip(found["days"], one["shares"], strict=True):
            texts = rows.filter(pl.col("day") == day)
            held = texts.filter(pl.col("text").str.contains(rf"\b{word}\b"))
            expected = held["url_hash"].n_unique() / texts["url_hash"].n_unique()
            assert share == pytest.approx(expected), (word, day)
    lines = list(csv.DictReader(demo_explorer.get("/attention.csv?q=bridge").text.splitlines()))
    assert len(lines) == len(found["days"]) and lines[0]["query"] == "bridge"


def test_feeds_are_listed_with_their_group_health_and_why(
    demo_explorer: Explorer, described: Any
) -> None:
    found = _check(described, "feeds", demo_explorer.get(f"{API}/feeds"))
    assert found["count"] == len(found["feeds"]) == sum(found["statuses"].values()) > 10
    some = demo_explorer.get(f"{API}/feeds?status=rejected").json
    assert some["count"] == found["statuses"]["rejected"] and all(
        it["notes"] for it in some["feeds"]
    )
    _check(described, "edits", demo_explorer.get(f"{API}/edits"))


def test_stories_of_an_unknown_language_name_the_known_ones(
    demo_explorer: Explorer, described: Any
) -> None:
    asked = "stories?language=english"
    found = _check(described, "stories", demo_explorer.get(f"{API}/{asked}"))
    [advice] = found["advice"]
    assert advice.startswith("no story of language 'english': expected one of ")
    assert "expected one of " in demo_explorer.get(f"/{asked}").text
    assert demo_explorer.get(f"{API}/stories?language=en").json["advice"] == []


def test_explain_answers_for_urls_domains_and_feeds(
    demo_explorer: Explorer, described: Any, some_hash: str
) -> None:
    url = demo_explorer.get(f"{API}/articles/{some_hash}").json["url"]
    feed = demo_explorer.get(f"{API}/domains/meridian.example").json["feeds"][0]["feed_url"]
    for subject, kind in ((url, "url"), ("meridian.example", "domain"), (feed, "feed")):
        reply = demo_explorer.get(f"{API}/explain?subject={quote(subject, safe='')}")
        found = _check(described, "explain", reply)
        assert (found["kind"], found["known"]) == (kind, True), subject
        assert found["evidence"]


def test_the_status_is_that_of_the_command(demo_explorer: Explorer, described: Any) -> None:
    found = _check(described, "status", demo_explorer.get(f"{API}/status"))
    assert found["dagster"] is True
    assert {"raw_news", "search_index", "articles"} <= {one["asset"] for one in found["assets"]}
    assert "root" not in found


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("search", 400),
        ("search?q=%28bridge", 400),
        ("search?q=bridge&limit=%C2%B2", 400),
        ("search?q=bridge&sort=random", 400),
        ("search?q=bridge&from=2025-11-03&to=2025-11-01", 400),
        ("search?q=bridge&cursor=eyJvZmZzZXQiOi0xfQ", 400),
        ("search?q=bridge&cursor=eyJvZmZzZXQiOjk5OTk5OTk5fQ", 400),
        ("articles/" + "0" * 64, 404),
        ("articles/" + "0" * 64 + "?day=x", 400),
        ("domains/" + "x" * 300, 404),
        ("explain?subject=", 400),
        ("policies?bot=Nobody", 400),
        ("nothing", 404),
    ],
)
def test_a_wrong_request_gets_a_clear_error(
    demo_explorer: Explorer, described: Any, path: str, status: int
) -> None:
    reply = demo_explorer.get(f"{API}/{path}")
    assert reply.status == status, reply.text
    problem = reply.json["error"]
    jsonschema.Draft202012Validator(
        {
            "$ref": "#/components/schemas/ErrorDocument",
            "components": described["components"],
        }
    ).validate(reply.json)
    assert problem["status"] == status and problem["message"] and "\n" not in problem["message"]


@pytest.mark.parametrize("path", ["search?q=bridge", "domains/meridian.example", "openapi.json"])
def test_an_unchanged_answer_is_304(demo_explorer: Explorer, path: str) -> None:
    first = demo_explorer.get(f"{API}/{path}")
    assert first.status == 200 and first.headers["cache-control"] == "private, no-cache"
    etag = first.headers["etag"]
    for sent in (etag, f"W/{etag}", f'"other", {etag}', "*"):
        again = demo_explorer.get(f"{API}/{path}", If_None_Match=sent)
        assert (again.status, again.body) == (304, b"")
        assert again.headers["etag"] == etag
    assert demo_explorer.get(f"{API}/{path}", If_None_Match='"other"').status == 200
