"""Sort more rows than fit into memory: sorted runs on the disk, merged batch by batch."""

import heapq
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import polars as pl

# Of a run that is held in memory while it is merged: about 5 MB of articles.
_BATCH_ROWS = 1024
_ZSTD_LEVEL = 1


class KeyOrder:
    """Finds out whether the rows of successive frames are in the order of the keys."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.holds = True
        self._keys = list(keys)
        self._last: list[pl.DataFrame] = []

    def add(self, rows: pl.DataFrame) -> None:
        """Look at the next rows."""
        if self.holds:
            keys = pl.concat([*self._last, rows.select(self._keys)])
            self.holds = keys.equals(keys.sort(self._keys))
            self._last = [keys.tail(1)]


def write_run(rows: pl.DataFrame, path: Path, *, keys: Sequence[str]) -> None:
    """Write the rows to a file, sorted by the keys; equal keys keep their order."""
    rows.sort(keys, maintain_order=True).write_parquet(
        path,
        compression="zstd",
        compression_level=_ZSTD_LEVEL,
        row_group_size=_BATCH_ROWS,
        statistics=False,
    )


def merge_runs(paths: Sequence[Path], *, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
    """Yield the rows of all runs in the order of the keys; no key is split between two frames.

    Only a batch of each run is in memory. Rows with equal keys are in the order of the runs.
    """
    runs = [_Run(path, keys) for path in paths]
    while active := [run for run in runs if run.fill()]:
        # Up to the first batch that ends before its run does, all smaller rows are known.
        bounds = [run.last_key for run in active if not run.is_last]
        parts = [run.take(min(bounds) if bounds else None) for run in active]
        found = [part for part in parts if part.height]
        if found:
            yield pl.concat(found).sort(keys, maintain_order=True)
        else:
            # One key fills the whole batch of the run that holds all others back.
            heapq.nsmallest(1, [run for run in active if not run.is_last], key=_last)[0].grow()


class _Run:
    """One sorted file and the rows of it that are read but not yet taken."""

    def __init__(self, path: Path, keys: Sequence[str]) -> None:
        # Imported here because pyarrow costs 0.4 s, which every process would pay.
        import pyarrow.parquet as pq

        self._file = pq.ParquetFile(path)
        self._groups = iter(range(self._file.num_row_groups))
        self._left: int = self._file.num_row_groups
        self._keys = list(keys)
        self._rows: pl.DataFrame | None = None

    @property
    def is_last(self) -> bool:
        """Return whether nothing is left in the file."""
        return self._left == 0

    @property
    def last_key(self) -> tuple[str, ...]:
        """Return the key of the last row in memory."""
        assert self._rows is not None
        return self._rows.select(self._keys).row(-1)

    def fill(self) -> bool:
        """Read a batch if none is in memory; return whether there are rows."""
        while (self._rows is None or not self._rows.height) and not self.is_last:
            self._rows = self._read()
        return self._rows is not None and self._rows.height > 0

    def grow(self) -> None:
        """Read one more batch."""
        assert self._rows is not None
        self._rows = pl.concat([self._rows, self._read()])

    def take(self, bound: tuple[str, ...] | None) -> pl.DataFrame:
        """Return and forget the rows before the bound; None: all of them."""
        assert self._rows is not None
        count = (
            self._rows.height if bound is None else self._rows.filter(self._is_below(bound)).height
        )
        taken, self._rows = self._rows.head(count), self._rows.slice(count)
        return taken

    def _is_below(self, bound: tuple[str, ...]) -> pl.Expr:
        below = pl.lit(False)
        for name, value in reversed(list(zip(self._keys, bound, strict=True))):
            below = (pl.col(name) < value) | ((pl.col(name) == value) & below)
        return below

    def _read(self) -> pl.DataFrame:
        self._left -= 1
        frame = pl.from_arrow(self._file.read_row_group(next(self._groups)))
        assert isinstance(frame, pl.DataFrame)
        return frame


def _last(run: _Run) -> tuple[str, ...]:
    return run.last_key


def iter_runs(
    frames: Iterable[pl.DataFrame], folder: Path, *, keys: Sequence[str], run_bytes: int
) -> Iterator[Path]:
    """Collect frames up to about `run_bytes` each, and yield the paths of the sorted runs."""
    held: list[pl.DataFrame] = []
    size = number = 0
    for frame in frames:
        held.append(frame)
        size += int(frame.estimated_size())
        if size >= run_bytes:
            yield _written(held, folder / f"run-{number:05}.parquet", keys)
            held, size, number = [], 0, number + 1
    if held:
        yield _written(held, folder / f"run-{number:05}.parquet", keys)


def _written(frames: Sequence[pl.DataFrame], path: Path, keys: Sequence[str]) -> Path:
    write_run(pl.concat(frames), path, keys=keys)
    return path
