"""Read the records of one batch back from the store, as bytes, as lines and as raw_news rows."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import polars as pl

from news_platform.datasets.domain_store import ENTRIES
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER
from news_platform.domain_store.commit import read_bucket_count, read_current
from news_platform.domain_store.layout import STORE_FILE, entries_path
from news_platform.domain_store.manifest import Manifest, Segment
from news_platform.domain_store.reading.fragments import (
    Fragment,
    RangeReader,
    Row,
    iter_fragment_lines,
    parse_row,
)
from news_platform.errors import StorageError
from news_platform.storage.chunks import chunked
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.takedowns.obeying import has_removed

_CONCURRENT_READS = 16
# Pages have up to a megabyte each.
_FRAME_ROWS = 64


def read_manifests(store: ObjectStore) -> Mapping[int, Manifest]:
    """Return the newest manifest of every bucket that was built; none without a store."""
    if not store.exists(STORE_FILE):
        return {}
    numbers = range(read_bucket_count(store))
    # On an object store each read is a round trip.
    with ThreadPoolExecutor(_CONCURRENT_READS) as pool:
        found = pool.map(lambda bucket: read_current(store, bucket).manifest, numbers)
        return {bucket: manifest for bucket, manifest in enumerate(found) if manifest}


def iter_batch_pieces(
    store: ObjectStore, manifest: Manifest, batch: str
) -> Iterator[Iterator[memoryview]]:
    """Yield the bytes of each domain of a batch in a bucket, in the order of staged files."""
    for _, pieces in _iter_fragments(store, manifest, batch):
        yield pieces


def _iter_fragments(
    store: ObjectStore, manifest: Manifest, batch: str
) -> Iterator[tuple[Fragment, Iterator[memoryview]]]:
    for segment in manifest.segments:
        if batch in segment.live:
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
        for fragment, pieces in _iter_fragments(store, manifest, batch):
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
    for rows in chunked(chosen, _FRAME_ROWS):
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
