"""Write a small root with some of every dataset, to be kept as what one release wrote.

    python -m news_platform_tests.roots.make FOLDER

It uses only `news_platform.definitions.defs`, its assets and the sample world; version 0.1 lacked
`usage_signals`. The world itself is left out of the archive; see `README.md` beside this file.
"""

import os
import shutil
import sys
from pathlib import Path

import dagster as dg

DAY = "2025-11-01"
RANGES = ("0000-0015", "0016-0031", "0032-0047", "0048-0063")
BATCH = "country=gr/category=news/date=2025-11-01"
INSTITUTION = "calder-institute"
OPML = """<opml version="2.0"><body>
<outline xmlUrl="https://wire.meridian.example/rss.xml"/>
<outline xmlUrl="https://www.kupfertaler.example/rss/aktuell.xml"/>
</body></opml>"""
# Each asset with the partitions to build; None where it has none.
BUILT: tuple[tuple[str, tuple[str | None, ...]], ...] = (
    ("raw_news", (DAY,)),
    ("domain_buckets", (DAY,)),
    ("domain_store", RANGES),
    ("domain_catalog", (None,)),
    ("domain_queue", ("gr|news|2025-11-01",)),
    ("domain_metadata", ("gr|news|2025-11-01",)),
    ("domain_surveys", (DAY,)),
    ("usage_signals", (DAY,)),
    ("ai_policy_changes", (DAY,)),
    ("feeds", (None,)),
    ("pending_articles", (None,)),
    ("articles", (None,)),
    ("crawl_articles", (DAY,)),
    ("feed_articles", (DAY,)),
    ("near_duplicates", (DAY,)),
    ("article_sheets", (None,)),
    ("source_records", (INSTITUTION,)),
)


def make_root(folder: Path) -> None:
    """Place a few inputs and build every asset over them."""
    os.environ |= {
        "NEWS_PLATFORM_ROOT": str(folder / "root"),
        "NEWS_PLATFORM_SAMPLE": "1",
        "NEWS_PLATFORM_SAMPLE_WORLD": str(folder / "world"),
        "NEWS_PLATFORM_FEED_LANGUAGES": "en,de",
        "MAX_ITEMS_PER_FEED_PER_POLL": "3",
    }
    from news_platform.definitions import defs

    with dg.DagsterInstance.ephemeral() as instance:
        _build(defs, instance, "raw_news", DAY)
        _place_inputs(folder)
        for asset, partitions in BUILT[1:]:
            for partition in partitions:
                _build(defs, instance, asset, partition)


def _place_inputs(folder: Path) -> None:
    world, root = folder / "world", folder / "root"
    shutil.copytree(world / "research" / BATCH, root / "raw" / BATCH)
    name = f"institution={INSTITUTION}"
    shutil.copytree(world / "snapshots" / name, root / "snapshots" / name)
    (root / "feeds.opml").write_text(OPML)


def _build(
    defs: dg.Definitions, instance: dg.DagsterInstance, asset: str, partition: str | None
) -> None:
    known = defs.resolve_asset_graph().get(dg.AssetKey(asset)).partitions_def
    if isinstance(known, dg.DynamicPartitionsDefinition) and known.name and partition:
        instance.add_dynamic_partitions(known.name, [partition])
    result = defs.resolve_implicit_global_asset_job_def().execute_in_process(
        asset_selection=[dg.AssetKey(asset)], partition_key=partition, instance=instance
    )
    assert result.success


if __name__ == "__main__":
    make_root(Path(sys.argv[1]).absolute())
