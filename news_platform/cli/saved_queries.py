"""`news-platform rss alerts`: list and run the saved queries that notify."""

import os
from dataclasses import asdict

import click

from news_platform.cli.options import count_type, emit, json_option, resources_for, root_option
from news_platform.resources import Resources
from news_platform.rss.exports.selection import Selection, iter_articles
from news_platform.rss.saved_queries.delivery import match_counts
from news_platform.rss.saved_queries.matches import is_match
from news_platform.rss.saved_queries.pipeline import read_queries, run_saved_queries
from news_platform.rss.saved_queries.query_file import SavedQuery, webhook_variables
from news_platform.storage.commit.root import RootAccess


@click.group()
def alerts() -> None:
    """List, try and run saved queries."""


def _queries(resources: Resources) -> tuple[SavedQuery, ...]:
    return read_queries(resources.data_root.store, resources.settings.newsroom.saved_queries)


@alerts.command("list")
@root_option
@json_option
def list_queries(root: str, as_json: bool) -> None:
    """Show every saved query with its matches."""
    resources = resources_for(root)
    counts = match_counts(resources.ledger.engine)
    rows = [
        {
            "name": query.name,
            "matches": counts.get(query.name, (0, 0))[0],
            "waiting": counts.get(query.name, (0, 0))[1] if query.has_webhook else 0,
            "webhook": query.has_webhook,
            "feed": query.feed,
        }
        for query in _queries(resources)
    ]
    lines = [f"{row['name']:<24} {row['matches']} matches, {row['waiting']} wait" for row in rows]
    emit(rows, as_json=as_json, text="\n".join(lines) or "there are no saved queries")


@alerts.command("try")
@click.argument("name")
@click.option("--latest", type=count_type(1), default=1_000, help="Articles to compare.")
@root_option
@json_option
def try_query(name: str, latest: int, root: str, as_json: bool) -> None:
    """Show which of the latest articles the saved query NAME matches; nothing is sent."""
    resources = resources_for(root)
    named = [query for query in _queries(resources) if query.name == name]
    if not named:
        raise click.BadParameter(f"there is no saved query {name!r}", param_hint="NAME")
    rows = [
        {"row_id": row.row_id, "title": row.title, "url": row.article_url_canon}
        for row in iter_articles(resources.ledger.engine, Selection(limit=latest))
        if is_match(named[0], row)
    ]
    text = "\n".join(f"{row['title']} {row['url']}" for row in rows)
    emit(rows, as_json=as_json, text=text or "no match")


@alerts.command("run")
@root_option
@json_option
def run_queries(root: str, as_json: bool) -> None:
    """Find new matches, deliver what is due, and write the feeds."""
    resources = resources_for(root, RootAccess.WRITE)
    report = run_saved_queries(
        resources.ledger.engine,
        resources.data_root.store,
        path=resources.settings.newsroom.saved_queries,
        variables=webhook_variables(os.environ),
        clock=resources.clock.now,
    )
    text = (
        f"{report.queries} queries: {sum(report.found.matches.values())} new matches, "
        f"{report.delivery.delivered} delivered, {report.delivery.failed} failed"
    )
    emit(asdict(report), as_json=as_json, text=text)
