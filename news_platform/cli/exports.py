"""`news-platform rss export`: articles as files and feeds, deltas, daily files, feeds as OPML."""

import io
import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, TextIO, cast, get_args

import click
import polars as pl
import sqlalchemy as sa

from news_platform.cli.command import (
    OUTPUT_FILE,
    Output,
    Parsed,
    command,
    count_type,
    printable,
    raw_option,
)
from news_platform.datasets.feeds import CATEGORIES
from news_platform.errors import InputError
from news_platform.near_duplicates.reading import scan_article_clusters
from news_platform.resources import Resources
from news_platform.rss.export import delta_since, export_days, write_feed_days
from news_platform.rss.exports.formats import (
    FeedChannel,
    TextFormat,
    one_per_text,
    write_parquet,
    write_text,
)
from news_platform.rss.exports.selection import (
    Order,
    Selection,
    count_reposts,
    iter_articles,
    unknown_values,
)
from news_platform.rss.ledger.feed_rows import feed_urls
from news_platform.rss.text_query import parse_query
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.objects.store import ObjectStore
from news_platform.storage.outlets import with_outlets
from news_platform.takedowns.match import Takedowns
from news_platform.text.readable import did_you_mean
from news_platform.web.opml import OpmlFeed, opml_document

FileFormat = TextFormat | Literal["parquet"]
FORMATS = (*get_args(TextFormat), "parquet")
# The format of a file by the end of its name, unless --format gives another.
_SUFFIXES: Mapping[str, FileFormat] = {
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".parquet": "parquet",
    ".json": "jsonfeed",
    ".xml": "rss",
    ".rss": "rss",
    ".html": "html",
    ".md": "markdown",
}


def _since(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
        # The ledger is in UTC, and so is a date without a time zone.
        return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        raise InputError(
            f"invalid date {text!r}: expected ISO 8601, such as 2025-11-01", thing=text
        ) from error


@command(access=lambda daily, **_: RootAccess.WRITE if daily else RootAccess.READ)
@click.option("--category", type=click.Choice(CATEGORIES), help="Guessed category.")
@click.option("--lang", "languages", multiple=True, help="ISO 639-1 code, such as en; repeatable.")
@click.option(
    "--source", "sources", multiple=True, help="Domain, or outlets such as country=ES; repeatable."
)
@click.option("--feed", "feeds", multiple=True, help="Address of a feed; repeatable.")
@click.option("--group", "groups", multiple=True, help="Group of feeds; repeatable.")
@click.option("--type", "types", multiple=True, help="Article type, such as news; repeatable.")
@click.option("--paywalled/--free", "is_paywalled", default=None, help="Behind a paywall, or not.")
@click.option("--with-text/--without-text", "has_text", default=None, help="With a text, or not.")
@click.option(
    "--query",
    type=Parsed("query", parse_query),
    help='Words and "phrases" that the article contains; -word excludes.',
)
@click.option(
    "--since",
    type=Parsed("date", _since),
    help="Published, or else found, at or after this ISO 8601 date.",
)
@click.option(
    "--until", type=Parsed("date", _since), help="Published, or else found, before this date."
)
@click.option(
    "--order",
    type=click.Choice(get_args(Order)),
    default="newest",
    help="Newest first, most popular first, or as stored, which is the fastest.",
)
@click.option("--limit", type=count_type(1), help="Export at most N articles.")
@click.option(
    "--format", "kind", type=click.Choice(FORMATS), help="Default: by --output, else jsonl."
)
@click.option(
    "--one-per-text/--every-copy",
    "one_per_text",
    default=None,
    help="Leave out near-identical texts; default in newsletters (html and markdown).",
)
@click.option("--title", default="News Platform", help="Title of the feed or newsletter.")
@click.option("--home-page", default="", help="Home page of the feed (jsonfeed and rss).")
@click.option("--delta", type=count_type(0), help="Export what changed after this cursor.")
@click.option(
    "--daily", is_flag=True, help="Write the daily files of articles, feeds and polls to the root."
)
@click.option("--opml", is_flag=True, help="Export the polled feeds as OPML.")
@raw_option
@click.option(
    "--output",
    type=OUTPUT_FILE,
    help="File to write: .csv, .jsonl, .json (JSON Feed), .xml (RSS), .html, .md or .parquet.",
)
def export(resources: Resources, as_json: bool, **choice: Any) -> Output | None:
    """Export articles, a delta, daily files, or feeds."""
    is_other = choice["daily"] or choice["opml"] or choice["delta"] is not None
    if is_other and (choice["output"] or choice["kind"]):
        raise click.UsageError(
            "--output and --format are for articles: not with --daily, --opml or --delta"
        )
    kind = _format(choice["kind"], choice["output"], as_json=as_json)
    engine, store = resources.ledger.engine, resources.data_root.store
    if choice["daily"]:
        return _export_days(engine, store, now=resources.clock.now())
    exported = Takedowns.read(store, now=resources.clock.now(), use="export")
    if choice["opml"]:
        feeds = [one for one in feed_urls(engine) if not exported.covers_url(one[0])]
        text = opml_document(OpmlFeed(*one) for one in feeds).rstrip()
        return Output([url for url, _ in feeds], text)
    if choice["delta"] is not None:
        return _delta(engine, choice["delta"], limit=choice["limit"], exported=exported)
    clusters = _read_clusters(store)
    copies = count_reposts(engine, clusters)
    selection = _selection(choice, store, reposts=copies)
    selection = replace(selection, covers=exported.covers if exported else None)
    for name, value, known in unknown_values(engine, selection):
        click.echo(f"no article of {name} {value!r}: {did_you_mean(value, known)}", err=True)
    rows = iter_articles(engine, selection)
    is_newsletter = kind in ("html", "markdown")
    if is_newsletter if choice["one_per_text"] is None else choice["one_per_text"]:
        all_rows = iter_articles(engine, replace(selection, limit=None))
        rows = islice(one_per_text(all_rows, clusters), selection.limit)
    channel = FeedChannel(
        choice["title"],
        home_page_url=choice["home_page"],
        language=selection.languages[0] if len(selection.languages) == 1 else "",
        copies=copies,
    )
    if choice["output"] is not None:
        return _export_file(rows, kind, channel, choice["raw"], choice["output"])
    assert kind != "parquet"  # `_format` refuses it without a file
    with _standard_output() as file:
        write_text(file, rows, kind=kind, channel=channel, raw=choice["raw"])
    return None


def _selection(
    choice: Mapping[str, Any], store: ObjectStore, *, reposts: Mapping[str, int]
) -> Selection:
    same = (
        "category languages feeds groups types is_paywalled has_text query since until order limit"
    )
    sources = with_outlets(store, [source.lower() for source in choice["sources"]])
    return Selection(
        **{name: choice[name] for name in same.split()}, sources=sources, reposts=reposts
    )


def _read_clusters(store: ObjectStore) -> dict[str, str]:
    """Return the cluster of each article that has near-duplicates, where these are known."""
    rows = scan_article_clusters(store).filter(pl.col("cluster_size") > 1)
    return dict(rows.select("url_hash", "cluster_id").collect().iter_rows())


def _format(kind: FileFormat | None, output: Path | None, *, as_json: bool) -> FileFormat:
    """Return the format that the options ask for; raise UsageError if there is none."""
    if output is None:
        if kind == "parquet":
            raise click.UsageError("--format parquet needs --output: it is not a text")
        if as_json and kind not in (None, "json"):
            raise click.UsageError("--json is a format of its own: not with another --format")
        return kind or ("json" if as_json else "jsonl")
    if kind is None and output.suffix not in _SUFFIXES:
        expected = ", ".join(_SUFFIXES)
        raise InputError(f"cannot write {str(output)!r}: expected --format, or one of {expected}")
    return kind or _SUFFIXES[output.suffix]


def _export_days(engine: sa.Engine, store: ObjectStore, *, now: datetime) -> Output:
    report = export_days(engine, store, now=now)
    write_feed_days(engine, store, now=now)
    return Output({"days": report.days, "rows": report.rows})


def _delta(engine: sa.Engine, cursor: int, *, limit: int | None, exported: Takedowns) -> Output:
    delta = delta_since(engine, cursor, limit=limit or 1_000)
    rows = [dict(row) for row in delta.rows if not exported.covers(row["article_url_canon"])]
    document = {"cursor": delta.cursor, "articles": rows}
    return Output(document, _json_lines([*rows, {"cursor": delta.cursor}]))


def _export_file(
    rows: Iterable[sa.Row[Any]],
    kind: FileFormat,
    channel: FeedChannel,
    raw: bool,
    output: Path,
) -> Output:
    # Written beside its place, so that a reader never sees half an export.
    part = output.with_name(f".{output.name}.part")
    try:
        if kind == "parquet":
            count = write_parquet(part, rows)
        else:
            with part.open("w", encoding="utf-8", newline="") as file:
                count = write_text(file, rows, kind=kind, channel=channel, raw=raw)
        part.replace(output)
    finally:
        part.unlink(missing_ok=True)
    return Output({"articles": count, "output": str(output)})


class _Printed(io.TextIOBase):
    """Standard output; a terminal gets no control characters."""

    def write(self, text: str) -> int:
        return sys.stdout.write(printable(text))


@contextmanager
def _standard_output() -> Iterator[TextIO]:
    """Yield standard output; exit without an error message if its reader closes it."""
    try:
        yield cast(TextIO, _Printed())
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would flush the rest at exit and report an error; nobody reads it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _json_lines(rows: Iterable[Mapping[str, Any]]) -> str:
    return "\n".join(json.dumps(row, ensure_ascii=False, default=_text) for row in rows)


def _text(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)
