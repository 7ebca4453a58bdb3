"""`news-platform domains`: import research files, survey their domains, show the results."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import asdict
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import click
import polars as pl

from news_platform.cli.command import (
    DAY,
    INPUT_FILE,
    Output,
    command,
    count_type,
    counted,
    first_failure,
)
from news_platform.composition import survey_stages
from news_platform.datasets.domain_metadata import DomainMetadata
from news_platform.datasets.research_datasets import DomainQueueMessage, PartitionInfo
from news_platform.domain_metadata.changes import POLICY_WORDS
from news_platform.domain_metadata.consumer import SurveyReport
from news_platform.domain_metadata.generated_research import (
    CATALOG_PATH,
    estimate_catalog,
    is_research_json,
    list_as_research,
    read_catalog,
    write_resurvey_files,
)
from news_platform.domain_metadata.history import DomainHistory, build_stale_tables, read_history
from news_platform.domain_metadata.pipeline import (
    QUEUE_DATASET,
    queue_batch,
    refused_files,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file, misplaced_files, raw_batches
from news_platform.domain_metadata.results import read_metadata
from news_platform.domain_metadata.resurvey import (
    write_plan,
)
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.signals.verdict import EVERYBODY, Verdict
from news_platform.domain_metadata.usage import UsagePolicy, usage_policy
from news_platform.domain_metadata.verdicts import read_usage_verdicts
from news_platform.errors import InputError
from news_platform.resources import (
    Resources,
)
from news_platform.settings import Settings
from news_platform.storage.commit.markers import (
    read_inputs,
    stale_partitions,
)
from news_platform.storage.commit.root import RootAccess
from news_platform.takedowns.build_filters import read_hidden
from news_platform.text.readable import spreadsheet_cell
from news_platform.web.opml import xml_damage
from news_platform.web.robots import AI_BOTS
from news_platform.web.urls import registrable_domain


@click.group()
def domains() -> None:
    """Survey robots.txt, sitemaps and AI policies of domains."""


def _queue(resources: Resources) -> DomainQueue:
    return DomainQueue(resources.ledger.engine)


@command(domains, "import", access=RootAccess.CREATE)
@click.argument("files", nargs=-1, required=True, type=INPUT_FILE)
@click.option("--country", required=True, help="Two-letter country code.")
@click.option("--category", required=True, help="Category of the research: media, gov, ...")
@click.option("--date", "day", required=True, help="Day of the research, YYYY-MM-DD.")
@click.option("--column", help="Column of a CSV that holds the domain; default: `domain`, `url`.")
def import_(
    resources: Resources,
    files: tuple[Path, ...],
    country: str,
    category: str,
    day: str,
    column: str | None,
) -> Output:
    """Upload research files or lists of domains.

    They get the next free numbers; nothing is ever overwritten. A list is text with one domain per
    line, a CSV, JSON, a list of ranks, or OPML.
    """
    batch = PartitionInfo.of(country.lower(), category, day)
    store = resources.data_root.store
    imported: dict[str, str] = {}
    failed: dict[str, str] = {}
    for path in files:
        file = str(path)
        try:
            body = path.read_bytes()
            if column is not None or not is_research_json(body):
                if damage := xml_damage(body) if body.lstrip()[:1] == b"<" else None:
                    click.echo(f"warning: {file!r} has {damage}: the rest is imported", err=True)
                body = list_as_research(body, batch, name=path.name, column=column)
            imported[file] = import_file(store, batch, name=path.name, body=body)
        except InputError as error:
            failed[file] = str(error)
    lines = [f"{file} -> {path}" for file, path in imported.items()]
    lines += [f"{file} failed: {reason}" for file, reason in failed.items()]
    document = {"batch": batch.key, "imported": imported, "failed": failed}
    return Output(document, "\n".join(lines), first_failure(failed, "files"))


@command(domains, access=RootAccess.WRITE)
@click.option("--batch", "keys", multiple=True, help="Only this batch, `cc|category|YYYY-MM-DD`.")
def fetch(resources: Resources, keys: tuple[str, ...]) -> Output:
    """Queue new files and survey unfinished domains.

    With --batch, the stored results of the batch are checked too, and domains with missing or
    changed files are surveyed again.
    """
    chosen = _batches(keys, {*raw_batches(resources.data_root.store), *_queue(resources).states()})
    return _fetch(resources, chosen, also=chosen)


def _batches(keys: tuple[str, ...], known: Collection[str]) -> tuple[str, ...]:
    """Return the keys of batches as they are stored; raise InputError for an unknown one."""
    chosen = tuple(PartitionInfo.parse(key).key for key in keys)
    for key in chosen:
        if key not in known:
            cure = "list the batches with `domains status`, or import files with `domains import`"
            raise InputError(f"no such batch {key!r}: {cure}", thing=key)
    return chosen


@command(domains, access=RootAccess.WRITE)
@click.argument("names", nargs=-1, metavar="[DOMAIN]...")
@click.option("--batch", "keys", multiple=True, help="All of a batch, `cc|category|YYYY-MM-DD`.")
@click.option("--due", is_flag=True, help="All domains whose next survey is due.")
@click.option("--date", "day", type=DAY, help="Day of the new survey; today by default.")
def resurvey(
    resources: Resources, names: tuple[str, ...], keys: tuple[str, ...], due: bool, day: date | None
) -> Output:
    """Survey domains, a batch, or all due ones again.

    The results are stored in a batch of today. Earlier results stay unchanged, so that the days can
    be compared.
    """
    if not names and not keys and not due:
        raise click.UsageError("give a DOMAIN, a --batch or --due")
    if due:
        if names or keys or day:
            raise click.UsageError("--due cannot be used with DOMAIN, --batch or --date")
        return _resurvey_due(resources)
    on = day or resources.clock.now().date()
    messages = [*_messages_of(resources, names, before=on)]
    for key in _batches(keys, _queue(resources).states()):
        messages += _queue(resources).messages(key)
    offered = write_resurvey_files(messages, day=on, store=resources.data_root.store)
    return _fetch(resources, tuple(offered))


@command(domains)
@click.argument("domain")
def show(resources: Resources, domain: str) -> Output:
    """Show the newest facts about a domain."""
    name = registrable_domain(domain)
    if read_hidden(resources.data_root.store).covers_domain(name):
        raise InputError(f"domain {name!r} is taken down", thing=name)
    for message in _queue(resources).messages_of(name):
        facts = read_metadata(resources.data_root.store, message.partition_info, name)
        if facts is not None:
            return Output(facts.model_dump(mode="json"), "\n".join(_facts_lines(facts)))
    cure = "see `news-platform domains status`"
    raise InputError(f"domain {name!r} was not surveyed yet: {cure}", thing=name)


@command(domains)
def status(resources: Resources) -> Output:
    """Count the domains of every batch by outcome.

    Also list research files that are not queued yet or cannot be read.
    """
    queue, store = _queue(resources), resources.data_root.store
    states = {key: dict(found) for key, found in queue.states().items()}
    outcomes = {key: queue.outcomes(key) for key in states}
    waiting = list(_changed(resources, ()))
    not_read = {**refused_files(store), **misplaced_files(store)}
    lines = [f"{key}: {counted(found)}" for key, found in outcomes.items()]
    lines += [f"{key}: new research files; run `domains fetch` to queue them" for key in waiting]
    lines += [f"not read: {path}: {reason}" for path, reason in not_read.items()]
    batches = {key: {"states": states[key], "outcomes": outcomes[key]} for key in states}
    return Output(
        {"batches": batches, "not_queued": waiting, "not_read": not_read},
        "\n".join(lines) or "no batches yet: start with `news-platform domains import`",
    )


@command(domains, access=RootAccess.WRITE)
def due(resources: Resources) -> Output:
    """Count the domains whose next survey is due."""
    plan = survey_stages.resurvey_plan(resources)
    return Output(
        {
            "domains": plan.domains,
            "due": plan.due,
            "late": plan.late,
            "planned_today": plan.planned_before,
            "next": plan.by_country,
            "next_due_at": plan.next_due_at.isoformat() if plan.next_due_at else None,
        }
    )


def _resurvey_due(resources: Resources) -> Output:
    """Survey what is due within the budget of the day, and what an earlier plan left open."""
    store, plan = resources.data_root.store, survey_stages.resurvey_plan(resources)
    offered = write_plan(plan, store=store, queue=_queue(resources))
    today = str(resources.clock.now().date())
    waiting = (key for key in raw_batches(store) if key.endswith(f"|{today}"))
    chosen = tuple(dict.fromkeys([*offered, *waiting]))
    if not chosen:
        return Output({"queued": [], "surveyed": []}, "no domain is due")
    return _fetch(resources, chosen)


def _fetch(resources: Resources, chosen: tuple[str, ...], *, also: tuple[str, ...] = ()) -> Output:
    """Queue and survey the chosen batches, or all; survey those of `also` even if finished."""
    store, queue, now = resources.data_root.store, _queue(resources), resources.clock.now()
    queued = [
        queue_batch(PartitionInfo.parse(key), store=store, queue=queue, now=now)
        for key in _changed(resources, chosen)
    ]
    unfinished = (
        key
        for key, states in queue.states().items()
        if set(states) != {"done"} and (not chosen or key in chosen)
    )
    keys = dict.fromkeys([*unfinished, *also])
    surveyed = [_survey(resources, key) for key in keys]
    build_stale_tables(store)
    document = {
        "queued": [asdict(report) for report in queued],
        "surveyed": [asdict(report) for report in surveyed],
    }
    lines = [
        f"queued {report.batch}: {report.new_domains} new domains"
        + (f", records in quarantine: {counted(report.dropped)}" if report.dropped else "")
        for report in queued
    ]
    lines += [
        f"surveyed {report.batch}: {counted(report.outcomes) or 'no domains'}"
        for report in surveyed
    ]
    nothing = "nothing to do: every domain has a final outcome"
    if not queue.states():
        nothing = "nothing to do: no research files; start with `news-platform domains import`"
    failed = {path: why for report in queued for path, why in report.failed.items()}
    return Output(document, "\n".join(lines) or nothing, first_failure(failed, "files"))


def _messages_of(
    resources: Resources, names: tuple[str, ...], *, before: date
) -> Iterable[DomainQueueMessage]:
    """Yield the newest message about each domain, preferably from a day before `before`."""
    queue = _queue(resources)
    for domain in map(registrable_domain, names):
        found = queue.messages_of(domain)
        if not found:
            cure = "add it with `news-platform domains import`"
            raise InputError(f"domain {domain!r} is in no research file: {cure}", thing=domain)
        yield next((one for one in found if one.partition_info.date < before), found[0])


def _changed(resources: Resources, chosen: tuple[str, ...]) -> Iterable[str]:
    """Yield the chosen batches, or all, whose research files changed since they were queued."""
    store = resources.data_root.store
    stale = stale_partitions(raw_batches(store), read_inputs(store, QUEUE_DATASET))
    return (key for key in sorted(stale) if not chosen or key in chosen)


def _survey(resources: Resources, key: str) -> SurveyReport:
    click.echo(f"surveying {key} ...", err=True)
    return survey_stages.survey(resources, key, worker=uuid.uuid4().hex)


@command(domains)
@click.argument("domain")
def history(resources: Resources, domain: str) -> Output:
    """Show every survey of a domain, and changes."""
    name = registrable_domain(domain)
    found = read_history(resources.data_root.store, name)
    if not found.surveys:
        cure = "see `news-platform domains status`, or add it with `domains import`"
        raise InputError(f"domain {name!r} has no survey in a daily table: {cure}", thing=name)
    return Output(asdict(found), "\n".join(_history_lines(found)))


@command(domains)
@click.argument("domain")
@click.option("--bot", default="*", show_default=True, help="Crawler, as robots.txt names it.")
@click.option("--purpose", "purposes", multiple=True, help=f"One of {', '.join(PURPOSES)}.")
@click.option("--at", help="Day of the question, YYYY-MM-DD; default: now.")
@click.option("--path", help="Path of one page; default: the site as a whole.")
def policy(
    resources: Resources,
    domain: str,
    bot: str,
    purposes: tuple[str, ...],
    at: str | None,
    path: str | None,
) -> Output:
    """Show whether a crawler may use a domain."""
    found = [
        usage_policy(domain, bot, purpose, root=resources.data_root.store, at=at, path=path)
        for purpose in purposes or PURPOSES
    ]
    return Output([asdict(one) for one in found], "\n".join(_policy_lines(found)))


@command(domains)
@click.option("--domain", default="", help="Only this domain.")
@click.option("--bot", default="", help="Only this crawler, with what it shares with all (`*`).")
@click.option("--purpose", type=click.Choice(PURPOSES), help="Only this purpose.")
@click.option("--verdict", type=click.Choice(get_args(Verdict)), help="Only this verdict.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def verdicts(resources: Resources, domain: str, bot: str, as_csv: bool, **given: Any) -> Output:
    """Show what domains allow and refuse, since when.

    A crawler that a domain does not name is treated as `*`.
    """
    known = {one.name.lower() for one in AI_BOTS} | {EVERYBODY, ""}
    if bot.lower() not in known:
        near = get_close_matches(bot.lower(), known, n=1)
        cure = f"did you mean {near[0]!r}?" if near else "`domains bots` lists them"
        raise InputError(f"unknown crawler {bot!r}: {cure}", thing=bot)
    rows = read_usage_verdicts(
        resources.data_root.store, domain=domain and registrable_domain(domain), bot=bot, **given
    )
    cells = pl.col(pl.String).map_elements(spreadsheet_cell, return_dtype=pl.String)
    text = rows.with_columns(cells).write_csv().rstrip("\n") if as_csv else None
    return Output(rows.to_dicts(), text)


@command(domains, access=None)
def bots(_settings: Settings) -> Output:
    """List the known AI crawlers."""
    return Output([asdict(bot) for bot in AI_BOTS])


@command(domains, access=RootAccess.WRITE)
@click.option("--limit", type=count_type(1), default=50, show_default=True, help="Sitemaps.")
@click.option("--add", is_flag=True, help="Add the pages to the articles to fetch.")
def candidates(resources: Resources, limit: int, add: bool) -> Output:
    """List the newest pages in surveyed news sitemaps.

    Domains with a feed are left out. With --add the pages wait for `rss work` like those of feeds.
    """
    report = survey_stages.read_news_sitemaps(resources, limit=limit, add=add)
    document = {
        "sitemaps": report.sitemaps,
        "outcomes": report.found.outcomes,
        "candidates": [
            {**asdict(one), "published_at": one.published_at.isoformat()} for one in report.allowed
        ],
        "new_articles": report.added.new if report.added else None,
    }
    return Output(document)


@command(domains)
@click.option("--per-day", type=count_type(1), help="New domains per day; default: the setting.")
def estimate(resources: Resources, per_day: int | None) -> Output:
    """Estimate the survey of the crawl's domains.

    Nothing is requested: NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY=N starts the survey.
    """
    given, store = resources.settings.domain_metadata, resources.data_root.store
    if not store.exists(CATALOG_PATH):
        raise InputError("there is no domain_catalog yet: run `news-platform store build`")
    found = estimate_catalog(
        read_catalog(store),
        store=store,
        per_day=given.catalog_domains_per_day if per_day is None else per_day,
        concurrency=given.survey_concurrency,
    )
    return Output(asdict(found))


def _facts_lines(facts: DomainMetadata) -> Iterable[str]:
    """Yield what a person asks about a domain; the document has the rest."""
    surveyed = f"surveyed {facts.collected_at:%Y-%m-%d %H:%M}"
    batch = f"{facts.country}, {facts.category}"
    yield f"{facts.registrable_domain} ({batch}): {facts.outcome}, {surveyed}"
    for robots in (facts.robots, *facts.other_hosts):
        state = robots.unread or robots.error or f"HTTP {robots.status_code}"
        read = f", last read {robots.read_at:%Y-%m-%d}" if robots.read_at else ", never read"
        yield f"  robots.txt  {robots.final_url or robots.url}: {state}{read}"
    sitemap = facts.sitemap
    if sitemap.url:
        count = f"{sitemap.kind}, {sitemap.url_count} pages" if sitemap.exists else "none"
        yield f"  sitemap     {sitemap.url}: {count}"
    policy, usage = facts.ai_policy, facts.usage
    if policy:
        every = {EVERYBODY: policy.everyone, **policy.own}
        words = (f"{bot} {POLICY_WORDS.get(one, one)}" for bot, one in every.items())
        yield f"  access      {', '.join(words)}"
    if usage:
        yield f"  use         {', '.join(f'{name} {one}' for name, one in usage.verdicts.items())}"
        for one in usage.statements:
            yield f"    {one.system} {one.path}: {one.raw} ({one.source})"


def _history_lines(found: DomainHistory) -> Iterable[str]:
    for row in found.surveys:
        verdicts = ", ".join(f"{one} {row[f'usage_{one}'] or 'unknown'}" for one in PURPOSES)
        yield f"{row['date']}: {row['outcome']}; {verdicts}"
        for change in found.changes:
            if change["date"] == row["date"]:
                what = change["label"] or change["bot"]
                times = " -> ".join(str(change[one])[:10] for one in ("before_read_at", "read_at"))
                values = f"{change['before']} -> {change['after']}"
                yield f"  {change['signal']} {what}: {values} (read {times})"


def _policy_lines(found: Sequence[UsagePolicy]) -> Iterable[str]:
    for one in found:
        when = one.surveyed_at.date() if one.surveyed_at else "never"
        stale = ", stale" if one.is_stale else ""
        yield f"{one.purpose}: {one.verdict}{stale} (surveyed: {when})"
        for finding in one.statements:
            statement = finding.statement
            read = f", read {statement.read_at.date()}" if statement.read_at else ""
            yield f"  {finding.effect}: {statement.raw} ({statement.source}{read})"
