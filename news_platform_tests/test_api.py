"""Reading a root: datasets by name, and all of them by SQL."""

import subprocess
import sys
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

import news_platform
from news_platform.datasets.domain_store import DOMAIN_CATALOG
from news_platform.errors import InputError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import write_table
from news_platform_tests.cli.runner import Commands


@pytest.fixture
def root(tmp_path: Path) -> Path:
    _write_catalog(open_store(str(tmp_path)))
    return tmp_path


def _write_catalog(store: ObjectStore) -> None:
    catalog = pl.DataFrame({"domain": ["a.example", "b.example"], "records": [3, 5]})
    missing = [pl.lit(None).alias(n) for n in DOMAIN_CATALOG.schema if n not in catalog.columns]
    write_table(store, DOMAIN_CATALOG.path, catalog.with_columns(missing), DOMAIN_CATALOG)


def test_a_dataset_is_read_by_its_name(root: Path) -> None:
    found = news_platform.open(root)["domain_catalog"].select("domain", "records").collect()
    assert found.rows() == [("a.example", 3), ("b.example", 5)]


def test_every_dataset_of_an_empty_root_is_empty_with_its_columns(tmp_path: Path) -> None:
    news = news_platform.open(tmp_path / "fresh")
    for name, table in news.tables.items():
        assert set(news[name].collect_schema().names()) == set(table.full_schema)
        assert news[name].collect().is_empty()


def test_an_opened_root_shows_its_datasets_with_their_rows(root: Path) -> None:
    assert news_platform.open(root).summary().rows() == [("domain_catalog", 2, None, None, None)]
    assert "domain_catalog" in repr(news_platform.open(root))
    assert news_platform.open(root / "nothing").summary().is_empty()


@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_an_answer_is_written_to_a_file_of_its_format(root: Path, kind: str) -> None:
    file = root / f"answer.{kind}"
    query = "select domain, [records] as counts, '=1+1' as formula from domain_catalog"
    written = Commands("sql").json(root, query, "--output", str(file))
    assert written == {"file": str(file), "rows": 2, "format": kind}
    rows: pl.DataFrame = getattr(pl, f"read_{kind}")(file)
    assert rows["domain"].to_list() == ["a.example", "b.example"]
    # A spreadsheet would run it.
    assert set(rows["formula"]) == {"'=1+1" if kind == "csv" else "=1+1"}
    if kind != "parquet":
        shown = Commands("sql").text(root, query, "--format", kind)
        assert shown == file.read_text()


def test_an_answer_wider_than_the_terminal_is_shown_by_row(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ", ".join(f"'{'x' * 40}' as c{number}" for number in range(4))
    monkeypatch.setenv("COLUMNS", "500")
    shown = Commands("sql").text(root, f"select {columns}")
    assert len(shown.splitlines()[0]) > 160
    monkeypatch.setenv("COLUMNS", "80")
    narrow = Commands("sql").text(root, f"select {columns}")
    assert narrow.splitlines()[:2] == ["row 1", f"c0  {'x' * 40}"]


def test_a_query_reads_only_the_columns_it_names(root: Path) -> None:
    file = root / DOMAIN_CATALOG.path
    chunks = pq.ParquetFile(file).metadata.row_group(0)
    names = [chunks.column(at).path_in_schema for at in range(chunks.num_columns)]
    damaged = chunks.column(names.index("domain"))
    start = damaged.dictionary_page_offset or damaged.data_page_offset
    body = bytearray(file.read_bytes())
    body[start : start + damaged.total_compressed_size] = b"\xff" * damaged.total_compressed_size
    file.write_bytes(body)
    news = news_platform.open(root)
    assert news.sql("select max(records) as n from domain_catalog")["n"].to_list() == [5]
    with pytest.raises(InputError, match="cannot run the query"):
        news.sql("select max(domain) from domain_catalog")


def test_sql_knows_datasets_in_capitals_and_no_variables_of_ours(root: Path) -> None:
    news = news_platform.open(root)
    assert news.sql("SELECT MAX(records) AS n FROM DOMAIN_CATALOG")["n"].to_list() == [5]
    assert news.sql("select count(*) as n from RAW_NEWS")["n"].to_list() == [0]
    with pytest.raises(InputError, match="unknown dataset 'DATASETS'"):
        news.sql("select * from DATASETS")


def test_a_query_that_asks_nothing_is_an_input_error(root: Path) -> None:
    with pytest.raises(InputError, match="returns nothing"):
        news_platform.open(root).sql("-- only a remark")


def test_sql_reads_a_remote_root(
    s3_store: ObjectStore, s3_faults: tuple[object, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NEWS_PLATFORM_ALLOW_HTTP", "1")
    monkeypatch.setenv("NEWS_PLATFORM_S3_ENDPOINT", s3_faults[1])
    monkeypatch.setenv("NEWS_PLATFORM_S3_ACCESS_KEY", "test-key")
    monkeypatch.setenv("NEWS_PLATFORM_S3_SECRET_KEY", "test-secret")
    _write_catalog(s3_store)
    answer = news_platform.open(s3_store.url).sql("select sum(records) as n from domain_catalog")
    assert answer.rows() == [(8,)]


def test_an_unknown_dataset_is_named_with_the_known_ones(root: Path) -> None:
    with pytest.raises(InputError, match=r"unknown dataset 'catalogue'.*domain_catalog"):
        news_platform.open(root)["catalogue"]


def test_importing_the_package_loads_no_library() -> None:
    code = (
        "import sys, news_platform; assert not {'polars', 'duckdb', 'dagster'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_the_sql_command_prints_one_document(root: Path) -> None:
    document = Commands("sql").json(root, "select domain from domain_catalog order by 1")
    assert [row["domain"] for row in document] == ["a.example", "b.example"]
