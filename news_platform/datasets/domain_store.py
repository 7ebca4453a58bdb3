"""The domain_store and domain_catalog datasets: all records by domain, their index, and counts."""

import polars as pl

from news_platform.datasets.table import Column, Table

ROOT = "domain_store"

# Columns that describe a record without opening it.
FACTS = (
    Column("url", pl.String(), "Address of the page."),
    Column("day", pl.Date(), "Day of the WARC it was captured in; null if unknown."),
    Column("language", pl.String(), "Best language of the page."),
    Column("length", pl.UInt64(), "Bytes of the record's JSON line, decompressed."),
    Column("content_hash", pl.UInt64(), "xxh64 of the page's HTML."),
)

RECORDS = Table(
    name="domain_store_records",
    feature="domain_store",
    description="One narrow row per record, in the order of the data, for scans by column.",
    path="domain_store/records/BUCKET/HASH.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain in natural order: `bbc.co.uk`."),
        Column("batch", pl.String(), "Batch of the record: a day or the name of a crawl."),
        *FACTS,
    ),
)

ENTRIES = Table(
    name="domain_store_entries",
    feature="domain_store",
    description="The position of each batch of each domain in the data files of one segment.",
    path="domain_store/entries/BUCKET/HASH.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain in natural order: `bbc.co.uk`."),
        Column("batch", pl.String(), "Batch of the records: a day or the name of a crawl."),
        Column("file", pl.UInt32(), "Number of the segment's data file, from 0."),
        Column("offset", pl.UInt64(), "First byte in that file, from 0."),
        Column("length", pl.UInt64(), "Bytes in that file: a whole number of gzip members."),
        Column("records", pl.UInt64(), "Records in those bytes."),
        Column("languages", pl.List(pl.String()), "Languages of the records, sorted."),
        Column("first_seen", pl.Date(), "Earliest WARC day of the records."),
        Column("last_seen", pl.Date(), "Latest WARC day of the records."),
    ),
)

RANGES = Table(
    name="domain_store_ranges",
    feature="domain_store",
    description="The index of one generation as a table: every byte range of every domain.",
    path="domain_store/index/BUCKET/HASH.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain in natural order: `bbc.co.uk`."),
        Column("segment", pl.String(), "Segment of the data file."),
        Column("file", pl.UInt32(), "Number of the segment's data file, from 0."),
        Column("offset", pl.UInt64(), "First byte in that file, from 0."),
        Column("length", pl.UInt64(), "Bytes in that file: a whole number of gzip members."),
        Column("records", pl.UInt64(), "Records in those bytes."),
        Column("timestamp", pl.Int64(), "Unix time at which the newest of them was added."),
        Column("languages", pl.List(pl.String()), "Languages of the records, sorted."),
        Column("first_seen", pl.Date(), "Earliest WARC day of the records."),
        Column("last_seen", pl.Date(), "Latest WARC day of the records."),
    ),
)

DOMAIN_STORE = Table(
    name="domain_store",
    feature="domain_store",
    description="The index: one JSON line per domain with the positions of all its records.",
    path="domain_store/metadata/BUCKET.jsonl",
    columns=(
        Column("domain", pl.String(), "Registrable domain in natural order: `bbc.co.uk`."),
        Column("domain_hash_id", pl.String(), "Bucket of the domain, as text."),
        Column("count", pl.UInt64(), "Records of the domain."),
        Column(
            "files",
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
            "Positions: `tail -c +$((offset+1)) FILE | head -c length | zcat` shows them.",
        ),
    ),
)

DOMAIN_CATALOG = Table(
    name="domain_catalog",
    feature="domain_store",
    description="Every domain of the store: its records, languages, first and last day.",
    path="domain_catalog/part-0.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain in natural order: `bbc.co.uk`."),
        Column("bucket", pl.UInt32(), "Bucket of the store that holds the domain."),
        Column("records", pl.UInt64(), "Records of the domain."),
        Column("bytes", pl.UInt64(), "Compressed bytes of the records in the store."),
        Column("fragments", pl.UInt32(), "Byte ranges that a lookup reads."),
        Column("languages", pl.List(pl.String()), "Languages of its records, sorted."),
        Column("first_seen", pl.Date(), "Earliest WARC day."),
        Column("last_seen", pl.Date(), "Latest WARC day."),
    ),
)
