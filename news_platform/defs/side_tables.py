"""The tables captures and feed_candidates, which a run of raw_news writes besides its own.

They are assets of their own, so that analysts find them and the lineage of feeds shows where its
candidates come from. The run that writes them reports their materialisation.
"""

from collections.abc import Iterator, Mapping
from datetime import date

import dagster as dg
import polars as pl

from news_platform.datasets.captures import CAPTURES, FEED_CANDIDATES
from news_platform.datasets.table import Table
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.partitions import DAYS
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table

GROUP = "ccnews"
_PREVIEW_ROWS = 5


def _spec(table: Table, description: str) -> dg.AssetSpec:
    return dg.AssetSpec(
        table.name,
        deps=["raw_news"],
        description=description,
        partitions_def=DAYS,
        group_name=GROUP,
        owners=[f"team:{GROUP}"],
        kinds={"parquet"},
        metadata=table_metadata(table),
    )


captures = _spec(
    CAPTURES,
    "The position of every page in its WARC, and the title, date and author that it states: "
    "a link back to the source, and a narrow table for scans. Written by the run of raw_news.",
)
feed_candidates = _spec(
    FEED_CANDIDATES,
    "Feeds that crawled pages link to, per host; feed discovery reads them every morning. "
    "Written by the run of raw_news.",
)


def side_tables(store: ObjectStore, day: date) -> Iterator[dg.AssetMaterialization]:
    """Yield a materialisation for each side table that has files of the day."""
    for table in (CAPTURES, FEED_CANDIDATES):
        folder = f"news/{table.name}/year={day:%Y}/month={day:%m}/day={day:%d}"
        paths = [info.path for info in store.list(folder) if info.path.endswith(".parquet")]
        if paths:
            yield dg.AssetMaterialization(
                table.name,
                partition=day.isoformat(),
                metadata={
                    **_described(scan_table(store, paths, table)),
                    **column_lineage(table.name),
                    "dagster/uri": store.uri(folder),
                },
            )


def _described(rows: pl.LazyFrame) -> Mapping[str, dg.MetadataValue]:
    preview = rows.head(_PREVIEW_ROWS).collect()
    return {
        "dagster/partition_row_count": dg.MetadataValue.int(rows.select(pl.len()).collect().item()),
        "preview": markdown_table(preview.columns, preview.iter_rows()),
    }


defs = dg.Definitions(assets=[captures, feed_candidates])
