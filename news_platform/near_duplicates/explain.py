"""Find the clusters of near-identical texts of some articles, for search and for explain."""

from collections.abc import Collection, Iterator, Mapping
from datetime import date, timedelta

import polars as pl

from news_platform.datasets.evidence import Evidence
from news_platform.datasets.near_duplicates import NEAR_DUPLICATES
from news_platform.near_duplicates.reading import read_clusters
from news_platform.storage.objects.store import ObjectStore

# Members of a cluster are searched for in this many days before and after the article.
_DAYS_AROUND = 7
_SHOWN = 10


def cluster_names(
    store: ObjectStore, days: Collection[str], hashes: Collection[str]
) -> Mapping[str, str]:
    """Return the cluster of each of these articles; those that were not compared are missing."""
    rows = read_clusters(store, days).filter(pl.col("url_hash").is_in(sorted(set(hashes))))
    return dict(rows.select("url_hash", "cluster_id").iter_rows())


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
