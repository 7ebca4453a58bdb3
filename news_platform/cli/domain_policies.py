"""`news-platform domains policy|history|bots|candidates|estimate`: what surveys found.

`domains.py` adds these commands to its group.
"""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from pathlib import Path

import click

from news_platform.cli.command import Output, command, show
from news_platform.cli.options import InputFile, count_type, json_option
from news_platform.domain_metadata.generated_research import (
    CATALOG_PATH,
    estimate_catalog,
    read_catalog,
)
from news_platform.domain_metadata.history import DomainHistory, read_history
from news_platform.domain_metadata.news_sitemaps import (
    fetch_candidates_over_web,
    read_news_sources,
)
from news_platform.domain_metadata.signals.statements import PURPOSES
from news_platform.domain_metadata.usage import UsagePolicy, usage_policy
from news_platform.errors import InputError
from news_platform.resources import Resources, candidate_options
from news_platform.rss import pipeline
from news_platform.rss.feeds import FeedEntry
from news_platform.rss.ledger.entries import add_sitemap_entries
from news_platform.rss.ledger.feed_rows import domains_with_feeds
from news_platform.storage.commit.root import RootAccess
from news_platform.web.robots import AI_BOTS, compare_bots, parse_bot_list
from news_platform.web.urls import registrable_domain

_SURVEYED_DAYS = 30


@command()
@click.argument("domain")
def history(resources: Resources, domain: str) -> Output:
    """Show every survey of a domain, and changes."""
    name = registrable_domain(domain)
    found = read_history(resources.data_root.store, name)
    if not found.surveys:
        cure = "see `news-platform domains status`, or add it with `domains import`"
        raise InputError(f"domain {name!r} has no survey in a daily table: {cure}", thing=name)
    return Output(asdict(found), "\n".join(_history_lines(found)))


@command()
@click.argument("domain")
@click.option("--bot", default="*", show_default=True, help="Crawler, as robots.txt names it.")
@click.option("--purpose", "purposes", multiple=True, help=f"One of {', '.join(PURPOSES)}.")
@click.option("--at", help="Day of the question, YYYY-MM-DD; default: now.")
@click.option("--path", default="/", show_default=True, help="Path of the site.")
def policy(
    resources: Resources,
    domain: str,
    bot: str,
    purposes: tuple[str, ...],
    at: str | None,
    path: str,
) -> Output:
    """Show whether a crawler may use a domain."""
    found = [
        usage_policy(domain, bot, purpose, root=resources.data_root.store, at=at, path=path)
        for purpose in purposes or PURPOSES
    ]
    return Output([asdict(one) for one in found], "\n".join(_policy_lines(found)))


@click.command()
@click.option("--compare", type=InputFile(), help="A newer list.")
@json_option
def bots(compare: Path | None, as_json: bool) -> None:
    """List the known AI crawlers.

    With --compare, show the differences to a newer list: JSON with the names as keys, a robots.txt,
    or text with one name per line.
    """
    if compare is None:
        lines = [f"{bot.name}  {bot.operator}  {bot.purpose}" for bot in AI_BOTS]
        output = Output([asdict(bot) for bot in AI_BOTS], "\n".join(lines))
    else:
        found = compare_bots(parse_bot_list(compare.read_bytes(), name=str(compare)))
        lines = [f"missing here: {name}" for name in found.missing]
        lines += [f"only here: {name}" for name in found.only_ours]
        output = Output(found._asdict(), "\n".join(lines) or "both lists are the same")
    show(output, as_json=as_json)


@command(access=RootAccess.WRITE)
@click.option(
    "--limit", type=count_type(1), default=50, show_default=True, help="Sitemaps to read."
)
@click.option("--add", is_flag=True, help="Add the pages to the articles to fetch.")
def candidates(resources: Resources, limit: int, add: bool) -> Output:
    """List the newest pages in surveyed news sitemaps.

    Domains with a feed are left out. With --add the pages wait for `rss work` like those of feeds.
    """
    now, engine = resources.clock.now(), resources.ledger.engine
    pipeline.ensure(engine, now=now)
    sources = read_news_sources(
        resources.data_root.store,
        since=str(now.date() - timedelta(days=_SURVEYED_DAYS)),
        skip=domains_with_feeds(engine),
    )
    options = replace(candidate_options(resources.settings.domain_metadata), max_sitemaps=limit)
    found = fetch_candidates_over_web(
        sources, web=resources.web.fetch_options, now=now, options=options
    )
    listed = (
        (one.sitemap_url, FeedEntry(one.url, one.title, one.published_at, one.url, ""))
        for one in found.candidates
    )
    added = add_sitemap_entries(engine, listed, now=now) if add else None
    document = {
        "sitemaps": len(sources),
        "outcomes": found.outcomes,
        "candidates": [
            {**asdict(one), "published_at": one.published_at.isoformat()}
            for one in found.candidates
        ],
        "new_articles": added.new if added else None,
    }
    lines = [
        f"{one.published_at:%Y-%m-%d %H:%M}  {one.url}  {one.title}".rstrip()
        for one in found.candidates
    ]
    lines.append(f"{len(found.candidates)} pages in {len(sources)} news sitemaps")
    if added:
        lines.append(f"added {added.new} articles, {added.known} were known")
    return Output(document, "\n".join(lines))


@command()
@click.option("--per-day", type=count_type(1), help="New domains per day; default: the setting.")
def estimate(resources: Resources, per_day: int | None) -> Output:
    """Estimate the survey of the crawl's domains.

    Nothing is requested. NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY=N starts the survey; try N here
    first.
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
    text = (
        f"{found.domains} new domains in {found.batches} batches: at most {found.requests} "
        f"requests and {found.files} files, about {found.hours} hours"
    )
    return Output(asdict(found), text)


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
