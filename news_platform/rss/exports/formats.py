"""Write streamed articles as tables, feeds and newsletters."""

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO
from urllib.parse import urlsplit

import polars as pl
import sqlalchemy as sa

from news_platform.rss.exports.selection import COLUMNS, SCHEMA
from news_platform.storage.chunks import chunked
from news_platform.text.normalize import cut_at_word_end, normalize_spaces
from news_platform.text.readable import spreadsheet_cell

if TYPE_CHECKING:
    import jinja2

TextFormat = Literal["csv", "jsonl", "json", "jsonfeed", "rss", "html", "markdown"]

_TEMPLATES = {"rss": "rss.xml", "html": "newsletter.html", "markdown": "newsletter.md"}
# Enough rows for a row group that compresses well, few enough to stay small in memory.
_ROW_GROUP = 5_000
_SUMMARY_CHARACTERS = 300
# What Markdown, or the HTML in it, would read as more than text: anywhere, and at the beginning.
_MARKUP = re.compile(r"([\\`*_\[\]<>|~&]|^[#+=-]|(?<=^\d)[.)]|(?<=^\d\d)[.)])")


@dataclass(frozen=True, slots=True)
class FeedChannel:
    """What a feed or newsletter says about itself, and how many other sources carry a text.

    Without a home page it names the site of its first article. `copies` are by URL hash.
    """

    title: str = "News Platform"
    home_page_url: str = ""
    language: str = ""
    copies: Mapping[str, int] = field(default_factory=dict)


def write_text(
    file: TextIO,
    rows: Iterable[sa.Row[Any]],
    *,
    kind: TextFormat,
    channel: FeedChannel,
    raw: bool = False,
) -> int:
    """Write articles to a text file, row by row, and return how many there were.

    With `raw`, CSV holds texts as they are, also those that a spreadsheet would run as formulas.
    """
    count = 0

    def counted() -> Iterator[sa.Row[Any]]:
        nonlocal count
        for row in rows:
            count += 1
            yield row

    if kind == "csv":
        _write_csv(file, counted(), raw=raw)
    elif kind in _TEMPLATES:
        first, all_rows = _peek(counted())
        template = _environment().get_template(_TEMPLATES[kind])
        file.writelines(
            template.generate(
                channel=channel,
                rows=all_rows,
                copies=channel.copies,
                home_page=_home_page(channel, first),
            )
        )
    else:
        parts = {"jsonl": _json_lines, "json": _json_array}.get(kind, _json_feed)
        file.writelines(parts(counted(), channel))
    return count


def one_per_text(rows: Iterable[sa.Row[Any]], clusters: Mapping[str, str]) -> Iterator[sa.Row[Any]]:
    """Yield the first article of each cluster of the same text, and those that are in none."""
    seen: set[str] = set()
    for row in rows:
        cluster = clusters.get(row.url_hash)
        if cluster is None or cluster not in seen:
            yield row
        if cluster is not None:
            seen.add(cluster)


def _write_csv(file: TextIO, rows: Iterable[sa.Row[Any]], *, raw: bool) -> None:
    """Write CSV: times in UTC, lists as JSON arrays, nothing for null."""
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    cells = (map(_csv_cell, row) for row in rows)
    writer.writerows(cells if raw else (map(spreadsheet_cell, row) for row in cells))


def _csv_cell(value: object) -> object:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime):
        return _utc(value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, tuple) else value


def _utc(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _json_lines(rows: Iterable[sa.Row[Any]], _channel: FeedChannel) -> Iterator[str]:
    return (f"{_json(dict(row._mapping))}\n" for row in rows)


def _json_array(rows: Iterable[sa.Row[Any]], _channel: FeedChannel) -> Iterator[str]:
    separator = "[\n"
    for row in rows:
        yield separator + _json(dict(row._mapping))
        separator = ",\n"
    yield "[]\n" if separator == "[\n" else "\n]\n"


def _json(document: object) -> str:
    def text(value: object) -> str:
        return value.isoformat() if isinstance(value, datetime) else str(value)

    return json.dumps(document, ensure_ascii=False, default=text)


def _json_feed(rows: Iterator[sa.Row[Any]], channel: FeedChannel) -> Iterator[str]:
    first, rows = _peek(rows)
    head = {
        "version": "https://jsonfeed.org/version/1.1",
        "title": channel.title,
        "home_page_url": _home_page(channel, first),
        "language": channel.language,
    }
    yield _json(_without_empty(head))[:-1] + ', "items": ['
    separator = "\n"
    for row in rows:
        yield separator + _json(feed_item(row))
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
    names = ("row_id", "source", "feed_url", "section", "article_type", "popularity")
    own = {name: getattr(row, name) for name in (*names, "text_source", "is_paywalled")}
    # An item must have content, so an article without a text has an empty one.
    return {"content_text": "", **_without_empty(item), "_news_platform": _without_empty(own)}


def article_summary(row: sa.Row[Any]) -> str:
    """Return the stated summary, else the subtitle, else the beginning of the text, on one line."""
    text = normalize_spaces(row.summary or row.subtitle or row.clean_text[:1_000])
    short = cut_at_word_end(text, _SUMMARY_CHARACTERS)
    return text if row.summary or row.subtitle or short == text else f"{short} …"


def article_line(row: sa.Row[Any], copies: Mapping[str, int]) -> str:
    """Return where and when an article appeared, by whom, and how many others carry its text."""
    more = copies.get(row.url_hash, 0)
    also = f"also in {more} other source{'s' * (more > 1)}" if more else ""
    day = f"{row.published_at or row.found_at:%Y-%m-%d}"
    return " · ".join(filter(None, (row.source, day, ", ".join(row.authors), also)))


def _without_empty(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if value not in (None, "", [])}


@lru_cache(maxsize=1)
def _environment() -> "jinja2.Environment":
    """Return the templates; foreign text is escaped in all of them."""
    import jinja2

    found = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=lambda name: not str(name).endswith(".md"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters |= {
        "about": article_line,
        "link": lambda url: url.replace(">", "%3E").replace("<", "%3C"),
        "markdown": lambda text: _MARKUP.sub(r"\\\1", normalize_spaces(text)),
        "rfc822": format_datetime,
        "summary": article_summary,
    }
    return found


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


def write_parquet(path: Path, rows: Iterable[sa.Row[Any]]) -> int:
    """Write articles as one Parquet file, a row group at a time."""
    import pyarrow.parquet as pq  # slow to import, and only this format needs it

    count = 0
    with pq.ParquetWriter(path, pl.DataFrame(schema=SCHEMA).to_arrow().schema) as writer:
        for group in chunked(rows, _ROW_GROUP):
            columns = dict(zip(SCHEMA, map(_values, zip(*group, strict=True)), strict=True))
            writer.write_table(pl.DataFrame(columns, schema=SCHEMA).to_arrow())
            count += len(group)
    return count


def _values(column: Iterable[Any]) -> list[Any]:
    return [list(value) if isinstance(value, tuple) else value for value in column]
