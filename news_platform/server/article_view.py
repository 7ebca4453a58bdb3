"""Build the documents of searches, of articles with their copies, and of explanations."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import date, timedelta
from itertools import groupby
from operator import itemgetter
from typing import Any

import polars as pl

from news_platform.datasets.corpus import CRAWL_ARTICLES, CRAWL_SOURCE, FEED_ARTICLES
from news_platform.datasets.evidence import Evidence
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.datasets.raw_news import warc_day
from news_platform.errors import InputError
from news_platform.near_duplicates.reading import read_clusters
from news_platform.rss.explain import explain_article
from news_platform.search.engine import FACETS, MAX_LIMIT, SearchOptions, cut_facet
from news_platform.search.pipeline import FoundArticle, with_snippets
from news_platform.search.reading import IndexedDays, explain_indexes
from news_platform.server.app_state import AppState, NothingHere, TakenDown
from news_platform.server.documents import (
    ArticleDocument,
    CaptureDocument,
    ClusterDocument,
    ClusterMemberDocument,
    ExplainDocument,
    HitDocument,
    SearchDocument,
)
from news_platform.server.parameters import MAX_PAGE, cursor_at
from news_platform.server.versions import CLUSTER_MARKERS, INDEX_MARKERS, Row
from news_platform.storage.commit.markers import read_markers
from news_platform.takedowns.match import PageAddress
from news_platform.text.readable import as_day
from news_platform.web.urls import registrable_domain, url_host

_HASH = re.compile(r"[0-9a-f]{64}")
_SHOWN_MEMBERS = 50
# Clusters reach over a sliding window; these many days around an article are looked at.
_CLUSTER_DAYS = 30
_DAYS_AFTER = 14
# Facets have up to a thousand values each; a page shows the most frequent ones.
_SHOWN_VALUES = 20


def search_document(state: AppState, query: str, options: SearchOptions) -> SearchDocument:
    """Return the hits of a query; raise InputError with the place of a mistake in it."""
    answer = state.news.search(query, replace(options, facets=FACETS), snippets=False).answer
    shown = [hit for hit in answer.hits if not state.takedowns.covers(hit.canonical_url)]
    hits = tuple(map(_hit, with_snippets(query, shown, state.tables.read)))
    end = options.offset + options.limit
    # With one article per cluster there are fewer hits than articles that match.
    is_full = len(answer.hits) == options.limit
    has_more = is_full and end < min(answer.count, MAX_LIMIT - MAX_PAGE)
    facets = {
        name: dict(sorted(values.items())) if name == "day" else cut_facet(values, _SHOWN_VALUES)
        for name, values in answer.facets.items()
    }
    return SearchDocument(
        query=query,
        count=answer.count,
        hits=hits,
        facets=facets,
        advice=() if answer.count else tuple(state.news.unmatched_values(query, options)),
        next_cursor=cursor_at(end) if has_more else None,
    )


def _hit(found: FoundArticle) -> HitDocument:
    part = found.snippet
    return HitDocument.of({**asdict(found.hit), "snippet": part.text, "marks": part.marks})


def article_document(state: AppState, url_hash: str, *, day: str = "") -> ArticleDocument:
    """Return an article; raise NothingHere or TakenDown if there is none to show.

    With a `day` only the captures of that day are looked up.
    """
    return document_of(state, article_rows(state, url_hash, day=day))


def article_rows(state: AppState, url_hash: str, *, day: str = "") -> Sequence[Row]:
    """Return the rows of an article, newest first; raise NothingHere or TakenDown."""
    if not _HASH.fullmatch(url_hash):
        raise NothingHere(f"invalid key {url_hash[:80]!r}: expected 64 hex digits", thing=url_hash)
    wanted = as_day(day).isoformat() if day else ""
    rows = state.rows.find(url_hash, day=wanted)
    if not rows:
        where = f" on {wanted}" if wanted else ""
        raise NothingHere(f"no article {url_hash!r}{where} in the corpus", thing=url_hash)
    if state.takedowns.covers(rows[0]["canonical_url"]):
        raise TakenDown("this article was taken down", thing=url_hash)
    return rows


def document_of(state: AppState, rows: Sequence[Row]) -> ArticleDocument:
    """Return an article by its rows."""
    return ArticleDocument(
        **{name: rows[0][name] for name in ArticleDocument.model_fields if name in rows[0]}
        | {name: rows[0][name] or () for name in ("authors", "tags", "quality_flags")}
        | {"text": rows[0]["text"] or ""},
        captures=tuple(map(_capture, rows)),
        cluster=_cluster(state, rows[0]),
    )


def clusters_around(state: AppState, day: str) -> pl.DataFrame:
    """Return the articles with near-identical ones around a day, by cluster, oldest first."""
    return state.version.kept(*_window(state, day), CLUSTER_MARKERS)


def _window(state: AppState, day: str) -> tuple[str, Callable[[], pl.DataFrame]]:
    """Return the name of the rows around a day, and how to read them."""
    days = state.version.kept(
        "cluster days",
        lambda: sorted(read_markers(state.store, NEAR_DUPLICATES.name)),
        CLUSTER_MARKERS,
    )
    after = (date.fromisoformat(day) + timedelta(days=_DAYS_AFTER)).isoformat()
    window = [one for one in days if one <= after][-_CLUSTER_DAYS:]
    name = f"clusters {window[0]} {window[-1]}" if window else "no clusters"
    return name, lambda: _read_window(state, window)


def _read_window(state: AppState, window: Sequence[str]) -> pl.DataFrame:
    rows = read_clusters(state.store, window)
    # Sorted and in one piece, the members of a cluster are found without looking at all rows.
    return rows.filter(pl.col("members") > 1).sort("cluster_id", "seen_at", "url_hash").rechunk()


def members_of(state: AppState, rows: pl.DataFrame) -> list[ClusterMemberDocument]:
    """Return rows of `clusters_around` as documents, without what is taken down."""
    takedowns = state.takedowns
    return [
        _member(row) for row in rows.iter_rows(named=True) if not takedowns.covers_url(row["uri"])
    ]


def _member(row: Mapping[str, Any]) -> ClusterMemberDocument:
    domain = registrable_domain(url_host(row["uri"]))
    return ClusterMemberDocument.of(
        {**row, "url": row["uri"], "domain": domain, "day": row["date"]}
    )


def _cluster(state: AppState, row: Mapping[str, Any]) -> ClusterDocument | None:
    place = _places(state, row["day"]).get(row["url_hash"])
    if place is None:
        return None
    rows = clusters_around(state, row["day"])[place]
    members = members_of(state, rows)
    if len(members) < 2:
        return None
    return ClusterDocument(
        cluster_id=rows["cluster_id"][0],
        first_seen_at=rows["first_seen_at"][0],
        size=len(members),
        members=tuple(members[:_SHOWN_MEMBERS]),
    )


def _places(state: AppState, day: str) -> Mapping[str, slice]:
    """Return where the clusters of articles lie among those around a day, by key."""
    name, _ = _window(state, day)

    def read() -> Mapping[str, slice]:
        found: dict[str, slice] = {}
        rows, end = clusters_around(state, day).select("cluster_id", "url_hash").rows(), 0
        for _, group in groupby(rows, key=itemgetter(0)):
            keys = [key for _, key in group]
            found |= dict.fromkeys(keys, slice(end, end + len(keys)))
            end += len(keys)
        return found

    return state.version.kept(f"places of {name}", read, CLUSTER_MARKERS)


def _capture(row: Mapping[str, Any]) -> CaptureDocument:
    return CaptureDocument.of({**row, "warc": _warc_path(row["warc"])})


def _warc_path(name: str | None) -> str | None:
    day = warc_day(name) if name else None
    return f"crawl-data/CC-NEWS/{day:%Y}/{day:%m}/{name}" if day else name


def article_evidence(
    state: AppState, article: ArticleDocument, rows: Sequence[Row]
) -> Iterator[Evidence]:
    """Yield what the ledger, the corpus, its clusters and its index say, in this order.

    The whole explanation also searches the crawl, the domain store, the survey, sheets and exports,
    and takes ten times as long.
    """
    engine = state.ledger
    if engine is not None:
        yield from explain_article(engine, state.store, PageAddress.of(article.canonical_url))
    for row in rows:
        is_crawled = row["source"] == CRAWL_SOURCE
        yield Evidence.of_row(CRAWL_ARTICLES if is_crawled else FEED_ARTICLES, row)
    if article.cluster is not None:
        text = f"{article.cluster.size - 1} other articles have a near-identical text."
        at, name = article.cluster.first_seen_at, article.cluster.cluster_id
        yield Evidence(NEAR_DUPLICATES.name, "clustered", text, at=at, details={"cluster": name})
    cache = state.news.search_cache
    known = state.version.kept(
        "indexed days", lambda: IndexedDays.read(state.store, cache), *INDEX_MARKERS
    )
    days = dict.fromkeys(row["day"] for row in rows)
    yield from explain_indexes(known, cache, list(days), [article.url_hash])


def explain_document(state: AppState, subject: str) -> ExplainDocument:
    """Return what is known about a URL, a domain or a feed."""
    if not subject:
        raise InputError("expected a URL, a domain or a feed")
    return ExplainDocument.model_validate(state.news.explain(subject))
