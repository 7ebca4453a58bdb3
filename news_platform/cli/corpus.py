"""`news-platform corpus`: build days of the corpus, keep its tables small, export selections."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import click

from news_platform.cli.command import (
    DAY,
    Output,
    allow_removal_option,
    command,
    count_type,
    redo_option,
)
from news_platform.composition.corpus_options import corpus_options, export_options, usage_rules
from news_platform.corpus.export.card import ExportManifest
from news_platform.corpus.export.filtering import (
    FORMATS,
    KEEPS,
    PRESETS,
    ExportSelection,
    FileFormat,
    UsageRule,
)
from news_platform.corpus.export.pipeline import ExportOptions, export_corpus
from news_platform.corpus.export.publish import replacing_folder
from news_platform.corpus.export.receipts import EarlierExports, manifest_differences
from news_platform.corpus.pipeline import (
    CorpusDay,
    build_crawl_day,
    build_feed_day,
    crawl_dataset,
    feed_dataset,
    outdated_crawl_days,
    wanted_feed_days,
)
from news_platform.corpus.rows import QUALITY_FLAGS
from news_platform.datasets.corpus import CRAWL_ARTICLES, DELTA_TABLES
from news_platform.datasets.feeds import CATEGORIES
from news_platform.domain_store.fragments import iter_warc_frames
from news_platform.errors import InputError
from news_platform.resources import Resources
from news_platform.storage.commit.markers import read_inputs, stale_partitions
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.delta import DeltaEngine
from news_platform.storage.engines import remove_gone
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.units import built_inputs, wanted_inputs


@click.group()
def corpus() -> None:
    """Build the corpus of articles and export selections of it."""


@command(corpus, access=RootAccess.WRITE)
@click.option("--day", "days", multiple=True, type=DAY, help="Only this day; repeatable.")
@redo_option("Build what is missing or changed; also what another version made; or every day.")
@allow_removal_option
def build(resources: Resources, days: tuple[date, ...], redo: str, allow_removal: bool) -> Output:
    """Build the days that are out of date.

    Days that have lost their inputs are removed. These are days of crawl_articles and
    feed_articles. Days given by --day are always built.
    """
    wanted, store = set(map(str, days)), resources.data_root.store
    for table in DELTA_TABLES:
        DeltaEngine(store, table).require_readable()
    removed = [
        {"day": day, "removed": table.name}
        for table in DELTA_TABLES
        for day in remove_gone(DeltaEngine(store, table), wanted or None, allowed=allow_removal)
    ]
    done = [report for report in _built(resources, wanted, redo) if report is not None]
    lines = [f"{one['day']}  removed from {one['removed']}" for one in removed]
    lines += [f"{one.day}  {one.articles:>9} articles of {one.pages} pages" for one in done]
    document = [*removed, *(asdict(report) for report in done)]
    return Output(document, "\n".join(lines) or "up to date")


def _built(resources: Resources, wanted: set[str], redo: str) -> list[CorpusDay | None]:
    store, options = resources.data_root.store, corpus_options(resources.settings.corpus)
    collected = wanted_inputs(store, CRAWL_ARTICLES, options)
    outdated = collected.keys() & outdated_crawl_days(store)
    more = {"missing": set(), "outdated": outdated, "all": collected.keys()}[redo]
    crawl = more | stale_partitions(collected, built_inputs(store, CRAWL_ARTICLES)).keys()
    feeds = stale_partitions(wanted_feed_days(store), read_inputs(store, "feed_articles"))
    rows = partial(iter_warc_frames, store)
    reports = [
        build_crawl_day(store, day, options=options, expired_rows=rows)
        for day in sorted(wanted or crawl)
    ]
    return reports + [
        build_feed_day(store, day, scratch=options.scratch) for day in sorted(wanted or feeds)
    ]


@command(corpus, access=RootAccess.WRITE)
def maintain(resources: Resources) -> Output:
    """Join small files and delete replaced ones.

    Replaced files stay for a grace period, because readers may still use them.
    """
    store, grace = resources.data_root.store, corpus_options(resources.settings.corpus).grace
    done = {
        dataset.table.name: asdict(dataset.maintain(grace))
        for dataset in (crawl_dataset(store), feed_dataset(store))
    }
    return Output(done)


@command(corpus)
@click.option("--output", required=True, type=click.Path(path_type=Path), help="Folder to write.")
@click.option("--from", "first", type=DAY, help="First day; default: the first one stored.")
@click.option("--to", "last", type=DAY, help="Last day; default: the last one stored.")
@click.option("--language", "languages", multiple=True, help="Only this language; repeatable.")
@click.option("--domain", "domains", multiple=True, help="Only this domain; repeatable.")
@click.option(
    "--category", "categories", multiple=True, type=click.Choice(CATEGORIES), help="Repeatable."
)
@click.option("--min-words", type=count_type(), default=0, help="Leave out shorter articles.")
@click.option(
    "--without",
    "without_flags",
    multiple=True,
    type=click.Choice(QUALITY_FLAGS),
    help="Leave out articles with this quality flag; repeatable.",
)
@click.option(
    "--keep", type=click.Choice(KEEPS), default="earliest", help="Which of the same text to keep."
)
@click.option(
    "--for",
    "use",
    type=click.Choice(tuple(PRESETS)),
    help="Leave out publishers who refuse this use to any crawler; default: training.",
)
@click.option(
    "--policy",
    "policies",
    multiple=True,
    help="Leave out publishers who refuse this use to one crawler, as GPTBot:ai_train; repeatable.",
)
@click.option("--no-policy", is_flag=True, help="Export also what publishers refuse.")
@click.option("--strict", is_flag=True, help="Also leave out publishers who state nothing.")
@click.option(
    "--format", "file_format", type=click.Choice(FORMATS), default="parquet", help="Of the files."
)
@click.option(
    "--except",
    "earlier",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Leave out what this earlier export holds, near-duplicates too; repeatable.",
)
@click.option(
    "--like",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help="Export the selection of this manifest.json again, and list what differs.",
)
def export(
    resources: Resources,
    output: Path,
    first: date | None,
    last: date | None,
    file_format: FileFormat,
    earlier: tuple[Path, ...],
    like: Path | None,
    **chosen: Any,
) -> Output:
    """Export a selection of the corpus to a folder.

    The folder gets shards, manifest.json and a dataset card. Each text is exported once. Paywalled
    articles and those of publishers who refuse the use to any crawler, at the fetch or now, are
    left out, and manifest.json counts what is left out by reason.
    """
    store = resources.data_root.store
    options = export_options(resources.settings.corpus, store)
    if like is not None:
        return _export_like(store, output, json.loads(like.read_text("utf-8")), options, earlier)
    selection = ExportSelection(
        days=_stored_days(store, first, last),
        rules=_chosen_rules(chosen),
        **chosen,
    )
    options = replace(options, file_format=file_format)
    manifest = _export(store, output, selection, options, earlier)
    return Output(manifest.as_json(), _summary(manifest, output))


def _export(
    store: ObjectStore,
    output: Path,
    selection: ExportSelection,
    options: ExportOptions,
    earlier: tuple[Path, ...],
) -> ExportManifest:
    held = EarlierExports(earlier) if earlier else None
    with replacing_folder(output) as folder:
        return export_corpus(store, folder, selection, replace(options, earlier=held))


def _export_like(
    store: ObjectStore,
    output: Path,
    wanted: Mapping[str, Any],
    options: ExportOptions,
    earlier: tuple[Path, ...],
) -> Output:
    """Export the selection of a manifest, and say in what the result differs from it."""
    try:
        given = dict(wanted["selection"])
        days = (date.fromisoformat(given.pop(name)) for name in ("first_day", "last_day"))
        given["days"] = _stored_days(store, *days)
        rules = usage_rules(tuple(_rule_text(text) for text in given.pop("rules")))
        selection = ExportSelection(rules=rules, **given)
        options = replace(options, file_format=wanted["format_of_files"])
    except (KeyError, TypeError, ValueError) as error:
        raise InputError(f"not the manifest of an export of this version: {error!r}") from error
    manifest = _export(store, output, selection, options, earlier)
    differ = manifest_differences(dict(wanted), manifest.as_json())
    lines = ["the same export" if not differ else "another export:", *differ]
    document = {"manifest": manifest.as_json(), "differences": differ}
    return Output(document, "\n".join([_summary(manifest, output), *lines]))


def _rule_text(text: str) -> str:
    """Return a rule as the command line writes it: a preset by its name alone."""
    name = text.partition(":")[0]
    return name if name in PRESETS else text


def _chosen_rules(chosen: dict[str, Any]) -> tuple[UsageRule, ...]:
    """Take the options about policies, and return the rules they mean; training is the default."""
    use, policies, no_policy = (chosen.pop(name) for name in ("use", "policies", "no_policy"))
    if no_policy and (use or policies or chosen["strict"]):
        raise click.UsageError("--no-policy exports everything: not with --for, --policy, --strict")
    if no_policy:
        return ()
    asked: tuple[str, ...] = (*((use,) if use else ()), *policies)
    return usage_rules(asked or ("training",))


def _stored_days(store: ObjectStore, first: date | None, last: date | None) -> list[str]:
    """Return the stored days between two days; raise InputError without any."""
    stored = {day for table in DELTA_TABLES for day in read_inputs(store, table.name)}
    start, end = str(first or date.min), str(last or date.max)
    days = sorted(day for day in stored if start <= day <= end)
    if not days:
        wanted = f"between {first or 'the beginning'} and {last or 'now'}"
        raise InputError(f"the corpus has no day {wanted}; run `news-platform corpus build` first")
    return days


def _summary(manifest: ExportManifest, output: Path) -> str:
    tokens = "" if manifest.tokens is None else f", {manifest.tokens:,} tokens"
    lines = [
        f"{manifest.rows:,} articles of {manifest.considered:,}{tokens} in {output}",
        *(f"  left out: {name:<22}{count:>9,}" for name, count in manifest.dropped.items()),
    ]
    return "\n".join(lines)
