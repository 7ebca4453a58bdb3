"""The Dagster assets of the corpus: articles of the crawl and of feeds, and monthly exports."""

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from functools import partial

import dagster as dg
from pydantic import Field

from news_platform.ccnews.pipeline import RebuildMode
from news_platform.composition.corpus_options import (
    corpus_options,
    export_options,
    export_selection,
)
from news_platform.corpus.checks import (
    count_problems,
    export_problems,
    exported_months,
    is_damaged,
    row_problems,
    source_pages,
)
from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.publish import build_month
from news_platform.corpus.pipeline import (
    CorpusDay,
    build_crawl_day,
    build_feed_day,
    crawl_dataset,
    feed_dataset,
    outdated_crawl_days,
    wanted_feed_days,
)
from news_platform.datasets import versions
from news_platform.datasets.corpus import (
    CRAWL_ARTICLES,
    FEED_ARTICLES,
    TRAINING_EXPORT,
    export_folder,
)
from news_platform.datasets.dataset import Dataset
from news_platform.defs import ccnews_checks
from news_platform.defs.assets import dataset_asset, rebuild_rule
from news_platform.defs.checks import check, require_green, verdict
from news_platform.defs.corpus_views import (
    corpus_metadata,
    export_metadata,
    maintained_metadata,
    outdated_metadata,
)
from news_platform.defs.metadata import run_metadata
from news_platform.defs.partitions import DAYS, MONTHS
from news_platform.defs.planning import Hold
from news_platform.defs.rebuild_rules import (
    Fingerprints,
    unsettled,
)
from news_platform.defs.sensors import reconciling_sensor, skip_reason
from news_platform.domain_store.fragments import iter_warc_frames
from news_platform.near_duplicates.pipeline import expire_sketches
from news_platform.resources import DataRoot, Resources
from news_platform.storage.commit.markers import read_markers
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform.takedowns.match import Takedowns

# The newest days that the nightly checks read again; older ones do not change.
_CHECKED_DAYS = 60


class CrawlArticlesConfig(dg.Config):
    """What a run of crawl_articles builds."""

    redo: RebuildMode = Field(
        default=RebuildMode.outdated,
        description="missing: days whose pages or options changed, or whose rows are damaged. "
        "outdated: also those that another version of the extractor made. all: always.",
    )


@dataset_asset(CRAWL_ARTICLES)
def crawl_articles(
    context: dg.AssetExecutionContext,
    config: CrawlArticlesConfig,
    data_root: dg.ResourceParam[DataRoot],
) -> None:
    """Extract the articles of days of the crawl; each day is replaced in one step."""
    require_green(context.instance, ccnews_checks.CHECKS, context.partition_keys)
    store, options = data_root.store, corpus_options(data_root.settings.corpus)
    for day in context.partition_keys:
        if not _is_due(store, day, options, config.redo):
            context.log.info("%s is up to date; choose redo: all to build it again", day)
            context.add_asset_metadata(
                {"unchanged": True, **outdated_metadata(store)}, partition_key=day
            )
            continue
        report = build_crawl_day(
            store, day, options=options, expired_rows=partial(iter_warc_frames, store)
        )
        _describe(context, data_root, CRAWL_ARTICLES, day, report, **outdated_metadata(store))


def _is_due(store: ObjectStore, day: str, options: CorpusOptions, redo: RebuildMode) -> bool:
    """Return whether a run builds a day; `redo` is the choice of the run config."""
    wanted, built = (
        wanted_inputs(store, CRAWL_ARTICLES, options),
        built_inputs(store, CRAWL_ARTICLES),
    )
    if redo is RebuildMode.all or built.get(day) != wanted.get(day):
        return True
    if redo is RebuildMode.outdated and day in outdated_crawl_days(store):
        return True
    return is_damaged(crawl_dataset(store), day)


@dataset_asset(FEED_ARTICLES)
def feed_articles(context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]) -> None:
    """Replace days of the feeds' articles."""
    scratch = data_root.settings.corpus.scratch
    for day in context.partition_keys:
        report = build_feed_day(data_root.store, day, scratch=scratch)
        _describe(context, data_root, FEED_ARTICLES, day, report)


def _describe(
    context: dg.AssetExecutionContext,
    data_root: DataRoot,
    dataset: Dataset,
    day: str,
    report: CorpusDay | None,
    **more: int,
) -> None:
    if report is not None:
        metadata = {**corpus_metadata(data_root.store, dataset, report), **more}
        context.add_asset_metadata(metadata, partition_key=day)


@dataset_asset(TRAINING_EXPORT)
def training_export(
    context: dg.AssetExecutionContext, data_root: dg.ResourceParam[DataRoot]
) -> dg.MaterializeResult[None]:
    """Export a month as a new version."""
    store, settings = data_root.store, data_root.settings.corpus
    report = build_month(
        store,
        context.partition_key,
        selection=export_selection(settings),
        options=export_options(settings, store),
    )
    place = {"dagster/uri": store.uri(export_folder(context.partition_key))}
    return dg.MaterializeResult(
        metadata=run_metadata(TRAINING_EXPORT, {**export_metadata(report), **place})
    )


def _redone(resources: Resources) -> Fingerprints:
    """Return the newest days that another version made, if the settings say so."""
    newest = resources.settings.ccnews.redo_newest_days
    days = outdated_crawl_days(resources.data_root.store, newest=newest) if newest > 0 else ()
    return dict.fromkeys(days, versions.CRAWL_ARTICLES)


def _unsettled(resources: Resources, stale: Fingerprints, now: datetime) -> Mapping[str, Hold]:
    return unsettled(resources, stale, built_inputs(resources.data_root.store, CRAWL_ARTICLES), now)


def _just_refreshed(resources: Resources, stale: Fingerprints, now: datetime) -> Mapping[str, Hold]:
    """Hold back the days of feed_articles that were built a few minutes ago."""
    if not resources.is_live:
        return {}
    store, pause = resources.data_root.store, resources.settings.corpus.refresh_minutes
    holds = {}
    for day, marker in read_markers(store, FEED_ARTICLES.name).items():
        if day in stale:
            until = store.head(marker.path).modified_at + timedelta(minutes=pause)
            if until > now:
                holds[day] = Hold(f"built less than {pause:g} minutes ago", until.timestamp())
    return holds


def _unfinished(resources: Resources, stale: Fingerprints, now: datetime) -> Mapping[str, Hold]:
    """Hold back months that are not over, with the time that late WARCs of their end take."""
    if not resources.is_live:
        return {}
    late = timedelta(hours=resources.settings.ccnews.late_hours)
    ends = {month: _month_end(month) + late for month in stale}
    return {
        month: Hold("the month is not over", end.timestamp())
        for month, end in ends.items()
        if end > now
    }


def _month_end(month: str) -> datetime:
    first = date.fromisoformat(f"{month}-01")
    after = (first.replace(day=28) + timedelta(days=4)).replace(day=1)
    return datetime(after.year, after.month, 1, tzinfo=UTC)


CRAWL_RULE = rebuild_rule(
    CRAWL_ARTICLES,
    options=lambda resources: corpus_options(resources.settings.corpus),
    redone=_redone,
    holds=_unsettled,
    outdated=lambda resources: len(outdated_crawl_days(resources.data_root.store)),
)
FEED_RULE = rebuild_rule(
    FEED_ARTICLES,
    wanted=lambda resources: wanted_feed_days(resources.data_root.store),
    holds=_just_refreshed,
)
EXPORT_RULE = rebuild_rule(
    TRAINING_EXPORT,
    options=lambda resources: export_selection(resources.settings.corpus),
    holds=_unfinished,
)
RULES = (CRAWL_RULE, FEED_RULE, EXPORT_RULE)


def _newest(days: Mapping[str, str]) -> list[str]:
    return sorted(days)[-_CHECKED_DAYS:]


def _crawl_days(resources: Resources) -> list[str]:
    return _newest(built_inputs(resources.data_root.store, CRAWL_ARTICLES))


def _feed_days(resources: Resources) -> list[str]:
    return _newest(built_inputs(resources.data_root.store, FEED_ARTICLES))


@check(CRAWL_ARTICLES.name, built=_crawl_days, partitions_def=DAYS)
def every_page_is_counted(resources: Resources, key: str) -> dg.AssetCheckResult:
    """Articles and dropped pages of a day add up to the pages that raw_news has.

    If red: raw_news changed since, and the sensor builds the day again; or the table was changed
    manually: materialize the day again.
    """
    store, options = resources.data_root.store, corpus_options(resources.settings.corpus)
    pages = source_pages(store, key, options)
    may_lack = bool(Takedowns.read(store, use="removal"))
    return verdict(
        list(count_problems(crawl_dataset(store), key, pages=pages, may_lack_pages=may_lack))
    )


@check(CRAWL_ARTICLES.name, built=_crawl_days, partitions_def=DAYS)
def every_article_has_text(resources: Resources, key: str) -> dg.AssetCheckResult:
    """Every article of the crawl has a text and an address of its own.

    If red: the table was changed manually or by another version; materialize the day again.
    """
    return verdict(list(row_problems(crawl_dataset(resources.data_root.store), key)))


@check(FEED_ARTICLES.name, built=_feed_days, partitions_def=DAYS)
def every_feed_article_has_text(resources: Resources, key: str) -> dg.AssetCheckResult:
    """Every article of a feed has a text and an address of its own, and none is lost.

    If red: the table was changed manually or by another version; materialize the day again.
    """
    dataset = feed_dataset(resources.data_root.store)
    return verdict([*row_problems(dataset, key), *count_problems(dataset, key, pages=None)])


@check(
    TRAINING_EXPORT.name,
    built=lambda resources: exported_months(resources.data_root.store),
    partitions_def=MONTHS,
)
def nothing_twice_or_refused(resources: Resources, key: str) -> dg.AssetCheckResult:
    """An export holds no text twice, and none whose publisher refused.

    If red: do not pass the export on; materialize the month again.
    """
    return verdict(list(export_problems(resources.data_root.store, key)))


CHECKS = (
    every_page_is_counted,
    every_article_has_text,
    every_feed_article_has_text,
    nothing_twice_or_refused,
)


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Joins small files of the corpus, and deletes files that were replaced more than "
    "seven days ago.",
)
def compact_corpus(context: dg.OpExecutionContext, data_root: dg.ResourceParam[DataRoot]) -> None:
    """Optimize and vacuum both tables, and delete sketches of texts that nothing meets again."""
    store, grace = data_root.store, corpus_options(data_root.settings.corpus).grace
    done = {
        dataset.table.name: dataset.maintain(grace)
        for dataset in (crawl_dataset(store), feed_dataset(store))
    }
    days = data_root.settings.corpus.cluster_days
    deleted = expire_sketches(store, days=days)
    context.add_output_metadata({**maintained_metadata(done), "sketches_deleted": deleted})


@dg.job(
    description="Optimize and vacuum the tables of the corpus.",
    executor_def=dg.in_process_executor,
)
def maintain_corpus() -> None:
    """Run the nightly maintenance of the corpus."""
    compact_corpus()


@dg.schedule(
    job=maintain_corpus,
    cron_schedule="10 3 * * *",
    description="Joins small files of the corpus every night and deletes replaced ones.",
    default_status=dg.DefaultScheduleStatus.RUNNING,
)
def maintain_corpus_every_night(
    data_root: dg.ResourceParam[DataRoot],
) -> dg.RunRequest | dg.SkipReason:
    """Request one run of the maintenance."""
    if reason := skip_reason(data_root.store):
        return reason
    return dg.RunRequest()


defs = dg.Definitions(
    assets=[crawl_articles, feed_articles, training_export],
    asset_checks=[one.definition for one in CHECKS],
    sensors=[reconciling_sensor(one) for one in RULES],
    jobs=[maintain_corpus],
    schedules=[maintain_corpus_every_night],
)
