"""The tables of the news crawl as assets: their specs, and what a run reports about each."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date

import dagster as dg
import polars as pl

from news_platform.datasets.captures import CAPTURES, FEED_CANDIDATES
from news_platform.datasets.dataset import Dataset
from news_platform.datasets.dropped_responses import DROPPED_RESPONSES
from news_platform.datasets.raw_news import RAW_NEWS
from news_platform.datasets.warc_paths import WARC_PATHS
from news_platform.defs.metadata import column_lineage, markdown_table, table_metadata
from news_platform.defs.partitions import DAYS
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import scan_table

GROUP = "ccnews"
OWNERS = ["team:ccnews"]
SIDE_TABLES = (CAPTURES, FEED_CANDIDATES, DROPPED_RESPONSES)
OUTPUTS = (RAW_NEWS.name, *(table.name for table in SIDE_TABLES))
"""Every asset that a run of raw_news writes."""
_PREVIEW_ROWS = 5

warc_paths = dg.AssetSpec(
    "warc_paths",
    description=WARC_PATHS.description,
    group_name=GROUP,
    owners=OWNERS,
    kinds={"s3"},
    metadata=table_metadata(WARC_PATHS),
)


def raw_news_spec(*, deps: Sequence[dg.AssetSpec]) -> dg.AssetSpec:
    """Describe the pages of the crawl."""
    return dg.AssetSpec(
        RAW_NEWS.name,
        deps=deps,
        description="HTML pages of one day of the news crawl: source, main text, languages and "
        "provenance. A run collects the WARCs of its day that are missing or outdated: a day that "
        "grew is completed, and a complete day costs nothing. One file per language and WARC.",
        partitions_def=DAYS,
        group_name=GROUP,
        owners=OWNERS,
        kinds={"parquet", "python"},
        metadata=table_metadata(RAW_NEWS),
    )


def _side_table(table: Dataset, description: str) -> dg.AssetSpec:
    """Describe a table that a run of raw_news writes besides its own; it can be switched off."""
    return dg.AssetSpec(
        table.name,
        deps=[RAW_NEWS.name],
        description=description,
        partitions_def=DAYS,
        group_name=GROUP,
        owners=OWNERS,
        kinds={"parquet"},
        skippable=True,
        metadata=table_metadata(table),
    )


captures = _side_table(
    CAPTURES,
    "The position of every page in its WARC, and the title, date and author that it states: "
    "a link back to the source, and a narrow table for scans. Written by the run of raw_news.",
)
feed_candidates = _side_table(
    FEED_CANDIDATES,
    "Feeds that crawled pages link to, per host; feed discovery reads them every morning. "
    "Written by the run of raw_news.",
)
dropped_responses = _side_table(
    DROPPED_RESPONSES,
    "Every record of the crawl that gave no page, with the reason: why a page is missing. "
    "Written by the run of raw_news; files expire after NEWS_PLATFORM_DROPPED_RESPONSES_DAYS.",
)


def side_tables(store: ObjectStore, day: date) -> Iterator[dg.AssetMaterialization]:
    """Yield a materialisation for each side table that has files of the day."""
    for table in SIDE_TABLES:
        folder = f"{table.path.partition('/year=')[0]}/year={day:%Y}/month={day:%m}/day={day:%d}"
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
