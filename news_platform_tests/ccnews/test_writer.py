"""Pages become one Parquet file per language, in bounded memory."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from news_platform.ccnews import writer as writers
from news_platform.ccnews.page import CrawledPage, read_page
from news_platform.ccnews.pool import CollectOptions
from news_platform.ccnews.warc import WarcResponse, iter_responses
from news_platform.ccnews.writer import NewsWriter, WarcWriter
from news_platform.datasets.captures import crawl_fields
from news_platform.datasets.raw_news import FEED_CANDIDATES, PAGE_METADATA
from news_platform_tests.ccnews.archive import NAME, Record, article, gzipped, http, stream
from news_platform_tests.ccnews.crawl import DAY, mixed_pages


def _pages(records: list[Record]) -> list[CrawledPage]:
    responses = iter_responses(stream(gzipped(records)), warc_name=NAME, max_body_bytes=1 << 20)
    found = [read_page(one, CollectOptions()) for one in responses if isinstance(one, WarcResponse)]
    return [page for page in found if isinstance(page, CrawledPage)]


def test_rows_come_back_as_they_were_given(tmp_path: Path) -> None:
    pages = _pages(mixed_pages(3))
    writer = NewsWriter(tmp_path, warc_name=NAME)
    for page in pages:
        writer.write(page)
    files = writer.close()
    for page in pages:
        (row,) = pl.read_parquet(files[page.main_lang].path).iter_rows(named=True)
        assert row == {
            "uri": page.record.uri,
            "tree": page.tree.decode(),
            "text": page.text,
            "langs": page.langs,
            "confs": page.confs,
            "http_date": page.http.date,
            "http_last_modified": None,
            "http_charset": "utf-8",
            "surt_uri": page.surt_uri,
            "host": page.host,
            "warc_record_offset": page.record.offset,
            "fetch_status": 200,
        }


def test_large_pages_are_written_without_a_copy_and_come_back_whole(tmp_path: Path) -> None:
    pages = [
        replace(page, tree=page.tree * 1500)
        for page in _pages(
            [Record(http(article("The mayor came.")), uri=f"https://a.org/{n}") for n in range(8)]
        )
    ]
    writer = NewsWriter(tmp_path, warc_name=NAME)
    for page in pages:
        writer.write(page)
    (file,) = writer.close().values()
    assert pl.read_parquet(file.path)["tree"].to_list() == [page.tree.decode() for page in pages]


def test_the_largest_language_is_written_when_the_budget_is_full(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writers, "_BUFFER_BYTES", 6000)
    writer = NewsWriter(tmp_path, warc_name=NAME)
    for page in _pages(mixed_pages(30)):
        writer.write(page)
        writer.flush_full()
    files = writer.close()
    footers = {name: pq.read_metadata(file.path) for name, file in files.items()}
    assert sum(footer.num_rows for footer in footers.values()) == 30
    assert all(footer.num_row_groups > 1 for footer in footers.values())


def test_the_same_pages_give_the_same_bytes(tmp_path: Path) -> None:
    bodies = []
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        writer = WarcWriter(tmp_path / name, warc_name=NAME)
        for page in _pages(mixed_pages(5)):
            writer.write(page)
        writer.close(crawl_fields(DAY, NAME))
        bodies.append(
            {file.name: file.read_bytes() for file in sorted((tmp_path / name).iterdir())}
        )
    assert bodies[0] == bodies[1]


def test_what_pages_state_is_a_table_of_its_own(tmp_path: Path) -> None:
    writer = WarcWriter(tmp_path, warc_name=NAME)
    pages = _pages(mixed_pages(3))
    for page in pages:
        writer.write(page)
    rows = pl.read_parquet(writer.close(crawl_fields(DAY, NAME)).side[PAGE_METADATA].path)
    assert dict(rows.schema) == dict(PAGE_METADATA.schema)
    assert rows["uri"].to_list() == [page.record.uri for page in pages]
    assert rows["warc_record_offset"].to_list() == [page.record.offset for page in pages]
    assert rows["title"].to_list() == ["A title"] * 3


def test_feeds_are_counted_per_host_and_made_absolute(tmp_path: Path) -> None:
    head = (
        '<link rel="alternate" type="application/rss+xml" href="/rss" title="News">'
        '<link rel="alternate" type="application/rss+xml" href="/rss">'
        '<link rel="alternate" type="application/atom+xml" href="javascript:0">'
        '<link rel="alternate" type="application/atom+xml" href="http://[broken">'
    )
    block = http(article("x", head=head))
    uris = ["https://a.example.com/1", "https://a.example.com/2", "https://www.other.org/"]
    writer = WarcWriter(tmp_path, warc_name=NAME)
    for page in _pages([Record(block, uri=uri) for uri in uris]):
        writer.write(page)
    rows = pl.read_parquet(writer.close(crawl_fields(DAY, NAME)).side[FEED_CANDIDATES].path)
    assert dict(rows.schema) == dict(FEED_CANDIDATES.schema)
    found = {(row["host"], row["feed_url"]): row["pages"] for row in rows.iter_rows(named=True)}
    assert found["com.example", "https://a.example.com/rss"] == 2
    assert found["org.other", "https://www.other.org/rss"] == 1
    assert not any(url.startswith("javascript") for _, url in found)
