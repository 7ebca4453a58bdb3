"""From the key of an article to its document: text, facts, captures and near-identical texts."""

import re
from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

import polars as pl

from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.datasets.warc_paths import warc_day
from news_platform.near_duplicates.reading import read_clusters
from news_platform.server.documents import (
    ArticleDocument,
    CaptureDocument,
    ClusterDocument,
    ClusterMemberDocument,
)
from news_platform.server.site import NothingHere, Site, TakenDown
from news_platform.storage.commit.markers import read_markers
from news_platform.text.days import as_day
from news_platform.web.urls import registrable_domain, url_host

_HASH = re.compile(r"[0-9a-f]{64}")
_CAPTURE_COLUMNS = (
    *("day", "source", "fetched_at", "record_offset", "record_length", "extractor_version"),
)
_SHOWN_MEMBERS = 50
# Clusters reach over a sliding window; these many days around an article are looked at.
_CLUSTER_DAYS = 30
_DAYS_AFTER = 14


def article_document(site: Site, url_hash: str, *, day: str = "") -> ArticleDocument:
    """Return an article; raise NothingHere or TakenDown if there is none to show.

    With a `day` only the captures of that day are looked up.
    """
    if not _HASH.fullmatch(url_hash):
        raise NothingHere(f"invalid key {url_hash[:80]!r}: expected 64 hex digits", thing=url_hash)
    wanted = as_day(day).isoformat() if day else ""
    rows = site.tables.find(url_hash, day=wanted).to_dicts()
    if not rows:
        where = f" on {wanted}" if wanted else ""
        raise NothingHere(f"no article {url_hash!r}{where} in the corpus", thing=url_hash)
    if site.takedowns.covers(rows[0]["canonical_url"]):
        raise TakenDown("this article was taken down", thing=url_hash)
    return ArticleDocument(
        **{name: rows[0][name] for name in ArticleDocument.model_fields if name in rows[0]}
        | {name: rows[0][name] or () for name in ("authors", "tags", "quality_flags")}
        | {"text": rows[0]["text"] or ""},
        captures=tuple(map(_capture, rows)),
        cluster=_cluster(site, rows[0]),
    )


def clusters_around(site: Site, day: str) -> pl.DataFrame:
    """Return the articles with near-identical ones in the days around a day."""
    days = site.kept("cluster days", lambda: sorted(read_markers(site.store, NEAR_DUPLICATES.name)))
    after = (date.fromisoformat(day) + timedelta(days=_DAYS_AFTER)).isoformat()
    window = [one for one in days if one <= after][-_CLUSTER_DAYS:]
    if not window:
        return read_clusters(site.store, ()).clear()
    name = f"clusters {window[0]} {window[-1]}"
    return site.kept(name, lambda: read_clusters(site.store, window).filter(pl.col("members") > 1))


def members_of(site: Site, rows: pl.DataFrame) -> list[ClusterMemberDocument]:
    """Return rows of clusters as documents, oldest first, without what is taken down."""
    found = []
    for row in rows.sort("seen_at", "url_hash").iter_rows(named=True):
        if not site.takedowns.covers_url(row["uri"]):
            found.append(_member(row))
    return found


def _member(row: Mapping[str, Any]) -> ClusterMemberDocument:
    return ClusterMemberDocument(
        url=row["uri"],
        url_hash=row["url_hash"],
        domain=registrable_domain(url_host(row["uri"])),
        source=row["source"],
        seen_at=row["seen_at"],
        day=row["date"],
        jaccard=row["jaccard"],
    )


def _cluster(site: Site, row: Mapping[str, Any]) -> ClusterDocument | None:
    rows = clusters_around(site, row["day"])
    own = rows.filter(pl.col("url_hash") == row["url_hash"])
    if own.is_empty():
        return None
    name = own["cluster_id"][0]
    members = members_of(site, rows.filter(pl.col("cluster_id") == name))
    if len(members) < 2:
        return None
    return ClusterDocument(
        cluster_id=name,
        first_seen_at=own["first_seen_at"][0],
        size=len(members),
        members=tuple(members[:_SHOWN_MEMBERS]),
    )


def _capture(row: Mapping[str, Any]) -> CaptureDocument:
    return CaptureDocument(
        warc=_warc_path(row["warc"]), **{name: row[name] for name in _CAPTURE_COLUMNS}
    )


def _warc_path(name: str | None) -> str | None:
    day = warc_day(name) if name else None
    return f"crawl-data/CC-NEWS/{day:%Y}/{day:%m}/{name}" if day else name
