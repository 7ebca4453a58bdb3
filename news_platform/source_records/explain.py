"""Explain what was segmented from the stored snapshots of a page."""

from collections.abc import Iterator

import polars as pl

from news_platform.datasets.evidence import Evidence
from news_platform.datasets.source_records import SOURCE_RECORDS, SOURCE_RECORDS_QUARANTINE
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table
from news_platform.takedowns.spellings import PageAddress

ROOM = SOURCE_RECORDS.name


def explain_page(store: ObjectStore, page: PageAddress) -> Iterator[Evidence]:
    """Yield the records of a page of an institution; nothing if no snapshot of it was read."""
    for table in (SOURCE_RECORDS, SOURCE_RECORDS_QUARANTINE):
        folder = table.path.partition("/institution=")[0]
        paths = [one.path for one in store.list(folder) if one.path.endswith(".parquet")]
        rows = scan_table(store, paths, table)
        is_near = pl.col("url").str.to_lowercase().str.contains(page.domain, literal=True)
        error = pl.lit("") if table is SOURCE_RECORDS else pl.col("error")
        pages = rows.filter(is_near).group_by("url", "snapshot", "fetched_at", "institution")
        found = pages.agg(pl.len(), error.first().alias("error"))
        for row in found.sort("snapshot").collect().iter_rows(named=True):
            if page.is_same(row["url"]):
                yield _snapshot(row)


def _snapshot(row: dict[str, object]) -> Evidence:
    if row["error"]:
        state, text = "failed", f"The snapshot of the page failed: {row['error']}."
    else:
        state, text = "stored", f"The snapshot of the page gave {row['len']} records."
    at = row["fetched_at"]
    return Evidence(
        ROOM,
        state,
        text,
        at=at,  # type: ignore[arg-type] # a moment
        source=str(row["snapshot"] or ""),
        details={"institution": str(row["institution"]), "url": str(row["url"])},
    )
