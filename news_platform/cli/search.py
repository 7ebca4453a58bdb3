"""`news-platform search "…"`: search the text of all articles."""

import csv
import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime

import click

from news_platform.api import NewsData, SearchPage, open_root
from news_platform.cli.options import count_type, emit, json_option, resources_for, root_option
from news_platform.datasets.search_index import SEARCH_INDEX
from news_platform.resources import Resources
from news_platform.search.engine import FACETS, SearchAnswer, SearchOptions
from news_platform.search.index import Hit
from news_platform.search.months import join_months
from news_platform.search.pipeline import FoundArticle, build_day
from news_platform.storage.commit.root import RootAccess
from news_platform.storage.units import stale_units
from news_platform.text.days import as_day

_BAR_WIDTH = 40
_SHOWN_VALUES = 10
_TABLE_COLUMNS = ("at", "title", "url", "domain", "language", "day", "source", "score")


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the answer is printed."""

    format: str
    only_count: bool
    as_json: bool


def _as_day(_context: click.Context, _option: click.Parameter, value: str | None) -> str:
    """Return a day as written in the indexes; '' if none is given."""
    return as_day(value).isoformat() if value else ""


@click.command()
@click.argument("query", required=False)
@click.option(
    "--from",
    "first_day",
    callback=_as_day,
    help="First day, as 2025-11-01; default: 30 days before the last.",
)
@click.option(
    "--to", "last_day", callback=_as_day, help="Last day, as 2025-11-30; default: the newest."
)
@click.option("--language", "languages", multiple=True, help="Only this language; repeatable.")
@click.option("--domain", "domains", multiple=True, help="Only this domain; repeatable.")
@click.option("--sort", type=click.Choice(["score", "date"]), default="score", show_default=True)
@click.option("--limit", type=count_type(1), default=10, show_default=True)
@click.option("--offset", type=count_type(), default=0, show_default=True)
@click.option(
    "--one-per-cluster", is_flag=True, help="Of articles with near-identical texts only the first."
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
@click.option("--build", is_flag=True, help="First build the indexes that are out of date.")
@root_option
@json_option
def search(  # noqa: PLR0913 - one parameter per option of the command line
    query: str | None,
    first_day: str,
    last_day: str,
    languages: tuple[str, ...],
    domains: tuple[str, ...],
    sort: str,
    limit: int,
    offset: int,
    one_per_cluster: bool,
    facets: bool,
    only_count: bool,
    shape: str,
    build: bool,
    root: str,
    as_json: bool,
) -> None:
    """Search for QUERY: words, "phrases", AND, OR, NOT, (brackets), title:word, domain:name.

    Fields are title, text, authors, section, domain, language and day (day:2025-11-01..2025-11-07).
    """
    if query is None and not build:
        raise click.UsageError("expected a QUERY, or --build")
    if build:
        _build(resources_for(root, RootAccess.WRITE), as_json=as_json or query is not None)
    if query is None:
        return
    resources_for(root)  # refuses a root that does not exist
    options = SearchOptions(
        first_day=first_day,
        last_day=last_day,
        languages=languages,
        domains=domains,
        newest_first=sort == "date",
        limit=limit,
        offset=offset,
        facets=FACETS if facets else (("day",) if only_count else ()),
        one_per_cluster=one_per_cluster,
    )
    _print(open_root(root), query, options, _Shape(shape, only_count, as_json))


def _build(resources: Resources, *, as_json: bool) -> None:
    store, done, now = resources.data_root.store, [], resources.clock.now()
    for day in sorted(stale_units(store, SEARCH_INDEX)):
        report = build_day(store, day, now=now)
        done.append(f"{day}  {report.articles if report is not None else 0:>9} articles")
    for month, report in join_months(
        store, after_days=resources.settings.search.months_after_days, now=now
    ):
        done.append(f"{month:<10}  {report.articles if report is not None else 0:>9} articles")
    click.echo("\n".join(done) or "all indexes are up to date", err=as_json)


def _print(news: NewsData, query: str, options: SearchOptions, shape: _Shape) -> None:
    as_json, is_text = shape.as_json, shape.format == "text"
    with_texts = (as_json or is_text) and not shape.only_count
    page = news.search(query, options, snippets=with_texts)
    if shape.only_count:
        emit(_counts(page.answer), as_json=as_json, text=_plot(page.answer))
    elif as_json or is_text:
        emit(_document(page), as_json=as_json, text=_text(page, options))
    else:
        lines = _csv(page.answer.hits) if shape.format == "csv" else _jsonl(page.answer.hits)
        click.echo(lines, nl=False)


def _document(page: SearchPage) -> dict[str, object]:
    return {
        "count": page.answer.count,
        "hits": [
            {**asdict(found.hit), "snippet": found.snippet.text, "marks": found.snippet.marks}
            for found in page.found
        ],
        "facets": page.answer.facets,
    }


def _counts(answer: SearchAnswer) -> dict[str, object]:
    return {"count": answer.count, "days": dict(sorted(answer.facets["day"].items()))}


def _plot(answer: SearchAnswer) -> str:
    days = dict(sorted(answer.facets["day"].items()))
    most = max(days.values(), default=1)
    bars = [f"{day}  {n:>7}  {'█' * max(1, n * _BAR_WIDTH // most)}" for day, n in days.items()]
    return "\n".join((*bars, f"{answer.count} articles"))


def _text(page: SearchPage, options: SearchOptions) -> str:
    first = options.offset + 1
    shown = [_entry(number, found) for number, found in enumerate(page.found, first)]
    facets = [_facet(name, values) for name, values in page.answer.facets.items()]
    return "\n\n".join((*shown, *facets, f"{page.answer.count} articles"))


def _entry(number: int, found: FoundArticle) -> str:
    hit = found.hit
    head = f"{number}. {hit.title or '(no title)'}"
    facts = f"   {hit.at:%Y-%m-%d %H:%M}  {hit.domain}  {hit.language}  {hit.url}"
    # Bold on a terminal; click leaves it out where the output is a file.
    text = found.snippet.marked("\x1b[1m", "\x1b[0m")
    return f"{head}\n{facts}\n   {text}"


def _facet(name: str, values: Mapping[str, int]) -> str:
    rows = [f"   {count:>7}  {value}" for value, count in list(values.items())[:_SHOWN_VALUES]]
    return "\n".join((f"by {name}:", *rows))


def _rows(hits: Iterable[Hit]) -> list[dict[str, object]]:
    return [{name: _value(getattr(hit, name)) for name in _TABLE_COLUMNS} for hit in hits]


def _value(value: object) -> object:
    return value.isoformat() if isinstance(value, datetime) else value


def _csv(hits: Iterable[Hit]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, _TABLE_COLUMNS)
    writer.writeheader()
    writer.writerows(_rows(hits))
    return out.getvalue()


def _jsonl(hits: Iterable[Hit]) -> str:
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in _rows(hits))
