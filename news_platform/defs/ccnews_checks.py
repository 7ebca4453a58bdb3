"""The asset checks of raw_news: what must hold for every collected day of the news crawl."""

from collections.abc import Callable, Sequence
from datetime import date

import dagster as dg

from news_platform.ccnews.listing import first_answering, listed_warcs
from news_platform.defs.metadata import markdown_table
from news_platform.resources import Clock, Crawl, DataRoot
from news_platform.storage.commit.collected import newest_collected_days
from news_platform.storage.objects.store import ObjectStore

# Each check imports what it calls: the checks read footers with pyarrow, which costs 0.4 s to load.

# Days that a check covers when it runs by itself, outside a partition.
CHECKED_DAYS = 7
_SHOWN_PROBLEMS = 20


def _checked_days(context: dg.AssetCheckExecutionContext, store: ObjectStore) -> list[date]:
    """Return the partition of this run, or else the newest collected days."""
    if context.has_partition_key:
        return [date.fromisoformat(context.partition_key)]
    return newest_collected_days(store, count=CHECKED_DAYS)


def _result(problems: Sequence[str], days: Sequence[date]) -> dg.AssetCheckResult:
    shown = markdown_table(["problem"], [(text,) for text in problems[:_SHOWN_PROBLEMS]])
    return dg.AssetCheckResult(
        passed=not problems,
        metadata={"problems": len(problems), "first": shown, "days": ", ".join(map(str, days))},
    )


def _over_days(
    context: dg.AssetCheckExecutionContext,
    store: ObjectStore,
    problems_of: Callable[[date], Sequence[str]],
) -> dg.AssetCheckResult:
    days = _checked_days(context, store)
    return _result([text for day in days for text in problems_of(day)], days)


@dg.asset_check(asset="raw_news")
def rows_equal_markers(
    context: dg.AssetCheckExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.AssetCheckResult:
    """The row counts of the stored Parquet files equal those that the markers state.

    If red: the problem names the file. Delete that WARC's marker under `news/collected/` and
    materialize the day again.
    """
    from news_platform.ccnews.checks import read_footers, row_problems

    store = data_root.store
    return _over_days(
        context, store, lambda day: row_problems(store, read_footers(store, day=day), day=day)
    )


@dg.asset_check(asset="raw_news")
def schema_is_exact(
    context: dg.AssetCheckExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.AssetCheckResult:
    """Every file has exactly the columns and types of raw_news.

    If red: another program or an older version wrote into `news/raw/`. Remove a foreign file,
    or run `news-platform ccnews collect --again` on the named WARC.
    """
    from news_platform.ccnews.checks import read_footers, schema_problems

    store = data_root.store
    return _over_days(context, store, lambda day: schema_problems(read_footers(store, day=day)))


@dg.asset_check(asset="raw_news")
def no_page_twice(
    context: dg.AssetCheckExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.AssetCheckResult:
    """No WARC has a (uri, http_date) more often than its source.

    If red: there is a copy of a file next to it. Delete the one that the marker does not name.
    """
    from news_platform.ccnews.checks import duplicate_problems

    store = data_root.store
    return _over_days(context, store, lambda day: duplicate_problems(store, day=day))


@dg.asset_check(asset="raw_news")
def listed_warcs_collected(
    context: dg.AssetCheckExecutionContext,
    data_root: dg.ResourceParam[DataRoot],
    crawl: dg.ResourceParam[Crawl],
    clock: dg.ResourceParam[Clock],
) -> dg.AssetCheckResult:
    """Every WARC of a collected day that was listed more than two days ago is collected.

    If red: materialize the day. If a WARC fails again, its run states the reason
    (docs/ccnews.md).
    """
    from news_platform.ccnews.checks import uncollected

    store, today = data_root.store, clock.now().date()
    days = _checked_days(context, store)
    source = first_answering(crawl.sources, month=today)
    listed = {day: listed_warcs(source, store, day=day) for day in days}
    if data_root.settings.ccnews.max_warcs is not None:
        listed = {}  # with a cap, the rest is missing on purpose
    return _result(uncollected(store, listed, today=today), days)


CHECKS = (rows_equal_markers, schema_is_exact, no_page_twice, listed_warcs_collected)
