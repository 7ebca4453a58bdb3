"""The asset checks of raw_news: what must hold for every collected day of the news crawl."""

from collections.abc import Iterable, Sequence
from datetime import date

import dagster as dg

from news_platform.ccnews.listing import first_answering, listed_warcs, read_copy
from news_platform.datasets.raw_news import RAW_NEWS, Warc, previous_month
from news_platform.defs.checks import check, check_result
from news_platform.defs.metadata import markdown_table
from news_platform.resources import Resources
from news_platform.storage.commit.collected import followed_days

# Each check imports what it calls: the checks read footers with pyarrow, which costs 0.4 s to load.


def _followed(resources: Resources) -> Sequence[str]:
    """Return every day that somebody wanted or that has a collected WARC, newest first."""
    return sorted(followed_days(resources.data_root.store), reverse=True)


@check(RAW_NEWS, built=_followed, blocking=True)
def rows_equal_markers(resources: Resources, key: str) -> dg.AssetCheckResult:
    """The row counts of the stored Parquet files equal those that the markers state.

    If red: the problem names the file. Run `news-platform ccnews collect --again` on the named
    WARC, then evaluate the check again.
    """
    from news_platform.ccnews.checks import read_footers, row_problems, truncated_warcs

    store, day = resources.data_root.store, date.fromisoformat(key)
    result = check_result(row_problems(store, read_footers(store, day=day), day=day))
    # Known to lack pages: their source is broken, and somebody or a setting accepted that.
    accepted = truncated_warcs(store, day=day)
    known = {
        "truncated": dg.MetadataValue.int(len(accepted)),
        "truncated_warcs": markdown_table(["WARC"], [(text,) for text in accepted]),
    }
    return result._replace(metadata={**result.metadata, **known})


@check(RAW_NEWS, built=_followed, blocking=True)
def schema_is_exact(resources: Resources, key: str) -> Iterable[str]:
    """Every file has exactly the columns and types of raw_news.

    If red: another program or an older version wrote into `news/raw/`. Remove a foreign file,
    or run `news-platform ccnews collect --again` on the named WARC.
    """
    from news_platform.ccnews.checks import read_footers, schema_problems

    store = resources.data_root.store
    return schema_problems(read_footers(store, day=date.fromisoformat(key)))


@check(RAW_NEWS, built=_followed)
def listed_warcs_collected(resources: Resources, key: str) -> Iterable[str]:
    """Every WARC of a collected day that was listed more than two days ago is collected.

    If red: materialize the day. If a WARC fails again, its run states the reason
    (docs/ccnews.md).
    """
    from news_platform.ccnews.checks import uncollected

    day, today = date.fromisoformat(key), resources.clock.now().date()
    # With a cap, the rest is missing on purpose.
    is_capped = resources.settings.ccnews.max_warcs is not None
    listed = {} if is_capped else {day: _listed(resources, day, today=today)}
    return uncollected(resources.data_root.store, listed, today=today)


def _listed(resources: Resources, day: date, *, today: date) -> Sequence[Warc]:
    store = resources.data_root.store
    # The listings of old months are final: the copy spares the crawl a request per day and night.
    if day < previous_month(today) and (copy := read_copy(store, month=day.replace(day=1))):
        return copy.days().get(day, ())
    return listed_warcs(first_answering(resources.crawl.sources, month=day), store, day=day)
