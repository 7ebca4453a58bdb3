"""The domain_catalog dataset: one row per domain of the store."""

import polars as pl

from news_platform.datasets.table import Column, Table

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
