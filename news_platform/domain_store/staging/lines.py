"""Pure: raw_news rows to JSON lines, with the bucket, domain and facts of each record beside."""

import polars as pl
import polars_hash

from news_platform.datasets.domain_store import FACTS
from news_platform.datasets.raw_news import RAW_NEWS, RAW_NEWS_ORDER
from news_platform.domain_store.bucket import bucket_column, natural_domain
from news_platform.errors import InputError


def encoded_lines(rows: pl.DataFrame, buckets: int) -> pl.DataFrame:
    """Return one row a record: bucket, domain, line (bytes, no end of line) and its facts."""
    named = rows.with_columns(domain=natural_domain(pl.col("host")))
    line = pl.struct("domain", *RAW_NEWS_ORDER).struct.json_encode()
    day = pl.concat_str("year", "month", "day", separator="-").str.to_date("%Y-%m-%d", strict=False)
    return named.select(
        "domain",
        bucket=bucket_column("domain", buckets),
        url=pl.col("uri").fill_null(""),
        day=day,
        language=pl.col("main_lang"),
        content_hash=polars_hash.col("tree").nchash.xxhash64(),
        line=line.cast(pl.Binary),
    ).with_columns(length=pl.col("line").bin.size().cast(pl.UInt64))


def as_raw_news(rows: pl.DataFrame, source: str) -> pl.DataFrame:
    """Return the columns of raw_news in their types; raise InputError naming what is missing."""
    missing = [name for name in RAW_NEWS_ORDER if name not in rows.columns]
    if missing:
        raise InputError(f"{source!r} lacks the columns {', '.join(missing)}", thing=source)
    schema = RAW_NEWS.full_schema
    return rows.select(pl.col(name).cast(schema[name]) for name in RAW_NEWS_ORDER)


FACT_NAMES = tuple(column.name for column in FACTS)
