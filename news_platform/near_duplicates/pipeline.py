"""Cluster near-identical texts: the pages of each crawl day, and all articles from feeds.

Both read stored datasets and write Parquet with a marker. A day of pages is clustered as one batch;
articles are compared with all earlier ones through the band table in the ledger.
"""

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import date
from functools import partial

import polars as pl
import sqlalchemy as sa

from news_platform.datasets.articles import ARTICLES, articles_path
from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    NEAR_DUPLICATES,
    near_duplicates_path,
)
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.errors import StorageError
from news_platform.near_duplicates.bands import Assignment, BandTable, assign_clusters
from news_platform.near_duplicates.batch import Clustering, ClusterReport, cluster_documents
from news_platform.near_duplicates.sketch import SketchOptions, TextDocument
from news_platform.storage.commit import collected
from news_platform.storage.commit.collected_months import CollectedUnit
from news_platform.storage.commit.markers import (
    PartOf,
    content_part,
    current_inputs,
    delete_marker,
    fingerprint,
    fingerprint_of,
    read_inputs,
    read_markers,
    read_report,
    write_marker,
)
from news_platform.storage.objects.store import ObjectInfo, ObjectStore
from news_platform.storage.parquet import path_values, read_table, scan_table, write_table
from news_platform.storage.sql.engine import read_transaction
from news_platform.takedowns.match import Takedowns
from news_platform.takedowns.obeying import require_same_takedowns

COLLECTION = "articles"
# article_clusters has no partitions, so its one marker needs a name.
_WHOLE = "all"
# From a day, and its expired WARCs with their row counts, to rows of raw_news.
ExpiredRows = Callable[[str, Mapping[str, int]], Iterator[pl.DataFrame]]


@dataclass(frozen=True, slots=True)
class ArticlesReport:
    """Counts of one run (`days`, `judged`, `joined`, `failed`), and of all articles so far.

    `failed` articles raised an error, which is in the log; a changed text is compared again.
    """

    days: int
    judged: int
    joined: int
    articles: int
    clusters: int
    largest: int
    failed: int = 0


def wanted_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the inputs each day should be built from: its WARCs and the current options."""
    return collected.wanted_days(store, built=built_days(store), inputs=_with_options)


def built_days(store: ObjectStore) -> Mapping[str, str]:
    """Return the inputs each day was built from."""
    return read_inputs(store, NEAR_DUPLICATES.name)


def cluster_day(
    store: ObjectStore, day: str, *, expired_rows: ExpiredRows | None = None
) -> ClusterReport | None:
    """Cluster the pages of a day and publish the result; return None if the day has no pages.

    A run replaces the result of an earlier one; the marker is written last. `expired_rows` returns
    the rows of WARCs whose files are expired.
    """
    # Only WARCs with a marker are complete.
    markers = collected.list_collected_day(store, date.fromisoformat(day))
    if not markers:
        delete_marker(store, NEAR_DUPLICATES.name, day)
        store.delete([near_duplicates_path(day)])
        return None
    inputs = collected.day_inputs(markers, built=built_days(store).get(day), inputs=_with_options)
    options = SketchOptions()
    takedowns = Takedowns.read(store, use="removal")
    found = cluster_documents(
        lambda: _allowed(_read_pages(store, markers, expired_rows), takedowns), options=options
    )
    require_same_takedowns(store, takedowns, now=None)
    write_table(store, near_duplicates_path(day), _frame(found), NEAR_DUPLICATES)
    write_marker(store, NEAR_DUPLICATES.name, day, inputs=inputs, report=asdict(found.report))
    return found.report


def day_problems(store: ObjectStore, day: str) -> list[str]:
    """Return the inconsistencies in the stored clusters of a day, one sentence each."""
    frame = read_table(store, near_duplicates_path(day), NEAR_DUPLICATES)
    threshold = SketchOptions().threshold
    wrong = {
        "is in two clusters": pl.col("uri").is_duplicated(),
        "is alone in its cluster": pl.len().over("cluster_id") < 2,
        "has a Jaccard below the threshold": pl.col("jaccard") < threshold,
        "states a wrong cluster size": pl.len().over("cluster_id") != pl.col("cluster_size"),
    }
    return [
        f"{day}: {uri} {text}" for text, rule in wrong.items() for uri in frame.filter(rule)["uri"]
    ]


def _with_options(inputs: str) -> str:
    options = SketchOptions()
    return fingerprint([inputs, options.fingerprint, str(options.threshold)])


def _read_pages(
    store: ObjectStore, markers: Sequence[CollectedUnit], expired_rows: ExpiredRows | None
) -> Iterator[TextDocument]:
    """Yield the pages: those of expired WARCs, then file by file by WARC and language."""
    found = collected.parse_listed(store, markers)
    expired = {marker.warc: marker.rows for marker in found if marker.is_expired}
    if expired and expired_rows is None:
        raise StorageError(f"raw_news of {found[0].day} is expired", thing=str(found[0].day))
    if expired and expired_rows is not None:
        for frame in expired_rows(str(found[0].day), expired):
            for uri, text in frame.select("uri", "text").iter_rows():
                yield TextDocument(uri, text or "")
    for marker in found:
        for _, path in sorted(marker.news_paths().items()):
            rows = scan_table(store, [path], RAW_NEWS).select("uri", "text").collect()
            for uri, text in rows.iter_rows():
                yield TextDocument(uri, text or "")


def _allowed(pages: Iterable[TextDocument], takedowns: Takedowns) -> Iterator[TextDocument]:
    """Yield the pages that are not taken down."""
    return (page for page in pages if not takedowns.covers_url(page.document_id))


def _frame(found: Clustering) -> pl.DataFrame:
    rows = [(member.cluster_id, member.document_id, member.jaccard) for member in found.members]
    frame = pl.DataFrame(rows, schema=["cluster_id", "uri", "jaccard"], orient="row")
    return frame.with_columns(pl.len().over("cluster_id").alias("cluster_size"))


def wanted_articles(store: ObjectStore) -> Mapping[str, str]:
    """Return the inputs the clusters should be built from: all daily files of articles."""
    days = _days(store)
    return {_WHOLE: _whole(days)} if days else {}


def built_articles(store: ObjectStore) -> Mapping[str, str]:
    """Return the inputs the clusters were built from."""
    return read_inputs(store, ARTICLE_CLUSTERS.name)


def cluster_articles(
    store: ObjectStore, *, engine: sa.Engine, compare_all: bool = False
) -> ArticlesReport:
    """Assign the articles of every changed daily file, then write all clusters as Parquet.

    `compare_all` reads the files of all days, to assign those that have lost their cluster.
    """
    days, options = _days(store), SketchOptions()
    known = _known_days(store, "inputs_of_days")
    changed = [day for day, seen in days.items() if compare_all or known.get(day) != seen]
    found = list(
        assign_clusters(
            _read_articles(store, changed), engine=engine, collection=COLLECTION, options=options
        )
    )
    assigned = [one for one in found if isinstance(one, Assignment)]
    frame = read_clusters(engine)
    write_table(store, ARTICLE_CLUSTERS.path, frame, ARTICLE_CLUSTERS)
    report = ArticlesReport(
        days=len(changed),
        judged=len(assigned),
        joined=sum(one.jaccard is not None for one in assigned),
        articles=frame.height,
        clusters=frame.filter(pl.col("cluster_size") > 1)["cluster_id"].n_unique(),
        largest=max(frame["cluster_size"].to_list(), default=0),
        failed=len(found) - len(assigned),
    )
    write_clusters_marker(store, days, asdict(report))
    return report


def write_clusters_marker(
    store: ObjectStore, days: Mapping[str, str], report: Mapping[str, object]
) -> None:
    """Write the marker of article_clusters; `days` has the fingerprint of every daily file.

    The next run compares these with the current files and reads only the changed days. The files
    are also recorded by their bytes, which are all that a root copied to an object store shows.
    """
    files = {path_values(one.path)["date"]: one for one in _daily_files(store)}
    part = content_part(store)
    known = {day: _day_inputs(files[day], part) for day in days if day in files}
    seen = {**report, "inputs_of_days": dict(days), "files_of_days": known}
    inputs = _whole(days) if days else ""
    write_marker(store, ARTICLE_CLUSTERS.name, _WHOLE, inputs=inputs, report=seen)


def adopt_markers(store: ObjectStore) -> None:
    """Keep current the clusters of version 0.1, which fingerprinted files by ETag.

    For a copied root, whose files have other ETags, the articles are compared with those that have
    a cluster.
    """
    marker = read_markers(store, ARTICLE_CLUSTERS.name).get(_WHOLE)
    known, paths = _known_days(store, "inputs_of_days"), [one.path for one in _daily_files(store)]
    if marker is None or known.keys() != {path_values(path)["date"] for path in paths}:
        return
    clustered = read_table(store, ARTICLE_CLUSTERS.path, ARTICLE_CLUSTERS)["url_hash"]
    articles = scan_table(store, paths, ARTICLES).select("url_hash").collect()["url_hash"]
    is_same = marker.inputs == _whole(_days(store)) or set(clustered) == set(articles)
    if is_same:
        part = content_part(store, _text_digest)
        days = {
            path_values(one.path)["date"]: _day_inputs(one, part) for one in _daily_files(store)
        }
        write_clusters_marker(store, days, read_report(store, marker))


def read_clusters(engine: sa.Engine) -> pl.DataFrame:
    """Return all compared articles with their clusters, in the order of arrival."""
    with read_transaction(engine) as connection:
        rows = BandTable(connection, COLLECTION, SketchOptions()).assignments()
    columns = [(one.document_id, one.cluster_id, one.jaccard) for one in rows]
    schema = {"url_hash": pl.String(), "cluster_id": pl.String(), "jaccard": pl.Float64()}
    frame = pl.DataFrame(columns, schema=schema, orient="row")
    return frame.with_columns(pl.len().over("cluster_id").cast(pl.Int64).alias("cluster_size"))


def _days(store: ObjectStore) -> dict[str, str]:
    """Return the fingerprint of every daily file together with the current options."""
    known, files = (_known_days(store, name) for name in ("inputs_of_days", "files_of_days"))
    found: dict[str, str] = {}
    for info in _daily_files(store):
        day = path_values(info.path)["date"]
        make = partial(_day_inputs, info)
        part = content_part(store, _text_digest)
        found[day] = current_inputs(str(known.get(day)), make, part=part)
        # In a root copied from a local disk to an object store, or back.
        if files.get(day) == make(content_part(store)) and day in known:
            found[day] = str(known[day])
    return found


def _daily_files(store: ObjectStore) -> Iterator[ObjectInfo]:
    # The folder also contains the full texts of articles.
    return store.list("articles", name_prefix="date=")


def _day_inputs(info: ObjectInfo, part: PartOf) -> str:
    options = SketchOptions()
    by = f"{options.fingerprint}-{options.threshold}"
    return fingerprint([fingerprint_of([info], part), by])


def _whole(days: Mapping[str, str]) -> str:
    return fingerprint(f"{day}={inputs}" for day, inputs in days.items())


def _text_digest(body: bytes) -> str:
    """Return the SHA-256 of the columns that clusters depend on.

    Other columns contain the path of the root, and copying a root must not make clusters stale.
    """
    try:
        rows = pl.read_parquet(io.BytesIO(body), columns=["url_hash", "clean_text"])
        body = rows.write_ndjson().encode()
    except (pl.exceptions.PolarsError, OSError):
        pass  # The run that reads the damaged file reports it; a sensor only compares.
    return hashlib.sha256(body).hexdigest()


def _known_days(store: ObjectStore, name: str) -> Mapping[str, object]:
    marker = read_markers(store, ARTICLE_CLUSTERS.name).get(_WHOLE)
    known = read_report(store, marker).get(name) if marker else None
    return known if isinstance(known, dict) else {}


def _read_articles(store: ObjectStore, days: list[str]) -> Iterator[TextDocument]:
    takedowns = Takedowns.read(store, use="removal")
    for day in sorted(days):
        rows = scan_table(store, [articles_path(day)], ARTICLES)
        chosen = rows.select("url_hash", "article_url_canon", "clean_text").collect()
        for url_hash, url, text in chosen.iter_rows():
            if not takedowns.covers_url(url):
                yield TextDocument(url_hash, text or "")
