"""Find and read the rows to stage: collected days of raw_news, or Parquet files by pattern."""

import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, BinaryIO
from urllib.parse import unquote

import polars as pl

from news_platform.datasets.domain_buckets import ROOT as STAGED
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_FIRST, RAW_NEWS_ORDER
from news_platform.domain_store.layout import validated_batch
from news_platform.errors import InputError
from news_platform.storage.commit import collected
from news_platform.storage.commit.markers import (
    content_part,
    current_inputs,
    fingerprint_of,
    read_inputs,
)
from news_platform.storage.objects.store import ObjectStore, StoreOptions, open_store

if TYPE_CHECKING:
    import pyarrow.parquet as pq

# Rows in memory at a time, by their size in the Parquet file.
FRAME_BYTES = 4 << 20
BUFFER_BYTES = 1 << 20
# The large columns. In files of other crawls they may be dictionary-encoded: then a repeated page
# is stored once, and the size of the file does not bound the memory of its rows.
PAGE_COLUMNS = frozenset({"tree", "text"})
DICTIONARY_ROWS = 64
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class StagingInput:
    """Parquet files with the columns of raw_news, and the fingerprint of their content.

    `expired` has the WARCs of a day whose rows only the domain store holds, with their row counts.
    """

    store: ObjectStore
    paths: tuple[str, ...]
    inputs: str
    expired: Mapping[str, int] = field(default_factory=dict)


def wanted_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that each day should be staged from, see `collected.wanted_days`."""
    return collected.wanted_days(store, built=staged_days(store))


def staged_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the fingerprint that each day was staged from; named crawls are left out."""
    return {
        key: inputs for key, inputs in read_inputs(store, STAGED).items() if _DAY.fullmatch(key)
    }


def day_input(store: ObjectStore, day: str) -> StagingInput | None:
    """Return the files of the collected WARCs of a day; None when there are none."""
    markers = collected.list_collected_day(store, date.fromisoformat(day))
    if not markers:
        return None
    # Before reading the markers: a change in between then leaves the day stale, not wrong.
    inputs = collected.day_inputs(markers, built=staged_days(store).get(day))
    found = collected.parse_listed(store, markers)
    # Records have all columns, so rows without page sources come from the store, too.
    gone = [marker for marker in found if marker.is_expired or marker.is_tree_expired]
    whole = [marker for marker in found if marker not in gone]
    paths = tuple(path for marker in whole for path in marker.news_paths().values())
    return StagingInput(store, paths, inputs, {marker.warc: marker.rows for marker in gone})


def validated_crawl_name(batch: str) -> str:
    """Return the name of a crawl; raise InputError for a day, which is staged from raw_news."""
    if _DAY.fullmatch(batch):
        message = (
            f"invalid crawl name {batch!r}: it is a day of CC-NEWS, use another name for these rows"
        )
        raise InputError(message, thing=batch)
    return validated_batch(batch)


def matching_input(
    pattern: str, *, options: StoreOptions, staged: str | None = None
) -> StagingInput:
    """Return the Parquet files that match a path or URL with `*`, `?` or `**`.

    `staged` is the fingerprint that the batch was staged from, None when it is new.
    """
    fixed = re.split(r"[*?]", pattern, maxsplit=1)[0]
    # Only the folder before the first wildcard is listed.
    folder, _, _ = fixed.rpartition("/")
    store = open_store(folder or ("/" if pattern.startswith("/") else "."), options=options)
    wanted = _pattern(pattern[len(folder) :].removeprefix("/"))
    infos = [info for info in store.list() if wanted.fullmatch(info.path)]
    if not infos:
        raise InputError(f"no file matches {pattern!r}", thing=pattern)
    inputs = current_inputs(staged, partial(fingerprint_of, infos), part=content_part(store))
    return StagingInput(store, tuple(info.path for info in infos), inputs)


def _pattern(glob: str) -> re.Pattern[str]:
    meaning = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    pieces = re.split(r"(\*\*/|\*\*|\*|\?)", glob)
    return re.compile("".join(meaning.get(piece, re.escape(piece)) for piece in pieces))


def iter_rows(
    store: ObjectStore,
    paths: Iterable[str],
    *,
    frame_bytes: int = FRAME_BYTES,
    scratch: str | None = None,
) -> Iterator[pl.DataFrame]:
    """Yield the rows of Parquet files in order; the path may hold columns, too (`day=01`)."""
    for path in paths:
        with _opened(store, path, scratch) as file:
            yield from _iter_frames(file, store.uri(path), frame_bytes=frame_bytes)


def _iter_frames(file: BinaryIO, path: str, *, frame_bytes: int) -> Iterator[pl.DataFrame]:
    # Imported here because pyarrow costs 0.4 s, which every process would pay.
    import pyarrow as pa
    import pyarrow.parquet as pq

    # The columns of the file win over those of the path.
    folders = path_columns(path)
    try:
        parquet = pq.ParquetFile(file, pre_buffer=False, buffer_size=BUFFER_BYTES)
        columns = [name for name in RAW_NEWS_ORDER if name in parquet.schema_arrow.names]
        for number in range(parquet.num_row_groups):
            for batch in parquet.iter_batches(
                batch_size=_batch_rows(parquet.metadata.row_group(number), frame_bytes),
                row_groups=[number],
                columns=columns,
                use_threads=False,
            ):
                frame = pl.DataFrame(pl.from_arrow(batch))
                missing = {k: pl.lit(v) for k, v in folders.items() if k not in frame.columns}
                yield cast_to_raw_news(frame.with_columns(**missing), path)
    # Damaged pages raise OSError, unsupported types an ArrowException or an error of Polars.
    except (pa.ArrowException, OSError, pl.exceptions.PolarsError) as error:
        raise InputError(f"cannot read {path!r} as Parquet: {error}", thing=path) from error


def _batch_rows(group: "pq.RowGroupMetaData", frame_bytes: int) -> int:
    fitting = int(max(1, group.num_rows * frame_bytes // max(group.total_byte_size, 1)))
    return min(fitting, DICTIONARY_ROWS) if _has_repeated_pages(group) else fitting


def _has_repeated_pages(group: "pq.RowGroupMetaData") -> bool:
    """Return whether a column of pages is dictionary-encoded."""
    columns = (group.column(number) for number in range(group.num_columns))
    pages = (column for column in columns if column.path_in_schema in PAGE_COLUMNS)
    return any("DICTIONARY" in encoding for column in pages for encoding in column.encodings)


def cast_to_raw_news(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return the columns of raw_news in their types; raise InputError for missing ones.

    Columns that were added to raw_news later may be missing and become null.
    """
    missing = [name for name in RAW_NEWS_FIRST if name not in rows.columns]
    if missing:
        raise InputError(
            f"{source!r} has no columns {', '.join(missing)}: expected those of raw_news",
            thing=source,
        )
    schema = RAW_NEWS.full_schema
    return rows.select(
        (pl.col(name) if name in rows.columns else pl.lit(None)).cast(schema[name]).alias(name)
        for name in RAW_NEWS_ORDER
    )


def path_columns(path: str) -> Mapping[str, str]:
    """Return the columns that a path holds as `name=value` folders."""
    pairs = (part.partition("=") for part in path.split("/"))
    return {name: unquote(value) for name, sign, value in pairs if sign}


@contextmanager
def _opened(store: ObjectStore, path: str, scratch: str | None) -> Iterator[BinaryIO]:
    """Open a local file in place, or an unnamed local copy of a remote one."""
    if store.local_folder is not None:
        store.head(path)  # Raises our own error for a missing file.
        with (store.local_folder / path).open("rb") as file:
            yield file
        return
    with tempfile.TemporaryFile(dir=scratch) as copy, store.stream(path) as source:
        shutil.copyfileobj(source, copy, 1 << 20)
        copy.seek(0)
        yield copy
