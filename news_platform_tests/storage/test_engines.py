"""Engines find, remove and delete the units of datasets, and the brake stops mass removal."""

from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from news_platform.datasets.dataset import Dataset, Role
from news_platform.datasets.feeds import ARTICLES
from news_platform.datasets.raw_news import RAW_NEWS, raw_news_path
from news_platform.datasets.source_records import PAGE_SNAPSHOTS
from news_platform.errors import StorageError
from news_platform.storage.engines import (
    ParquetEngine,
    PlainFilesEngine,
    RemovedRows,
    require_small_share,
)
from news_platform.storage.objects.store import ObjectStore, open_store
from news_platform.storage.parquet import write_table
from news_platform.storage.retention import apply_retention, expiring_units


class OneUrl:
    """Everything about one address."""

    def __init__(self, column: str, url: str) -> None:
        self.column, self.url = column, url

    @property
    def domains(self) -> list[str]:
        return []

    def likely(self, dataset: Dataset) -> pl.Expr:
        return pl.col(self.column) == self.url

    def covered(self, dataset: Dataset, rows: pl.DataFrame) -> pl.Series:
        return rows[self.column] == self.url

    def covers_file(
        self, dataset: Dataset, values: Mapping[str, str], read: Callable[[], bytes]
    ) -> bool:
        return self.url.encode() in read()

    def left_of(self, body: bytes) -> bytes | None:
        return None

    def covers(self, role: Role, value: str) -> bool:
        return value == self.url


@pytest.fixture
def store(tmp_path: Path) -> ObjectStore:
    return open_store(str(tmp_path))


def _rows(dataset: Dataset, column: str, urls: list[str]) -> pl.DataFrame:
    nulls = pl.DataFrame(schema=dataset.schema)
    return pl.concat([nulls, pl.DataFrame({column: urls})], how="diagonal_relaxed")


def test_rows_are_found_by_unit_and_removed_without_a_trace(store: ObjectStore) -> None:
    for day, urls in {"2025-11-01": ["a", "b"], "2025-11-02": ["b"]}.items():
        path = ARTICLES.place.path(date=day)
        write_table(store, path, _rows(ARTICLES, "article_url", urls), ARTICLES)
    engine, target = ParquetEngine(store, ARTICLES), OneUrl("article_url", "a")
    assert engine.find(target) == {"2025-11-01": 1}
    done = engine.remove_rows("2025-11-01", target)
    assert done.rows == 1
    assert engine.find(target) == {}
    assert engine.remove_rows("2025-11-01", target) == RemovedRows()
    assert engine.scan(["2025-11-01"]).collect()["article_url"].to_list() == ["b"]
    footer = pq.read_metadata(store.uri(ARTICLES.place.path(date="2025-11-01")))
    place = footer.schema.to_arrow_schema().get_field_index("article_url")
    assert footer.row_group(0).column(place).statistics is None


def test_the_last_file_of_a_unit_stays_and_others_go_when_they_are_empty(
    store: ObjectStore,
) -> None:
    day = date(2025, 11, 1)
    for language, urls in {"en": ["a"], "de": ["a", "b"]}.items():
        path = raw_news_path(day, language, filename="x.warc.gz")
        write_table(store, path, _rows(RAW_NEWS, "uri", urls), RAW_NEWS)
    engine = ParquetEngine(store, RAW_NEWS)
    assert engine.remove_rows("2025-11-01", OneUrl("uri", "a")).rows == 2
    assert len(engine.files()["2025-11-01"]) == 1
    assert engine.remove_rows("2025-11-01", OneUrl("uri", "b")).rows == 1
    assert engine.scan().collect().height == 0
    assert len(engine.files()["2025-11-01"]) == 1


def test_plain_files_go_as_a_whole(store: ObjectStore) -> None:
    for name, body in {"one.json": b"about a", "two.json": b"about b"}.items():
        store.put(PAGE_SNAPSHOTS.place.path(institution="mit", file=name), body)
    engine, target = PlainFilesEngine(store, PAGE_SNAPSHOTS), OneUrl("", "about a")
    assert engine.find(target) == {"mit": 1}
    assert engine.remove_rows("mit", target) == RemovedRows(1, 7)
    assert engine.scan().collect()["body"].to_list() == [b"about b"]


def test_units_expire_by_the_age_of_their_files_unless_a_wrong_clock_expires_most(
    store: ObjectStore,
) -> None:
    days = [f"2025-11-{day:02}" for day in range(1, 11)]
    written = [
        store.put(ARTICLES.place.path(date=day), b"").modified_at + timedelta(days=1)
        for day in days
    ]
    engine = ParquetEngine(store, ARTICLES)
    done = apply_retention(store, "articles", expiring_units(engine, keep_days=1, now=written[6]))
    assert not done.objects and sorted(done.waiting) == days[:6]
    assert "refused to remove 6 of 10 units of 'articles'" in done.waiting[days[0]]
    assert len(engine.units()) == 10
    units = expiring_units(engine, keep_days=1, now=written[5])
    assert sorted(apply_retention(store, "articles", units).objects) == days[:5]
    assert sorted(engine.units()) == days[5:]


def test_the_brake_counts_records_and_names_the_largest_losses() -> None:
    losses = {f"day {number}": number for number in range(10)}
    with pytest.raises(StorageError, match=r"9 of 'day 9', 8 of 'day 8'.* and 5 more; repeat"):
        require_small_share("domain_store", losses, 50, cure="repeat with --allow-removal")
    require_small_share("domain_store", losses, 100)
