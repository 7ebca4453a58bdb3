"""The near_duplicates and article_clusters datasets: pages and articles with similar texts."""

import polars as pl

from news_platform.datasets.table import Column, Table

NEAR_DUPLICATES = Table(
    name="near_duplicates",
    feature="near_duplicates",
    description="Pages of one crawl day whose texts are near-identical, one row per page.",
    path="near_duplicates/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column(
            "cluster_id",
            pl.String(),
            "16 hex digits, named after the cluster's first page in the order of URLs.",
        ),
        Column("uri", pl.String(), "URL of the page, as in raw_news."),
        Column(
            "jaccard",
            pl.Float64(),
            "Share of 3-word runs in common with the most similar member, from 0.8 to 1.",
        ),
        Column("cluster_size", pl.Int64(), "Pages in the cluster, at least 2."),
    ),
    partition_columns=(Column("date", pl.String(), "Day of the crawl, YYYY-MM-DD."),),
)


def near_duplicates_path(day: str) -> str:
    """Return the path of the file of one day, relative to the root."""
    return f"near_duplicates/date={day}/part-0.parquet"


ARTICLE_CLUSTERS = Table(
    name="article_clusters",
    feature="near_duplicates",
    description="Every compared article and its cluster of near-identical texts, over all days.",
    path="article_clusters/part-0.parquet",
    columns=(
        Column("url_hash", pl.String(), "the article, as in articles"),
        Column("cluster_id", pl.String(), "16 hex digits, named after the cluster's first article"),
        Column(
            "jaccard",
            pl.Float64(),
            "share of 3-word runs in common with the most similar earlier article; null if none",
        ),
        Column(
            "cluster_size",
            pl.Int64(),
            "articles in the cluster; 1 if the article has no near-duplicate",
        ),
    ),
)
