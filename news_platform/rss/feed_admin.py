"""What a person does with feeds: list and find them, pause, resume and remove them, set them up."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from news_platform.errors import InputError
from news_platform.rss.discovery import ACCEPTABLE, REMOVED
from news_platform.rss.feed_list import OPML
from news_platform.rss.feed_settings import (
    FeedSettings,
    first_problem,
    parse_settings,
    settings_text,
)
from news_platform.rss.ledger.feed_rows import (
    NOT_ACCEPTED,
    POLLED,
    RESUMED,
    in_group,
    read_feed,
    upsert_feed,
)
from news_platform.rss.ledger.tables import FEED_POLLS, FEEDS, RAW
from news_platform.rss.ledger.transactions import write_transaction
from news_platform.storage.sql.engine import read_transaction
from news_platform.text.readable import plain_cell, spreadsheet_cell
from news_platform.web.opml import OpmlFeed, opml_document, opml_entries
from news_platform.web.urls import canonical_url

PERSON = "person"
# So many feeds are named when a text fits more than one.
_SHOWN = 5


@dataclass(frozen=True, slots=True)
class FeedFilter:
    """Which feeds to list; '' means any. A group includes the groups below it."""

    status: str = ""
    group: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class FeedHistory:
    """The last polls of a feed, newest first, and its articles by status and by reason."""

    polls: Sequence[sa.Row[Any]]
    articles: Mapping[str, int]
    reasons: Mapping[str, int]
    robots: Mapping[str, int]


def list_feeds(engine: sa.Engine, wanted: FeedFilter) -> list[sa.Row[Any]]:
    """Return the rows of feeds by group and URL."""
    conditions = []
    if wanted.status:
        conditions.append(FEEDS.c.status == wanted.status)
    if wanted.group:
        conditions.append(in_group(wanted.group))
    if wanted.text:
        conditions.append(_contains(wanted.text))
    chosen = sa.select(FEEDS).where(*conditions)
    with read_transaction(engine) as connection:
        ordered = chosen.order_by(FEEDS.c.feed_group, FEEDS.c.feed_url_canon)
        return list(connection.execute(ordered))


def find_feed(engine: sa.Engine, named: str) -> sa.Row[Any]:
    """Return the feed of a URL, or the only one whose URL or title contains a text.

    Raise InputError if there is none, or more than one.
    """
    row = read_feed(engine, canonical_url(named)) or read_feed(engine, named)
    if row is not None:
        return row
    found = list_feeds(engine, FeedFilter(text=named))
    if len(found) == 1:
        return found[0]
    if not found:
        message = f"there is no feed {named!r}: `feeds list` shows all, `feeds add` adds one"
        raise InputError(message, thing=named)
    urls = ", ".join(one.feed_url for one in found[:_SHOWN])
    raise InputError(f"{named!r} fits {len(found)} feeds, such as {urls}", thing=named)


def read_history(engine: sa.Engine, feed_url_canon: str, *, limit: int = 10) -> FeedHistory:
    """Return the last polls of a feed and what became of the articles that it found first."""
    polls = sa.select(FEED_POLLS).where(FEED_POLLS.c.feed_url == feed_url_canon)
    newest = polls.order_by(FEED_POLLS.c.polled_at.desc(), FEED_POLLS.c.id.desc()).limit(limit)
    is_here = RAW.c.feed_url == feed_url_canon
    open_ones = (is_here, RAW.c.error_msg != "", RAW.c.status != "stored")
    with read_transaction(engine) as connection:
        rule = RAW.c.robots_rule + sa.literal(" in ") + RAW.c.robots_file
        is_closed = (is_here, RAW.c.status == "skipped", RAW.c.robots_file != "")
        return FeedHistory(
            polls=connection.execute(newest).all(),
            articles=_counts(connection, RAW.c.status, is_here),
            reasons=_counts(connection, RAW.c.error_msg, *open_ones),
            robots=_counts(connection, rule, *is_closed),
        )


def _counts(
    connection: sa.Connection,
    column: sa.ColumnElement[str],
    *conditions: sa.ColumnElement[bool],
) -> dict[str, int]:
    count = sa.func.count()
    chosen = sa.select(column, count).where(*conditions).group_by(column)
    ordered = chosen.order_by(count.desc(), column).limit(_SHOWN)
    return {value: number for value, number in connection.execute(ordered)}


def pause_feed(engine: sa.Engine, row: sa.Row[Any]) -> None:
    """Stop polling a feed until a person resumes it; raise InputError if it is not polled."""
    if row.status not in POLLED:
        raise InputError(f"{row.feed_url!r} is {row.status} and not polled", thing=row.feed_url)
    _update(engine, row.feed_url_canon, status="paused")


def resume_feed(engine: sa.Engine, row: sa.Row[Any]) -> None:
    """Poll a paused, retired, dead or gone feed again, at once.

    Raise InputError for a feed that discovery did not accept.
    """
    if row.status in NOT_ACCEPTED:
        cure = f"`feeds recheck {row.feed_url}` looks at it again"
        if row.verdict in ACCEPTABLE:
            cure = f"`feeds add {row.feed_url} --force` accepts it"
        message = f"{row.feed_url!r} is {row.status} ({row.verdict}): {cure}"
        raise InputError(message, thing=row.feed_url)
    _update(engine, row.feed_url_canon, remark="", **RESUMED)


def remove_feed(engine: sa.Engine, row: sa.Row[Any], *, now: datetime) -> bool:
    """Retire a feed with its history; return whether the root's file still lists it."""
    values = {"status": "retired", "verdict": REMOVED, "checked_at": now}
    _update(engine, row.feed_url_canon, remark="removed by a person", **values)
    return bool(row.origin.startswith(f"{OPML} "))


def set_up_feed(
    engine: sa.Engine,
    feed_url_canon: str,
    *,
    settings: FeedSettings | None = None,
    group: str | None = None,
    origin: str | None = None,
) -> None:
    """Write the settings, the group and the origin of a feed, as far as they are given."""
    values: dict[str, Any] = {}
    if settings is not None:
        values["own_settings"] = settings_text(settings)
        # What was read under other settings must not count as known.
        values |= {"etag": "", "last_modified": "", "body_hash": "", "next_poll_at": None}
        if settings.language:
            values["lang"] = settings.language
    if group is not None:
        values["feed_group"] = group
    if origin is not None:
        values["origin"] = origin
    if values:
        _update(engine, feed_url_canon, **values)


def _update(engine: sa.Engine, feed_url_canon: str, **values: Any) -> None:
    with write_transaction(engine) as transaction:
        upsert_feed(transaction, feed_url_canon, **values)


def _contains(text: str) -> sa.ColumnElement[bool]:
    url = FEEDS.c.feed_url_canon.icontains(text, autoescape=True)
    return sa.or_(url, FEEDS.c.title.icontains(text, autoescape=True))


# The columns of a CSV file; only the first is needed. `lang` is what was found and is not read
# back, unlike `language`, which a person has set.
COLUMNS = ("feed_url", "title", "group", "lang", "status", *FeedSettings.model_fields)
_OWN = tuple(name for name in FeedSettings.model_fields if name != "headers")


@dataclass(frozen=True, slots=True)
class ListedFeed:
    """One feed of a file; `status` is '' or, of a file of ours, what it was when exported."""

    url: str
    group: str = ""
    status: str = ""
    settings: FeedSettings = field(default_factory=FeedSettings)


def parse_feed_file(body: bytes, *, is_csv: bool) -> tuple[ListedFeed, ...]:
    """Return the feeds of a file, each once; raise InputError if it lists none or is damaged."""
    found = tuple(_csv_feeds(body)) if is_csv else _opml_feeds(body)
    by_url: dict[str, ListedFeed] = {}
    for feed in found:
        by_url.setdefault(feed.url, feed)
    if not by_url:
        expected = "a column feed_url" if is_csv else "<outline xmlUrl=…>"
        raise InputError(f"the file lists no feeds: expected {expected}")
    return tuple(by_url.values())


def _opml_feeds(body: bytes) -> tuple[ListedFeed, ...]:
    return tuple(ListedFeed(feed.url, feed.group) for feed in opml_entries(body))


def _csv_feeds(body: bytes) -> Iterator[ListedFeed]:
    text = body.decode("utf-8-sig", errors="replace")
    reader = csv.DictReader(io.StringIO(text, newline=""))
    names = [name.strip() for name in reader.fieldnames or ()]
    if unknown := [name for name in names if name not in COLUMNS]:
        raise InputError(f"unknown column {unknown[0]!r}: expected {', '.join(COLUMNS)}")
    try:
        for row in reader:
            given = {key.strip(): value.strip() for key, value in row.items() if key and value}
            cells = {key: plain_cell(value) for key, value in given.items()}
            if url := cells.get("feed_url"):
                yield _csv_feed(url, cells, line=reader.line_num)
    except csv.Error as error:
        raise InputError(f"cannot read line {reader.line_num} as CSV: {error}") from error


def _csv_feed(url: str, cells: dict[str, str], *, line: int) -> ListedFeed:
    own: dict[str, Any] = {name: cells[name] for name in _OWN if name in cells}
    if "headers" in cells:
        own["headers"] = dict(map(parse_header, cells["headers"].split(";")))
    try:
        settings = FeedSettings.model_validate(own)
    except ValidationError as error:
        raise InputError(f"line {line}, column {first_problem(error)}") from error
    return ListedFeed(url, cells.get("group", ""), cells.get("status", ""), settings)


def parse_header(text: str) -> tuple[str, str]:
    """Return name and value of a header such as `X-Key: abc`; raise InputError otherwise."""
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise InputError(f"invalid header {text!r}: expected NAME: VALUE", thing=text)
    return name.strip(), value.strip()


def feeds_as_csv(rows: Iterable[sa.Row[Any]], *, raw: bool = False) -> str:
    """Return a CSV file of rows of Feeds; secrets are in it by name only.

    With `raw`, a title that a spreadsheet would run as a formula is written as it is.
    """
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        own = parse_settings(row.own_settings).model_dump(exclude_defaults=True)
        if "headers" in own:
            own["headers"] = ";".join(f"{key}: {value}" for key, value in own["headers"].items())
        about = {"title": row.title, "group": row.feed_group, "lang": row.lang}
        cells = {"feed_url": row.feed_url, "status": row.status, **about, **own}
        writer.writerow(cells if raw else {k: spreadsheet_cell(v) for k, v in cells.items()})
    return out.getvalue()


def feeds_as_opml(rows: Iterable[sa.Row[Any]]) -> str:
    """Return an OPML file of rows of Feeds, with their groups as folders."""
    return opml_document(OpmlFeed(row.feed_url, row.title, row.feed_group) for row in rows)
