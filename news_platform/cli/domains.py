"""`news-platform domains`: import research files, survey their domains, show the results."""

import time
import uuid
from collections.abc import Iterable
from dataclasses import asdict
from datetime import date
from pathlib import Path

import click

from news_platform.cli.command import Output, command, counted
from news_platform.cli.domain_policies import bots, candidates, estimate, history, policy
from news_platform.cli.options import InputFile
from news_platform.datasets.research_datasets import DomainQueueMessage, PartitionInfo
from news_platform.domain_metadata.consumer import SurveyReport
from news_platform.domain_metadata.generated_research import (
    is_research_json,
    list_as_research,
    write_resurvey_files,
)
from news_platform.domain_metadata.history import build_stale_tables
from news_platform.domain_metadata.pipeline import (
    QUEUE_DATASET,
    QueueReport,
    queue_batch,
    survey_over_web,
)
from news_platform.domain_metadata.queue import DomainQueue
from news_platform.domain_metadata.raw_files import import_file, misplaced_files, raw_batches
from news_platform.domain_metadata.results import read_metadata
from news_platform.domain_metadata.resurvey import (
    ResurveyPlan,
    plan_resurvey,
    write_plan,
)
from news_platform.errors import InputError
from news_platform.resources import Resources, resurvey_options, survey_options
from news_platform.storage.commit.markers import (
    read_inputs,
    read_markers,
    read_report,
    stale_partitions,
)
from news_platform.storage.commit.root import RootAccess
from news_platform.text.readable import as_day
from news_platform.web.opml import xml_damage
from news_platform.web.urls import registrable_domain


@click.group()
def domains() -> None:
    """Survey robots.txt, sitemaps and AI policies of domains."""


for _command in (history, policy, bots, candidates, estimate):
    domains.add_command(_command)


@command(domains, "import", access=RootAccess.CREATE)
@click.argument("files", nargs=-1, required=True, type=InputFile())
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
    line, a CSV, a list of ranks, or OPML.
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
                _warn_of_damage(file, body)
                body = list_as_research(body, batch, name=path.name, column=column)
            imported[file] = import_file(store, batch, name=path.name, body=body)
        except InputError as error:
            failed[file] = str(error)
    lines = [f"{file} -> {path}" for file, path in imported.items()]
    lines += [f"{file} failed: {reason}" for file, reason in failed.items()]
    document = {"batch": batch.key, "imported": imported, "failed": failed}
    return Output(document, "\n".join(lines), _failure(failed))


def _warn_of_damage(file: str, body: bytes) -> None:
    """Warn about a truncated OPML file; its readable part is imported."""
    if body.lstrip()[:1] == b"<" and (damage := xml_damage(body)):
        click.echo(f"warning: {file!r} has {damage}; its readable part is imported", err=True)


@command(domains, access=RootAccess.WRITE)
@click.option("--batch", "keys", multiple=True, help="Only this batch, `cc|category|YYYY-MM-DD`.")
def fetch(resources: Resources, keys: tuple[str, ...]) -> Output:
    """Queue new files and survey unfinished domains.

    With --batch, the stored results of the batch are checked too, and domains with missing or
    changed files are surveyed again.
    """
    chosen = tuple(PartitionInfo.parse(key).key for key in keys)
    known = {
        *raw_batches(resources.data_root.store),
        *DomainQueue(resources.ledger.engine).states(),
    }
    for key in chosen:
        if key not in known:
            cure = "list the batches with `domains status`, or import files with `domains import`"
            raise InputError(f"no such batch {key!r}: {cure}", thing=key)
    return _fetch(resources, chosen, also=chosen)


@command(domains, access=RootAccess.WRITE)
@click.argument("names", nargs=-1, metavar="[DOMAIN]...")
@click.option("--batch", "keys", multiple=True, help="All of a batch, `cc|category|YYYY-MM-DD`.")
@click.option("--due", is_flag=True, help="All domains whose next survey is due.")
@click.option("--date", "day", help="Day of the new survey, YYYY-MM-DD; today by default.")
def resurvey(
    resources: Resources, names: tuple[str, ...], keys: tuple[str, ...], due: bool, day: str | None
) -> Output:
    """Survey domains, a batch, or all due ones again.

    The results are stored in a batch of today. Earlier results stay unchanged, so that the days can
    be compared.
    """
    if not names and not keys and not due:
        raise click.UsageError("give a DOMAIN, a --batch or --due")
    if due and (names or keys or day):
        raise click.UsageError("--due cannot be used with DOMAIN, --batch or --date")
    if due:
        return _resurvey_due(resources)
    on = as_day(day) if day else resources.clock.now().date()
    messages = [*_messages_of(resources, names, before=on), *_messages_in(resources, keys)]
    offered = write_resurvey_files(messages, day=on, store=resources.data_root.store)
    return _fetch(resources, tuple(offered))


@command(domains)
@click.argument("domain")
def show(resources: Resources, domain: str) -> Output:
    """Show the newest facts about a domain."""
    name = registrable_domain(domain)
    for message in DomainQueue(resources.ledger.engine).messages_of(name):
        facts = read_metadata(resources.data_root.store, message.partition_info, name)
        if facts is not None:
            return Output(facts.model_dump(mode="json"))
    cure = "see `news-platform domains status`"
    raise InputError(f"domain {name!r} was not surveyed yet: {cure}", thing=name)


@command(domains)
def status(resources: Resources) -> Output:
    """Count the domains of every batch by outcome.

    Also list research files that are not queued yet or cannot be read.
    """
    queue = DomainQueue(resources.ledger.engine)
    states = {key: dict(found) for key, found in queue.states().items()}
    outcomes = {key: queue.outcomes(key) for key in states}
    waiting = list(_changed(resources, ()))
    not_read = {**_failed_files(resources), **misplaced_files(resources.data_root.store)}
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
    plan = _plan(resources)
    document = {
        "domains": plan.domains,
        "due": plan.due,
        "late": plan.late,
        "planned_today": plan.planned_before,
        "next": plan.by_country,
        "next_due_at": plan.next_due_at.isoformat() if plan.next_due_at else None,
    }
    text = (
        f"{plan.due} of {plan.domains} domains are due, {plan.late} of them late\n"
        f"planned today: {plan.planned_before}; next: {counted(plan.by_country) or 'none'}"
    )
    return Output(document, text)


def _plan(resources: Resources) -> ResurveyPlan:
    return plan_resurvey(
        store=resources.data_root.store,
        queue=DomainQueue(resources.ledger.engine),
        now=resources.clock.now(),
        options=resurvey_options(resources.settings.domain_metadata),
    )


def _resurvey_due(resources: Resources) -> Output:
    """Survey what is due within the budget of the day, and what an earlier plan left open."""
    queue = DomainQueue(resources.ledger.engine)
    offered = write_plan(_plan(resources), store=resources.data_root.store, queue=queue)
    today = str(resources.clock.now().date())
    waiting = (key for key in raw_batches(resources.data_root.store) if key.endswith(f"|{today}"))
    chosen = tuple(dict.fromkeys([*offered, *waiting]))
    if not chosen:
        return Output({"queued": [], "surveyed": []}, "no domain is due")
    return _fetch(resources, chosen)


def _fetch(resources: Resources, chosen: tuple[str, ...], *, also: tuple[str, ...] = ()) -> Output:
    """Queue and survey the chosen batches, or all; survey those of `also` even if finished."""
    queued = [_queue(resources, key) for key in _changed(resources, chosen)]
    keys = dict.fromkeys([*_unfinished(resources, chosen), *also])
    surveyed = [_survey(resources, key) for key in keys]
    build_stale_tables(resources.data_root.store)
    document = {
        "queued": [asdict(report) for report in queued],
        "surveyed": [asdict(report) for report in surveyed],
    }
    text = _fetch_text(queued, surveyed) or _nothing_to_do(resources)
    failed = {path: why for report in queued for path, why in report.failed.items()}
    return Output(document, text, _failure(failed))


def _messages_of(
    resources: Resources, names: tuple[str, ...], *, before: date
) -> Iterable[DomainQueueMessage]:
    """Yield the newest message about each domain, preferably from a day before `before`."""
    queue = DomainQueue(resources.ledger.engine)
    for domain in map(registrable_domain, names):
        found = queue.messages_of(domain)
        if not found:
            cure = "add it with `news-platform domains import`"
            raise InputError(f"domain {domain!r} is in no research file: {cure}", thing=domain)
        yield next((one for one in found if one.partition_info.date < before), found[0])


def _messages_in(resources: Resources, keys: tuple[str, ...]) -> Iterable[DomainQueueMessage]:
    for key in (PartitionInfo.parse(key).key for key in keys):
        found = DomainQueue(resources.ledger.engine).messages(key)
        if not found:
            cure = "list the batches with `domains status`"
            raise InputError(f"no such batch {key!r} in the queue: {cure}", thing=key)
        yield from found


def _changed(resources: Resources, chosen: tuple[str, ...]) -> Iterable[str]:
    """Yield the chosen batches, or all, whose research files changed since they were queued."""
    store = resources.data_root.store
    stale = stale_partitions(raw_batches(store), read_inputs(store, QUEUE_DATASET))
    return (key for key in sorted(stale) if not chosen or key in chosen)


def _unfinished(resources: Resources, chosen: tuple[str, ...]) -> Iterable[str]:
    for key, states in DomainQueue(resources.ledger.engine).states().items():
        if set(states) != {"done"} and (not chosen or key in chosen):
            yield key


def _queue(resources: Resources, key: str) -> QueueReport:
    return queue_batch(
        PartitionInfo.parse(key),
        store=resources.data_root.store,
        queue=DomainQueue(resources.ledger.engine),
        now=resources.clock.now(),
    )


def _survey(resources: Resources, key: str) -> SurveyReport:
    click.echo(f"surveying {key} ...", err=True)
    return survey_over_web(
        PartitionInfo.parse(key),
        web=resources.web.fetch_options,
        queue=DomainQueue(resources.ledger.engine),
        store=resources.data_root.store,
        clock=resources.clock.now,
        seconds=time.time,
        worker=uuid.uuid4().hex,
        options=survey_options(resources.settings.domain_metadata, resources.web),
    )


def _fetch_text(queued: list[QueueReport], surveyed: list[SurveyReport]) -> str:
    lines = [
        f"queued {report.batch}: {report.new_domains} new domains"
        + (f", records in quarantine: {counted(report.dropped)}" if report.dropped else "")
        for report in queued
    ]
    lines += [
        f"surveyed {report.batch}: {counted(report.outcomes) or 'no domains'}"
        for report in surveyed
    ]
    return "\n".join(lines)


def _nothing_to_do(resources: Resources) -> str:
    if DomainQueue(resources.ledger.engine).states():
        return "nothing to do: every domain has a final outcome"
    return "nothing to do: no research files; start with `news-platform domains import`"


def _failed_files(resources: Resources) -> dict[str, str]:
    """Return the research files that could not be queued, with the reason."""
    store, failed = resources.data_root.store, {}
    for marker in read_markers(store, QUEUE_DATASET).values():
        found = read_report(store, marker).get("failed")
        failed.update(found if isinstance(found, dict) else {})
    return failed


def _failure(failed: dict[str, str]) -> InputError | None:
    if not failed:
        return None
    path, reason = next(iter(failed.items()))
    return InputError(f"{len(failed)} files failed: {reason}", thing=path)
