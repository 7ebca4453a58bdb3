"""Read byte ranges of data files as rows: fragments of a domain, and the records of a batch."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from itertools import islice

import polars as pl
from pydantic_core import from_json

from news_platform.datasets.domain_store import ENTRIES
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER
from news_platform.domain_store.data_files import iter_inflated, iter_lines
from news_platform.domain_store.layout import STORE_FILE, entries_path
from news_platform.domain_store.manifest import Manifest, Segment, read_bucket_count, read_current
from news_platform.errors import StorageError
from news_platform.storage.objects.store import NotFound, ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.takedowns.build_filters import has_removed

Row = dict[str, object]

# A fragment up to this size is read with one request; a larger one is streamed.
WHOLE_BYTES = 8 << 20
# Small, because the codec copies the rest of a piece at the end of each gzip member in it.
PIECE_BYTES = 1 << 16
READ_AHEAD = 8
# Of a `RangeReader`: a merge may have hundreds of them open.
MIN_BUFFER_BYTES, MAX_BUFFER_BYTES = 1 << 16, 8 << 20
GZIP_MAGIC = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class Fragment:
    """A byte range of a data file: the gzip members with the records of a domain."""

    path: str
    offset: int
    length: int
    records: int


def iter_fragment_rows(store: ObjectStore, fragments: Sequence[Fragment]) -> Iterator[Row]:
    """Yield the rows of all fragments in order; small fragments are read ahead concurrently."""
    return map(parse_row, iter_lines_of_fragments(store, fragments))


def iter_lines_of_fragments(store: ObjectStore, fragments: Sequence[Fragment]) -> Iterator[bytes]:
    """Yield the JSON lines of all fragments; raise StorageError for a damaged file."""
    for fragment, pieces in _iter_pieces(store, fragments):
        yield from iter_fragment_lines(fragment, pieces, store.uri(fragment.path))


def parse_row(line: bytes) -> Row:
    """Parse one JSON line."""
    # Twice as fast as the json module.
    try:
        row: Row = from_json(line)
    except ValueError as error:
        raise StorageError(f"cannot parse record {line[:80]!r}: {error}") from error
    return row


def iter_fragment_lines(
    fragment: Fragment, pieces: Iterable[bytes | memoryview], where: str
) -> Iterator[bytes]:
    """Yield the lines of a fragment; raise StorageError unless the index has the same number."""
    found = 0
    try:
        for line in iter_lines(iter_inflated(pieces)):
            found += 1
            yield line
    except NotFound:
        # Unchanged, because lookups read a newer manifest when a file was deleted.
        raise
    except StorageError as error:
        raise _broken(fragment, where, str(error)) from error
    if found != fragment.records:
        raise _broken(
            fragment, where, f"found {found} records, expected {fragment.records} by the index"
        )


def iter_rows(store: ObjectStore, path: str, offset: int) -> Iterator[Row]:
    """Yield every row of a data file from the first byte of a gzip member on."""
    where = store.uri(path)
    with closing(store.stream(path, start=offset)) as stream:
        pieces = iter(lambda: stream.read(PIECE_BYTES), b"")
        try:
            for line in iter_lines(iter_inflated(pieces)):
                yield parse_row(line)
        except StorageError as error:
            message = f"cannot read records of {where!r} from byte {offset}: {error}"
            raise StorageError(message, thing=where) from error


def read_pieces(store: ObjectStore, fragment: Fragment) -> Iterator[bytes]:
    """Yield the bytes of a fragment, which is streamed when it is large."""
    if fragment.length <= WHOLE_BYTES:
        yield from _split(store.read_range(fragment.path, fragment.offset, fragment.length))
        return
    left = fragment.length
    with closing(store.stream(fragment.path, start=fragment.offset)) as stream:
        while left:
            piece = stream.read(min(PIECE_BYTES, left))
            if not piece:
                raise _broken(
                    fragment, store.uri(fragment.path), f"the last {left} bytes are missing"
                )
            left -= len(piece)
            yield piece


def _iter_pieces(
    store: ObjectStore, fragments: Sequence[Fragment]
) -> Iterator[tuple[Fragment, Iterator[bytes]]]:
    if len(fragments) < 2:
        yield from ((fragment, read_pieces(store, fragment)) for fragment in fragments)
        return
    # The time of a lookup on an object store is that of its requests, so they are sent together.
    with ThreadPoolExecutor(READ_AHEAD, thread_name_prefix="fragment") as pool:
        waiting: deque[tuple[Fragment, Future[bytes] | None]] = deque()
        for fragment in fragments:
            waiting.append((fragment, _ahead(store, pool, fragment)))
            if len(waiting) == READ_AHEAD:
                yield _next(store, waiting)
        while waiting:
            yield _next(store, waiting)


def _ahead(
    store: ObjectStore, pool: ThreadPoolExecutor, fragment: Fragment
) -> Future[bytes] | None:
    if fragment.length > WHOLE_BYTES:
        return None
    return pool.submit(store.read_range, fragment.path, fragment.offset, fragment.length)


def _next(
    store: ObjectStore, waiting: deque[tuple[Fragment, Future[bytes] | None]]
) -> tuple[Fragment, Iterator[bytes]]:
    fragment, body = waiting.popleft()
    return fragment, read_pieces(store, fragment) if body is None else _split(body.result())


def _split(body: bytes) -> Iterator[bytes]:
    return (body[start : start + PIECE_BYTES] for start in range(0, len(body), PIECE_BYTES))


def _broken(fragment: Fragment, where: str, cause: str) -> StorageError:
    span = f"bytes {fragment.offset} to {fragment.offset + fragment.length}"
    return StorageError(f"cannot read records of {where!r}, {span}: {cause}", thing=where)


class RangeReader:
    """Reads ascending byte ranges of one file through a buffer, many ranges with one request.

    A file that is `held` whole in memory is never read.
    """

    def __init__(
        self,
        store: ObjectStore,
        path: str,
        *,
        size_bytes: int,
        buffer_bytes: int = MAX_BUFFER_BYTES,
        held: bytes = b"",
    ) -> None:
        self._store = store
        self._path = path
        self._size_bytes = size_bytes
        self._buffer_bytes = max(MIN_BUFFER_BYTES, min(buffer_bytes, MAX_BUFFER_BYTES))
        self._start = 0
        self._held = memoryview(held)

    def pieces(self, offset: int, length: int) -> Iterator[memoryview]:
        """Yield the bytes of a range; raise StorageError unless it starts with a gzip member."""
        end = offset + length
        is_first = True
        while offset < end:
            piece = self._from(offset, end - offset)
            if is_first and piece[:2] != GZIP_MAGIC:
                where = self._store.uri(self._path)
                raise StorageError(
                    f"cannot read {where!r}: no gzip member at byte {offset}", thing=where
                )
            yield piece
            offset, is_first = offset + len(piece), False

    def _from(self, offset: int, length: int) -> memoryview:
        at = offset - self._start
        if not 0 <= at < len(self._held):
            size = min(self._buffer_bytes, self._size_bytes - offset)
            self._held = memoryview(self._store.read_range(self._path, offset, size))
            self._start, at = offset, 0
        return self._held[at : at + length]


_CONCURRENT_READS = 16
# Pages have up to a megabyte each.
_FRAME_ROWS = 64


def read_manifests(store: ObjectStore) -> Mapping[int, Manifest]:
    """Return the newest manifest of every built bucket, with its batches; none without a store."""
    if not store.exists(STORE_FILE):
        return {}
    numbers = range(read_bucket_count(store))
    # On an object store each read is a round trip.
    with ThreadPoolExecutor(_CONCURRENT_READS) as pool:
        found = pool.map(lambda bucket: read_current(store, bucket, with_batches=True), numbers)
        return {bucket: one.manifest for bucket, one in enumerate(found) if one.manifest}


def iter_batch_fragments(
    store: ObjectStore, manifest: Manifest, batch: str
) -> Iterator[tuple[Fragment, Iterator[memoryview]]]:
    """Yield each domain of a batch in a bucket with its bytes, in the order of staged files."""
    for segment in manifest.segments:
        if segment.files and batch in segment.live:
            yield from _iter_segment(store, segment, batch)


def _iter_segment(
    store: ObjectStore, segment: Segment, batch: str
) -> Iterator[tuple[Fragment, Iterator[memoryview]]]:
    table = read_table(store, entries_path(segment.bucket, segment.name), ENTRIES)
    entries = table.filter(pl.col("batch") == batch).sort("file", "offset")
    readers = [RangeReader(store, file.path, size_bytes=file.size_bytes) for file in segment.files]
    for number, offset, length, records in entries.select(
        "file", "offset", "length", "records"
    ).iter_rows():
        fragment = Fragment(segment.files[number].path, offset, length, records)
        yield fragment, readers[number].pieces(offset, length)


def iter_batch_rows(store: ObjectStore, batch: str) -> Iterator[Row]:
    """Yield all records of a batch, bucket by bucket; raise StorageError for a damaged file."""
    for manifest in read_manifests(store).values():
        for fragment, pieces in iter_batch_fragments(store, manifest, batch):
            yield from map(
                parse_row, iter_fragment_lines(fragment, pieces, store.uri(fragment.path))
            )


def rows_by_warc(store: ObjectStore, batch: str) -> Mapping[str, int]:
    """Read all records of a batch and count those of each WARC."""
    return Counter(str(row.get("filename")) for row in iter_batch_rows(store, batch))


def iter_warc_frames(
    store: ObjectStore, batch: str, warcs: Mapping[str, int]
) -> Iterator[pl.DataFrame]:
    """Yield the rows of some WARCs of a batch as they were staged.

    `warcs` has the number of rows of each; StorageError is raised unless the store holds them all.
    """
    found: Counter[str] = Counter()
    chosen = (row for row in iter_batch_rows(store, batch) if row.get("filename") in warcs)
    while rows := list(islice(chosen, _FRAME_ROWS)):
        found.update(str(row["filename"]) for row in rows)
        yield _frame(rows)
    for warc, expected in warcs.items():
        # Rows of an expired WARC that were taken down are gone from here alone.
        if found[warc] > expected or (found[warc] < expected and not has_removed(store)):
            raise StorageError(
                f"the domain store holds {found[warc]} of {expected} rows of {warc!r}, whose "
                "raw_news files are expired: run `store verify`, or collect the WARC again with "
                "`ccnews collect --redo all`",
                thing=warc,
            )


def _frame(rows: Iterable[Row]) -> pl.DataFrame:
    schema = {name: RAW_NEWS.full_schema[name] for name in RAW_NEWS_ORDER}
    columns = [{name: row.get(name) for name in RAW_NEWS_ORDER} for row in rows]
    return pl.DataFrame(columns, schema=schema, orient="row")
