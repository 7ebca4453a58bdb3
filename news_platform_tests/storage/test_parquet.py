"""Tables keep their declared schema, and their path columns stay strings, on every backend."""

from dataclasses import replace
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from news_platform.datasets.dataset import Column, Dataset, Role, parquet
from news_platform.errors import InputError, StorageError
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import (
    parquet_bytes,
    read_table,
    scan_table,
    write_table,
)

ROWS = Dataset(
    name="rows",
    group="ccnews",
    row="one row",
    description="Rows of a test.",
    place=parquet("rows/day={day}/main_lang={main_lang}/part-0.parquet"),
    columns=(
        Column("uri", Role.url, "Address."),
        Column("langs", Role.language, "Best guesses.", pl.List(pl.String())),
        Column("count", Role.count, "How many."),
    ),
    partition_columns=(
        Column("day", Role.day, "Day of the month, two digits."),
        Column("main_lang", Role.language, "Language."),
    ),
)
NARROW = replace(ROWS, columns=ROWS.columns[:2])


def _frame(uri: str) -> pl.DataFrame:
    return pl.DataFrame({"count": [1], "uri": [uri], "langs": [["en", "de"]], "extra": [0]})


def _write(store: ObjectStore, day: str, lang: str, table: Dataset = ROWS) -> str:
    path = f"rows/day={day}/main_lang={lang}/part-0.parquet"
    write_table(store, path, _frame(f"{day}/{lang}"), table)
    return path


def test_a_table_is_read_back_with_its_path_columns_as_strings(any_store: ObjectStore) -> None:
    path = _write(any_store, "01", "zh-Hant ü%40")
    expected = {
        "uri": ["01/zh-Hant ü%40"],
        "langs": [["en", "de"]],
        "count": [1],
        "day": ["01"],
        "main_lang": ["zh-Hant ü@"],
    }
    for frame in (
        read_table(any_store, path, ROWS),
        scan_table(any_store, [path], ROWS).collect(),
    ):
        assert frame.to_dict(as_series=False) == expected
        assert frame.schema == ROWS.full_schema


def test_a_scan_reads_only_the_files_a_filter_leaves(any_store: ObjectStore) -> None:
    good = _write(any_store, "02", "en")
    any_store.put("rows/day=03/main_lang=en/part-0.parquet", b"not parquet, never opened")
    paths = [info.path for info in any_store.list("rows")]
    found = scan_table(any_store, paths, ROWS).filter(pl.col("day") == "02").collect()
    assert found["uri"].to_list() == ["02/en"]
    assert good in paths


def test_no_files_give_no_rows_but_all_columns(local_store: ObjectStore) -> None:
    empty = scan_table(local_store, [], ROWS).collect()
    assert empty.schema == ROWS.full_schema
    assert empty.height == 0


def test_files_from_before_a_column_was_added_show_it_empty(local_store: ObjectStore) -> None:
    old, new = _write(local_store, "01", "en", NARROW), _write(local_store, "02", "en")
    assert scan_table(local_store, [old, new], ROWS).collect()["count"].to_list() == [None, 1]
    assert read_table(local_store, old, ROWS)["count"].to_list() == [None]
    assert read_table(local_store, new, NARROW).columns == ["uri", "langs", "day", "main_lang"]


def test_a_root_that_looks_like_a_partition_or_a_pattern_does_no_harm(tmp_path: Path) -> None:
    store = open_store(str(tmp_path / "owner=me[1]"))
    found = scan_table(store, [_write(store, "[0-9]", "e?")], ROWS).collect()
    assert found.columns == list(ROWS.full_schema)
    assert found["day"].to_list() == ["[0-9]"]


def test_the_footer_carries_the_metadata(local_store: ObjectStore) -> None:
    write_table(local_store, "a.parquet", _frame("x"), ROWS, metadata={"extractor": "3"})
    footer = pq.read_metadata(local_store.uri("a.parquet")).metadata
    assert footer[b"extractor"] == b"3"


@pytest.mark.parametrize(
    "frame",
    [pl.DataFrame({"uri": ["x"]}), _frame("x").with_columns(count=pl.lit("many"))],
    ids=["a column is missing", "a value does not fit"],
)
def test_rows_that_do_not_fit_are_refused(local_store: ObjectStore, frame: pl.DataFrame) -> None:
    with pytest.raises(InputError, match="rows do not fit table 'rows'"):
        write_table(local_store, "a.parquet", frame, ROWS)
    assert not local_store.exists("a.parquet")


@pytest.mark.parametrize("cut", [0, 100])
def test_a_cut_off_file_is_named(local_store: ObjectStore, cut: int) -> None:
    local_store.put("day=01/a.parquet", parquet_bytes(_frame("x"), ROWS)[:cut])
    with pytest.raises(StorageError, match=r"day=01/a.parquet' as table 'rows'"):
        read_table(local_store, "day=01/a.parquet", ROWS)
