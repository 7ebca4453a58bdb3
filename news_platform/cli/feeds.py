"""`news-platform feeds`: list, add, set up, pause, remove, explain, import and export feeds."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, get_args
from urllib.parse import urlsplit

import click
import sqlalchemy as sa
from pydantic import ValidationError
from rich.console import Console
from rich.progress import Progress

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
from news_platform.composition.rss_stages import discover
from news_platform.errors import FetchError, InputError
from news_platform.resources import Resources
from news_platform.rss.discovery import CheckedFeed, DiscoveryReport, canonical_candidate
from news_platform.rss.explain import explain_feed, rhythm_text
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
from news_platform.rss.feed_list import retire_unlisted
from news_platform.rss.feed_settings import FeedSettings, first_problem, parse_settings
from news_platform.rss.ledger.feed_rows import (
    NOT_ACCEPTED,
    POLLED,
    FeedStatus,
    all_groups,
    read_feed,
)
from news_platform.storage.commit.root import RootAccess
from news_platform.text.readable import did_you_mean, number_of

_FEED = click.argument("feed")
# Reasons of a fetch that failed before any site was reached.
_NETWORK_REASONS = ("nxdomain", "dns", "network", "refused", "timeout")
_STATUS = click.Choice(get_args(FeedStatus))
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
@click.option("--status", type=_STATUS, help="Only feeds with this status.")
@click.option("--group", default="", help="This group and the groups below it.")
@click.option("--text", default="", help="Part of the URL or title.")
def list_(resources: Resources, status: str | None, group: str, text: str) -> Output:
    """List feeds with status, health and rhythm."""
    rows = _listed(resources.ledger.engine, FeedFilter(status or "", group, text))
    now = resources.clock.now()
    columns = ("status", "health_score", "feed_group", "feed_url", "may_miss_items")
    text = table(columns, ([getattr(row, name) for name in columns] for row in rows))
    return Output(
        [_document(row, now=now) for row in rows], f"{text}\n{number_of(len(rows), 'feed')}"
    )


def _listed(engine: sa.Engine, wanted: FeedFilter) -> list[sa.Row[Any]]:
    """Return the chosen feeds; raise InputError if the ledger does not know their group."""
    rows = list_feeds(engine, wanted)
    if wanted.group and not rows:
        known = all_groups(row.feed_group for row in list_feeds(engine, FeedFilter()))
        if wanted.group not in known:
            cure = did_you_mean(wanted.group, known)
            raise InputError(f"there is no group {wanted.group!r}: {cure}", thing=wanted.group)
    return rows


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
    found = explain_feed(row, history, now=now)
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
    for url in urls:
        if not urlsplit(url).hostname or not url.startswith(("http://", "https://")):
            expected = "expected the address of a feed or site, such as https://example.com/rss"
            raise InputError(f"invalid address {url!r}: {expected}", thing=url)
    own = _own_settings(choice, FeedSettings())
    listed = [ListedFeed(url, choice["group"] or "", settings=own) for url in urls]
    report = _register(resources, listed, force=force, recheck=True)
    failure = None
    if not report.outcomes.get("active"):
        failure = InputError("no feed was added: the reasons are above")
    return Output(report_document(report), report_text(report), failure)


@command(feeds, "import", access=RootAccess.CREATE)
@click.argument("file", type=INPUT_FILE)
@click.option("--group", default="", help="Folder for feeds that have none in the file.")
@_force_option
@click.option("--retire", is_flag=True, help="Retire feeds of feeds.opml that are not in the file.")
def import_(resources: Resources, file: Path, group: str, force: bool, retire: bool) -> Output:
    """Add the feeds of an OPML or CSV file.

    Feeds are stored as they are checked: a check that is stopped goes on when it is run again.
    """
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
    document = {**report_document(report), "retired": retired}
    return Output(document, report_text(report, more), _nothing_reached(report))


@command(feeds, access=RootAccess.WRITE)
@click.argument("named", metavar="[FEED]...", nargs=-1)
@_force_option
def recheck(resources: Resources, named: tuple[str, ...], force: bool) -> Output:
    """Check feeds again that were not accepted.

    Without FEED, all that are unreachable or rejected, and not only those that are due.
    """
    engine = resources.ledger.engine
    rows = [find_feed(engine, feed) for feed in named] or [
        row for status in NOT_ACCEPTED for row in list_feeds(engine, FeedFilter(status))
    ]
    listed = [ListedFeed(row.feed_url) for row in rows]
    report = _register(resources, listed, force=force, recheck=True)
    return Output(report_document(report), report_text(report), _nothing_reached(report))


def _nothing_reached(report: DiscoveryReport) -> FetchError | None:
    """Return the failure of a check in which no feed answered."""
    lost = report.outcomes.get("unreachable", 0)
    if not lost or lost < len(report.checked):
        return None
    reasons = Counter(one.notes.partition(":")[0] for one in report.checked)
    reason = reasons.most_common(1)[0][0]
    hint = "is the network down?" if reason in _NETWORK_REASONS else "the reasons are above"
    all_ = f"all {lost} feeds are" if lost > 1 else "the feed is"
    again = "they are checked again daily, or by `feeds recheck`"
    return FetchError(f"{all_} unreachable ({reason}: {hint}); {again}", reason=reason)


def _register(
    resources: Resources, listed: Sequence[ListedFeed], *, force: bool, recheck: bool
) -> DiscoveryReport:
    """Check feeds, register them, and write their groups and settings as it goes."""
    by_key = {canonical_candidate(feed.url): feed for feed in listed}
    with Progress(console=Console(stderr=True), transient=True) as progress:
        bar = progress.add_task("checking feeds", total=len(by_key))

        def set_up(checked: Sequence[CheckedFeed]) -> None:
            for one in checked:
                if feed := by_key.pop(canonical_candidate(one.candidate_url), None):
                    _set_up(resources.ledger.engine, canonical_candidate(one.feed_url), feed)
            progress.advance(bar, len(checked))

        report = discover(
            resources,
            [feed.url for feed in listed],
            recheck=recheck,
            own={key: feed.settings for key, feed in by_key.items()},
            accepts_any=force,
            on_registered=set_up,
        )
    for key, feed in by_key.items():  # those that were known
        _set_up(resources.ledger.engine, key, feed)
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
        # Feeds of the root's feeds.opml keep that origin.
        origin=PERSON if not row.origin else None,
    )
    if feed.status == "paused" and row.status in POLLED:
        pause_feed(engine, row)


def report_document(report: DiscoveryReport) -> dict[str, Any]:
    """Return what a discovery did, for JSON."""
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


def report_text(report: DiscoveryReport, more: Sequence[str] = ()) -> str:
    """Return what a discovery did, for people: a line per candidate, then the counts."""
    lines = [f"{one.outcome:<12} {one.feed_url} {one.notes}".rstrip() for one in report.checked]
    checked, known = len(report.checked), report.known
    counts = ", ".join(
        f"{count} {outcome.replace('_', ' ')}"
        for outcome, count in sorted(report.outcomes.items(), key=lambda it: (-it[1], it[0]))
    )
    summary = f"{checked} checked and stored{f': {counts}' if counts else ''}"
    summary += f"; {known} known before" if known else ""
    summary += f"; {report.added} added" if report.added else ""
    summary += f"; {report.revived} active again" if report.revived else ""
    return "\n".join([*lines, *more, summary])


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
@click.option("--status", type=_STATUS, help="Default: feeds that are polled.")
@click.option("--group", default="", help="This group and the groups below it.")
@raw_option
@click.option("--output", type=OUTPUT_FILE, help="Write an .opml or .csv file.")
def export(
    resources: Resources,
    kind: str | None,
    status: str | None,
    group: str,
    raw: bool,
    output: Path | None,
) -> Output:
    """Write the feeds as OPML or CSV.

    In OPML, their groups are folders.
    """
    found = _listed(resources.ledger.engine, FeedFilter(status or "", group))
    rows = [row for row in found if status or row.status in (*POLLED, "paused")]
    suffix = output.suffix.lower().lstrip(".") if output else ""
    kind = kind or (suffix if suffix in ("opml", "csv") else "opml")
    text = feeds_as_csv(rows, raw=raw) if kind == "csv" else feeds_as_opml(rows)
    if output is None:
        now = resources.clock.now()
        return Output([_document(row, now=now) for row in rows], text.rstrip())
    output.write_text(text, encoding="utf-8")
    return Output({"feeds": len(rows), "output": str(output)})
