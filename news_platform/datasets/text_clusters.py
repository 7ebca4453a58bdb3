"""The text_clusters dataset: articles and their clusters of near-identical texts over days."""

import polars as pl

from news_platform.datasets.table import Column, Table

_MOMENT = pl.Datetime("us", "UTC")

TEXT_CLUSTERS = Table(
    name="text_clusters",
    feature="near_duplicates",
    description="Every article and its cluster of near-identical texts over a window of days.",
    path="text_clusters/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("url_hash", pl.String(), "the article, as in all_articles"),
        Column("source", pl.String(), "`crawl` or `feed`"),
        Column("url", pl.String(), "address of the page"),
        Column("seen_at", _MOMENT, "when the article was fetched"),
        Column("cluster_id", pl.String(), "16 hex digits, as it was when the day was built"),
        Column("first_seen_at", _MOMENT, "when the first article of the cluster was fetched"),
        Column("jaccard", pl.Float64(), "with the most similar earlier article; null if none"),
    ),
    partition_columns=(Column("date", pl.String(), "Day of the article, YYYY-MM-DD."),),
)
CLUSTER_MERGES = Table(
    name="cluster_merges",
    feature="near_duplicates",
    description="Clusters that an article of a day joined: the newer one and the older one.",
    path="cluster_merges/date=YYYY-MM-DD/part-0.parquet",
    columns=(
        Column("cluster_id", pl.String(), "the cluster that ended"),
        Column("older_id", pl.String(), "the cluster that goes on; it may end later, too"),
    ),
    partition_columns=(Column("date", pl.String(), "Day that joined them, YYYY-MM-DD."),),
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
    partition_columns=(Column("date", pl.String(), "Day of the article, YYYY-MM-DD."),),
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
    partition_columns=(Column("date", pl.String(), "Day of the article, YYYY-MM-DD."),),
)


def clusters_path(day: str) -> str:
    """Return the path of the clusters of one day, relative to the root."""
    return f"{TEXT_CLUSTERS.name}/date={day}/part-0.parquet"


def merges_path(day: str) -> str:
    """Return the path of the merges of one day, relative to the root."""
    return f"{CLUSTER_MERGES.name}/date={day}/part-0.parquet"


def sketches_path(day: str) -> str:
    """Return the path of the sketches of one day, relative to the root."""
    return f"{CLUSTER_SKETCHES.name}/date={day}/part-0.parquet"


def bands_path(day: str) -> str:
    """Return the path of the band keys of one day, relative to the root."""
    return f"{CLUSTER_BANDS.name}/date={day}/part-0.parquet"
