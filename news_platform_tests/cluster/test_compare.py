"""Two roots are equal if their sorted rows are, whatever the names of their files."""

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest
import sqlalchemy as sa

from deploy.compare import dataset_of, differences, read_contents
from news_platform.datasets.corpus import CRAWL_ARTICLES
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform_tests.search.articles import made_articles
from news_platform_tests.search.indexes import build_stale, write_day


@pytest.fixture
def ledger() -> Iterator[sa.Engine]:
    engine = sa.create_engine("sqlite://")
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE feeds (url TEXT)")
        connection.exec_driver_sql("CREATE TABLE alembic_version (version_num TEXT)")
        connection.exec_driver_sql("INSERT INTO feeds VALUES ('https://a.example/feed')")
    yield engine
    engine.dispose()


def _parquet(frame: pl.DataFrame) -> bytes:
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def _stores(tmp_path: Path) -> tuple[ObjectStore, ObjectStore]:
    return open_store(str(tmp_path / "one")), open_store(str(tmp_path / "two"))


@pytest.mark.parametrize(
    ("path", "dataset"),
    [
        ("news/raw/year=2025/part-0.parquet", "news/raw"),
        ("domain_store/data/1/0/part-0.jsonl.gz", "domain_store/data"),
        ("domain_catalog/part-0.parquet", "domain_catalog"),
        ("domain_store/manifests/1.json", None),
        ("markers/raw_news/2025-11-01@ab.json", None),
        ("raw/country=gb/raw_0001.json", None),
        ("ledger.sqlite-wal", None),
        ("domain_queue/clock.json", None),
    ],
)
def test_a_path_tells_its_dataset(path: str, dataset: str | None) -> None:
    assert dataset_of(path) == dataset


def test_order_file_names_and_places_do_not_matter(tmp_path: Path, ledger: sa.Engine) -> None:
    one, two = _stores(tmp_path)
    frame = pl.DataFrame({"uri": ["a", "b"]})
    one.put("news/raw/day=01/part-0.parquet", _parquet(frame))
    two.put("news/raw/day=01/part-9.parquet", _parquet(frame.reverse()))
    for store, name in ((one, "x"), (two, "y")):
        line = f'{{"domain": "a.example", "filepath": "{store.url}/{name}", "length": 3}}\n'
        store.put("domain_store/metadata/0001.jsonl", line.encode())
        store.put("prod/a/robots.txt", b"User-agent: *\n")
        store.put("news/collected/w.json", f'{{"at": "{store.url}/w"}}'.encode())
    left, right = read_contents(one, ledger), read_contents(two, ledger)
    assert differences(left, right) == []
    assert left["news/raw"].rows == 2
    assert left["ledger feeds"].rows == 1
    assert "ledger alembic_version" not in left


def test_how_fast_and_by_whom_do_not_matter_at_any_depth(tmp_path: Path, ledger: sa.Engine) -> None:
    one, two = _stores(tmp_path)
    for store, seconds in ((one, 1), (two, 2)):
        facts = f'{{"robots": {{"elapsed_seconds": {seconds}}}, "hosts": [{{"a": 1}}]}}'
        store.put("prod/a/domain_metadata.json", facts.encode())
    left, right = read_contents(one, ledger), read_contents(two, ledger)
    assert differences(left, right) == []


@pytest.mark.parametrize(("cell", "different"), [("same", []), ("other", ["article_sheets"])])
def test_workbooks_are_compared_cell_by_cell(
    tmp_path: Path, ledger: sa.Engine, cell: str, different: list[str]
) -> None:
    one, two = _stores(tmp_path)
    for store, text in ((one, "same"), (two, cell)):
        book = io.BytesIO()
        with zipfile.ZipFile(book, "w") as parts:
            parts.writestr("sheet1.xml", f"<c>{store.url}/full_text/a.txt</c><c>{text}</c>")
        store.put("article_sheets/articles.xlsx", book.getvalue())
    assert differences(read_contents(one, ledger), read_contents(two, ledger)) == different


def test_the_same_rows_in_another_partition_differ(tmp_path: Path, ledger: sa.Engine) -> None:
    one, two = _stores(tmp_path)
    body = _parquet(pl.DataFrame({"uri": ["a"]}))
    one.put("news/raw/day=01/part-0.parquet", body)
    two.put("news/raw/day=02/part-0.parquet", body)
    contents = read_contents(one, ledger), read_contents(two, ledger)
    assert differences(*contents) == ["news/raw"]


def test_articles_and_index_are_compared_in_the_version_that_is_in_use(
    tmp_path: Path, ledger: sa.Engine
) -> None:
    one, two = _stores(tmp_path)
    articles = made_articles(20, seed=23)
    for store in (one, two):
        for replaced in (articles[:5], articles):
            write_day(store, CRAWL_ARTICLES, replaced, tmp_path)
            build_stale(store)
    left = read_contents(one, ledger)
    assert left["crawl_articles"].rows == left["search"].rows == len(articles)
    assert differences(left, read_contents(two, ledger)) == []
    write_day(two, CRAWL_ARTICLES, articles[1:], tmp_path)
    assert differences(left, read_contents(two, ledger)) == ["crawl_articles"]
    build_stale(two)
    assert differences(left, read_contents(two, ledger)) == ["crawl_articles", "search"]
