"""The Dagster asset of stories: events across outlets and languages, over a window of days."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import date

import dagster as dg
import polars as pl

from news_platform.datasets.stories import FIRST, STORIES, STORY_MEMBERS
from news_platform.defs.assets import PartitionMetadata, dataset_asset, rebuild_rule
from news_platform.defs.checks import check
from news_platform.defs.metadata import languages_plot, preview
from news_platform.defs.planning import Limits
from news_platform.defs.rebuild_rules import Platform
from news_platform.resources import Resources
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.parquet import read_table
from news_platform.stories.pipeline import build_day, days_before, linked_days, wanted_days

_SHOWN_STORIES = 10
# The newest days that the nightly check reads again; older ones do not change.
_CHECKED_DAYS = 60
# One run at a time, because a day is built from the results of the days before it.
_LIMITS = Limits(runs=1, per_run=STORIES.per_run, spacing_seconds=3600)


@dataset_asset(STORIES)
def stories(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Link the articles of days to those that they continue."""
    store = platform.data_root.store
    # In order: a day takes over the stories of the days before it.
    for day in sorted(context.partition_keys):
        report = build_day(store, day)
        if report is not None:
            rows = read_table(store, STORIES.place.path(date=day), STORIES)
            largest = rows.sort(["reports", "story_id"], descending=[True, False])
            yield (
                day,
                {
                    **asdict(report),
                    "dagster/partition_row_count": rows.height,
                    "dagster/uri": store.uri(STORIES.place.path(date=day)),
                    "largest_stories": preview(STORIES, largest.head(_SHOWN_STORIES)),
                    "continued_articles_per_day": _continued(store, day),
                },
            )


def _continued(store: ObjectStore, day: str) -> dg.MarkdownMetadataValue:
    """Plot the articles that continue an earlier one, by day of the window and language."""
    counts: dict[date, dict[str, int]] = {}
    for one in (*days_before(store, day), day):
        rows = _members(store, one).filter(pl.col("role") != FIRST)
        found = rows["language"].drop_nulls().value_counts().iter_rows()
        counts[date.fromisoformat(one)] = {language: count for language, count in found}
    return languages_plot(counts)


def _members(store: ObjectStore, day: str) -> pl.DataFrame:
    return read_table(store, STORY_MEMBERS.place.path(date=day), STORY_MEMBERS)


@check(STORIES, newest=_CHECKED_DAYS)
def every_article_has_one_story(resources: Resources, key: str) -> Iterable[str]:
    """Every article of a day has one story, and only the first of a story has no link.

    If red: the file was changed manually or by another version; materialize the day again.
    """
    store = resources.data_root.store
    # A day whose articles are gone has no stories, and nothing that could be wrong.
    if key not in linked_days(store):
        return
    is_first, is_linked = pl.col("role") == FIRST, pl.col("linked_to").is_not_null()
    wrong = {
        "in two stories": pl.struct("url_hash", "source").is_duplicated(),
        "without a story": pl.col("story_id").is_null(),
        "first of their story but linked, or linked to none": is_first == is_linked,
        "first of a story with another id": is_first & (pl.col("url_hash") != pl.col("story_id")),
    }
    rows = _members(store, key)
    for text, rule in wrong.items():
        if count := rows.filter(rule).height:
            yield f"{key}: {count} articles: {text}"


RULE = rebuild_rule(
    STORIES, wanted=lambda it: wanted_days(it.data_root.store), limits=lambda _: _LIMITS
)
