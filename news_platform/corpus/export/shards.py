"""Write rows to shards of about equal size; the same rows give the same bytes."""

import hashlib
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

import polars as pl

from news_platform.corpus.export.filtering import FileFormat
from news_platform.storage.delta_files import repeating_columns

# pyarrow costs 0.4 s, which every process would pay.
if TYPE_CHECKING:
    import pyarrow as pa

SHARD_BYTES = 256 << 20
_ZSTD_LEVEL = 3
# Rows per group of a Parquet file: readers of one group need some 30 MB.
_GROUP_ROWS = 4096
_SUFFIXES: dict[FileFormat, str] = {"parquet": ".parquet", "jsonl": ".jsonl.zst"}


@dataclass(frozen=True, slots=True)
class Shard:
    """A finished file: its path in the export, its size, digest and counts."""

    path: str
    bytes: int
    sha256: str
    rows: int
    words: int
    tokens: int | None


class _RowWriter(Protocol):
    def write(self, rows: pl.DataFrame) -> None: ...

    def close(self) -> None: ...


class _ParquetRows:
    def __init__(self, file: BinaryIO, schema: "pa.Schema") -> None:
        import pyarrow.parquet as pq

        self._schema = schema
        self._writer = pq.ParquetWriter(
            file,
            schema,
            compression="zstd",
            compression_level=_ZSTD_LEVEL,
            use_dictionary=repeating_columns(schema),
        )

    def write(self, rows: pl.DataFrame) -> None:
        self._writer.write_table(rows.to_arrow().cast(self._schema), row_group_size=_GROUP_ROWS)

    def close(self) -> None:
        self._writer.close()


class _JsonRows:
    def __init__(self, file: BinaryIO) -> None:
        import pyarrow as pa

        self._stream = pa.CompressedOutputStream(pa.PythonFile(file, "w"), "zstd")

    def write(self, rows: pl.DataFrame) -> None:
        lines = (json.dumps(row, ensure_ascii=False, default=_plain) for row in rows.to_dicts())
        self._stream.write(("\n".join(lines) + "\n").encode())
        self._stream.flush()

    def close(self) -> None:
        self._stream.close()


def _plain(value: object) -> str:
    if isinstance(value, datetime):
        return value.isoformat()
    raise TypeError(f"cannot write a {type(value).__name__} as JSON")


def write_shards(
    frames: Iterable[pl.DataFrame],
    folder: Path,
    *,
    file_format: FileFormat,
    schema: "pa.Schema",
    shard_bytes: int = SHARD_BYTES,
) -> list[Shard]:
    """Write the frames to `data/` in the folder, in their order, and name the shards at the end."""
    (folder / "data").mkdir(parents=True)
    groups = _groups(frames)
    made = []
    for number, first in enumerate(groups):
        path = folder / "data" / f"part-{number}{_SUFFIXES[file_format]}"
        made.append(_write_shard(path, first, groups, file_format, schema, shard_bytes))
    return [_named(shard, number, len(made), folder) for number, shard in enumerate(made)]


def _groups(frames: Iterable[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Yield frames of exactly one group, whatever the sizes of those given; the last is smaller."""
    held: list[pl.DataFrame] = []
    rows = 0
    for frame in frames:
        held.append(frame)
        rows += frame.height
        if rows >= _GROUP_ROWS:
            joined = pl.concat(held)
            whole = joined.height - joined.height % _GROUP_ROWS
            yield from joined.head(whole).iter_slices(_GROUP_ROWS)
            held, rows = [joined.slice(whole)], joined.height - whole
    if rows:
        yield pl.concat(held)


def _write_shard(
    path: Path,
    first: pl.DataFrame,
    more: Iterator[pl.DataFrame],
    file_format: FileFormat,
    schema: "pa.Schema",
    shard_bytes: int,
) -> Shard:
    rows = words = tokens = 0
    with path.open("wb") as file:
        writer: _RowWriter = (
            _ParquetRows(file, schema) if file_format == "parquet" else _JsonRows(file)
        )
        group: pl.DataFrame | None = first
        while group is not None:
            writer.write(group)
            rows, words = rows + group.height, words + _sum(group, "word_count")
            tokens += _sum(group, "tokens")
            group = next(more, None) if file.tell() < shard_bytes else None
        writer.close()
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    has_tokens = "tokens" in schema.names
    size = path.stat().st_size
    return Shard(path.name, size, digest, rows, words, tokens if has_tokens else None)


def _sum(rows: pl.DataFrame, column: str) -> int:
    total: Any = rows[column].sum() if column in rows.columns else 0
    return int(total or 0)


def _named(shard: Shard, number: int, count: int, folder: Path) -> Shard:
    suffix = shard.path[shard.path.index(".") :]
    name = f"data/train-{number:05}-of-{count:05}{suffix}"
    (folder / "data" / shard.path).rename(folder / name)
    return Shard(name, shard.bytes, shard.sha256, shard.rows, shard.words, shard.tokens)
