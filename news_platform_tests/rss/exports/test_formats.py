"""Articles as CSV, JSON lines, JSON, Parquet, JSON Feed 1.1 and RSS 2.0."""

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import sqlalchemy as sa
from lxml import etree

from news_platform.rss.exports.formats import FeedChannel, TextFormat, write_parquet, write_text
from news_platform.rss.exports.selection import COLUMNS, SCHEMA, Selection
from news_platform.rss.feeds import parse_feed
from news_platform_tests.rss.ledger_rows import NOW, add_article

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
    count = write_text(file, engine, Selection(**chosen), kind=kind, channel=CHANNEL)
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
    assert text is not None and text.startswith('<p>He said "no", &lt;b&gt;then')


def test_a_feed_without_a_home_page_names_the_site_of_its_first_article(
    filled: sa.Engine,
) -> None:
    file = io.StringIO()
    write_text(file, filled, Selection(), kind="rss", channel=FeedChannel())
    channel = etree.fromstring(file.getvalue().encode())[0]
    assert channel.findtext("link") == "https://outlet.example/"


@pytest.mark.parametrize("kind", ["jsonl", "json", "jsonfeed", "rss", "csv"])
def test_an_export_of_nothing_is_a_whole_document(sqlite_ledger: sa.Engine, kind: Any) -> None:
    file = io.StringIO(newline="")
    assert write_text(file, sqlite_ledger, Selection(), kind=kind, channel=CHANNEL) == 0
    text = file.getvalue()
    if kind == "rss":
        assert etree.fromstring(text.encode()).find("channel/item") is None
    elif kind == "csv":
        assert text.split() == [",".join(COLUMNS)]
    else:
        assert [json.loads(text) for _ in [0] if text] == {
            "jsonl": [],
            "json": [[]],
            "jsonfeed": [json.loads(text) if text else None],
        }[kind]


def test_a_parquet_file_has_the_columns_of_the_dataset(filled: sa.Engine, tmp_path: Path) -> None:
    path = tmp_path / "articles.parquet"
    assert write_parquet(path, filled, Selection()) == 2
    frame = pl.read_parquet(path)
    assert dict(frame.schema) == SCHEMA
    assert frame["authors"].to_list() == [["Ann", "Bo"], []]
    assert frame["published_at"].to_list() == [datetime(2025, 11, 3, 20, tzinfo=UTC), None]
