"""Pure: the options of a build, the bucket of a domain, and the path of every file of the store."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import quote

import polars as pl
import polars_hash
import xxhash

from news_platform.datasets.domain_store import ROOT as STORE
from news_platform.datasets.domain_store import STAGED_ROOT as STAGED
from news_platform.errors import InputError

MANIFESTS = f"{STORE}/manifests"
# Neighbouring buckets that one run builds: a partition of `domain_store`.
RANGE_SIZE = 16
# Of a batch's percent-encoded name: a marker adds a fingerprint and a scope, and file names end at
# 255 bytes.
BATCH_BYTES = 200
# The bits of a scope: 24 hex digits. The default number of buckets has 63 ranges.
SCOPE_BITS = 96
STORE_FILE = f"{STORE}/store.json"


def bucket_of(domain: str, buckets: int) -> int:
    """Return the bucket of a domain: xxh64 of its UTF-8 bytes modulo the number of buckets."""
    return xxhash.xxh64_intdigest(domain.encode()) % buckets


def bucket_column(name: str, buckets: int) -> pl.Expr:
    """Return the buckets of a column of domains, bit-equal to `bucket_of`."""
    # 6.7 times as fast as calling xxhash for each row.
    hashed: pl.Expr = polars_hash.col(name).nchash.xxhash64()
    return (hashed % buckets).cast(pl.UInt32)


def validated_bucket_count(buckets: int) -> int:
    """Return the number of buckets; raise InputError unless it is 1 to 10,000."""
    # The names of index files have four digits for the bucket.
    if not 1 <= buckets <= 10_000:
        raise InputError(f"invalid number of buckets {buckets}: expected 1 to 10000")
    return buckets


def staged_folder(bucket: int, batch: str) -> str:
    """Return the folder of one bucket of a staged batch."""
    return f"{STAGED}/{bucket}/{validated_batch(batch)}"


def staged_path(bucket: int, batch: str, *, name: str, number: int) -> str:
    """Return a staged data file; its description has the same path, ending in .parquet."""
    return f"{staged_folder(bucket, batch)}/{number}/part-{name}-{number + 1:06d}.jsonl.gz"


def facts_path(data_path: str) -> str:
    """Return the Parquet file that describes a staged data file."""
    return data_path.removesuffix(".jsonl.gz") + ".parquet"


def data_folder(bucket: int) -> str:
    """Return the folder of all data files of a bucket."""
    return f"{STORE}/data/{bucket}"


def data_path(bucket: int, name: str, *, number: int) -> str:
    """Return a data file of a segment."""
    return f"{data_folder(bucket)}/{number}/part-{name}-{number + 1:06d}.jsonl.gz"


def entries_path(bucket: int, name: str) -> str:
    """Return the table of the byte ranges in the data files of a segment."""
    return f"{STORE}/entries/{bucket}/{name}.parquet"


def records_path(bucket: int, name: str) -> str:
    """Return the narrow table of a segment's records."""
    return f"{STORE}/records/{bucket}/{name}.parquet"


def batches_path(bucket: int, name: str) -> str:
    """Return the list of the batches that a segment holds."""
    return f"{STORE}/batches/{bucket}/{name}.json"


def index_path(bucket: int, name: str) -> str:
    """Return the immutable index of one generation."""
    return f"{STORE}/index/{bucket}/{name}.jsonl"


def ranges_path(bucket: int, name: str) -> str:
    """Return the index of one generation as a table."""
    return f"{STORE}/index/{bucket}/{name}.parquet"


def view_path(bucket: int) -> str:
    """Return the copy of the newest index, at a fixed path for people and other tools."""
    return f"{STORE}/metadata/{bucket:04d}.jsonl"


def manifest_path(bucket: int, generation: int) -> str:
    """Return the manifest of one generation."""
    return f"{MANIFESTS}/{bucket}/{generation:08d}.json"


def current_path(bucket: int) -> str:
    """Return the pointer to the newest generation: a copy of its manifest."""
    return f"{MANIFESTS}/{bucket}/CURRENT"


def bucket_folders(bucket: int) -> tuple[str, ...]:
    """Return all folders that hold files of one bucket."""
    kinds = ("data", "entries", "records", "batches", "index", "manifests")
    return tuple(f"{STORE}/{kind}/{bucket}" for kind in kinds)


def data_path_of(filepath: str) -> str:
    """Return the path under the root of a `filepath` in an index, wherever the index was built."""
    _, found, rest = filepath.rpartition(f"{STORE}/data/")
    if not found:
        raise InputError(
            f"{filepath!r} is not a data file of a domain store: expected {STORE}/data/ in it",
            thing=filepath,
        )
    return f"{STORE}/data/{rest}"


def validated_batch(batch: str) -> str:
    """Return the name of a batch; raise InputError unless it can name a folder everywhere."""
    can_be_named = batch.isprintable() and batch == batch.strip() and not batch.startswith(".")
    is_short = 0 < len(quote(batch, safe="", errors="replace")) <= BATCH_BYTES
    if not (can_be_named and is_short) or set(batch) & set('/\\@|*?[]#"'):
        message = f"invalid batch name {batch[:80]!r}: use letters, digits, '-', '_' and '.'"
        raise InputError(f"{message}, at most {BATCH_BYTES} of them", thing=batch)
    return batch


def range_keys(buckets: int) -> list[str]:
    """Return the partition keys of all bucket ranges: `0000-0015`, `0016-0031`, ..."""
    starts = range(0, buckets, RANGE_SIZE)
    return [f"{start:04d}-{start + RANGE_SIZE - 1:04d}" for start in starts]


def range_buckets(key: str, buckets: int) -> range:
    """Return the buckets of one range; the last range of a store may be shorter than its key."""
    first, _, last = key.partition("-")
    if not (first.isdigit() and last.isdigit()) or int(first) >= buckets:
        raise InputError(
            f"invalid bucket range {key!r}: the store has buckets 0 to {buckets - 1}", thing=key
        )
    return range(int(first), min(int(last) + 1, buckets))


def batch_scope(with_rows: Iterable[int], buckets: int) -> str:
    """Return a bitmap, in hex digits, of the ranges to which these buckets belong.

    A store with more than SCOPE_BITS ranges has several neighbouring ones in each bit.
    """
    bits = {_scope_bit(bucket, buckets) for bucket in with_rows}
    return f"{sum(1 << bit for bit in bits):x}"


def is_in_scope(scope: str, bucket: int, buckets: int) -> bool:
    """Return whether a batch of this scope may have rows in the range of a bucket."""
    return bool(int(scope, 16) >> _scope_bit(bucket, buckets) & 1)


def _scope_bit(bucket: int, buckets: int) -> int:
    ranges = -(-buckets // RANGE_SIZE)
    number = bucket // RANGE_SIZE
    return number if ranges <= SCOPE_BITS else number * SCOPE_BITS // ranges


@dataclass(frozen=True, slots=True)
class BuildOptions:
    """Limits and sizes of a build.

    `buckets` applies to a new store only. `memory_bytes` bounds the whole process. `scratch` is the
    folder for spilled runs; None is the system's temporary folder. A build that would remove more
    than `removal_share` of the store's records is refused unless `allow_removal` is set.
    """

    buckets: int = 1000
    memory_bytes: int = 1 << 30
    scratch: str | None = None
    # Of a staged file; the number of the source design.
    records_per_file: int = 100_000
    # Of a data file: about the largest that is still convenient to copy.
    file_bytes: int = 2_000_000_000
    # Segments of similar size that are merged into one. With 8, each byte is rewritten 2.9 times
    # in a year; with "merge all above 4 fragments" it was 47 times.
    fan: int = 8
    # How long files that the newest index does not name stay for readers of an older one.
    grace: timedelta = timedelta(days=7)
    # Batches added in one generation, so that each source of the merge has a large read buffer.
    batches_per_merge: int = 512
    uploads: int = 8
    # Retention and takedowns remove single days and domains; more is most likely a lost input.
    removal_share: float = 0.1
    allow_removal: bool = False
