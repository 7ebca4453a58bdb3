"""Delta tables on a folder and on S3: replaced days, conflicts, old readers, maintenance."""

import json
import threading
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import duckdb
import polars as pl
import pyarrow.parquet as pq
import pytest

from news_platform.datasets.dataset import Column, Dataset, Place, Role
from news_platform.errors import Conflict, StorageError
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectStore, open_store

TABLE = Dataset(
    name="stories",
    group="corpus",
    row="one story",
    description="Stories.",
    place=Place("delta", "stories"),
    columns=(
        Column("domain", Role.domain, "domain"),
        Column("text", Role.text, "text"),
        Column("tags", Role.text, "tags", pl.List(pl.String())),
        Column("seen_at", Role.time, "moment"),
    ),
    partition_columns=(Column("day", Role.day, "day"),),
)
NEWER = replace(
    TABLE, columns=(*TABLE.columns, Column("words", Role.count, "a column that was added"))
)
DAY, OTHER = "2025-11-01", "2025-11-02"


def rows(day: str, count: int, text: str = "text") -> pl.DataFrame:
    moment = datetime(2025, 11, 1, 12, tzinfo=UTC)
    return pl.DataFrame(
        {
            "domain": [f"d{number:04}.example" for number in range(count)],
            "text": [f"{text} {number}" for number in range(count)],
            "tags": [["a", "b"]] * count,
            "seen_at": [moment + timedelta(seconds=number) for number in range(count)],
            "day": [day] * count,
        },
        schema=dict(TABLE.full_schema),
    )


def dataset(store: ObjectStore, table: Dataset = TABLE) -> DeltaDataset:
    return DeltaDataset(store, table, ("domain", "seen_at"))


def by_day(found: DeltaDataset) -> dict[str, int]:
    return dict(found.scan().group_by("day").len().collect().iter_rows())


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest) -> ObjectStore:
    store = request.getfixturevalue(f"{request.param}_store")
    assert isinstance(store, ObjectStore)
    return store


def test_a_day_is_replaced_and_the_others_stay(root: ObjectStore, tmp_path: Path) -> None:
    found = dataset(root)
    assert found.scan().collect().is_empty()
    assert found.version() is None
    found.replace(DAY, [rows(DAY, 30)], scratch=tmp_path)
    found.replace(OTHER, [rows(OTHER, 5)], scratch=tmp_path)
    done = found.replace(DAY, [rows(DAY, 3), rows(DAY, 4, "more")], scratch=tmp_path)
    assert (done.rows, len(done.file_bytes)) == (7, 1)
    assert by_day(found) == {DAY: 7, OTHER: 5}
    stored = found.scan().filter(pl.col("day") == DAY).collect()
    assert stored.equals(pl.concat([rows(DAY, 3), rows(DAY, 4, "more")]))
    assert found.partitions() == [DAY, OTHER]
    assert [file.partition for file in found.files()] == [DAY, OTHER]
    found.replace(DAY, [], scratch=tmp_path)
    assert by_day(found) == {OTHER: 5}
    before = found.version()
    found.replace("2025-11-03", [], scratch=tmp_path)
    assert found.version() == before
    assert list(tmp_path.glob("*.parquet")) == []


def test_two_builders_of_one_day_end_in_the_rows_of_one(root: ObjectStore, tmp_path: Path) -> None:
    found = dataset(root)
    found.replace(OTHER, [rows(OTHER, 1)], scratch=tmp_path)
    start = threading.Barrier(4)

    def build(number: int) -> None:
        folder = tmp_path / str(number)
        folder.mkdir()
        start.wait()
        found.replace(DAY, [rows(DAY, 10 + number, f"writer {number}")], scratch=folder)

    threads = [threading.Thread(target=build, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    stored = found.scan().filter(pl.col("day") == DAY).collect()
    writers = {text.rpartition(" ")[0] for text in stored["text"]}
    assert len(writers) == 1
    assert stored.height == 10 + int(writers.pop().split()[1])
    assert by_day(found)[OTHER] == 1


def test_a_writer_that_saw_an_older_version_of_the_day_is_refused(
    root: ObjectStore, tmp_path: Path
) -> None:
    found = dataset(root)
    found.replace(OTHER, [rows(OTHER, 1)], scratch=tmp_path)
    stale = found._opened()
    found.replace(DAY, [rows(DAY, 2)], scratch=tmp_path)
    # The day was empty when the stale writer looked: only its transaction's name conflicts.
    with pytest.raises(Conflict, match="another writer changed it first"), found._errors("write"):
        found._commit(stale, DAY, [])


def test_an_older_reader_goes_on_beside_a_vacuum_within_its_grace(
    root: ObjectStore, tmp_path: Path
) -> None:
    found = dataset(root)
    found.replace(DAY, [rows(DAY, 4, "old")], scratch=tmp_path)
    reader = found.scan()
    found.replace(DAY, [rows(DAY, 2, "new")], scratch=tmp_path)
    assert found.vacuum(timedelta(days=7)) == []
    assert reader.collect().height == 4
    assert len(found.vacuum(timedelta(0))) == 1
    assert found.scan().collect()["text"].to_list() == ["new 0", "new 1"]
    with pytest.raises((pl.exceptions.PolarsError, OSError)):
        reader.collect()


def test_vacuum_deletes_files_that_a_dead_writer_left(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    found = dataset(local_store)
    found.replace(DAY, [rows(DAY, 4)], scratch=tmp_path)
    local_store.put(f"stories/day={DAY}/left.parquet", b"half a file")
    assert by_day(found) == {DAY: 4}
    assert found.vacuum(timedelta(0)) == [f"day={DAY}/left.parquet"]


def test_the_log_has_the_values_of_the_named_columns_only(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    found = dataset(local_store)
    found.replace(DAY, [rows(DAY, 3)], scratch=tmp_path)
    log = [info.path for info in local_store.list("stories/_delta_log")]
    actions = [json.loads(line) for line in local_store.read(log[-1]).splitlines()]
    (added,) = [action["add"] for action in actions if "add" in action]
    stated = json.loads(added["stats"])
    assert stated["numRecords"] == 3
    assert stated["minValues"] == {
        "domain": "d0000.example",
        "seen_at": "2025-11-01T12:00:00.000000Z",
    }
    assert stated["nullCount"] == {"domain": 0, "seen_at": 0}
    folder = local_store.local_folder
    assert folder is not None
    footer = pq.ParquetFile(folder / found.files()[0].path).metadata.row_group(0)
    with_statistics = [
        footer.column(number).path_in_schema
        for number in range(footer.num_columns)
        if footer.column(number).is_stats_set
    ]
    assert with_statistics == ["domain", "seen_at"]


def test_polars_duckdb_and_pyarrow_read_the_same_rows(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    found = dataset(local_store)
    found.replace(DAY, [rows(DAY, 5)], scratch=tmp_path)
    found.replace(OTHER, [rows(OTHER, 2)], scratch=tmp_path)
    found.replace(DAY, [rows(DAY, 3)], scratch=tmp_path)
    from deltalake import DeltaTable

    arrow = DeltaTable(found.uri).to_pyarrow_dataset()
    assert arrow.to_table().num_rows == 5
    with duckdb.connect() as connection:
        connection.register("stories", arrow)
        counted = connection.sql("select day, count(*) from stories group by day order by day")
        assert counted.fetchall() == [(DAY, 3), (OTHER, 2)]
    assert by_day(found) == {DAY: 3, OTHER: 2}


def test_a_column_that_was_added_later_is_null_in_older_rows(
    local_store: ObjectStore, tmp_path: Path
) -> None:
    dataset(local_store).replace(DAY, [rows(DAY, 2)], scratch=tmp_path)
    newer = dataset(local_store, NEWER)
    assert newer.scan().collect()["words"].to_list() == [None, None]
    added = rows(OTHER, 1).with_columns(words=pl.lit(7, dtype=pl.Int64))
    newer.replace(OTHER, [added], scratch=tmp_path)
    assert sorted(newer.scan().collect()["words"].fill_null(0)) == [0, 0, 7]
    assert dataset(local_store).scan().collect().height == 3


def test_large_days_have_several_files_in_order(
    local_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("news_platform.storage.delta_files.FILE_BYTES", 1)
    monkeypatch.setattr("news_platform.storage.delta_files.GROUP_ROWS", 10)
    found = dataset(local_store)
    done = found.replace(DAY, [rows(DAY, 35)], scratch=tmp_path)
    assert len(done.file_bytes) == 4
    stored = found.scan().collect()
    assert stored["domain"].to_list() == sorted(stored["domain"])


def test_a_folder_that_is_not_a_table_is_one_clear_line(local_store: ObjectStore) -> None:
    local_store.put("stories/_delta_log/note.txt", b"not a log")
    with pytest.raises(StorageError, match="stories"):
        dataset(local_store).scan()


def test_temporary_credentials_are_asked_for_at_every_operation(
    s3_store: ObjectStore, bucket: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key0")
    options = replace(s3_store.options, access_key=None, secret_key=None)
    keyless = open_store(f"s3://{bucket}", options=options)
    for number in (1, 2):
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", f"key{number}")
        monkeypatch.setenv("AWS_SESSION_TOKEN", f"token{number}")
        found = keyless.delta_options()
        assert found["aws_access_key_id"] == f"key{number}"
        assert found["aws_session_token"] == f"token{number}"
