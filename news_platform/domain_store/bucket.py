"""Pure: which domain a row belongs to and which bucket that domain falls into."""

import polars as pl
import polars_hash
import xxhash

from news_platform.errors import InputError


def bucket_of(domain: str, buckets: int) -> int:
    """Return the bucket of one domain: xxh64 of its UTF-8 bytes, modulo the number of buckets."""
    return xxhash.xxh64_intdigest(domain.encode()) % buckets


def bucket_column(name: str, buckets: int) -> pl.Expr:
    """Return the buckets of a column of domains, bit-equal to `bucket_of`."""
    hashed: pl.Expr = polars_hash.col(name).nchash.xxhash64()
    return (hashed % buckets).cast(pl.UInt32)


def natural_domain(host: pl.Expr) -> pl.Expr:
    """Turn reversed domains (`uk.co.bbc`) into natural order (`bbc.co.uk`); null becomes empty."""
    return host.fill_null("").str.split(".").list.reverse().list.join(".")


def checked_buckets(buckets: int) -> int:
    """Return a usable number of buckets; four digits in the index's name allow 10,000."""
    if not 1 <= buckets <= 10_000:
        raise InputError(f"cannot cut a store into {buckets} buckets: expected 1 to 10000")
    return buckets
