"""The tables beside raw_news tell of their rows, a preview and where their columns come from."""

from datetime import date
from pathlib import Path

import dagster as dg
import polars as pl
import pytest

from news_platform.datasets.raw_news import CAPTURES
from news_platform.defs.ccnews import side_table_events
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import write_table

DAY = date(2025, 11, 1)
PATH = "news/captures/year=2025/month=11/day=01/filename={}/part-0.parquet"


def _put(store: ObjectStore, warc: str, rows: int) -> None:
    blank = {name: pl.Series(name, [None] * rows, kind) for name, kind in CAPTURES.schema.items()}
    frame = pl.DataFrame(blank).with_columns(uri=pl.lit("https://a.example/x"))
    write_table(store, PATH.format(warc), frame, CAPTURES)


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path))


def test_a_table_counts_the_rows_of_all_its_files_of_the_day(store: ObjectStore) -> None:
    _put(store, "a.warc.gz", 2)
    _put(store, "b.warc.gz", 3)
    (event,) = side_table_events(store, DAY)
    assert event.asset_key == dg.AssetKey("captures")
    assert event.partition == "2025-11-01"
    assert event.metadata["dagster/partition_row_count"].value == 5
    shown = str(event.metadata["preview"].value)
    assert "a.warc.gz" in shown and "a.example" not in shown
    assert str(event.metadata["dagster/uri"].value).endswith("day=01")
    assert "dagster/column_lineage" in event.metadata


def test_a_table_that_is_switched_off_is_not_mentioned(store: ObjectStore) -> None:
    assert list(side_table_events(store, DAY)) == []
