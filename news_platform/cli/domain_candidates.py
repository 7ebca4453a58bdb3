"""`news-platform domains candidates|estimate`: pages of news sitemaps, and the cost of a survey."""

from dataclasses import asdict, replace
from datetime import timedelta

import click

from news_platform.cli.options import count_type, emit, json_option, resources_for, root_option
from news_platform.domain_metadata.generated_research import (
    CATALOG_PATH,
    estimate_catalog,
    read_catalog,
)
from news_platform.domain_metadata.news_sitemaps import (
    ArticleCandidate,
    CandidateOptions,
    fetch_candidates_over_web,
    read_news_sources,
)
from news_platform.errors import InputError
from news_platform.rss import pipeline
from news_platform.rss.ledger.sitemap_entries import add_sitemap_pages, domains_with_feeds
from news_platform.storage.commit.root import RootAccess

_SURVEYED_DAYS = 30


@click.command()
@click.option(
    "--limit", type=count_type(1), default=50, show_default=True, help="Sitemaps to read."
)
@click.option("--add", is_flag=True, help="Add the pages to the articles to fetch.")
@root_option
@json_option
def candidates(limit: int, add: bool, root: str, as_json: bool) -> None:
    """List the newest pages in surveyed news sitemaps.

    Domains with a feed are left out. With --add the pages wait for `rss work` like those of feeds.
    """
    resources = resources_for(root, RootAccess.WRITE)
    now, engine = resources.clock.now(), resources.ledger.engine
    pipeline.ensure(engine, now=now)
    sources = read_news_sources(
        resources.data_root.store,
        since=str(now.date() - timedelta(days=_SURVEYED_DAYS)),
        skip=domains_with_feeds(engine),
    )
    options = replace(CandidateOptions.of(resources.settings.domain_metadata), max_sitemaps=limit)
    found = fetch_candidates_over_web(
        sources, web=resources.web.fetch_options, now=now, options=options
    )
    added = add_sitemap_pages(engine, found.candidates, now=now) if add else None
    document = {
        "sitemaps": len(sources),
        "outcomes": found.outcomes,
        "candidates": [
            {**asdict(one), "published_at": one.published_at.isoformat()}
            for one in found.candidates
        ],
        "new_articles": added.new if added else None,
    }
    lines = [_line(one) for one in found.candidates]
    lines.append(f"{len(found.candidates)} pages in {len(sources)} news sitemaps")
    if added:
        lines.append(f"added {added.new} articles, {added.known} were known")
    emit(document, as_json=as_json, text="\n".join(lines))


@click.command()
@click.option("--per-day", type=count_type(1), help="New domains per day; default: the setting.")
@root_option
@json_option
def estimate(per_day: int | None, root: str, as_json: bool) -> None:
    """Estimate the survey of the crawl's domains; ask nobody.

    With NEWS_PLATFORM_CATALOG_DOMAINS_PER_DAY=N they are surveyed; try N here first.
    """
    resources = resources_for(root)
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
    emit(asdict(found), as_json=as_json, text=text)


def _line(one: ArticleCandidate) -> str:
    return f"{one.published_at:%Y-%m-%d %H:%M}  {one.url}  {one.title}".rstrip()
