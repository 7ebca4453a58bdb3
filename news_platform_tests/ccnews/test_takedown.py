"""Taking pages down from the tables of the crawl, compared with never having collected them."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest

from news_platform.datasets.collected import Collected
from news_platform.storage.commit.collected import combine_month, list_collected, read_collected
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.takedowns.requests import list_pending
from news_platform_tests.ccnews.archive import Record, article, http, page
from news_platform_tests.ccnews.crawl import (
    DAY,
    DUTCH,
    collect_here,
    mixed_pages,
    warc_path,
    write_crawl,
)
from news_platform_tests.takedowns.asked import ask, served

FEED = '<link rel="alternate" type="application/rss+xml" title="{}" href="/{}.xml">'
PATH = warc_path(DAY)


def _linking(uri: str, title: str, feed: str) -> Record:
    text = "The mayor of the town opened the new bridge over the river."
    return Record(http(article(text, head=FEED.format(title, feed))), uri=uri)


RECORDS = [
    *mixed_pages(7),
    _linking("https://www.harbour.example/news/one", "First", "feed"),
    _linking("https://www.harbour.example/news/two", "Second", "feed"),
    _linking("https://www.harbour.example/sport/three", "Sport", "sport"),
    Record(http("%PDF", mime="application/pdf"), uri="https://www.harbour.example/news/one/amp"),
    Record(http("%PDF", mime="application/pdf"), uri="https://other.example/x.pdf"),
    page(40, text=DUTCH),
]


@pytest.fixture
def crawl(tmp_path: Path) -> ObjectStore:
    return write_crawl(tmp_path / "crawl", {PATH: RECORDS})


def _collected(tmp_path: Path, name: str, crawl: ObjectStore, *first: str) -> ObjectStore:
    root = open_store(str(tmp_path / name))
    if first:
        ask(root, *first)
    collect_here(PATH, source=crawl, root=root, scratch=tmp_path / f"scratch-{name}")
    return root


def _bytes(store: ObjectStore, folder: str) -> dict[str, bytes]:
    return {info.path: store.read(info.path) for info in store.list(folder)}


def _rows(store: ObjectStore, folder: str) -> list[tuple[object, ...]]:
    assert store.local_folder is not None
    files = sorted((store.local_folder / folder).rglob("*.parquet"))
    return [row for file in files for row in pl.read_parquet(file).rows()]


def _counts(store: ObjectStore) -> list[Collected]:
    return [
        replace(
            one,
            dropped={k: v for k, v in one.dropped.items() if k != "taken_down"},
            bytes=0,
            feed_candidates=0,
        )
        for one in read_collected(store)
    ]


@pytest.mark.parametrize(
    "request_",
    [
        ("url", "http://harbour.example/news/one?utm_source=x"),
        ("domain", "harbour.example"),
        ("domain", "example.com"),
        ("url", "https://other.example/x.pdf"),
    ],
    ids=lambda one: " ".join(one),
)
def test_a_page_taken_down_later_leaves_what_was_never_collected(
    tmp_path: Path, crawl: ObjectStore, request_: tuple[str, str]
) -> None:
    before = _collected(tmp_path, "before", crawl, *request_)
    after = _collected(tmp_path, "after", crawl)
    names = [unit.fingerprint for unit in list_collected(after)]
    ask(after, *request_)
    report = served(after)
    assert report.served and report.total("rows") > 0
    for folder in ("news/raw", "news/captures", "news/dropped"):
        assert _rows(after, folder) == _rows(before, folder)
    # The feeds of a host stay as its pages named them, unless the host or the feed is covered.
    if request_[0] == "domain":
        assert _rows(after, "news/feed_candidates") == _rows(before, "news/feed_candidates")
    assert _counts(after) == _counts(before)
    assert [unit.fingerprint for unit in list_collected(after)] == names
    assert list_pending(after) == []
    stored = _bytes(after, "news")
    assert served(after, search_again=True).total("rows") == 0
    assert _bytes(after, "news") == stored


def test_what_is_refused_is_counted_and_named_nowhere(tmp_path: Path, crawl: ObjectStore) -> None:
    root = _collected(tmp_path, "root", crawl, "domain", "harbour.example")
    assert [one.dropped for one in read_collected(root)] == [{"not_html": 1, "taken_down": 4}]
    assert not any(b"harbour" in body for body in _bytes(root, "news").values())


def test_the_marker_of_a_combined_month_is_corrected(tmp_path: Path, crawl: ObjectStore) -> None:
    root = _collected(tmp_path, "root", crawl)
    combine_month(root, DAY)
    names = [unit.fingerprint for unit in list_collected(root)]
    rows = read_collected(root)[0].rows
    ask(root, "url", "https://harbour.example/news/one")
    served(root)
    assert read_collected(root)[0].rows == rows - 1
    assert [unit.fingerprint for unit in list_collected(root)] == names


def test_collecting_again_brings_nothing_back(tmp_path: Path, crawl: ObjectStore) -> None:
    root = _collected(tmp_path, "root", crawl)
    ask(root, "prefix", "https://harbour.example/news/")
    served(root)
    before = _rows(root, "news/raw"), _rows(root, "news/captures")
    collect_here(PATH, source=crawl, root=root, scratch=tmp_path / "again")
    assert (_rows(root, "news/raw"), _rows(root, "news/captures")) == before
