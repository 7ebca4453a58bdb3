"""`news-platform sql`, `search` and `explain`: read the data under a root."""

import json
import shutil
from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from io import BytesIO
from pathlib import Path
from typing import Any

import click
import polars as pl

from news_platform.api import NewsData, SearchPage, open_root
from news_platform.cli.command import (
    DAY,
    OUTPUT_FILE,
    Output,
    allow_removal_option,
    as_text,
    command,
    count_type,
    echo,
    json_value,
    raw_option,
)
from news_platform.datasets.corpus import SEARCH_INDEX
from news_platform.datasets.evidence import Evidence, Explanation
from news_platform.errors import InputError
from news_platform.isolation.boundary import panics_as
from news_platform.resources import Resources
from news_platform.search.engine import FACETS, SearchOptions, cut_facet
from news_platform.search.index_engine import IndexEngine
from news_platform.search.pipeline import FoundArticle, build_day, join_months
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.engines import remove_gone
from news_platform.storage.units import stale_units
from news_platform.text.readable import spreadsheet_cell

_BAR_WIDTH = 40
_FORMATS = ("csv", "json", "parquet")
# Rows of an answer to SQL that text shows; files have all.
_SHOWN_ROWS = 200
_WIDEST = 10_000
_SHOWN_VALUES = 10
_HIT_COLUMNS = ("at", "title", "url", "domain", "language", "day", "source", "score")
_NO_TIME = " " * len("2025-11-01 00:00:00")


@command()
@click.argument("query")
@click.option(
    "--unsafe", is_flag=True, help="Let QUERY also use files, the network and DuckDB's settings."
)
@click.option("--format", "shape", type=click.Choice(_FORMATS), help="Of a file.")
@click.option("--output", type=OUTPUT_FILE, help="Write the answer to this file.")
@raw_option
def sql(
    resources: Resources,
    query: str,
    unsafe: bool,
    shape: str | None,
    output: Path | None,
    raw: bool,
) -> Output | None:
    """Run a DuckDB query over all datasets; `sql show` lists them.

    A table that is wider than the terminal is shown row by row, one field per line. Without
    --output, --format csv or json prints the answer; the name of a file tells its format.
    """
    shape = shape or (output.suffix[1:].lower() if output else None)
    if output and shape not in _FORMATS:
        raise click.UsageError(f"cannot tell the format of {output.name!r}: give --format")
    if shape == "parquet" and output is None:
        raise click.UsageError("--format parquet needs --output FILE")
    news = open_root(resources.settings.root)
    answer = _tables(news) if query.strip().lower() == "show" else news.sql(query, unsafe=unsafe)
    # A date beyond the year 9999 is not one of Python's.
    with panics_as(lambda cause: InputError(f"cannot show the answer: {cause}")):
        if shape is None:
            return Output(answer.to_dicts(), _answer_text(answer))
        body = _file_bytes(answer, shape, raw=raw)
    if output is None:
        echo(body, nl=False)
        return None
    output.write_bytes(body)
    return Output({"file": str(output), "rows": answer.height, "format": shape})


def _tables(news: NewsData) -> pl.DataFrame:
    described = [{"dataset": it.name, "what": it.description} for it in news.tables.values()]
    counts = news.summary().select("dataset", "rows")
    return pl.DataFrame(described).join(counts, on="dataset", how="left")


def _file_bytes(answer: pl.DataFrame, shape: str, *, raw: bool) -> bytes:
    if shape == "json":
        return f"{answer.write_json()}\n".encode()
    if shape == "jsonl":
        return answer.write_ndjson().encode()
    if shape == "csv":
        return answer.select(_csv_column(one, raw=raw) for one in answer).write_csv().encode()
    buffer = BytesIO()
    answer.write_parquet(buffer)
    return buffer.getvalue()


def _csv_column(column: pl.Series, *, raw: bool) -> pl.Series:
    """Return lists and structs, which CSV does not know, as JSON, and texts without formulas."""
    if column.dtype.is_nested():
        texts = [json.dumps(one, ensure_ascii=False, default=str) for one in column.to_list()]
        return pl.Series(column.name, texts)
    if raw or column.dtype != pl.String:
        return column
    return pl.Series(column.name, map(spreadsheet_cell, column), dtype=pl.String)


def _answer_text(answer: pl.DataFrame) -> str:
    """Return a table, or one field per line if it is wider than the terminal."""
    # Without a width Polars cuts the cells of a table until it fits.
    shown = pl.Config(
        tbl_rows=_SHOWN_ROWS,
        tbl_cols=-1,
        tbl_width_chars=_WIDEST,
        fmt_str_lengths=60,
        tbl_hide_dataframe_shape=True,
    )
    with shown:
        text = str(answer)
    rows = answer.head(_SHOWN_ROWS).to_dicts()
    if rows and text.index("\n") > shutil.get_terminal_size((_WIDEST, 24)).columns:
        each = (f"row {number}\n{as_text(row)}" for number, row in enumerate(rows, 1))
        text = "\n\n".join(each)
    more = f"\n{answer.height} rows: --format csv prints all of them"
    return text + (more if answer.height > _SHOWN_ROWS else "")


@command()
@click.argument("subject", metavar="URL|DOMAIN|FEED")
def explain(resources: Resources, subject: str) -> Output:
    """Show where a page, domain or feed is, or why it is missing.

    The order is that of the pipeline: crawl, domain store, survey, feeds, corpus, duplicates,
    search, sheets, exports, takedowns. The exit code is 1 if nothing is known.
    """
    found = open_root(resources.settings.root).explain(subject)
    failure = None
    if not found.known:
        message = f"nothing is known about {subject!r}: see what to do above"
        failure = InputError(message, thing=subject)
    return Output(asdict(found), _explanation_text(found), failure)


def _explanation_text(found: Explanation) -> str:
    state = "known" if found.known else "not known"
    lines = [f"{found.kind} {found.subject}: {state}"]
    part = ""
    for one in found.evidence:
        if one.dataset != part:
            part = one.dataset
            lines += ["", part]
        lines += _evidence_lines(one)
    if found.advice:
        lines += ["", "what to do", *(f"  {one}" for one in found.advice)]
    return "\n".join(lines)


def _evidence_lines(one: Evidence) -> list[str]:
    at = f"{one.at:%Y-%m-%d %H:%M:%S}" if one.at is not None else _NO_TIME
    head = f"  {at}  {one.state:<10}  {one.text}"
    return [head, *([f"  {_NO_TIME}  {'':<10}  {one.source}"] if one.source else [])]


@command(access=lambda build, **_: RootAccess.WRITE if build else RootAccess.READ)
@click.argument("query", required=False)
@click.option("--from", "first", type=DAY, help="First day; default: 30 days before the last.")
@click.option("--to", "last", type=DAY, help="Last day; default: the newest.")
@click.option("--language", "languages", multiple=True, help="Only this language; repeatable.")
@click.option("--domain", "domains", multiple=True, help="Only this domain; repeatable.")
@click.option(
    "--sort",
    type=click.Choice(["score", "date"]),
    default="score",
    show_default=True,
    help="Best match or newest first.",
)
@click.option("--limit", type=count_type(1), default=10, show_default=True, help="Most hits.")
@click.option(
    "--offset", type=count_type(), default=0, show_default=True, help="Hits to pass over."
)
@click.option(
    "--one-per-cluster", is_flag=True, help="Only the first of articles with near-identical texts."
)
@click.option("--facets", is_flag=True, help="Also count by domain, language and day.")
@click.option("--count", "only_count", is_flag=True, help="Only count, by day, as a small plot.")
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "csv", "jsonl"]),
    default="text",
    show_default=True,
    help="Form of the hits.",
)
@raw_option
@click.option("--build", is_flag=True, help="First build the indexes that are out of date.")
@allow_removal_option
def search(
    resources: Resources,
    query: str | None,
    shape: str,
    build: bool,
    only_count: bool,
    first: date | None,
    last: date | None,
    as_json: bool,
    **chosen: Any,
) -> Output | None:
    """Search the text of all articles.

    QUERY consists of words, "phrases", AND, OR, NOT, (brackets), title:word and domain:name. Fields
    are title, text, authors, section, domain, language and day (day:2025-11-01..2025-11-07).
    """
    allow_removal, raw = chosen.pop("allow_removal"), chosen.pop("raw")
    if query is None and not build:
        raise click.UsageError("expected a QUERY, or --build")
    if build:
        # The report of the build must not mix with the answer on standard output.
        report = _build_indexes(resources, allow_removal=allow_removal)
        click.echo(report, err=as_json or query is not None)
    if query is None:
        return None
    facets = FACETS if chosen.pop("facets") else (("day",) if only_count else ())
    newest_first = chosen.pop("sort") == "date"
    options = SearchOptions(
        **chosen,
        first_day=str(first or ""),
        last_day=str(last or ""),
        facets=facets,
        newest_first=newest_first,
    )
    is_table = shape != "text" and not as_json and not only_count
    news = open_root(resources.settings.root)
    page = news.search(query, options, snippets=not (is_table or only_count))
    for line in [] if page.answer.count else news.unmatched_values(query, options):
        click.echo(line, err=True)
    if only_count:
        days = dict(sorted(page.answer.facets["day"].items()))
        return Output({"count": page.answer.count, "days": days}, _plot(page.answer.count, days))
    if not is_table:
        return Output(_search_document(page), _search_text(page, options))
    rows = [
        {name: json_value(getattr(hit, name)) for name in _HIT_COLUMNS} for hit in page.answer.hits
    ]
    hits = pl.DataFrame(rows, schema=_HIT_COLUMNS, infer_schema_length=None)
    echo(_file_bytes(hits, shape, raw=raw), nl=False)
    return None


def _build_indexes(resources: Resources, *, allow_removal: bool) -> str:
    store, now = resources.data_root.store, resources.clock.now()
    removed = remove_gone(IndexEngine(store, now), allowed=allow_removal)
    stale = sorted(stale_units(store, SEARCH_INDEX))
    built = [(day, build_day(store, day, now=now)) for day in stale]
    after_days = resources.settings.search.months_after_days
    built += join_months(store, after_days=after_days, now=now)
    lines = [f"{day:<10}    removed" for day in removed]
    lines += [
        f"{key:<10}  {one.articles if one is not None else 0:>9} articles" for key, one in built
    ]
    return "\n".join(lines) or "all indexes are up to date"


def _search_document(page: SearchPage) -> dict[str, object]:
    return {
        "count": page.answer.count,
        "hits": [
            {**asdict(found.hit), "snippet": found.snippet.text, "marks": found.snippet.marks}
            for found in page.found
        ],
        "facets": page.answer.facets,
    }


def _plot(count: int, days: Mapping[str, int]) -> str:
    most = max(days.values(), default=1)
    bars = [f"{day}  {n:>7}  {'█' * max(1, n * _BAR_WIDTH // most)}" for day, n in days.items()]
    return "\n".join((*bars, f"{count} articles"))


def _search_text(page: SearchPage, options: SearchOptions) -> str:
    first = options.offset + 1
    shown = [_hit_text(number, found) for number, found in enumerate(page.found, first)]
    facets = [_facet_text(name, values) for name, values in page.answer.facets.items()]
    return "\n\n".join((*shown, *facets, f"{page.answer.count} articles"))


def _hit_text(number: int, found: FoundArticle) -> str:
    hit = found.hit
    head = f"{number}. {hit.title or '(no title)'}"
    facts = f"   {hit.at:%Y-%m-%d %H:%M}  {hit.domain}  {hit.language}  {hit.url}"
    # Bold on a terminal; click removes it where the output is a file.
    text = found.snippet.marked("\x1b[1m", "\x1b[0m")
    return f"{head}\n{facts}\n   {text}"


def _facet_text(name: str, values: Mapping[str, int]) -> str:
    shown = cut_facet(values, _SHOWN_VALUES)
    rows = [f"   {count:>7}  {value}" for value, count in shown.items()]
    return "\n".join((f"by {name}:", *rows))
