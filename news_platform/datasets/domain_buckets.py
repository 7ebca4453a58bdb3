"""The domain_buckets dataset, stage 1 of the store: the rows of a batch by bucket and domain."""

import polars as pl

from news_platform.datasets.domain_store import FACTS
from news_platform.datasets.table import Column, Table

ROOT = "domain_buckets"

DOMAIN_BUCKETS = Table(
    name="domain_buckets",
    feature="domain_store",
    description="JSON lines of one batch and bucket, sorted by domain, one gzip run per domain; "
    "next to each file, a Parquet file of the same name describes its records.",
    path="domain_buckets/BUCKET/BATCH/FILE_IDX/part-HASH-NUMBER.jsonl.gz",
    columns=(
        Column("domain", pl.String(), "Registrable domain in natural order: `bbc.co.uk`."),
        *FACTS,
        Column("run_offset", pl.UInt64(), "First byte of the domain's run in the data file."),
        Column("run_length", pl.UInt64(), "Bytes of the domain's run in the data file."),
    ),
)
