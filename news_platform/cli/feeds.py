"""`news-platform feeds`: list, add, set up, pause, remove, explain, import and export feeds.

`rss discovery`, which registers feeds in the same way, is defined here, too.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from pydantic import ValidationError

from news_platform.cli.command import (
    INPUT_FILE,
    OUTPUT_FILE,
    Decorated,
    Output,
    command,
    count_type,
    json_value,
    raw_option,
    table,
)
from news_platform.errors import InputError
from news_platform.resources import Resources, discovery_options
from news_platform.rss import pipeline
from news_platform.rss.discovery import DiscoveryOptions, DiscoveryReport, FeedAccess
from news_platform.rss.explain import explain_feed, rhythm_text
from news_platform.rss.export import WHOLE_LEDGER
from news_platform.rss.feed_admin import (
    PERSON,
    FeedFilter,
    FeedHistory,
    ListedFeed,
    feeds_as_csv,
    feeds_as_opml,
    find_feed,
    list_feeds,
    parse_feed_file,
    parse_header,
    pause_feed,
    read_history,
    remove_feed,
    resume_feed,
    set_up_feed,
)
from news_platform.rss.feed_alarms import AlarmOptions
from news_platform.rss.feed_list import (
    ListingReport,
    apply_listing,
    candidate_feeds,
    listed_feeds,
    retire_unlisted,
)
from news_platform.rss.feed_settings import (
    FeedSettings,
    feed_secrets,
    first_problem,
    parse_settings,
)
from news_platform.rss.ledger.feed_rows import POLLED, feeds_to_check, read_feed
from news_platform.storage.commit.root import RootAccess
from news_platform.takedowns.build_filters import cleaned_later, obeying
from news_platform.web.opml import XmlDamage, opml_feeds, xml_damage
from news_platform.web.urls import canonical_url

_FEED = click.argument("feed")
_force_option = click.option(
    "--force", is_flag=True, help="Also accept feeds that are old, undated or in other languages."
)


@click.group()
def feeds() -> None:
    """Add, pause, explain, import and export feeds."""


def _setting_options(command: Decorated) -> Decorated:
    """Add the options for the settings of one feed."""
    options: tuple[Callable[[Decorated], Decorated], ...] = (
        click.option("--group", help="Folder of the feed, such as Europe/Spain."),
        click.option("--interval", "interval_seconds", type=count_type(), help="Seconds, 0: usual"),
        click.option("--limit", "max_items", type=count_type(), help="New articles per poll."),
        click.option("--lang", "language", help="ISO 639-1 code; no detection."),
        click.option("--user-agent", help="Sent to the feed's own host."),
        click.option("--header", "headers", multiple=True, help="NAME: VALUE; repeatable."),
        click.option("--basic-auth", help="Variable FEED_SECRET_… that holds user:password."),
        click.option("--token", help="Variable FEED_SECRET_… that holds a bearer token."),
        click.option("--selector", "body_selector", help="CSS selector of the article's body."),
        click.option(
            "--feed-text/--no-feed-text",
            "feed_text_is_enough",
            default=None,
            help="Store the text of the feed and fetch no pages.",
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _own_settings(choice: Mapping[str, Any], before: FeedSettings) -> FeedSettings:
    """Return the settings with what was given; raise InputError for a wrong value."""
    given = {name: value for name, value in choice.items() if value is not None}
    given.pop("group", None)
    headers = given.pop("headers", ())
    if headers:
        given["headers"] = dict(map(parse_header, headers))
    if selector := given.get("body_selector"):
        from news_platform.rss.page_extraction import selected_text

        selected_text("<p>", selector)  # raises InputError for an invalid selector
    try:
        return FeedSettings.model_validate({**before.model_dump(), **given})
    except ValidationError as error:
        raise InputError(f"invalid {first_problem(error)}") from error


@command(feeds, "list")
@click.option("--status", default="", help="active, dead, gone, rejected, unreachable, …")
@click.option("--group", default="", help="This group and the groups below it.")
@click.option("--text", default="", help="Part of the URL or title.")
def list_(resources: Resources, status: str, group: str, text: str) -> Output:
    """List feeds with status, health and rhythm."""
    rows = list_feeds(resources.ledger.engine, FeedFilter(status, group, text))
    now = resources.clock.now()
    columns = ("status", "health_score", "feed_group", "feed_url", "may_miss_items")
    text = table(columns, ([getattr(row, name) for name in columns] for row in rows))
    return Output([_document(row, now=now) for row in rows], f"{text}\n{len(rows)} feeds")


def _document(row: sa.Row[Any], *, now: datetime) -> dict[str, Any]:
    """Return a feed for JSON: its columns, with its settings as an object."""
    document = {name: json_value(value) for name, value in row._mapping.items()}
    for name in ("own_settings", "claimed_until", "changed_seq", "seen_seq", "body_hash"):
        document.pop(name)
    document["settings"] = parse_settings(row.own_settings).model_dump(exclude_defaults=True)
    document["rhythm"] = rhythm_text(row, now=now)
    return document


@command(feeds)
@_FEED
def show(resources: Resources, feed: str) -> Output:
    """Show all facts about one feed."""
    engine = resources.ledger.engine
    row = find_feed(engine, feed)
    history = _history(read_history(engine, row.feed_url_canon))
    return Output({**_document(row, now=resources.clock.now()), **history})


def _history(history: FeedHistory) -> dict[str, Any]:
    names = ("polled_at", "outcome", "status_code", "items", "new_items", "updated_items", "notes")
    polls = [{name: json_value(getattr(poll, name)) for name in names} for poll in history.polls]
    return {"articles": history.articles, "article_errors": history.reasons, "polls": polls}


@command(feeds)
@_FEED
def why(resources: Resources, feed: str) -> Output:
    """Explain why nothing comes from a feed."""
    engine, now = resources.ledger.engine, resources.clock.now()
    row = find_feed(engine, feed)
    history = read_history(engine, row.feed_url_canon)
    found = explain_feed(row, history, alarms=AlarmOptions(), now=now)
    document = {"feed_url": row.feed_url, "status": row.status, **asdict(found)}
    document |= {"robots": history.robots, **_history(history)}
    lines = [
        f"{row.feed_url} is {row.status}, health {row.health_score}",
        *(f"- {reason}" for reason in found.reasons or ("nothing is wrong with it",)),
        f"rhythm: {found.rhythm}",
        f"next: {found.next_step}",
        "last polls:" if history.polls else "last polls: none",
        *(
            f"  {poll.polled_at:%Y-%m-%d %H:%M}  {poll.outcome:<14} {poll.status_code:>3}  "
            f"{poll.items} items, {poll.new_items} new"
            for poll in history.polls
        ),
    ]
    return Output(document, "\n".join(lines))


@command(feeds, access=RootAccess.CREATE)
@click.argument("urls", nargs=-1, required=True)
@_setting_options
@_force_option
def add(resources: Resources, urls: tuple[str, ...], force: bool, **choice: Any) -> Output:
    """Add feeds, or the feeds of sites, and check them."""
    own = _own_settings(choice, FeedSettings())
    listed = [ListedFeed(url, choice["group"] or "", settings=own) for url in urls]
    report = _register(resources, listed, force=force, recheck=True)
    failure = None
    if not report.outcomes.get("active"):
        failure = InputError("no feed was added: the reasons are above")
    return Output(_report_document(report), _report_text(report), failure)


@command(feeds, "import", access=RootAccess.CREATE)
@click.argument("file", type=INPUT_FILE)
@click.option("--group", default="", help="Folder for feeds that have none in the file.")
@_force_option
@click.option("--retire", is_flag=True, help="Retire feeds of feeds.opml that are not in the file.")
def import_(resources: Resources, file: Path, group: str, force: bool, retire: bool) -> Output:
    """Add the feeds of an OPML or CSV file."""
    try:
        listed = parse_feed_file(file.read_bytes(), is_csv=file.suffix.lower() == ".csv")
    except InputError as error:
        raise InputError(f"cannot read {str(file)!r}: {error}", thing=str(file)) from error
    grouped = [replace(feed, group=feed.group or group) for feed in listed]
    report = _register(resources, grouped, force=force, recheck=False)
    retired: tuple[str, ...] = ()
    if retire:
        engine, now = resources.ledger.engine, resources.clock.now()
        retired = retire_unlisted(engine, [feed.url for feed in listed], now=now)
    more = [f"retired      {url} not in the file" for url in retired]
    return Output({**_report_document(report), "retired": retired}, _report_text(report, more))


def _register(
    resources: Resources, listed: Sequence[ListedFeed], *, force: bool, recheck: bool
) -> DiscoveryReport:
    """Check feeds, register them, and write their groups and settings."""
    report = discover(
        resources,
        [feed.url for feed in listed],
        recheck=recheck,
        own={canonical_url(feed.url): feed.settings for feed in listed},
        options=replace(discovery_options(resources.settings.rss), accepts_any=force),
    )
    leads_to = {
        canonical_url(it.candidate_url): canonical_url(it.feed_url) for it in report.checked
    }
    for feed in listed:
        key = canonical_url(feed.url)
        _set_up(resources.ledger.engine, leads_to.get(key, key), feed)
    return report


def discover(
    resources: Resources,
    urls: Sequence[str],
    *,
    recheck: bool = False,
    own: Mapping[str, FeedSettings] | None = None,
    options: DiscoveryOptions | None = None,
) -> DiscoveryReport:
    """Check these feeds or sites and register them; `own` are the settings of single feeds."""
    store, now = resources.data_root.store, resources.clock.now()
    with cleaned_later(store, WHOLE_LEDGER):
        return pipeline.run_discovery(
            resources.ledger.engine,
            urls,
            fetch=resources.web.fetch_options,
            options=obeying(options or discovery_options(resources.settings.rss), store, now=now),
            now=now,
            recheck=recheck,
            access=FeedAccess(own or {}, feed_secrets(os.environ)),
        )


def _set_up(engine: sa.Engine, key: str, feed: ListedFeed) -> None:
    row = read_feed(engine, key)
    if row is None:
        return
    has_own = feed.settings != FeedSettings()
    set_up_feed(
        engine,
        key,
        settings=feed.settings if has_own else None,
        group=feed.group or None,
        # Feeds of the root's feeds.opml keep that origin.
        origin=PERSON if not row.origin else None,
    )
    if feed.status == "paused" and row.status in POLLED:
        pause_feed(engine, row)


def _report_document(report: DiscoveryReport) -> dict[str, Any]:
    return {
        "candidates": report.candidates,
        "known": report.known,
        "added": report.added,
        "revived": report.revived,
        "outcomes": report.outcomes,
        "feeds": [
            {"feed_url": one.feed_url, "outcome": one.outcome, "notes": one.notes}
            for one in report.checked
        ],
    }


def _report_text(report: DiscoveryReport, more: Sequence[str] = ()) -> str:
    lines = [f"{one.outcome:<12} {one.feed_url} {one.notes}".rstrip() for one in report.checked]
    counts = (
        f"{report.candidates} candidates, {report.known} known, {report.added} added, "
        f"{report.revived} active again"
    )
    return "\n".join([*lines, *more, counts])


# Without a named feed, the candidates come from a root that exists.
@command(access=lambda feeds, opml: RootAccess.CREATE if feeds or opml else RootAccess.WRITE)
@click.option("--feed", "feeds", multiple=True, help="URL of a feed or of a site; repeatable.")
@click.option("--opml", type=INPUT_FILE, help="OPML file that lists feeds.")
def discovery(resources: Resources, feeds: tuple[str, ...], opml: Path | None) -> Output:
    """Register fresh feeds in a wanted language.

    Without --feed and --opml, the candidates are the root's feeds.opml and the feeds that crawled
    pages link to.
    """
    listed, damage = _opml_feeds(opml) if opml else ((), None)
    named = (*feeds, *listed)
    # Named feeds are checked now, even if they were rejected yesterday.
    report = discover(resources, named or _candidates(resources), recheck=bool(named))
    listing = ListingReport() if named else _apply_listing(resources, report)
    document = {
        **_report_document(report),
        "opml_errors": damage.errors if damage else 0,
        "retired": listing.retired,
        "restored": listing.restored,
    }
    more = [f"retired      {url} removed from feeds.opml" for url in listing.retired]
    more += [f"restored     {url} listed in feeds.opml again" for url in listing.restored]
    failure = None
    # Scripts can see from the exit code whether a named feed was accepted.
    if named and not report.outcomes.get("active"):
        failure = InputError("none of the named feeds was accepted: the reasons are above")
    return Output(document, _report_text(report, more), failure)


def _candidates(resources: Resources) -> tuple[str, ...]:
    """Return the feeds of the file and the crawl, and those that are due for another check."""
    again = feeds_to_check(resources.ledger.engine, now=resources.clock.now())
    return tuple(dict.fromkeys((*candidate_feeds(resources.data_root.store), *again)))


def _apply_listing(resources: Resources, report: DiscoveryReport) -> ListingReport:
    listed = listed_feeds(resources.data_root.store)
    engine, now = resources.ledger.engine, resources.clock.now()
    return apply_listing(engine, listed, report.checked, now=now)


def _opml_feeds(file: Path) -> tuple[tuple[str, ...], XmlDamage | None]:
    """Return the feeds of a file and its damage, which is also printed as a warning.

    Raise InputError if it lists none: without named feeds, those of the root would be checked.
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


@command(feeds, "set", access=RootAccess.WRITE)
@_FEED
@_setting_options
def set_(resources: Resources, feed: str, **choice: Any) -> Output:
    """Change the settings of one feed.

    The values '' and 0 restore the default.
    """
    engine = resources.ledger.engine
    row = find_feed(engine, feed)
    own = _own_settings(choice, parse_settings(row.own_settings))
    set_up_feed(engine, row.feed_url_canon, settings=own, group=choice["group"])
    document = _stored_document(resources, row)
    text = f"{row.feed_url}: {document['settings'] or 'default settings'}"
    return Output(document, text)


def _stored_document(resources: Resources, row: sa.Row[Any]) -> dict[str, Any]:
    """Return a feed for JSON as it is stored after a change."""
    changed = find_feed(resources.ledger.engine, row.feed_url_canon)
    return _document(changed, now=resources.clock.now())


def _change(
    resources: Resources, feed: str, done: str, change: Callable[[sa.Engine, sa.Row[Any]], object]
) -> Output:
    row = find_feed(resources.ledger.engine, feed)
    change(resources.ledger.engine, row)
    return Output(_stored_document(resources, row), f"{done}: {row.feed_url}")


@command(feeds, access=RootAccess.WRITE)
@_FEED
def pause(resources: Resources, feed: str) -> Output:
    """Stop polling a feed until it is resumed."""
    return _change(resources, feed, "paused", pause_feed)


@command(feeds, access=RootAccess.WRITE)
@_FEED
def resume(resources: Resources, feed: str) -> Output:
    """Poll a paused, retired, dead or gone feed."""
    return _change(resources, feed, "resumed", resume_feed)


@command(feeds, access=RootAccess.WRITE)
@_FEED
def remove(resources: Resources, feed: str) -> Output:
    """Retire a feed; keep its articles and history.

    A feed that the root's feeds.opml lists stays removed until it is resumed.
    """
    now = resources.clock.now()
    return _change(resources, feed, "removed", partial(remove_feed, now=now))


@command(feeds)
@click.option("--format", "kind", type=click.Choice(["opml", "csv"]), help="Default: opml.")
@click.option("--status", default="", help="Only feeds with this status; default: polled ones.")
@click.option("--group", default="", help="This group and the groups below it.")
@raw_option
@click.option("--output", type=OUTPUT_FILE, help="Write an .opml or .csv file.")
def export(
    resources: Resources, kind: str | None, status: str, group: str, raw: bool, output: Path | None
) -> Output:
    """Write the feeds as OPML or CSV.

    In OPML, their groups are folders.
    """
    found = list_feeds(resources.ledger.engine, FeedFilter(status, group))
    rows = [row for row in found if status or row.status in (*POLLED, "paused")]
    suffix = output.suffix.lower().lstrip(".") if output else ""
    kind = kind or (suffix if suffix in ("opml", "csv") else "opml")
    text = feeds_as_csv(rows, raw=raw) if kind == "csv" else feeds_as_opml(rows)
    if output is None:
        now = resources.clock.now()
        return Output([_document(row, now=now) for row in rows], text.rstrip())
    output.write_text(text, encoding="utf-8")
    return Output({"feeds": len(rows), "output": str(output)})
