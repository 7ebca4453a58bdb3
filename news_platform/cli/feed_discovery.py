"""`news-platform rss discovery`: find feeds, register them, and follow the root's feeds.opml."""

import os
from collections.abc import Sequence
from pathlib import Path

import click

from news_platform.cli.options import (
    InputFile,
    emit,
    json_option,
    resources_for,
    root_option,
    with_takedowns,
)
from news_platform.errors import InputError
from news_platform.resources import Resources, discovery_options
from news_platform.rss import pipeline
from news_platform.rss.discovery.candidates import candidate_feeds, listed_feeds
from news_platform.rss.discovery.discover import DiscoveryReport, FeedAccess
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.feed_list import ListingReport, apply_listing
from news_platform.rss.feed_settings import feed_secrets
from news_platform.rss.ledger.feed_rows import feeds_to_check
from news_platform.storage.commit.root import RootAccess
from news_platform.takedowns.build_filters import cleaned_later
from news_platform.web.opml import opml_feeds
from news_platform.web.xml_damage import XmlDamage, xml_damage


@click.command()
@click.option("--feed", "feeds", multiple=True, help="URL of a feed or of a site; repeatable.")
@click.option(
    "--opml",
    type=InputFile(),
    help="OPML file that lists feeds.",
)
@root_option
@json_option
def discovery(feeds: tuple[str, ...], opml: Path | None, root: str, as_json: bool) -> None:
    """Register feeds that are fresh and in a wanted language.

    Without --feed and --opml, the candidates are the root's feeds.opml and the feeds that crawled
    pages link to.
    """
    listed, damage = _opml_feeds(opml) if opml else ((), None)
    named = (*feeds, *listed)
    # Without a named feed, the candidates come from a root that exists.
    resources = resources_for(root, RootAccess.CREATE if named else RootAccess.WRITE)
    candidates = named or _candidates(resources)
    # A person who names a feed wants it checked now, even if it was rejected yesterday.
    report = discover(resources, candidates, recheck=bool(named))
    listing = ListingReport() if named else _apply_listing(resources, report)
    verdicts = [(v.feed_url, v.outcome, v.notes) for v in report.verdicts]
    document = {
        "candidates": report.candidates,
        "opml_errors": damage.errors if damage else 0,
        "known": report.known,
        "added": report.added,
        "revived": report.revived,
        "retired": listing.retired,
        "restored": listing.restored,
        "outcomes": report.outcomes,
        "feeds": [{"feed_url": u, "outcome": o, "notes": n} for u, o, n in verdicts],
    }
    lines = [f"{outcome:<12} {url} {notes}".rstrip() for url, outcome, notes in verdicts]
    lines += [f"retired      {url} removed from feeds.opml" for url in listing.retired]
    lines += [f"restored     {url} listed in feeds.opml again" for url in listing.restored]
    lines.append(
        f"{report.candidates} candidates, {report.known} known, {report.added} added, "
        f"{report.revived} active again"
    )
    emit(document, as_json=as_json, text="\n".join(lines))
    # Scripts can see from the exit code whether a named feed was accepted.
    if named and not report.outcomes.get("active"):
        raise InputError("none of the named feeds was accepted: their verdicts above say why")


def _candidates(resources: Resources) -> tuple[str, ...]:
    """Return the feeds of the file and the crawl, and those that are to be checked again."""
    again = feeds_to_check(resources.ledger.engine, now=resources.clock.now())
    return tuple(dict.fromkeys((*candidate_feeds(resources.data_root.store), *again)))


def _apply_listing(resources: Resources, report: DiscoveryReport) -> ListingReport:
    listed = listed_feeds(resources.data_root.store)
    engine, now = resources.ledger.engine, resources.clock.now()
    return apply_listing(engine, listed, report.verdicts, now=now)


def _opml_feeds(file: Path) -> tuple[tuple[str, ...], XmlDamage | None]:
    """Return the feeds of a file, and its damage, which is said on standard error.

    Raise InputError if it lists none, for the root has its own.
    """
    thing = str(file)
    body = file.read_bytes()
    try:
        found = opml_feeds(body)
    except InputError as error:
        raise InputError(f"cannot read {thing!r}: {error}", thing=thing) from error
    if not found:
        raise InputError(f"{thing!r} lists no feeds: expected <outline xmlUrl=…>", thing=thing)
    if damage := xml_damage(body):
        click.echo(f"warning: {thing!r} has {damage}; {len(found)} feeds are read", err=True)
    return found, damage


def discover(
    resources: Resources, urls: Sequence[str], *, recheck: bool = False
) -> DiscoveryReport:
    """Check these feeds or sites and register them."""
    with cleaned_later(resources.data_root.store, WHOLE_LEDGER):
        return pipeline.run_discovery(
            resources.ledger.engine,
            urls,
            fetch=resources.web.fetch_options,
            options=with_takedowns(discovery_options(resources.settings.rss), resources),
            now=resources.clock.now(),
            recheck=recheck,
            access=FeedAccess(secrets=feed_secrets(os.environ)),
        )
