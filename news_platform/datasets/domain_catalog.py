"""One row for each domain the store holds."""

import polars as pl

from news_platform.datasets.table import Column, Table

DOMAIN_CATALOG = Table(
    name="domain_catalog",
    room="domain_store",
    description="Every domain of the store: how much, in which languages, since when.",
    path="domain_catalog/part-0.parquet",
    columns=(
        Column("domain", pl.String(), "Registrable domain in natural order: `bbc.co.uk`."),
        Column("bucket", pl.UInt32(), "Bucket of the store it lies in."),
        Column("records", pl.UInt64(), "Records of the domain."),
        Column("bytes", pl.UInt64(), "Bytes they take in the store, compressed."),
        Column("fragments", pl.UInt32(), "Byte ranges a lookup reads."),
        Column("languages", pl.List(pl.String()), "Languages of its records, sorted."),
        Column("first_seen", pl.Date(), "Earliest WARC day."),
        Column("last_seen", pl.Date(), "Latest WARC day."),
    ),
)
