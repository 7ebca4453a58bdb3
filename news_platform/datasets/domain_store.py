"""The domain store: staged pages by bucket, all records by domain, their index, and counts."""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    EVERY,
    TEXTS,
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Place,
    Role,
    Sensitivity,
    parquet,
)

ROOT = "domain_store"

# Columns that describe a record without opening it.
FACTS = (
    Column("url", Role.url, "Address of the page."),
    Column("day", Role.day, "Day of the WARC it was captured in; null if unknown.", pl.Date()),
    Column("language", Role.language, "Best language of the page."),
    Column("length", Role.count, "Bytes of the record's JSON line, decompressed.", pl.UInt64()),
    Column("content_hash", Role.count, "xxh64 of the page's HTML.", pl.UInt64()),
)

_DOMAIN = Column("domain", Role.domain, "Registrable domain in natural order: `bbc.co.uk`.")
_BYTE_RANGE = (
    Column("file", Role.count, "Number of the segment's data file, from 0.", pl.UInt32()),
    Column("offset", Role.count, "First byte in that file, from 0.", pl.UInt64()),
    Column(
        "length", Role.count, "Bytes in that file: a whole number of gzip members.", pl.UInt64()
    ),
    Column("records", Role.count, "Records in those bytes.", pl.UInt64()),
)
_SEEN = (
    Column("languages", Role.fact, "Languages of the records, sorted.", TEXTS),
    Column("first_seen", Role.time, "Earliest WARC day of the records.", pl.Date()),
    Column("last_seen", Role.time, "Latest WARC day of the records.", pl.Date()),
)

RECORDS = Dataset(
    name="domain_store_records",
    group="domain_store",
    description="One narrow row per record, in the order of the data, for scans by column.",
    row="one page of the store",
    place=Place("store", "domain_store/records/{bucket}/{hash}.parquet"),
    written_by="domain_store",
    columns=(
        _DOMAIN,
        Column("batch", Role.fact, "Batch of the record: a day or the name of a crawl."),
        *FACTS,
    ),
)

ENTRIES = Dataset(
    name="domain_store_entries",
    group="domain_store",
    description="The position of each batch of each domain in the data files of one segment.",
    row="one batch of one domain in the files of a segment",
    place=Place("store", "domain_store/entries/{bucket}/{hash}.parquet"),
    written_by="domain_store",
    columns=(
        _DOMAIN,
        Column("batch", Role.fact, "Batch of the records: a day or the name of a crawl."),
        *_BYTE_RANGE,
        *_SEEN,
    ),
)

RANGES = Dataset(
    name="domain_store_ranges",
    group="domain_store",
    description="The index of one generation as a table: every byte range of every domain.",
    row="one byte range of one domain",
    place=Place("store", "domain_store/index/{bucket}/{hash}.parquet"),
    written_by="domain_store",
    columns=(
        _DOMAIN,
        Column("segment", Role.fact, "Segment of the data file."),
        *_BYTE_RANGE,
        Column("timestamp", Role.count, "Unix time at which the newest of them was added."),
        *_SEEN,
    ),
)

DOMAIN_STORE = Dataset(
    name="domain_store",
    group="domain_store",
    description="All records by domain, for sixteen buckets; one range read returns a domain. "
    "Data files hold the records sorted by domain, and the index has one JSON line "
    "per domain with its byte ranges. Readers see either the old or the new "
    "generation of a bucket.",
    row="one domain and the byte ranges of its pages",
    place=Place("store", "domain_store/metadata/{bucket}.jsonl"),
    partitions="range",
    parents=(ParentDataset("domain_buckets", EVERY),),
    per_run=4,
    version=versions.STORE_FORMAT,
    sensitivity=Sensitivity.texts,
    cost="high",
    explorer="/domains",
    freshness=Freshness(30, 60),
    beside=(
        "domain_store/store.json",
        "domain_store/data/{bucket}/{number}/part-{hash}-{part}.jsonl.gz",
        "domain_store/batches/{bucket}/{hash}.json",
        "domain_store/index/{bucket}/{hash}.jsonl",
        "domain_store/manifests/{bucket}/{hash}.json",
        "domain_store/manifests/{bucket}/CURRENT",
    ),
    columns=(
        _DOMAIN,
        Column("domain_hash_id", Role.fact, "Bucket of the domain, as text."),
        Column("count", Role.count, "Records of the domain.", pl.UInt64()),
        Column(
            "files",
            Role.fact,
            "Positions: `tail -c +$((offset+1)) FILE | head -c length | zcat` shows them.",
            pl.List(
                pl.Struct(
                    {
                        "filepath": pl.String(),
                        "offset": pl.UInt64(),
                        "length": pl.UInt64(),
                        "record_count": pl.UInt64(),
                        "timestamp": pl.Int64(),
                    }
                )
            ),
        ),
    ),
    sources={
        "domain_buckets.domain": ("domain_hash_id", "count"),
        "domain_buckets.run_offset": ("files",),
        "domain_buckets.run_length": ("files",),
    },
)

DOMAIN_CATALOG = Dataset(
    name="domain_catalog",
    group="domain_store",
    description="Every domain of the store: its records, languages, first and last day.",
    row="one domain",
    place=parquet("domain_catalog/part-0.parquet"),
    parents=(ParentDataset("domain_store", EVERY),),
    version=versions.STORE_FORMAT,
    removal="rebuild",
    explorer="/domains",
    freshness=Freshness(30, 60),
    columns=(
        _DOMAIN,
        Column("bucket", Role.count, "Bucket of the store that holds the domain.", pl.UInt32()),
        Column("records", Role.count, "Records of the domain.", pl.UInt64()),
        Column("bytes", Role.count, "Compressed bytes of the records in the store.", pl.UInt64()),
        Column("fragments", Role.count, "Byte ranges that a lookup reads.", pl.UInt32()),
        Column("languages", Role.fact, "Languages of its records, sorted.", TEXTS),
        Column("first_seen", Role.time, "Earliest WARC day.", pl.Date()),
        Column("last_seen", Role.time, "Latest WARC day.", pl.Date()),
    ),
    sources={
        "domain_store.domain_hash_id": ("bucket",),
        "domain_store.count": ("records",),
        "domain_store.files": ("bytes", "fragments"),
        "domain_buckets.language": ("languages",),
        "domain_buckets.day": ("first_seen", "last_seen"),
    },
)


STAGED_ROOT = "domain_buckets"

DOMAIN_BUCKETS = Dataset(
    name="domain_buckets",
    group="domain_store",
    description="The pages of a day, staged by hash bucket (xxh64 of the domain) and sorted by "
    "domain, one gzip run per domain; next to each file, a Parquet file of the same "
    "name describes its records. Staging a day again replaces it; a day whose pages "
    "are gone is removed, unless too many days are gone at once.",
    row="one page, in the bucket of its domain",
    place=Place(
        "store", "domain_buckets/{bucket}/{batch}/{file_idx}/part-{hash}-{number}.jsonl.gz"
    ),
    partitions="day",
    parents=(ParentDataset("raw_news"),),
    version=versions.STORE_FORMAT,
    per_run=7,
    sensitivity=Sensitivity.texts,
    cost="high",
    keep="retention.stage_1_days",
    freshness=Freshness(30, 60),
    beside=("domain_buckets/{bucket}/{batch}/{file_idx}/part-{hash}-{number}.parquet",),
    columns=(
        _DOMAIN,
        *FACTS,
        Column(
            "run_offset",
            Role.count,
            "First byte of the domain's run in the data file.",
            pl.UInt64(),
        ),
        Column(
            "run_length", Role.count, "Bytes of the domain's run in the data file.", pl.UInt64()
        ),
    ),
    sources={
        "raw_news.host": ("domain",),
        "raw_news.uri": ("url",),
        "raw_news.year": ("day",),
        "raw_news.month": ("day",),
        "raw_news.day": ("day",),
        "raw_news.main_lang": ("language",),
        "raw_news.tree": ("content_hash",),
    },
)
