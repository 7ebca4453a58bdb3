"""A day of the crawl in, its clusters of near-identical pages out, from complete WARCs only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import date

import polars as pl

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES, near_duplicates_path
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.near_duplicates.batch import (
    Clustering,
    ClusterReport,
    Document,
    cluster_documents,
)
from news_platform.near_duplicates.sketch import SketchOptions
from news_platform.storage.commit import collected
from news_platform.storage.commit.markers import (
    delete_marker,
    fingerprint,
    read_markers,
    write_marker,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import read_table, scan_table, write_table


def wanted_days(store: ObjectStore) -> Mapping[str, str]:
    """Return what the clusters of every day should stand on: its WARCs and today's options."""
    return collected.wanted_days(store, built=built_days(store), inputs=_with_options)


def built_days(store: ObjectStore) -> Mapping[str, str]:
    """Return what the clusters of every day stand on."""
    markers = read_markers(store, NEAR_DUPLICATES.name)
    return {day: marker.inputs for day, marker in markers.items()}


def cluster_day(store: ObjectStore, day: str) -> ClusterReport | None:
    """Find the near-identical pages of a day and publish them; None when it has no pages any more.

    Runs of one day replace each other; the marker comes last.
    """
    markers = collected.list_collected_day(store, date.fromisoformat(day))
    if not markers:
        delete_marker(store, NEAR_DUPLICATES.name, day)
        store.delete([near_duplicates_path(day)])
        return None
    inputs = collected.day_inputs(
        store, markers, built=built_days(store).get(day), inputs=_with_options
    )
    options = SketchOptions()
    found = cluster_documents(lambda: _read_pages(store, markers), options=options)
    write_table(store, near_duplicates_path(day), _frame(found), NEAR_DUPLICATES)
    write_marker(store, NEAR_DUPLICATES.name, day, inputs=inputs, report=asdict(found.report))
    return found.report


def day_problems(store: ObjectStore, day: str) -> list[str]:
    """Return what is wrong with the clusters of a day, in words; nothing is how it should be."""
    frame = read_table(store, near_duplicates_path(day), NEAR_DUPLICATES)
    threshold = SketchOptions().threshold
    wrong = {
        "is in two clusters": pl.col("uri").is_duplicated(),
        "is alone in its cluster": pl.len().over("cluster_id") < 2,
        "has no twin": pl.col("jaccard") < threshold,
        "is in a cluster of another size": pl.len().over("cluster_id") != pl.col("cluster_size"),
    }
    return [
        f"{day}: {uri} {text}" for text, rule in wrong.items() for uri in frame.filter(rule)["uri"]
    ]


def _with_options(inputs: str) -> str:
    options = SketchOptions()
    return fingerprint([inputs, options.fingerprint, str(options.threshold)])


def _read_pages(store: ObjectStore, markers: Sequence[ObjectInfo]) -> Iterator[Document]:
    """Give the pages file by file, in the order of WARCs and languages."""
    for marker in collected.parse_listed(store, markers):
        for _, path in sorted(marker.news_paths().items()):
            rows = scan_table(store, [path], RAW_NEWS).select("uri", "text").collect()
            for uri, text in rows.iter_rows():
                yield Document(uri, text or "")


def _frame(found: Clustering) -> pl.DataFrame:
    rows = [(member.cluster_id, member.document_id, member.jaccard) for member in found.members]
    frame = pl.DataFrame(rows, schema=["cluster_id", "uri", "jaccard"], orient="row")
    return frame.with_columns(pl.len().over("cluster_id").alias("cluster_size"))
