"""The article_clusters dataset: which stored articles carry nearly the same text."""

import polars as pl

from news_platform.datasets.table import Column, Table

ARTICLE_CLUSTERS = Table(
    name="article_clusters",
    room="near_duplicates",
    description="Every judged article and its cluster of near-identical texts, over all days.",
    path="article_clusters/part-0.parquet",
    columns=(
        Column("url_hash", pl.String(), "the article, as in articles"),
        Column("cluster_id", pl.String(), "16 hex digits, named after the cluster's first article"),
        Column(
            "jaccard",
            pl.Float64(),
            "share of 3-word runs in common with the most alike earlier article; null without one",
        ),
        Column("cluster_size", pl.Int64(), "articles in the cluster, 1 for one without a twin"),
    ),
)
