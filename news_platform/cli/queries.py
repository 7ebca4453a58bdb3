"""`news-platform sql`, `search` and `explain`: read the data under a root."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date
from typing import Any

import click
import polars as pl

from news_platform.api import SearchPage, open_root
from news_platform.cli.command import (
    DAY,
    Output,
    allow_removal_option,
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
_SHOWN_VALUES = 10
_HIT_COLUMNS = ("at", "title", "url", "domain", "language", "day", "source", "score")
_NO_TIME = " " * len("2025-11-01 00:00:00")


@command()
@click.argument("query")
@click.option(
    "--unsafe", is_flag=True, help="Let QUERY also use files, the network and DuckDB's settings."
)
def sql(resources: Resources, query: str, unsafe: bool) -> Output:
    """Run a DuckDB query over all datasets; `sql show` lists them."""
    news = open_root(resources.settings.root)
    if query.strip().lower() == "show":
        tables = news.tables.values()
        answer = pl.DataFrame([{"dataset": it.name, "what": it.description} for it in tables])
    else:
        answer = news.sql(query, unsafe=unsafe)
    shown = pl.Config(tbl_rows=200, tbl_cols=-1, fmt_str_lengths=60, tbl_hide_dataframe_shape=True)
    # A date beyond the year 9999 is not one of Python's.
    with shown, panics_as(lambda cause: InputError(f"cannot show the answer: {cause}")):
        return Output(answer.to_dicts(), str(answer))


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
@click.option("--sort", type=click.Choice(["score", "date"]), default="score", show_default=True)
@click.option("--limit", type=count_type(1), default=10, show_default=True)
@click.option("--offset", type=count_type(), default=0, show_default=True)
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
    page = open_root(resources.settings.root).search(
        query, options, snippets=not (is_table or only_count)
    )
    if only_count:
        days = dict(sorted(page.answer.facets["day"].items()))
        return Output({"count": page.answer.count, "days": days}, _plot(page.answer.count, days))
    if not is_table:
        return Output(_search_document(page), _search_text(page, options))
    rows = [
        {name: json_value(getattr(hit, name)) for name in _HIT_COLUMNS} for hit in page.answer.hits
    ]
    if shape == "csv" and not raw:
        rows = [{name: spreadsheet_cell(value) for name, value in row.items()} for row in rows]
    hits = pl.DataFrame(rows, schema=_HIT_COLUMNS, infer_schema_length=None)
    echo(hits.write_csv() if shape == "csv" else hits.write_ndjson(), nl=False)
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
