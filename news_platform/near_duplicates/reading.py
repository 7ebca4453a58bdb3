"""Read clusters as they are now: the names of clusters that ended lead to those that go on."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta

import polars as pl

from news_platform.datasets.evidence import Evidence
from news_platform.datasets.near_duplicates import (
    ARTICLE_CLUSTERS,
    NEAR_DUPLICATES,
    TEXT_CLUSTERS,
)
from news_platform.near_duplicates.candidates import ArticleKey
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import path_values, scan_table


def iter_merges(store: ObjectStore, days: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the clusters that ended on some days, each with the one that went on."""
    paths = [NEAR_DUPLICATES.place.path(date=day) for day in days]
    rows = scan_table(store, paths, NEAR_DUPLICATES).filter(pl.col("merged_ids").is_not_null())
    yield from rows.select("merged_ids", "cluster_id").explode("merged_ids").collect().iter_rows()


def resolved_name(name: str, older: Mapping[str, str]) -> str:
    """Return the cluster under which a cluster goes on, by what `iter_merges` yields."""
    seen = {name}
    while (parent := older.get(name)) is not None and parent not in seen:
        seen.add(parent)
        name = parent
    return name


def read_clusters(store: ObjectStore, days: Iterable[str]) -> pl.DataFrame:
    """Return the articles of these days with their clusters as they are now.

    Besides the columns of near_duplicates: `members`, `sources` and `first_seen_at` of the cluster
    within these days.
    """
    wanted = set(days)
    stored = _stored_days(store)
    found = [day for day in stored if day in wanted]
    # Only a later day can have ended a cluster of these.
    later = [day for day in stored if found and day >= found[0]]
    return (
        _renamed(_scan(store, found), _names(store, later))
        .with_columns(
            first_seen_at=pl.col("first_seen_at").min().over("cluster_id"),
            members=pl.len().over("cluster_id"),
            sources=pl.col("source").n_unique().over("cluster_id"),
        )
        .collect()
    )


def scan_near_duplicates(store: ObjectStore) -> pl.LazyFrame:
    """Return the articles of all days, with the names that their clusters have now."""
    days = _stored_days(store)
    return _renamed(_scan(store, days), _names(store, days))


def scan_article_clusters(store: ObjectStore) -> pl.LazyFrame:
    """Return the articles of feeds, each with its newest cluster."""
    columns = ("url_hash", "cluster_id", "jaccard")
    feeds = scan_near_duplicates(store).filter(pl.col("source") == "feed").select(*columns)
    newest = feeds.unique("url_hash", keep="last", maintain_order=True)
    return newest.with_columns(cluster_size=pl.len().over("cluster_id").cast(pl.Int64))


def scan_text_clusters(store: ObjectStore) -> pl.LazyFrame:
    """Return the articles of both sources, with `uri` as `url`."""
    return scan_near_duplicates(store).rename({"uri": "url"}).select(*TEXT_CLUSTERS.full_schema)


RELATIONS: Mapping[str, Callable[[ObjectStore], pl.LazyFrame]] = {
    NEAR_DUPLICATES.name: scan_near_duplicates,
    ARTICLE_CLUSTERS.name: scan_article_clusters,
    TEXT_CLUSTERS.name: scan_text_clusters,
}
"""How SQL and Python read the clusters, by name."""


def _stored_days(store: ObjectStore) -> list[str]:
    return sorted(path_values(info.path)["date"] for info in store.list(NEAR_DUPLICATES.name))


def _scan(store: ObjectStore, days: Iterable[str]) -> pl.LazyFrame:
    return scan_table(
        store, [NEAR_DUPLICATES.place.path(date=day) for day in days], NEAR_DUPLICATES
    )


def _names(store: ObjectStore, days: Iterable[str]) -> Mapping[str, str]:
    older = dict(iter_merges(store, days))
    return {name: resolved_name(name, older) for name in older}


def _renamed(rows: pl.LazyFrame, names: Mapping[str, str]) -> pl.LazyFrame:
    if not names:
        return rows
    return rows.with_columns(pl.col("cluster_id").replace(list(names), list(names.values())))


# Members of a cluster are searched for in this many days before and after the article.
_DAYS_AROUND = 7
_SHOWN = 10


def cluster_names(store: ObjectStore, articles: Sequence[ArticleKey]) -> list[str | None]:
    """Return the cluster of each of these articles; None for those that were not compared."""
    hashes = sorted({url_hash for _, _, url_hash in articles})
    rows = read_clusters(store, {day for day, _, _ in articles})
    named = rows.filter(pl.col("url_hash").is_in(hashes)).select(
        "date", "source", "url_hash", "cluster_id"
    )
    names = {(day, source, key): name for day, source, key, name in named.iter_rows()}
    return [names.get(article) for article in articles]


def explain_clusters(
    store: ObjectStore, days: Collection[str], hashes: Collection[str]
) -> Iterator[Evidence]:
    """Yield the cluster that the article of these hashes and days is in, and its members."""
    if not days:
        return
    rows = read_clusters(store, _around(days))
    is_mine = pl.col("url_hash").is_in(sorted(set(hashes)))
    mine = rows.filter(is_mine)
    if not mine.height:
        yield Evidence(
            NEAR_DUPLICATES.name, "absent", "The article was not compared with others yet."
        )
        return
    names = sorted(set(mine["cluster_id"]))
    others = rows.filter(pl.col("cluster_id").is_in(names), ~is_mine).sort("seen_at", "uri")
    others = others.unique("url_hash", keep="first", maintain_order=True)
    details = {"cluster": ", ".join(names), "members": str(others.height + 1)}
    yield Evidence(
        NEAR_DUPLICATES.name,
        "clustered" if others.height else "single",
        f"{others.height or 'No'} other article{'' if others.height < 2 else 's'} of the "
        f"{_DAYS_AROUND} days before and after it "
        f"{'has' if others.height < 2 else 'have'} a near-identical text.",
        at=mine.row(0, named=True)["first_seen_at"],
        source=NEAR_DUPLICATES.name,
        details=details,
    )
    for row in others.head(_SHOWN).iter_rows(named=True):
        yield Evidence(
            NEAR_DUPLICATES.name,
            "duplicate",
            f"{row['uri']} has a near-identical text.",
            at=row["seen_at"],
            source=f"{NEAR_DUPLICATES.name} {row['date']}",
            details={"url": row["uri"], "source": row["source"]},
        )


def _around(days: Collection[str]) -> list[str]:
    """Return these days and those close to them."""
    found = {
        date.fromisoformat(day) + timedelta(days=n)
        for day in days
        for n in range(-_DAYS_AROUND, _DAYS_AROUND + 1)
    }
    return [day.isoformat() for day in sorted(found)]
