"""Lists of feeds as OPML or CSV files in, feeds with their groups and settings out; and back."""

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from news_platform.errors import InputError
from news_platform.rss.feed_settings import FeedSettings, first_problem, parse_settings
from news_platform.web.opml import OpmlFeed, opml_document, opml_entries

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
            cells = {key.strip(): value.strip() for key, value in row.items() if key and value}
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


def feeds_as_csv(rows: Iterable[sa.Row[Any]]) -> str:
    """Return a CSV file of rows of Feeds; secrets are in it by name only."""
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for row in rows:
        own = parse_settings(row.own_settings).model_dump(exclude_defaults=True)
        if "headers" in own:
            own["headers"] = ";".join(f"{key}: {value}" for key, value in own["headers"].items())
        about = {"title": row.title, "group": row.feed_group, "lang": row.lang}
        writer.writerow({"feed_url": row.feed_url, "status": row.status, **about, **own})
    return out.getvalue()


def feeds_as_opml(rows: Iterable[sa.Row[Any]]) -> str:
    """Return an OPML file of rows of Feeds, with their groups as folders."""
    return opml_document(OpmlFeed(row.feed_url, row.title, row.feed_group) for row in rows)
