"""Exports: filters, orders and limits of selections, and the formats that are written."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
import sqlalchemy as sa
from lxml import etree, html

from news_platform.rss.exports.formats import (
    FeedChannel,
    TextFormat,
    article_line,
    one_per_text,
    write_parquet,
    write_text,
)
from news_platform.rss.exports.selection import (
    COLUMNS,
    SCHEMA,
    Selection,
    count_reposts,
    iter_articles,
)
from news_platform.rss.feeds import parse_feed
from news_platform.rss.ledger.feed_rows import FeedRow, move_feed
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.rss.text_query import parse_query
from news_platform_tests.rss.ledger_rows import NOW, add_article, add_articles, add_feed

FEED, OTHER = "https://outlet.example/feed", "https://other.example/feed"


def add(engine: sa.Engine, title: str, **values: Any) -> None:
    add_article(engine, title=title, stored_at=NOW, **values)


def titles(engine: sa.Engine, **chosen: Any) -> list[str]:
    return [row.title for row in iter_articles(engine, Selection(**chosen))]


FILTERS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, ["c", "b", "a"]),
    ({"sources": ("one.example", "two.example")}, ["b", "a"]),
    ({"languages": ("de", "fr")}, ["c", "b"]),
    ({"category": "sports"}, ["b"]),
    ({"since": NOW - timedelta(days=1)}, ["c", "b"]),
    ({"until": NOW}, ["a"]),
    ({"until": NOW + timedelta(seconds=1)}, ["c", "b", "a"]),
    ({"types": ("opinion",)}, ["c"]),
    ({"feeds": (OTHER,), "limit": 1}, ["c"]),
    ({"groups": ("desk",)}, ["c", "b", "a"]),
    ({"groups": ("desk/far",)}, ["c", "b"]),
    ({"groups": ("des",)}, []),
    ({"groups": ("nobody",)}, []),
    ({"is_paywalled": True}, ["b"]),
    ({"is_paywalled": False}, ["c", "a"]),
    ({"has_text": True}, ["a"]),
    ({"has_text": False}, ["c", "b"]),
    ({"query": parse_query("-climate")}, ["c", "b"]),
    ({"query": parse_query('"net zero"'), "languages": ("de",)}, []),
]


def test_filters_choose_articles_on_both_databases(ledger: sa.Engine) -> None:
    add_feed(ledger, FEED, feed_group="desk")
    add_feed(ledger, OTHER, feed_group="desk/far")
    text = "The climate law: net\nzero"
    values: dict[str, Any] = {"clean_text": text, "clean_text_len": len(text)}
    values |= {"published_at": NOW - timedelta(days=9)}
    add(ledger, "a", source="one.example", language="en", sources_list=(FEED,), **values)
    add(ledger, "b", source="two.example", language="de", is_paywalled=True,
        category_guess="sports", sources_list=(FEED, OTHER))  # fmt: skip
    add(ledger, "c", source="x.example", language="fr", article_type="opinion",
        sources_list=(OTHER,))  # fmt: skip
    add_article(ledger, title="copy", stored_at=NOW, status="duplicate")
    add_article(ledger, title="waits", status="pending")
    for chosen, expected in FILTERS:
        assert titles(ledger, **chosen) == expected, chosen


@pytest.mark.parametrize(
    "chosen",
    [{"feeds": (f"{OTHER}-new",)}, {"feeds": (f"{OTHER}#",)}, {"groups": ("desk",)}],
    ids=["new address", "old address", "group"],
)
def test_a_feed_that_moved_twice_has_its_articles_of_all_addresses(
    ledger: sa.Engine, chosen: dict[str, Any]
) -> None:
    add_feed(ledger, OTHER, feed_group="desk")
    add_feed(ledger, FEED)
    way = (OTHER, f"{OTHER}-then", f"{OTHER}-new")
    for old, new in pairwise(way):
        add(ledger, old, sources_list=(FEED, old))
        with write_transaction(ledger) as transaction:
            known = FeedRow(old, old, "active", None, "", "", "", 0, 0, "")
            move_feed(transaction, known, feed_url=new, feed_url_canon=new, now=NOW)
    add(ledger, way[-1], sources_list=(way[-1],))
    add(ledger, "another", sources_list=(FEED,))
    assert sorted(titles(ledger, **chosen)) == sorted(way)


def test_orders_are_newest_most_popular_and_as_stored(ledger: sa.Engine) -> None:
    add(ledger, "old", published_at=NOW - timedelta(days=2), sources_list=(FEED, OTHER))
    add(ledger, "new", published_at=NOW, sources_list=(FEED,))
    add(ledger, "undated", found_at=NOW - timedelta(days=1), sources_list=(FEED,))
    assert titles(ledger) == ["new", "undated", "old"]
    assert titles(ledger, order="sources") == ["old", "new", "undated"]
    assert titles(ledger, order="stored", limit=2) == ["old", "new"]


def test_the_newest_come_from_an_index_and_are_not_sorted(sqlite_ledger: sa.Engine) -> None:
    add_articles(sqlite_ledger, [{"stored_at": NOW} for _ in range(3)])
    plans: list[str] = []

    def explain(connection: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> None:
        if statement.startswith("SELECT raw"):
            plan = connection.connection.cursor().execute(
                f"EXPLAIN QUERY PLAN {statement}", parameters
            )
            plans.extend(row[3] for row in plan.fetchall())

    sa.event.listen(sqlite_ledger, "before_cursor_execute", explain)
    assert len(titles(sqlite_ledger, since=NOW - timedelta(days=9))) == 3
    assert any("raw_newest" in step for step in plans)
    assert not any("TEMP B-TREE" in step for step in plans)


def test_reposts_by_other_sources_count_in_the_popularity(ledger: sa.Engine) -> None:
    for number, source in enumerate(("a.example", "b.example", "a.example", "c.example"), 1):
        add(ledger, f"t{number}", source=source, sources_list=(FEED,))
    clusters = {f"{row_id:064x}": "cluster" for row_id in (1, 2, 3)}
    reposts = count_reposts(ledger, {**clusters, "unknown": "cluster"})
    assert reposts == dict.fromkeys(clusters, 1)
    for _ in range(2):  # the temporary table is gone after each
        rows = iter_articles(ledger, Selection(order="sources", reposts=reposts))
        assert [(row.title, row.popularity) for row in rows] == [
            ("t3", 2),
            ("t2", 2),
            ("t1", 2),
            ("t4", 1),
        ]
    assert titles(ledger, order="sources", limit=1, reposts=reposts) == ["t3"]


CHANNEL = FeedChannel("Desk & co", home_page_url="https://desk.example/", language="en")
AWKWARD = 'He said "no", <b>then</b> left;\nnext line & =1+1 😀'


@pytest.fixture
def filled(ledger: sa.Engine) -> sa.Engine:
    """Return a ledger, on each database, with an awkward article and an older, empty one."""
    add_article(
        ledger,
        stored_at=NOW,
        source="outlet.example",
        title=AWKWARD,
        clean_text=AWKWARD,
        clean_text_len=len(AWKWARD),
        authors=("Ann", "Bo"),
        tags=("a&b",),
        language="en",
        published_at=NOW,
        image_url="https://outlet.example/1.jpg?a=1&b=2",
        is_paywalled=True,
        text_source="feed",
        sources_list=("https://outlet.example/feed", "https://other.example/feed"),
    )
    add_article(ledger, stored_at=NOW, found_at=NOW - timedelta(days=1))
    return ledger


def written(engine: sa.Engine, kind: TextFormat, **chosen: Any) -> str:
    file = io.StringIO(newline="")
    count = write_text(file, iter_articles(engine, Selection(**chosen)), kind=kind, channel=CHANNEL)
    assert count == (1 if chosen else 2)
    return file.getvalue()


def test_csv_has_a_header_and_every_value_comes_back(filled: sa.Engine) -> None:
    first, second = csv.DictReader(io.StringIO(written(filled, "csv"), newline=""))
    assert list(first) == list(COLUMNS)
    assert (first["title"], first["clean_text"]) == (AWKWARD, AWKWARD)
    assert json.loads(first["authors"]) == ["Ann", "Bo"]
    assert (first["published_at"], first["fetched_at"]) == ("2025-11-03T20:00:00Z", "")
    assert (first["popularity"], second["popularity"]) == ("2", "0")
    assert (first["is_paywalled"], second["is_paywalled"]) == ("true", "")


def test_json_lines_and_json_hold_the_same_articles(filled: sa.Engine) -> None:
    lines = [json.loads(line) for line in written(filled, "jsonl").splitlines()]
    assert lines == json.loads(written(filled, "json"))
    assert list(lines[0]) == list(COLUMNS)
    assert (lines[0]["title"], lines[0]["tags"]) == (AWKWARD, ["a&b"])


def test_a_json_feed_has_what_version_1_1_requires(filled: sa.Engine) -> None:
    feed = json.loads(written(filled, "jsonfeed"))
    assert feed["version"] == "https://jsonfeed.org/version/1.1"
    assert (feed["title"], feed["home_page_url"]) == ("Desk & co", "https://desk.example/")
    first, second = feed["items"]
    assert first["id"] == first["url"] == "https://outlet.example/1"
    assert first["authors"] == [{"name": "Ann"}, {"name": "Bo"}]
    assert first["date_published"] == "2025-11-03T20:00:00Z"
    assert (first["content_text"], second["content_text"]) == (AWKWARD, "")
    own = first["_news_platform"]
    assert (own["popularity"], own["text_source"], own["is_paywalled"]) == (2, "feed", True)
    # Our own parser is a reader like others.
    body = written(filled, "jsonfeed").encode()
    assert [entry.link for entry in parse_feed(body).entries] == [first["url"], second["url"]]


def test_an_rss_feed_is_read_back_with_title_link_and_date(filled: sa.Engine) -> None:
    body = written(filled, "rss").encode()
    channel = etree.fromstring(body)[0]
    assert [channel.findtext(name) for name in ("title", "link")] == [
        "Desk & co",
        "https://desk.example/",
    ]
    first, _ = parse_feed(body).entries
    assert (first.link, first.published_at) == ("https://outlet.example/1", NOW)
    item = channel.find("item")
    assert item is not None and item.findtext("title") == AWKWARD
    text = item.findtext("{http://purl.org/rss/1.0/modules/content/}encoded")
    assert text is not None and "&lt;b&gt;then" in text
    assert [line.text for line in html.fragments_fromstring(text)] == AWKWARD.splitlines()


def test_a_newsletter_links_titles_and_holds_foreign_text_as_text(filled: sa.Engine) -> None:
    page = html.fromstring(written(filled, "html"))
    assert page.findtext(".//h1") == "Desk & co"
    links = page.findall(".//h2/a")
    assert [it.get("href") for it in links] == [f"https://outlet.example/{n}" for n in (1, 2)]
    assert links[0].text == AWKWARD and page.find(".//b") is None
    assert page.findtext(".//p[@class='about']") == "outlet.example · 2025-11-03 · Ann, Bo"
    lines = written(filled, "markdown").splitlines()
    assert lines[0] == "# Desk & co".replace("&", "\\&")
    assert lines[2].startswith('## [He said "no", \\<b\\>then\\</b\\> left; next line')
    assert lines[2].endswith("](<https://outlet.example/1>)")


def test_of_one_text_a_newsletter_has_the_first_article_and_names_its_copies(
    ledger: sa.Engine,
) -> None:
    for name in ("a", "b", "c"):
        add(ledger, name, source=f"{name}.example")
    found = list(iter_articles(ledger, Selection()))
    clusters = {found[0].url_hash: "x", found[2].url_hash: "x"}
    kept = list(one_per_text(found, clusters))
    assert [row.title for row in kept] == ["c", "b"]
    copies = count_reposts(ledger, clusters)
    lines = [article_line(row, copies) for row in kept]
    assert lines == ["c.example · 2025-11-03 · also in 1 other source", "b.example · 2025-11-03"]


def test_an_export_of_nothing_is_a_whole_document() -> None:
    texts = {}
    for kind in get_args(TextFormat):
        file = io.StringIO(newline="")
        assert write_text(file, iter(()), kind=kind, channel=CHANNEL) == 0
        texts[kind] = file.getvalue()
    assert texts["csv"].split() == [",".join(COLUMNS)]
    assert (texts["jsonl"], json.loads(texts["json"])) == ("", [])
    assert json.loads(texts["jsonfeed"])["items"] == []
    assert etree.fromstring(texts["rss"].encode()).find("channel/item") is None
    assert "No article was chosen" in texts["html"] and "No article was chosen" in texts["markdown"]


def test_a_parquet_file_has_the_columns_of_the_dataset(filled: sa.Engine, tmp_path: Path) -> None:
    path = tmp_path / "articles.parquet"
    assert write_parquet(path, iter_articles(filled, Selection())) == 2
    frame = pl.read_parquet(path)
    assert dict(frame.schema) == SCHEMA
    assert frame["authors"].to_list() == [["Ann", "Bo"], []]
    assert frame["published_at"].to_list() == [datetime(2025, 11, 3, 20, tzinfo=UTC), None]
