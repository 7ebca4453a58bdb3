"""Stored articles in, their clusters out: assigned in the ledger's band table, shown as Parquet."""

import hashlib
import io
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.article_clusters import ARTICLE_CLUSTERS
from news_platform.datasets.articles import ARTICLES, articles_path
from news_platform.near_duplicates.bands import BandTable
from news_platform.near_duplicates.batch import Document, assign_clusters
from news_platform.near_duplicates.sketch import SketchOptions
from news_platform.storage.commit.markers import (
    PartOf,
    content_part,
    current_inputs,
    fingerprint,
    fingerprint_of,
    read_markers,
    read_report,
    write_marker,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values, scan_table, write_table
from news_platform.storage.sql.engine import read_transaction

COLLECTION = "articles"
_WHOLE = "all"


@dataclass(frozen=True, slots=True)
class ArticlesReport:
    """What a run judged, and what all runs have found."""

    days: int
    judged: int
    joined: int
    articles: int
    clusters: int
    largest: int


def wanted_articles(store: ObjectStore) -> Mapping[str, str]:
    """Return what the clusters should stand on: all daily files of articles."""
    days = _days(store)
    return {_WHOLE: _whole(days)} if days else {}


def built_articles(store: ObjectStore) -> Mapping[str, str]:
    """Return what the clusters stand on."""
    markers = read_markers(store, ARTICLE_CLUSTERS.name)
    return {key: marker.inputs for key, marker in markers.items()}


def cluster_articles(store: ObjectStore, *, engine: sa.Engine) -> ArticlesReport:
    """Judge the articles of every day whose file changed, then show all clusters."""
    days, options = _days(store), SketchOptions()
    inputs = _whole(days) if days else ""
    known = _known_days(store)
    changed = [day for day, seen in days.items() if known.get(day) != seen]
    assigned = list(
        assign_clusters(
            _read_articles(store, changed), engine=engine, collection=COLLECTION, options=options
        )
    )
    frame = read_clusters(engine)
    write_table(store, ARTICLE_CLUSTERS.path, frame, ARTICLE_CLUSTERS)
    report = ArticlesReport(
        days=len(changed),
        judged=len(assigned),
        joined=sum(one.jaccard is not None for one in assigned),
        articles=frame.height,
        clusters=frame.filter(pl.col("cluster_size") > 1)["cluster_id"].n_unique(),
        largest=max(frame["cluster_size"].to_list(), default=0),
    )
    seen = asdict(report) | {"inputs_of_days": days}
    write_marker(store, ARTICLE_CLUSTERS.name, _WHOLE, inputs=inputs, report=seen)
    return report


def read_clusters(engine: sa.Engine) -> pl.DataFrame:
    """Return every judged article with its cluster, in the order they came."""
    with read_transaction(engine) as connection:
        rows = BandTable(connection, COLLECTION, SketchOptions()).assignments()
    columns = [(one.document_id, one.cluster_id, one.jaccard) for one in rows]
    schema = {"url_hash": pl.String(), "cluster_id": pl.String(), "jaccard": pl.Float64()}
    frame = pl.DataFrame(columns, schema=schema, orient="row")
    return frame.with_columns(pl.len().over("cluster_id").cast(pl.Int64).alias("cluster_size"))


def _days(store: ObjectStore) -> dict[str, str]:
    """Return the fingerprint of every daily file, with the options it is to be judged by."""
    options, known = SketchOptions(), _known_days(store)
    by = f"{options.fingerprint}-{options.threshold}"
    found: dict[str, str] = {}
    for info in store.list("articles", name_prefix="date="):
        day = path_values(info.path)["date"]
        make = partial(_day_inputs, info, by)
        part = content_part(store, _text_digest)
        found[day] = current_inputs(str(known.get(day)), make, part=part)
    return found


def _day_inputs(info: ObjectInfo, options: str, part: PartOf) -> str:
    return fingerprint([fingerprint_of([info], part), options])


def _whole(days: Mapping[str, str]) -> str:
    return fingerprint(f"{day}={inputs}" for day, inputs in days.items())


def _text_digest(body: bytes) -> str:
    """Return the SHA-256 of the columns that clusters depend on.

    The others name where the root lies, and a copy of it should not be judged again.
    """
    try:
        rows = pl.read_parquet(io.BytesIO(body), columns=["url_hash", "clean_text"])
        body = rows.write_ndjson().encode()
    except (pl.exceptions.PolarsError, OSError):
        pass  # The run that reads the damaged file reports it; a sensor only compares.
    return hashlib.sha256(body).hexdigest()


def _known_days(store: ObjectStore) -> Mapping[str, object]:
    marker = read_markers(store, ARTICLE_CLUSTERS.name).get(_WHOLE)
    known = read_report(store, marker).get("inputs_of_days") if marker else None
    return known if isinstance(known, dict) else {}


def _read_articles(store: ObjectStore, days: list[str]) -> Iterator[Document]:
    for day in sorted(days):
        rows = scan_table(store, [articles_path(day)], ARTICLES)
        for url_hash, text in rows.select("url_hash", "clean_text").collect().iter_rows():
            yield Document(url_hash, text or "")
