"""The CDX endpoint: captures of a URL, a host or a domain, as pywb and Common Crawl answer.

A page holds some days of the index, so that each costs the same whatever was asked before. Captures
come day by day, and in the order of their keys within a day.
"""

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Annotated, Literal

import polars as pl
from pydantic import AfterValidator, Field
from starlette.requests import Request
from starlette.routing import Route

from news_platform.ccnews.capture_index import CaptureFiles, CaptureQuery, Match
from news_platform.ccnews.cdxj import ALL_FIELDS, cdx_fields, cdxj_line, parse_stamp
from news_platform.ccnews.records import find_capture, read_record
from news_platform.errors import InputError
from news_platform.server.app_state import AppState, NothingHere, TakenDown
from news_platform.server.parameters import Parameters, Short, Shorts, Switch
from news_platform.server.response_cache import Answer, ResponseCache

CDX_PATH = "/cdx"
RECORD_PATH = "/record"
_MOST_CAPTURES = 100_000
# Days in a page: two range reads each.
_PAGE_DAYS = 31
# The names of other CDX servers.
_ALIASES = {"statuscode": "status", "mimetype": "mime", "original": "url"}
_JSON_LINES = "text/x-ndjson"


def _stamp(text: str) -> str:
    try:
        parse_stamp(text)
    except ValueError as error:
        raise ValueError("expected 4 to 14 digits such as 20251101") from error
    return text


Stamp = Annotated[str, AfterValidator(_stamp)]


class CdxParameters(Parameters):
    """What a CDX server is asked."""

    url: Short = Field("", description="URL; also *.example.org and example.org/news/*")
    match: Match | None = Field(None, alias="matchType", description="what the URL stands for")
    since: Stamp | None = Field(None, alias="from", description="first moment, 4 to 14 digits")
    until: Stamp | None = Field(None, alias="to", description="last moment, 4 to 14 digits")
    limit: int = Field(_MOST_CAPTURES, ge=1, le=_MOST_CAPTURES, description="most captures")
    filters: Shorts = Field((), alias="filter", description="[!][=|~]field:text")
    fl: Short = Field("", description="fields, separated by commas")
    output: Literal["text", "cdxj", "json"] = Field("text", description="lines of CDXJ or JSON")
    page: int | None = Field(None, ge=0, description="page, from 0; without it all of them")
    page_size: int = Field(_PAGE_DAYS, alias="pageSize", ge=1, le=366, description="days of a page")
    count_pages: Switch = Field(False, alias="showNumPages", description="only count the pages")

    def query(self) -> CaptureQuery:
        """Return the captures that are asked for."""
        until = parse_stamp(self.until, is_end=True) if self.until else None
        since: datetime | None = parse_stamp(self.since) if self.since else None
        return CaptureQuery.parse(self.url, self.match, since, until)

    def tests(self) -> list[pl.Expr]:
        """Return the filters as expressions over the fields."""
        return [_test(one) for one in self.filters]

    def fields(self) -> Sequence[str]:
        """Return the fields that are asked for, none for all."""
        return [_field(name) for name in self.fl.split(",") if name.strip()]


def _field(name: str) -> str:
    known = _ALIASES.get(name.strip(), name.strip())
    if known not in ALL_FIELDS:
        raise InputError(f"unknown field {name!r}: expected one of {', '.join(ALL_FIELDS)}")
    return known


def _test(text: str) -> pl.Expr:
    """Return a filter as an expression; a field without a value does not match."""
    name, colon, value = text.lstrip("!").lstrip("=~").partition(":")
    if not colon:
        raise InputError(f"invalid filter {text[:80]!r}: expected [!][=|~]field:text")
    field, kind = pl.col(_field(name)), text.lstrip("!")[:1]
    if kind == "=":
        found = field == value
    elif kind == "~":
        # Polars' expressions are linear in time, whatever somebody asks for.
        found = field.str.contains(f"^(?:{value})")
    else:
        found = field.str.contains(value, literal=True)
    found = found.fill_null(value=False)
    return ~found if text.startswith("!") else found


class RecordParameters(Parameters):
    """Which capture is shown."""

    url: Short = Field("", description="URL as it was captured")
    at: Stamp | None = Field(None, description="the nearest capture; by default the newest")


def cdx_routes(answers: ResponseCache) -> list[Route]:
    """Return the routes of the endpoint, and of single records."""
    return [
        Route(CDX_PATH, answers.endpoint(_answer), name="cdx"),
        Route(RECORD_PATH, answers.endpoint(_record), name="record"),
    ]


def _record(state: AppState, request: Request) -> Answer:
    """Show the source of a page as archived, read by its byte range from the crawl."""
    asked = RecordParameters.of(request)
    if not asked.url:
        raise InputError("expected a URL")
    if state.takedowns.covers_url(asked.url):
        raise TakenDown("it is taken down")
    row = find_capture(state.store, asked.url, parse_stamp(asked.at) if asked.at else None)
    if row is None:
        raise NothingHere("no capture of this URL is known")
    record = read_record(row, crawl=state.resources.crawl.sources, root=state.store)
    # As text: a page of others must not run here.
    return Answer(record.html.encode(), "text/plain")


def _answer(state: AppState, request: Request) -> Answer:
    try:
        asked = CdxParameters.of(request)
        query, files = asked.query(), CaptureFiles(state.store)
        days = files.days(query)
        pages = -(-len(days) // asked.page_size)
        if asked.count_pages:
            counted = {"pages": pages, "pageSize": asked.page_size, "blocks": pages}
            return Answer(json.dumps(counted).encode(), "application/json")
        if asked.page and asked.page >= pages:
            raise InputError(f"invalid page {asked.page}: the last one is {pages - 1}")
        if asked.page is not None:
            days = days[asked.page * asked.page_size :][: asked.page_size]
        lines = _lines(_found(files, query, days, asked), asked)
    except InputError as error:
        return _refused(400, str(error))
    except pl.exceptions.PolarsError:
        return _refused(400, "invalid filter: expected a regular expression of Rust's syntax")
    if not lines:
        # Not an empty answer: clients take that for the end of all pages.
        return _refused(404, f"No Captures found for: {asked.url}")
    kind = _JSON_LINES if asked.output == "json" else "text/plain"
    return Answer("".join(f"{line}\n" for line in lines).encode(), kind)


def _refused(status: int, message: str) -> Answer:
    return Answer(json.dumps({"error": message}).encode(), "application/json", status)


def _found(
    files: CaptureFiles, query: CaptureQuery, days: Sequence[str], asked: CdxParameters
) -> Iterator[dict[str, str]]:
    """Yield the captures that pass the filters, up to the limit."""
    left, tests = asked.limit, asked.tests()
    for rows in files.iter_days(query, days):
        found = [cdx_fields(row) for row in rows.iter_rows(named=True)]
        if tests:
            schema = dict.fromkeys(ALL_FIELDS, pl.String())
            passed = pl.DataFrame(found, schema=schema).select(pl.all_horizontal(tests))
            found = [one for one, is_in in zip(found, passed.to_series(), strict=True) if is_in]
        yield from found[:left]
        left -= len(found)
        if left <= 0:
            return


def _lines(found: Iterator[dict[str, str]], asked: CdxParameters) -> list[str]:
    fields = asked.fields()
    if asked.output == "json":
        return [json.dumps({it: one[it] for it in fields or one if it in one}) for one in found]
    if fields:
        return [" ".join(one.get(it, "-") for it in fields) for one in found]
    return list(map(cdxj_line, found))
