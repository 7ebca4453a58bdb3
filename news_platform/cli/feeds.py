"""`news-platform feeds …`: list, add, set up, pause, remove, explain, import and export feeds."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import click
import sqlalchemy as sa
from pydantic import ValidationError

from news_platform.cli.options import (
    Command,
    InputFile,
    OutputFile,
    count_type,
    emit,
    json_option,
    resources_for,
    root_option,
    with_takedowns,
)
from news_platform.composition.newsroom_options import alarm_options
from news_platform.errors import InputError
from news_platform.resources import Resources, discovery_options
from news_platform.rss import pipeline
from news_platform.rss.discovery.discover import DiscoveryReport, FeedAccess
from news_platform.rss.feed_admin import (
    PERSON,
    FeedFilter,
    FeedHistory,
    find_feed,
    list_feeds,
    pause_feed,
    read_history,
    remove_feed,
    resume_feed,
    set_up_feed,
)
from news_platform.rss.feed_files import (
    ListedFeed,
    feeds_as_csv,
    feeds_as_opml,
    parse_feed_file,
    parse_header,
)
from news_platform.rss.feed_settings import (
    FeedSettings,
    feed_secrets,
    first_problem,
    parse_settings,
)
from news_platform.rss.feed_why import explain_feed, rhythm_text
from news_platform.rss.ledger.feed_rows import POLLED, read_feed
from news_platform.storage.commit.root import RootAccess
from news_platform.web.urls import canonical_url

_FEED = click.argument("feed")


@click.group()
def feeds() -> None:
    """Add, pause, explain, import and export feeds."""


def _setting_options(command: Command) -> Command:
    """Add the options for the settings of one feed."""
    options: tuple[Callable[[Command], Command], ...] = (
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

        selected_text("<p>", selector)  # raises InputError for a selector that is none
    try:
        return FeedSettings.model_validate({**before.model_dump(), **given})
    except ValidationError as error:
        raise InputError(f"invalid {first_problem(error)}") from error


@feeds.command("list")
@click.option("--status", default="", help="active, dead, gone, rejected, unreachable, …")
@click.option("--group", default="", help="This group and the groups below it.")
@click.option("--text", default="", help="Part of the URL or title.")
@root_option
@json_option
def list_(status: str, group: str, text: str, root: str, as_json: bool) -> None:
    """List feeds with status, health and rhythm."""
    resources = resources_for(root)
    rows = list_feeds(resources.ledger.engine, FeedFilter(status, group, text))
    now = resources.clock.now()
    lines = [f"{'status':<12}{'health':>6}  {'group':<20} feed", *(_line(row) for row in rows)]
    lines.append(f"{len(rows)} feeds")
    emit([_document(row, now=now) for row in rows], as_json=as_json, text="\n".join(lines))


def _line(row: sa.Row[Any]) -> str:
    marks = " (may miss items)" if row.may_miss_items else ""
    return f"{row.status:<12}{row.health_score:>6}  {row.feed_group:<20} {row.feed_url}{marks}"


def _document(row: sa.Row[Any], *, now: datetime) -> dict[str, Any]:
    """Return a feed for JSON: its columns, with its settings as an object."""
    document = {name: _json_value(value) for name, value in row._mapping.items()}
    for name in ("own_settings", "claimed_until", "changed_seq", "seen_seq", "body_hash"):
        document.pop(name)
    document["settings"] = parse_settings(row.own_settings).model_dump(exclude_defaults=True)
    document["rhythm"] = rhythm_text(row, now=now)
    return document


def _json_value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


@feeds.command()
@_FEED
@root_option
@json_option
def show(feed: str, root: str, as_json: bool) -> None:
    """Show all facts about one feed."""
    resources = resources_for(root)
    engine, now = resources.ledger.engine, resources.clock.now()
    row = find_feed(engine, feed)
    history = read_history(engine, row.feed_url_canon)
    document = {**_document(row, now=now), **_history(history)}
    lines = [f"{name:<20} {value}" for name, value in document.items() if value not in ("", None)]
    emit(document, as_json=as_json, text="\n".join(lines))


def _history(history: FeedHistory) -> dict[str, Any]:
    names = ("polled_at", "outcome", "status_code", "items", "new_items", "updated_items", "notes")
    polls = [{name: _json_value(getattr(poll, name)) for name in names} for poll in history.polls]
    return {"articles": history.articles, "article_errors": history.reasons, "polls": polls}


@feeds.command()
@_FEED
@root_option
@json_option
def why(feed: str, root: str, as_json: bool) -> None:
    """Explain why nothing comes from a feed."""
    resources = resources_for(root)
    engine, now = resources.ledger.engine, resources.clock.now()
    row = find_feed(engine, feed)
    history = read_history(engine, row.feed_url_canon)
    alarms = alarm_options(resources.settings)
    found = explain_feed(row, history, alarms=alarms, now=now)
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
    emit(document, as_json=as_json, text="\n".join(lines))


@feeds.command()
@click.argument("urls", nargs=-1, required=True)
@_setting_options
@click.option("--anyway", is_flag=True, help="Accept old, undated and foreign feeds, too.")
@root_option
@json_option
def add(urls: tuple[str, ...], anyway: bool, root: str, as_json: bool, **choice: Any) -> None:
    """Add feeds, or the feeds of sites, and check them now."""
    own = _own_settings(choice, FeedSettings())
    resources = resources_for(root, RootAccess.CREATE)
    listed = [ListedFeed(url, choice["group"] or "", settings=own) for url in urls]
    report = _register(resources, listed, anyway=anyway, recheck=True)
    _show_report(report, as_json=as_json)
    if not report.outcomes.get("active"):
        raise InputError("no feed was added: its verdict above says why")


def _register(
    resources: Resources, listed: Sequence[ListedFeed], *, anyway: bool, recheck: bool
) -> DiscoveryReport:
    """Check feeds, register them, and write their groups and settings."""
    engine = resources.ledger.engine
    options = replace(discovery_options(resources.settings.rss), accepts_any=anyway)
    own = {canonical_url(feed.url): feed.settings for feed in listed}
    report = pipeline.run_discovery(
        engine,
        [feed.url for feed in listed],
        fetch=resources.web.fetch_options,
        options=with_takedowns(options, resources),
        now=resources.clock.now(),
        recheck=recheck,
        access=FeedAccess(own, feed_secrets(os.environ)),
    )
    leads_to = {canonical_url(v.candidate_url): canonical_url(v.feed_url) for v in report.verdicts}
    for feed in listed:
        key = canonical_url(feed.url)
        _set_up(engine, leads_to.get(key, key), feed)
    return report


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
        # The file of the root stays the origin of what it lists.
        origin=PERSON if not row.origin else None,
    )
    if feed.status == "paused" and row.status in POLLED:
        pause_feed(engine, row)


def _show_report(report: DiscoveryReport, *, as_json: bool) -> None:
    found = [(one.feed_url, one.outcome, one.notes) for one in report.verdicts]
    document = {
        "candidates": report.candidates,
        "known": report.known,
        "added": report.added,
        "revived": report.revived,
        "outcomes": report.outcomes,
        "feeds": [{"feed_url": url, "outcome": word, "notes": why} for url, word, why in found],
    }
    lines = [f"{outcome:<12} {url} {notes}".rstrip() for url, outcome, notes in found]
    lines.append(f"{report.added} added, {report.revived} active again, {report.known} known")
    emit(document, as_json=as_json, text="\n".join(lines))


@feeds.command("set")
@_FEED
@_setting_options
@root_option
@json_option
def set_(feed: str, root: str, as_json: bool, **choice: Any) -> None:
    """Change the settings of one feed; '' or 0 restores the usual one."""
    resources = resources_for(root, RootAccess.WRITE)
    engine, now = resources.ledger.engine, resources.clock.now()
    row = find_feed(engine, feed)
    own = _own_settings(choice, parse_settings(row.own_settings))
    set_up_feed(engine, row.feed_url_canon, settings=own, group=choice["group"])
    document = _document(find_feed(engine, row.feed_url_canon), now=now)
    text = f"{row.feed_url}: {document['settings'] or 'the usual settings'}"
    emit(document, as_json=as_json, text=text)


@feeds.command()
@_FEED
@root_option
@json_option
def pause(feed: str, root: str, as_json: bool) -> None:
    """Stop polling a feed until it is resumed."""
    resources = resources_for(root, RootAccess.WRITE)
    row = find_feed(resources.ledger.engine, feed)
    pause_feed(resources.ledger.engine, row)
    _told(resources, row, f"paused: {row.feed_url}", as_json=as_json)


@feeds.command()
@_FEED
@root_option
@json_option
def resume(feed: str, root: str, as_json: bool) -> None:
    """Poll a paused, retired, dead or gone feed again."""
    resources = resources_for(root, RootAccess.WRITE)
    row = find_feed(resources.ledger.engine, feed)
    resume_feed(resources.ledger.engine, row)
    _told(resources, row, f"resumed: {row.feed_url}", as_json=as_json)


@feeds.command()
@_FEED
@root_option
@json_option
def remove(feed: str, root: str, as_json: bool) -> None:
    """Retire a feed; its articles and its history stay."""
    resources = resources_for(root, RootAccess.WRITE)
    row = find_feed(resources.ledger.engine, feed)
    is_listed = remove_feed(resources.ledger.engine, row, now=resources.clock.now())
    text = f"removed: {row.feed_url}"
    if is_listed:
        text += "\nthe root's feeds.opml still lists it; it stays removed until you resume it"
    _told(resources, row, text, as_json=as_json)


def _told(resources: Resources, row: sa.Row[Any], text: str, *, as_json: bool) -> None:
    now = resources.clock.now()
    document = _document(find_feed(resources.ledger.engine, row.feed_url_canon), now=now)
    emit(document, as_json=as_json, text=text)


@feeds.command("import")
@click.argument("file", type=InputFile())
@click.option("--group", default="", help="Folder for feeds that have none in the file.")
@click.option("--anyway", is_flag=True, help="Accept old, undated and foreign feeds, too.")
@root_option
@json_option
def import_(file: Path, group: str, anyway: bool, root: str, as_json: bool) -> None:
    """Add the feeds of an OPML or CSV file."""
    try:
        listed = parse_feed_file(file.read_bytes(), is_csv=file.suffix.lower() == ".csv")
    except InputError as error:
        raise InputError(f"cannot read {str(file)!r}: {error}", thing=str(file)) from error
    resources = resources_for(root, RootAccess.CREATE)
    grouped = [replace(feed, group=feed.group or group) for feed in listed]
    report = _register(resources, grouped, anyway=anyway, recheck=False)
    _show_report(report, as_json=as_json)


@feeds.command()
@click.option("--format", "kind", type=click.Choice(["opml", "csv"]), help="Default: opml.")
@click.option("--status", default="", help="Only feeds with this status; default: polled ones.")
@click.option("--group", default="", help="This group and the groups below it.")
@click.option("--output", type=OutputFile(), help="Write an .opml or .csv file.")
@root_option
@json_option
def export(
    kind: str | None, status: str, group: str, output: Path | None, root: str, as_json: bool
) -> None:
    """Write the feeds as OPML, with their groups as folders, or as CSV."""
    resources = resources_for(root)
    found = list_feeds(resources.ledger.engine, FeedFilter(status, group))
    rows = [row for row in found if status or row.status in (*POLLED, "paused")]
    suffix = output.suffix.lower().lstrip(".") if output else ""
    kind = kind or (suffix if suffix in ("opml", "csv") else "opml")
    text = feeds_as_csv(rows) if kind == "csv" else feeds_as_opml(rows)
    if output is not None:
        output.write_text(text, encoding="utf-8")
        document = {"feeds": len(rows), "output": str(output)}
        emit(document, as_json=as_json, text=f"{len(rows)} feeds in {output}")
        return
    now = resources.clock.now()
    emit([_document(row, now=now) for row in rows], as_json=as_json, text=text.rstrip())
