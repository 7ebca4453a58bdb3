"""Write streamed articles as CSV, JSON lines, JSON, Parquet, JSON Feed 1.1 or RSS 2.0."""

import csv
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import format_datetime
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TextIO
from urllib.parse import urlsplit
from xml.sax.saxutils import escape, quoteattr

import polars as pl
import sqlalchemy as sa

from news_platform.rss.exports.selection import (
    COLUMNS,
    SCHEMA,
    Selection,
    iter_articles,
    iter_stored_values,
)
from news_platform.storage.chunks import chunked
from news_platform.text.readable import spreadsheet_cell

TextFormat = Literal["csv", "jsonl", "json", "jsonfeed", "rss"]

# Enough rows for a row group that compresses well, few enough to stay small in memory.
_ROW_GROUP = 5_000
_SUMMARY_CHARACTERS = 300
_MOMENTS = tuple(n for n, kind in enumerate(SCHEMA.values()) if kind.is_temporal())
_BOOLEANS = tuple(n for n, kind in enumerate(SCHEMA.values()) if kind == pl.Boolean)
_BOOLEAN_TEXT = {None: "", 0: "false", 1: "true"}


@dataclass(frozen=True, slots=True)
class FeedChannel:
    """What a feed says about itself; without a home page it names the site of its first article."""

    title: str = "News Platform"
    description: str = "Articles chosen from the ledger"
    home_page_url: str = ""
    feed_url: str = ""
    language: str = ""


def write_text(
    file: TextIO,
    engine: sa.Engine,
    selection: Selection,
    *,
    kind: TextFormat,
    channel: FeedChannel,
    raw: bool = False,
) -> int:
    """Write the chosen articles to a text file, row by row, and return how many there were.

    With `raw`, CSV holds texts as they are, also those that a spreadsheet would run as formulas.
    """
    if kind == "csv":
        return write_csv(file, iter_stored_values(engine, selection), raw=raw)
    return write_articles(file, iter_articles(engine, selection), kind=kind, channel=channel)


def write_articles(
    file: TextIO, rows: Iterable[sa.Row[Any]], *, kind: TextFormat, channel: FeedChannel
) -> int:
    """Write rows in one of the formats that are not CSV, and return how many there were."""
    writers: dict[str, Callable[[Iterator[sa.Row[Any]]], Iterator[str]]] = {
        "jsonl": _json_lines,
        "json": _json_array,
        "jsonfeed": lambda rows: _json_feed(rows, channel),
        "rss": lambda rows: _rss(rows, channel),
    }
    counted = _Counted(rows)
    for part in writers[kind](iter(counted)):
        file.write(part)
    return counted.count


class _Counted:
    """An iterable that counts what was taken from it."""

    def __init__(self, rows: Iterable[sa.Row[Any]]) -> None:
        self.count = 0
        self._rows = rows

    def __iter__(self) -> Iterator[sa.Row[Any]]:
        for row in self._rows:
            self.count += 1
            yield row


def write_csv(file: TextIO, rows: Iterable[sa.Row[Any]], *, raw: bool = False) -> int:
    """Write stored values as CSV: times in UTC, lists as JSON arrays, nothing for null."""
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    counted = _Counted(rows)
    cells = map(_csv_cells, counted)
    writer.writerows(cells if raw else (map(spreadsheet_cell, row) for row in cells))
    return counted.count


def _csv_cells(row: sa.Row[Any]) -> list[Any]:
    cells = list(row)
    for place in _MOMENTS:
        cells[place] = _csv_moment(cells[place])
    for place in _BOOLEANS:
        cells[place] = _BOOLEAN_TEXT[cells[place]]
    return cells


def _csv_moment(value: str | datetime | None) -> str:
    if not value:
        return ""
    if isinstance(value, str):  # as SQLite stores it: 2025-11-03 12:00:00.000000
        return f"{value[:10]}T{value[11:19]}Z"
    return _utc(value)


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _json_lines(rows: Iterator[sa.Row[Any]]) -> Iterator[str]:
    for row in rows:
        yield json.dumps(dict(row._mapping), ensure_ascii=False, default=_json_value) + "\n"


def _json_array(rows: Iterator[sa.Row[Any]]) -> Iterator[str]:
    separator = "[\n"
    for row in rows:
        yield separator
        yield json.dumps(dict(row._mapping), ensure_ascii=False, default=_json_value)
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _json_value(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def _json_feed(rows: Iterator[sa.Row[Any]], channel: FeedChannel) -> Iterator[str]:
    first, rows = _peek(rows)
    head = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": channel.title,
        "home_page_url": _home_page(channel, first),
        "feed_url": channel.feed_url,
        "description": channel.description,
        "language": channel.language,
    }
    yield json.dumps(_without_empty(head), ensure_ascii=False)[:-1] + ', "items": ['
    separator = "\n"
    for row in rows:
        yield separator + json.dumps(feed_item(row), ensure_ascii=False)
        separator = ",\n"
    yield "\n]}\n"


def feed_item(row: sa.Row[Any]) -> dict[str, Any]:
    """Return an article as an item of a JSON Feed; its URL is its id."""
    item = {
        "id": row.article_url_canon,
        "url": row.article_url_canon,
        "title": row.title,
        "content_text": row.clean_text,
        "summary": article_summary(row),
        "image": row.image_url,
        "date_published": _utc(row.published_at or row.found_at),
        "authors": [{"name": name} for name in row.authors],
        "tags": list(row.tags),
        "language": row.language,
    }
    own = {
        "row_id": row.row_id,
        "source": row.source,
        "feed_url": row.feed_url,
        "section": row.section,
        "article_type": row.article_type,
        "popularity": row.popularity,
        "text_source": row.text_source,
        "is_paywalled": row.is_paywalled,
    }
    # An item must have content, so an article without a text has an empty one.
    return {"content_text": "", **_without_empty(item), "_news_platform": _without_empty(own)}


def article_summary(row: sa.Row[Any]) -> str:
    """Return the stated summary, else the subtitle, else the beginning of the text."""
    stated: str = row.summary or row.subtitle
    if stated or len(row.clean_text) <= _SUMMARY_CHARACTERS:
        return stated or row.clean_text
    start: str = row.clean_text[:_SUMMARY_CHARACTERS]
    return (start.rpartition(" ")[0] or start) + " …"


def _without_empty(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value not in (None, "", [])}


_RSS_HEAD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<rss version="2.0" xmlns:content="http://purl.org/rss/1.0/modules/content/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:atom="http://www.w3.org/2005/Atom" '
    'xmlns:media="http://search.yahoo.com/mrss/">\n<channel>\n'
)


def _rss(rows: Iterator[sa.Row[Any]], channel: FeedChannel) -> Iterator[str]:
    first, rows = _peek(rows)
    yield _RSS_HEAD
    yield _element("title", channel.title)
    yield _element("link", _home_page(channel, first), required=True)
    yield _element("description", channel.description, required=True)
    yield _element("language", channel.language)
    if channel.feed_url:
        link = quoteattr(channel.feed_url)
        yield f'<atom:link rel="self" type="application/rss+xml" href={link}/>\n'
    for row in rows:
        yield "".join(_rss_item(row))
    yield "</channel>\n</rss>\n"


def _rss_item(row: sa.Row[Any]) -> Iterator[str]:
    url = row.article_url_canon
    yield "<item>\n"
    yield _element("title", row.title)
    yield _element("link", url)
    yield f'<guid isPermaLink="true">{escape(url)}</guid>\n'
    yield _element("pubDate", format_datetime(row.published_at or row.found_at))
    for name in row.authors:
        yield _element("dc:creator", name)
    for tag in row.tags:
        yield _element("category", tag)
    yield _element("description", article_summary(row))
    if image := row.image_url:
        yield f'<media:content medium="image" url={quoteattr(image)}/>\n'
    yield f"<source url={quoteattr(row.feed_url)}>{escape(row.source)}</source>\n"
    if row.clean_text:
        yield _element("content:encoded", _paragraphs(row.clean_text))
    yield "</item>\n"


def _paragraphs(text: str) -> str:
    return "".join(f"<p>{escape(line)}</p>" for line in text.splitlines() if line.strip())


def _element(name: str, text: str, *, required: bool = False) -> str:
    return f"<{name}>{escape(text)}</{name}>\n" if text or required else ""


def _peek(
    rows: Iterator[sa.Row[Any]],
) -> tuple[sa.Row[Any] | None, Iterator[sa.Row[Any]]]:
    first = next(rows, None)
    return first, rows if first is None else chain([first], rows)


def _home_page(channel: FeedChannel, first: sa.Row[Any] | None) -> str:
    if channel.home_page_url or first is None:
        return channel.home_page_url
    parts = urlsplit(first.article_url_canon)
    return f"{parts.scheme}://{parts.netloc}/"


def write_parquet(path: Path, engine: sa.Engine, selection: Selection) -> int:
    """Write the chosen articles as one Parquet file, a row group at a time."""
    import pyarrow.parquet as pq  # slow to import, and only this format needs it

    count = 0
    with pq.ParquetWriter(path, pl.DataFrame(schema=SCHEMA).to_arrow().schema) as writer:
        for rows in chunked(iter_articles(engine, selection), _ROW_GROUP):
            columns = dict(zip(SCHEMA, (_values(c) for c in zip(*rows, strict=True)), strict=True))
            writer.write_table(pl.DataFrame(columns, schema=SCHEMA).to_arrow())
            count += len(rows)
    return count


def _values(column: Iterable[Any]) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in column]
