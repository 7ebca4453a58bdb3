"""The domain_buckets dataset, stage 1 of the store: the rows of a batch by bucket and domain."""

import polars as pl

from news_platform.datasets import versions
from news_platform.datasets.dataset import (
    Column,
    Dataset,
    Freshness,
    ParentDataset,
    Place,
    Role,
    Sensitivity,
)
from news_platform.datasets.domain_store import FACTS

ROOT = "domain_buckets"

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
    kinds=frozenset({"json", "gzip"}),
    sensitivity=Sensitivity.texts,
    cost="medium",
    keep="retention.stage_1_days",
    page="domain_store.md",
    freshness=Freshness(30, 60),
    beside=("domain_buckets/{bucket}/{batch}/{file_idx}/part-{hash}-{number}.parquet",),
    columns=(
        Column("domain", Role.domain, "Registrable domain in natural order: `bbc.co.uk`."),
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
