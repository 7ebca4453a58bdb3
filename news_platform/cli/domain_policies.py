"""`news-platform domains policy|history|bots`: what sites state about crawlers, and since when."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path

import click

from news_platform.cli.options import InputFile, emit, json_option, resources_for, root_option
from news_platform.domain_metadata.history import DomainHistory, read_history
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.usage import UsagePolicy, usage_policy
from news_platform.errors import InputError
from news_platform.web.ai_bots import AI_BOTS, compare_bots, parse_bot_list
from news_platform.web.urls import registrable_domain


@click.command()
@click.argument("domain")
@root_option
@json_option
def history(domain: str, root: str, as_json: bool) -> None:
    """Show every survey of DOMAIN and what changed in between."""
    store = resources_for(root).data_root.store
    name = registrable_domain(domain)
    found = read_history(store, name)
    if not found.surveys:
        cure = "see `news-platform domains status`, or add it with `domains import`"
        raise InputError(f"domain {name!r} has no survey in a daily table: {cure}", thing=name)
    emit(asdict(found), as_json=as_json, text="\n".join(_history_lines(found)))


@click.command()
@click.argument("domain")
@click.option("--bot", default="*", show_default=True, help="Crawler, as robots.txt names it.")
@click.option("--purpose", "purposes", multiple=True, help=f"One of {', '.join(PURPOSES)}.")
@click.option("--at", help="Day of the question, YYYY-MM-DD; default: now.")
@click.option("--path", default="/", show_default=True, help="Path of the site.")
@root_option
@json_option
def policy(
    domain: str,
    bot: str,
    purposes: tuple[str, ...],
    at: str | None,
    path: str,
    root: str,
    as_json: bool,
) -> None:
    """Show whether a crawler may use DOMAIN, and why."""
    store = resources_for(root).data_root.store
    found = [
        usage_policy(domain, bot, purpose, root=store, at=at, path=path)
        for purpose in purposes or PURPOSES
    ]
    emit([asdict(one) for one in found], as_json=as_json, text="\n".join(_policy_lines(found)))


@click.command()
@click.option("--compare", type=InputFile(), help="A newer list.")
@json_option
def bots(compare: Path | None, as_json: bool) -> None:
    """List the known AI crawlers, or compare with a newer list.

    The newer list is JSON with the names as keys, a robots.txt, or text with one name per line.
    """
    if compare is None:
        lines = [f"{bot.name}  {bot.operator}  {bot.purpose}" for bot in AI_BOTS]
        emit([asdict(bot) for bot in AI_BOTS], as_json=as_json, text="\n".join(lines))
        return
    found = compare_bots(parse_bot_list(compare.read_bytes(), name=str(compare)))
    lines = [f"missing here: {name}" for name in found.missing]
    lines += [f"only here: {name}" for name in found.only_ours]
    emit(found._asdict(), as_json=as_json, text="\n".join(lines) or "both lists are the same")


def _history_lines(found: DomainHistory) -> Iterable[str]:
    for row in found.surveys:
        verdicts = ", ".join(f"{one} {row[f'usage_{one}'] or 'unknown'}" for one in PURPOSES)
        yield f"{row['date']}: {row['outcome']}; {verdicts}"
        for change in found.changes:
            if change["date"] == row["date"]:
                what = change["label"] or change["bot"]
                yield f"  {change['signal']} {what}: {change['before']} -> {change['after']}"


def _policy_lines(found: Sequence[UsagePolicy]) -> Iterable[str]:
    for one in found:
        when = one.surveyed_at.date() if one.surveyed_at else "never"
        yield f"{one.purpose}: {one.verdict} (surveyed: {when})"
        for finding in one.statements:
            statement = finding.statement
            yield f"  {finding.effect}: {statement.raw} ({statement.source})"
