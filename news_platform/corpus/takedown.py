"""Remove taken-down articles from both tables of the corpus and from the monthly exports.

A day is replaced without the rows, and the files of its older versions are deleted at once; its
marker keeps its fingerprint, so that nothing which follows the day becomes stale.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import cast

import polars as pl

from news_platform.corpus.export.monthly import MonthReport
from news_platform.corpus.export.publish import delete_older_versions
from news_platform.corpus.pipeline import CorpusDay, TableCounts
from news_platform.datasets.corpus import DELTA_TABLES, STATISTICS_COLUMNS
from news_platform.datasets.takedowns import TAKEN_DOWN
from news_platform.datasets.training_export import TRAINING_EXPORT, export_folder
from news_platform.storage.commit.markers import change_report, read_markers
from news_platform.storage.delta import DeltaDataset
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import iter_frames, path_values
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.removal import RemovedData, SimplePart, TakedownPart
from news_platform.takedowns.removed_texts import keep_texts
from news_platform.takedowns.rows import is_covered, may_be_covered

# What a day's report says of its rows, not of its source.
_COUNTED_AGAIN = ("articles", "languages", "top_domains", "words", "bytes", "files", "version")

ExportMonth = Callable[[str, Takedowns], MonthReport]
"""Export a month again without what is taken down."""


def takedown_parts(store: ObjectStore, *, export_month: ExportMonth) -> list[TakedownPart]:
    """Return the parts of both tables, by day, and of the exports, by month."""
    tables = [DeltaDataset(store, table, STATISTICS_COLUMNS) for table in DELTA_TABLES]
    exports = SimplePart(
        TRAINING_EXPORT.name,
        partial(find_months, store),
        lambda month, it: clean_month(store, month, it, export_month=export_month),
    )
    return [
        *(
            SimplePart(one.table.name, partial(find_days, one), partial(clean_day, one))
            for one in tables
        ),
        exports,
    ]


def find_days(dataset: DeltaDataset, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered rows of a table by day."""
    rows = dataset.scan().filter(_likely(takedowns)).select("day", "url", "canonical_url").collect()
    found = Counter(rows.filter(_is_gone(rows, takedowns))["day"])
    for info in _unnamed_files(dataset):
        found[path_values(info.path)["day"]] += _covered_in(dataset, info, takedowns)
    return +found


def _unnamed_files(dataset: DeltaDataset) -> list[ObjectInfo]:
    """Return the files that the newest version lacks: of older versions, and of dead writers."""
    named = {file.path for file in dataset.files()}
    infos = dataset.store.list(dataset.table.name)
    return [one for one in infos if one.path.endswith(".parquet") and _is_data(one, named)]


def _is_data(info: ObjectInfo, named: Container[str]) -> bool:
    return "/_delta_log/" not in info.path and info.path not in named


def _covered_in(dataset: DeltaDataset, info: ObjectInfo, takedowns: Takedowns) -> int:
    frames = iter_frames(dataset.store, info.path, columns=("url", "canonical_url"))
    return sum(int(_is_gone(frame, takedowns).sum()) for frame in frames)


def clean_day(dataset: DeltaDataset, day: str, takedowns: Takedowns) -> RemovedData:
    """Replace a day without covered rows, and delete the files that held them."""
    before = [file for file in dataset.files() if file.partition == day]
    keep_texts(dataset.store, _covered_texts(dataset, day, takedowns))
    rows = 0

    def left() -> Iterator[pl.DataFrame]:
        nonlocal rows
        for file in before:
            for frame in iter_frames(dataset.store, file.path, columns=dataset.table.schema):
                gone = _is_gone(frame, takedowns)
                rows += int(gone.sum())
                yield frame.filter(~gone)

    counts = TableCounts()
    with tempfile.TemporaryDirectory() as scratch:
        done = dataset.replace(day, counts.counted(left()), scratch=Path(scratch))
    dataset.delete_replaced()
    _delete_unnamed(dataset, day, takedowns)
    if takedowns.domains:
        # The statistics of a version have its first and last domain.
        dataset.forget_older_versions()
    _amend(dataset, day, counts.report(day, done, pages=0, dropped={}, source_bytes=0))
    size = sum(file.size_bytes for file in before)
    return RemovedData(rows, max(0, size - sum(done.file_bytes)), sum(done.file_bytes))


def _delete_unnamed(dataset: DeltaDataset, day: str, takedowns: Takedowns) -> None:
    """Delete files with covered rows that no version names.

    A writer that is about to commit one notices the request and builds the day again.
    """
    others = [one for one in _unnamed_files(dataset) if path_values(one.path)["day"] == day]
    dataset.store.delete(
        [one.path for one in others if _covered_in(dataset, one, takedowns)],
    )


def _amend(dataset: DeltaDataset, day: str, now: CorpusDay) -> None:
    """Let the marker of a day count the rows that are left; its fingerprint stays."""
    marker = read_markers(dataset.store, dataset.table.name).get(day)
    if marker is None:
        return

    def change(report: Mapping[str, object]) -> Mapping[str, object]:
        dropped = Counter(cast(Mapping[str, int], report.get("dropped", {})))
        dropped[TAKEN_DOWN] += int(str(report.get("articles", 0))) - now.articles
        own = {name: getattr(now, name) for name in _COUNTED_AGAIN}
        return {**report, **own, "dropped": dict(sorted((+dropped).items()))}

    change_report(dataset.store, marker, change)


def _covered_texts(dataset: DeltaDataset, day: str, takedowns: Takedowns) -> pl.Series:
    rows = dataset.scan().filter((pl.col("day") == day) & _likely(takedowns))
    found = rows.select("url", "canonical_url", "text").collect()
    return found.filter(_is_gone(found, takedowns))["text"]


def _likely(takedowns: Takedowns) -> pl.Expr:
    return may_be_covered("url", takedowns) | may_be_covered("canonical_url", takedowns)


def _is_gone(frame: pl.DataFrame, takedowns: Takedowns) -> pl.Series:
    return is_covered(frame["url"], takedowns) | is_covered(frame["canonical_url"], takedowns)


def find_months(store: ObjectStore, takedowns: Takedowns) -> Mapping[str, int]:
    """Return the covered rows of the stored exports, of all their versions, by month."""
    found: Counter[str] = Counter()
    for folder in store.list_folders(TRAINING_EXPORT.name):
        month = folder.rstrip("/").rpartition("=")[2]
        for info in store.list(folder):
            if "/data/" in info.path:
                found[month] += _covered_rows(store, info.path, takedowns)
    return +found


def _covered_rows(store: ObjectStore, path: str, takedowns: Takedowns) -> int:
    # An export may also be JSON lines; those of the platform itself are Parquet.
    frames = iter_frames(store, path, columns=("url",))
    return sum(int(is_covered(frame["url"], takedowns).sum()) for frame in frames)


def clean_month(
    store: ObjectStore, month: str, takedowns: Takedowns, *, export_month: ExportMonth
) -> RemovedData:
    """Export a month again, and delete its older versions at once."""
    lost = find_months(store, takedowns).get(month, 0)
    before = sum(info.size_bytes for info in store.list(export_folder(month)))
    export_month(month, takedowns)
    delete_older_versions(store, month)
    after = sum(info.size_bytes for info in store.list(export_folder(month)))
    return RemovedData(lost, max(0, before - after), after)
