"""The near_duplicates dataset: articles of both sources and their clusters of similar texts."""

import polars as pl

from news_platform.datasets.table import Column, Table

_MOMENT = pl.Datetime("us", "UTC")
_PATH = "near_duplicates/date=YYYY-MM-DD/part-0.parquet"
_DAY = (Column("date", pl.String(), "Day of the article, YYYY-MM-DD."),)

NEAR_DUPLICATES = Table(
    name="near_duplicates",
    feature="near_duplicates",
    description="Every article of the crawl and of the feeds with its cluster of near-identical "
    "texts over a window of days.",
    path=_PATH,
    columns=(
        Column(
            "cluster_id",
            pl.String(),
            "16 hex digits, named after the cluster's oldest article. In the files as it was when "
            "the day was built; our readers follow `merged_ids` of later days.",
        ),
        Column("uri", pl.String(), "address of the page"),
        Column(
            "jaccard",
            pl.Float64(),
            "share of 3-word runs in common with the most similar article of the day or of the "
            "window before it, from 0.8 to 1; null if there is none",
        ),
        Column(
            "cluster_size",
            pl.Int64(),
            "articles of the cluster in the window that ends with the day, when it was built",
        ),
        Column("url_hash", pl.String(), "the article, as in all_articles"),
        Column("source", pl.String(), "`crawl` or `feed`"),
        Column("seen_at", _MOMENT, "when the article was fetched"),
        Column("first_seen_at", _MOMENT, "when the first article of the cluster was fetched"),
        Column(
            "merged_ids",
            pl.List(pl.String()),
            "clusters of earlier days that go on under this `cluster_id`; null for most articles",
        ),
    ),
    partition_columns=_DAY,
)
ARTICLE_CLUSTERS = Table(
    name="article_clusters",
    feature="near_duplicates",
    description="The articles of feeds in near_duplicates: a relation for SQL and Python.",
    path=_PATH,
    columns=(
        Column("url_hash", pl.String(), "the article, as in articles"),
        Column("cluster_id", pl.String(), "as in near_duplicates"),
        Column("jaccard", pl.Float64(), "as in near_duplicates"),
        Column("cluster_size", pl.Int64(), "articles of feeds in the cluster, over all days"),
    ),
)
TEXT_CLUSTERS = Table(
    name="text_clusters",
    feature="near_duplicates",
    description="near_duplicates with `uri` as `url`: a relation for SQL and Python.",
    path=_PATH,
    columns=(
        Column("url_hash", pl.String(), "the article, as in all_articles"),
        Column("source", pl.String(), "`crawl` or `feed`"),
        Column("url", pl.String(), "address of the page"),
        Column("seen_at", _MOMENT, "when the article was fetched"),
        Column("cluster_id", pl.String(), "as in near_duplicates"),
        Column("first_seen_at", _MOMENT, "as in near_duplicates"),
        Column("jaccard", pl.Float64(), "as in near_duplicates"),
    ),
    partition_columns=_DAY,
)
CLUSTER_SKETCHES = Table(
    name="cluster_sketches",
    feature="near_duplicates",
    description="The shingles of each distinct text of a day, for the days that follow.",
    path="cluster_sketches/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("text_key", pl.String(), "equal exactly for texts with the same shingles"),
        Column("url_hash", pl.String(), "the first article of the day with the text"),
        Column("shingles", pl.Binary(), "sorted 32-bit hashes of its shingles"),
    ),
    partition_columns=_DAY,
)
CLUSTER_BANDS = Table(
    name="cluster_bands",
    feature="near_duplicates",
    description="The band keys of each distinct text of a day; near-identical texts share some.",
    path="cluster_bands/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("place", pl.Int64(), "number of the row in cluster_sketches of the day"),
        Column("bands", pl.List(pl.Int64()), "one key per band"),
        Column("is_new", pl.Boolean(), "whether no earlier day of the window has the text"),
    ),
    partition_columns=_DAY,
)


def near_duplicates_path(day: str) -> str:
    """Return the path of the clusters of one day, relative to the root."""
    return f"{NEAR_DUPLICATES.name}/date={day}/part-0.parquet"


def sketches_path(day: str) -> str:
    """Return the path of the sketches of one day, relative to the root."""
    return f"{CLUSTER_SKETCHES.name}/date={day}/part-0.parquet"


def bands_path(day: str) -> str:
    """Return the path of the band keys of one day, relative to the root."""
    return f"{CLUSTER_BANDS.name}/date={day}/part-0.parquet"
