"""The near_duplicates dataset: articles of both sources and their clusters of similar texts."""

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
    flag,
    number,
    parquet,
    window,
)

# The window within which texts are compared, by default.
CLUSTER_DAYS = 14
_DAY = (Column("date", Role.day, "Day of the article, YYYY-MM-DD."),)

NEAR_DUPLICATES = Dataset(
    name="near_duplicates",
    group="near_duplicates",
    description="Every article of a day with its cluster of near-identical texts among both "
    "sources: copies, syndication, updates. An article belongs to a cluster if it "
    "shares at least four fifths of its three-word runs with a member of the same "
    "day or of the window before it. A cluster keeps the name of its oldest article; "
    "readers resolve the names of clusters that were joined.",
    row="one article and its cluster",
    place=parquet("near_duplicates/date={date}/part-0.parquet"),
    partitions="day",
    parents=(
        ParentDataset("crawl_articles", window(CLUSTER_DAYS)),
        ParentDataset("feed_articles", window(CLUSTER_DAYS)),
    ),
    version=versions.SKETCHES,
    follows_version=True,
    per_run=7,
    options=("days",),
    kinds=frozenset({"parquet", "duckdb"}),
    cost="high",
    removal="rebuild",
    freshness=Freshness(30, 60),
    columns=(
        Column(
            "cluster_id",
            Role.fact,
            "16 hex digits, named after the cluster's oldest article. In the files as it was when "
            "the day was built; our readers follow `merged_ids` of later days.",
        ),
        Column("uri", Role.url, "address of the page"),
        number(
            "jaccard",
            "share of 3-word runs in common with the most similar article of the day or of the "
            "window before it, from 0.8 to 1; null if there is none",
        ),
        Column(
            "cluster_size",
            Role.count,
            "articles of the cluster in the window that ends with the day, when it was built",
        ),
        Column("url_hash", Role.url_hash, "the article, as in all_articles"),
        Column("source", Role.fact, "`crawl` or `feed`"),
        Column("seen_at", Role.time, "when the article was fetched"),
        Column("first_seen_at", Role.time, "when the first article of the cluster was fetched"),
        Column(
            "merged_ids",
            Role.fact,
            "clusters of earlier days that go on under this `cluster_id`; null for most articles",
            TEXTS,
        ),
    ),
    partition_columns=_DAY,
    sources={
        "crawl_articles.text": ("cluster_id", "jaccard", "cluster_size"),
        "feed_articles.text": ("cluster_id", "jaccard", "cluster_size"),
        "crawl_articles.url": ("uri",),
        "feed_articles.url": ("uri",),
        "crawl_articles.fetched_at": ("seen_at",),
        "feed_articles.fetched_at": ("seen_at",),
        "crawl_articles.day": ("date",),
        "feed_articles.day": ("date",),
    },
)
ARTICLE_CLUSTERS = Dataset(
    name="article_clusters",
    group="near_duplicates",
    description="The articles of feeds in near_duplicates: a relation for SQL and Python.",
    row="one article of a feed and its cluster",
    place=Place("view", "near_duplicates"),
    parents=(ParentDataset("near_duplicates", EVERY),),
    columns=(
        Column("url_hash", Role.url_hash, "the article, as in articles"),
        Column("cluster_id", Role.fact, "as in near_duplicates"),
        number("jaccard", "as in near_duplicates"),
        Column("cluster_size", Role.count, "articles of feeds in the cluster, over all days"),
    ),
)
TEXT_CLUSTERS = Dataset(
    name="text_clusters",
    group="near_duplicates",
    description="near_duplicates with `uri` as `url`: a relation for SQL and Python.",
    row="one article and its cluster",
    place=Place("view", "near_duplicates"),
    parents=(ParentDataset("near_duplicates"),),
    partitions="day",
    columns=(
        Column("url_hash", Role.url_hash, "the article, as in all_articles"),
        Column("source", Role.fact, "`crawl` or `feed`"),
        Column("url", Role.url, "address of the page"),
        Column("seen_at", Role.time, "when the article was fetched"),
        Column("cluster_id", Role.fact, "as in near_duplicates"),
        Column("first_seen_at", Role.time, "as in near_duplicates"),
        number("jaccard", "as in near_duplicates"),
    ),
    partition_columns=_DAY,
)
CLUSTER_SKETCHES = Dataset(
    name="cluster_sketches",
    group="near_duplicates",
    description="The shingles of each distinct text of a day, for the days that follow.",
    row="one distinct text of a day",
    place=parquet("cluster_sketches/date={date}/part-0.parquet"),
    written_by="near_duplicates",
    partitions="day",
    removal="rebuild",
    keep="corpus.cluster_days",
    columns=(
        Column("text_key", Role.fact, "equal exactly for texts with the same shingles"),
        Column("source", Role.fact, "`crawl` or `feed`: where the first article comes from"),
        Column("url_hash", Role.url_hash, "the first article of the day with the text"),
        Column("shingles", Role.fact, "sorted 32-bit hashes of its shingles", pl.Binary()),
    ),
    partition_columns=_DAY,
)
CLUSTER_BANDS = Dataset(
    name="cluster_bands",
    group="near_duplicates",
    description="The band keys of each distinct text of a day; near-identical texts share some.",
    row="one distinct text of a day",
    place=parquet("cluster_bands/date={date}/part-0.parquet"),
    written_by="near_duplicates",
    partitions="day",
    removal="rebuild",
    keep="corpus.cluster_days",
    columns=(
        Column("place", Role.count, "number of the row in cluster_sketches of the day"),
        Column("bands", Role.fact, "one key per band", pl.List(pl.Int64())),
        flag("is_new", "whether no earlier day of the window has the text"),
    ),
    partition_columns=_DAY,
)
