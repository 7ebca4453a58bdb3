"""`news-platform stories` and `story`: what many outlets report, and how it went on."""

from collections.abc import Iterator
from dataclasses import asdict
from datetime import date

import click
import polars as pl

from news_platform.cli.command import DAY, Output, command, count_type
from news_platform.datasets.stories import COPY
from news_platform.errors import InputError
from news_platform.resources import Resources
from news_platform.storage.outlets import with_outlets
from news_platform.stories.reading import (
    ORDERS,
    chosen_stories,
    find_story,
    read_stories,
    read_timeline,
    stored_days,
    unknown_values,
)
from news_platform.stories.timeline import Timeline
from news_platform.text.readable import number_of

_SHOWN_ID = 12


@command()
@click.option("--day", type=DAY, help="Day of the articles; default: the newest.")
@click.option("--language", help="Only stories with an article in this language.")
@click.option("--domain", help="Only stories that this outlet reports, or one of country=GB.")
@click.option(
    "--sort",
    type=click.Choice(ORDERS),
    default="largest",
    show_default=True,
    help="Order of the stories.",
)
@click.option("--limit", type=count_type(1), default=20, show_default=True, help="Most stories.")
def stories(
    resources: Resources,
    day: date | None,
    language: str | None,
    domain: str | None,
    sort: str,
    limit: int,
) -> Output:
    """Show the stories of a day."""
    store = resources.data_root.store
    days = stored_days(store)
    chosen = day.isoformat() if day is not None else max(days, default="")
    if chosen not in days:
        message = f"no stories of {chosen or 'any day'}: materialize the asset `stories` first"
        raise InputError(message, thing=chosen)
    outlets = with_outlets(store, [domain] if domain else ())
    rows = read_stories(store, chosen)
    found = chosen_stories(rows, language=language or "", domains=outlets, sort=sort)
    for line in unknown_values(rows, language=language or "", domains=outlets):
        click.echo(line, err=True)
    found = found.head(limit)
    lines = [f"stories of {chosen}", "", *_story_lines(found)]
    return Output(found.to_dicts(), "\n".join(lines))


def _story_lines(rows: pl.DataFrame) -> Iterator[str]:
    yield f"{'id':<{_SHOWN_ID}}  {'articles':>8} {'reports':>7} {'outlets':>7}  languages  title"
    for row in rows.iter_rows(named=True):
        languages = ",".join(row["languages"])
        growing = " (growing)" if row["is_growing"] else ""
        yield (
            f"{row['story_id'][:_SHOWN_ID]}  {row['articles']:>8} {row['reports']:>7} "
            f"{row['outlets']:>7}  {languages:<9}  {row['title'] or ''}{growing}"
        )


@command()
@click.argument("story_id", metavar="ID")
def story(resources: Resources, story_id: str) -> Output:
    """Show how a story went on.

    It says who was first, what was new each day, and who copied whom.
    ID is the id of a story or its first letters, as `stories` shows them.
    """
    store = resources.data_root.store
    found = read_timeline(store, find_story(store, story_id))
    document = asdict(found)
    for day in document["days"]:
        for member in day["members"]:
            del member["text"]
    for member in (document["first"], *document["headlines"]):
        del member["text"]
    return Output(document, "\n".join(_timeline_lines(found)))


def _timeline_lines(found: Timeline) -> Iterator[str]:
    first = found.first
    yield f"story {found.story_id}"
    yield f"first: {first.domain}, {first.clock} {first.at:%Y-%m-%d %H:%M}: {first.title}"
    for day in found.days:
        reports = sum(one.role != COPY for one in day.members)
        yield ""
        articles = number_of(len(day.members), "article")
        yield f"{day.day}: {articles}, {number_of(reports, 'report')} of their own"
        for one in day.members:
            yield f"  {one.at:%H:%M}  {one.role:<10}  {one.language:<2}  {one.domain}: {one.title}"
        for news in day.sentences:
            yield f"  new at {news.at:%H:%M} by {news.domain}: {news.text}"
    if found.copied:
        yield ""
        for url, domains in found.copied:
            yield f"copied from {url}: {', '.join(domains)}"
    if found.silent_since:
        yield ""
        yield f"silent since {found.silent_since}"
