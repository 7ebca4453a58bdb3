"""The Dagster assets of the corpus: articles of the crawl and of feeds, and monthly exports."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any

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
    is_damaged,
    row_problems,
    source_pages,
)
from news_platform.corpus.crawl_pages import CorpusOptions
from news_platform.corpus.export.publish import MonthReport, build_month
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
from news_platform.defs.assets import Metadata, PartitionMetadata, dataset_asset, rebuild_rule
from news_platform.defs.checks import check
from news_platform.defs.metadata import languages_plot, markdown_table
from news_platform.defs.planning import Hold
from news_platform.defs.rebuild_rules import Fingerprints, Platform, unsettled
from news_platform.defs.sensors import nightly_job
from news_platform.domain_store.fragments import iter_warc_frames
from news_platform.near_duplicates.pipeline import expire_sketches
from news_platform.resources import Resources
from news_platform.storage.commit.markers import read_markers, read_report
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, wanted_inputs
from news_platform.takedowns.match import Takedowns

# Days in the plot of a day's page, the newest last.
_PLOTTED_DAYS = 14
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
    context: dg.AssetExecutionContext, config: CrawlArticlesConfig, platform: Platform
) -> PartitionMetadata:
    """Extract the articles of days of the crawl; each day is replaced in one step."""
    store, options = platform.data_root.store, corpus_options(platform.settings.corpus)
    for day in context.partition_keys:
        if not _is_due(store, day, options, config.redo):
            context.log.info("%s is up to date; choose redo: all to build it again", day)
            yield day, {"unchanged": True, "days_outdated": len(outdated_crawl_days(store))}
            continue
        report = build_crawl_day(
            store, day, options=options, expired_rows=partial(iter_warc_frames, store)
        )
        if report is not None:
            # Of the whole dataset: days that another version made.
            outdated = {"days_outdated": len(outdated_crawl_days(store))}
            yield day, _day_metadata(store, CRAWL_ARTICLES, report) | outdated


def _is_due(store: ObjectStore, day: str, options: CorpusOptions, redo: RebuildMode) -> bool:
    """Return whether a run builds a day; `redo` is the choice of the run config."""
    wanted = wanted_inputs(store, CRAWL_ARTICLES, options)
    if redo is RebuildMode.all or built_inputs(store, CRAWL_ARTICLES).get(day) != wanted.get(day):
        return True
    if redo is RebuildMode.outdated and day in outdated_crawl_days(store):
        return True
    return is_damaged(crawl_dataset(store), day)


@dataset_asset(FEED_ARTICLES)
def feed_articles(context: dg.AssetExecutionContext, platform: Platform) -> PartitionMetadata:
    """Replace days of the feeds' articles."""
    store, scratch = platform.data_root.store, platform.settings.corpus.scratch
    for day in context.partition_keys:
        report = build_feed_day(store, day, scratch=scratch)
        if report is not None:
            yield day, _day_metadata(store, FEED_ARTICLES, report)


@dataset_asset(TRAINING_EXPORT)
def training_export(context: dg.AssetExecutionContext, platform: Platform) -> Metadata:
    """Export a month as a new version."""
    store, settings = platform.data_root.store, platform.settings.corpus
    report = build_month(
        store,
        context.partition_key,
        selection=export_selection(settings),
        options=export_options(settings, store),
    )
    place = {"dagster/uri": store.uri(export_folder(context.partition_key))}
    return {**_export_metadata(report), **place}


def _day_metadata(store: ObjectStore, dataset: Dataset, report: CorpusDay) -> dict[str, Any]:
    """Return the metadata of a day of a table."""
    return {
        "dagster/partition_row_count": report.articles,
        "dagster/uri": store.uri(dataset.name),
        "pages": report.pages,
        "articles": report.articles,
        "article_share": round(report.article_share, 4),
        "words": report.words,
        "bytes": report.bytes,
        "bytes_share": round(report.bytes / max(report.source_bytes, 1), 4),
        "files": report.files,
        "dropped": markdown_table(("reason", "pages"), report.dropped.items()),
        "languages": markdown_table(("language", "articles"), report.languages.items()),
        "top_domains": markdown_table(("domain", "articles"), report.top_domains.items()),
        "languages_per_day": languages_plot(_languages(store, dataset.name, report.day)),
    }


def _languages(store: ObjectStore, asset: str, until: str) -> Mapping[date, Mapping[str, int]]:
    """Return the articles by language of the days up to this one that are built."""
    markers = read_markers(store, asset)
    shown = sorted(day for day in markers if day <= until)[-_PLOTTED_DAYS:]
    found: dict[date, Mapping[str, int]] = {}
    for day in shown:
        languages = read_report(store, markers[day]).get("languages")
        found[date.fromisoformat(day)] = languages if isinstance(languages, dict) else {}
    return found


def _export_metadata(report: MonthReport) -> dict[str, Any]:
    """Return the metadata of a monthly export; one without articles has only their number."""
    manifest = report.manifest
    if manifest is None:
        return {"dagster/partition_row_count": 0}
    tokens = {} if manifest.tokens is None else {"tokens": manifest.tokens}
    policies = (
        (rule, verdict, count)
        for rule, found in manifest.verdicts.items()
        for verdict, count in found.items()
    )
    languages = ((name, count, words) for name, (count, words) in manifest.languages.items())
    return {
        "dagster/partition_row_count": manifest.rows,
        "version": report.version or "",
        "articles": manifest.rows,
        "considered": manifest.considered,
        "exported_share": round(manifest.rows / max(manifest.considered, 1), 4),
        "domains": manifest.domains,
        "words": sum(shard.words for shard in manifest.shards),
        **tokens,
        "shards": len(manifest.shards),
        "bytes": sum(shard.bytes for shard in manifest.shards),
        "dropped": markdown_table(("reason", "articles"), manifest.dropped.items()),
        "policies": markdown_table(("crawler and purpose", "stated", "articles"), policies),
        "languages": markdown_table(("language", "articles", "words"), languages),
    }


def _redone(resources: Resources) -> Fingerprints:
    """Return the newest days that another version made, if the settings say so."""
    newest = resources.settings.ccnews.redo_newest_days
    days = outdated_crawl_days(resources.data_root.store, newest=newest) if newest > 0 else ()
    return dict.fromkeys(days, versions.CRAWL_ARTICLES)


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
    holds=unsettled(CRAWL_ARTICLES),
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


@check(CRAWL_ARTICLES, newest=_CHECKED_DAYS)
def every_page_is_counted(resources: Resources, key: str) -> Iterable[str]:
    """Articles and dropped pages of a day add up to the pages of raw_news, and few were lost.

    If red: raw_news changed since, and the sensor builds the day again; or the table was changed
    manually: materialize the day again. If the same pages have lost most of their articles, the
    pages of raw_news or the extractor are damaged: see what was dropped, and why.
    """
    store, options = resources.data_root.store, corpus_options(resources.settings.corpus)
    pages = source_pages(store, key, options)
    may_lack = bool(Takedowns.read(store, use="removal"))
    return count_problems(crawl_dataset(store), key, pages=pages, may_lack_pages=may_lack)


@check(CRAWL_ARTICLES, newest=_CHECKED_DAYS)
def every_article_has_text(resources: Resources, key: str) -> Iterable[str]:
    """Every article of the crawl has a text and an address of its own.

    If red: the table was changed manually or by another version; materialize the day again.
    """
    return row_problems(crawl_dataset(resources.data_root.store), key)


@check(FEED_ARTICLES, newest=_CHECKED_DAYS)
def every_feed_article_has_text(resources: Resources, key: str) -> Iterable[str]:
    """Every article of a feed has a text and an address of its own, and none is lost.

    If red: the table was changed manually or by another version; materialize the day again.
    """
    dataset = feed_dataset(resources.data_root.store)
    return [*row_problems(dataset, key), *count_problems(dataset, key, pages=None)]


@check(TRAINING_EXPORT)
def nothing_twice_or_refused(resources: Resources, key: str) -> Iterable[str]:
    """An export holds no text twice, none that is taken down, and none whose publisher refused.

    If red: do not pass the export on; materialize the month again.
    """
    store, settings = resources.data_root.store, resources.settings.corpus
    return export_problems(
        store, key, selection=export_selection(settings), options=export_options(settings, store)
    )


@dg.op(
    out=dg.Out(dg.Nothing),
    description="Joins small files of the corpus, and deletes files that were replaced more than "
    "seven days ago.",
)
def compact_corpus(context: dg.OpExecutionContext, platform: Platform) -> None:
    """Optimize and vacuum both tables, and delete sketches of texts that nothing meets again."""
    store, settings = platform.data_root.store, platform.settings.corpus
    done: dict[str, int] = {}
    for dataset in (crawl_dataset(store), feed_dataset(store)):
        counts = asdict(dataset.maintain(corpus_options(settings).grace))
        done |= {f"{dataset.table.name}_{what}": count for what, count in counts.items()}
    today = platform.clock.now().date()
    deleted = expire_sketches(store, days=settings.cluster_days, today=today)
    context.add_output_metadata({**done, "sketches_deleted": deleted})


maintain_corpus, maintain_corpus_every_night = nightly_job(
    compact_corpus,
    name="maintain_corpus",
    cron="10 3 * * *",
    description="Join small files of the corpus, and delete replaced ones.",
)
