"""The pages of the explorer: one function per page, from a request to HTML.

Templates escape every value. Foreign text is never HTML, and its addresses are links only if they
are http or https.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote, urlencode

import jinja2
from starlette.requests import Request
from starlette.routing import Route

from news_platform.errors import InputError
from news_platform.search.engine import SearchOptions, cut_facet
from news_platform.search.index import OTHER
from news_platform.server import sanitize
from news_platform.server.app_state import AppState, NothingHere
from news_platform.server.article_view import (
    article_evidence,
    article_rows,
    document_of,
    explain_document,
    search_document,
)
from news_platform.server.documents import ArticleDocument, HitDocument, SearchDocument
from news_platform.server.domain_view import (
    domain_document,
    newest_articles,
    policies_csv,
    policies_document,
)
from news_platform.server.parameters import (
    ArticleParameters,
    PolicyChoice,
    Query,
    SearchParameters,
)
from news_platform.server.response_cache import Answer, ResponseCache

_HTML = "text/html; charset=utf-8"
_NEWEST = 15
_POLICIES = 50
# A page stays below 100 KB: the rest is facts, evidence and the frame.
_TEXT_BYTES = 45_000
_SHOWN_EVIDENCE = 60
_SHOWN_DOMAINS = 200
# The geometry of charts, in pixels.
_BAR_HEIGHT = 60
_BAR_WIDTH = 12
_GAP = 3
_LINE_WIDTH, _LINE_HEIGHT = 80, 20
_STATIC = {"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}


def page_routes(answers: ResponseCache) -> list[Route]:
    """Return the routes of all pages."""
    makers = {
        "/": _search,
        "/articles/{url_hash}": _article,
        "/domains": _domains,
        "/domains/{domain}": _domain,
        "/policies": _policies,
        "/policies.csv": _policies_csv,
        "/explain": _explain,
        "/status": _status,
        "/static/{name}": _static,
    }
    return [Route(path, answers.endpoint(make), name=path) for path, make in makers.items()]


def refused_page(state: AppState, request: Request, status: int, message: str) -> Answer:
    """Return the page of a request that failed."""
    return _page(state, request, "error.html", status, message=message)


def _search(state: AppState, request: Request) -> Answer:
    asked = SearchParameters.of(request)
    query, options = asked.q, asked.options()
    if not query:
        days = dict.fromkeys(state.tables.newest_days(2), _NEWEST)
        newest = list(newest_articles(state, days, limit=_NEWEST))
        return _page(state, request, "search.html", query="", options=options, newest=newest)
    try:
        found = search_document(state, query, options)
    except InputError as error:
        return _page(
            state, request, "search.html", 400, query=query, options=options, mistake=str(error)
        )
    return _page(
        state,
        request,
        "search.html",
        query=query,
        options=options,
        found=found,
        first=options.offset + 1,
        days=bars(found.facets["day"]),
        next_url=_next_url(request, found.next_cursor),
        narrower=_narrower(request, found, options),
    )


def _article(state: AppState, request: Request) -> Answer:
    asked = ArticleParameters.of(request)
    rows = article_rows(state, asked.url_hash, day=asked.day)
    article = document_of(state, rows)
    text, is_whole = sanitize.paragraphs(article.text, max_bytes=_TEXT_BYTES)
    evidence = list(article_evidence(state, article, rows))
    return _page(
        state,
        request,
        "article.html",
        article=article,
        text=text,
        is_whole=is_whole,
        facts=_facts(article),
        evidence=evidence[:_SHOWN_EVIDENCE],
    )


def _domains(state: AppState, request: Request) -> Answer:
    wanted = Query.of(request).q.lower()
    rows = state.version.kept("catalog", lambda: state.news["domain_catalog"].collect().to_dicts())
    found = [row for row in rows if wanted in row["domain"]]
    found = [row for row in found if not state.takedowns.covers_domain(row["domain"])]
    found.sort(key=lambda row: (-row["records"], row["domain"]))
    return _page(
        state,
        request,
        "domains.html",
        query=wanted,
        count=len(found),
        domains=found[:_SHOWN_DOMAINS],
    )


def _domain(state: AppState, request: Request) -> Answer:
    domain = domain_document(state, request.path_params["domain"])
    pages = {one.day: one.pages for one in domain.days}
    stated = [one for one in domain.policies if one.own]
    return _page(state, request, "domain.html", domain=domain, bars=bars(pages), stated=stated)


def _policies(state: AppState, request: Request) -> Answer:
    choice = PolicyChoice.of(request, limit=_POLICIES)
    found = policies_document(state, choice)
    return _page(
        state,
        request,
        "policies.html",
        choice=choice,
        is_chosen=bool(choice.bot or choice.domain or choice.policy),
        found=found,
        lines={one.bot: trend_line(one.trend) for one in found.crawlers},
        next_url=_next_url(request, found.next_cursor),
        csv_url="/policies.csv?" + urlencode({"bot": choice.bot, "domain": choice.domain}),
    )


def _policies_csv(state: AppState, request: Request) -> Answer:
    name = {"Content-Disposition": 'attachment; filename="ai_policies.csv"'}
    body = policies_csv(state, PolicyChoice.of(request))
    return Answer(body, "text/csv; charset=utf-8", headers=name)


def _explain(state: AppState, request: Request) -> Answer:
    subject = Query.of(request).q
    if not subject:
        return _page(state, request, "explain.html", query="")
    try:
        found = explain_document(state, subject)
    except InputError as error:
        return _page(state, request, "explain.html", 400, query=subject, mistake=str(error))
    return _page(
        state,
        request,
        "explain.html",
        query=subject,
        found=found,
        evidence=found.evidence[:_SHOWN_EVIDENCE],
    )


def _status(state: AppState, request: Request) -> Answer:
    return _page(state, request, "status.html", found=state.status.current())


def _static(_state: AppState, request: Request) -> Answer:
    name = request.path_params["name"]
    if name not in _STATIC:
        raise NothingHere(f"no file {name[:80]!r}")
    body = (files("news_platform.server") / "static" / name).read_bytes()
    return Answer(body, _STATIC[name], headers={"Cache-Control": "private, max-age=3600"})


def _facts(article: ArticleDocument) -> Mapping[str, str]:
    """Return the facts of an article that are known, by their labels."""
    tags = [sanitize.one_line(tag, limit=60) for tag in article.tags[:15]]
    confidence = "" if article.confidence is None else f"{article.confidence:.2f}"
    known = {
        "Type": article.article_type,
        "Category": article.category_guess,
        "Section": sanitize.one_line(article.section, limit=100),
        "Tags": ", ".join(filter(None, tags)),
        "Words": "" if article.word_count is None else f"{article.word_count:,}",
        "Confidence in the text": confidence,
        "Paywall": {True: "yes", False: "no", None: ""}[article.is_paywalled],
        "Quality flags": ", ".join(article.quality_flags),
        "Text taken from": article.text_source,
    }
    return {label: fact for label, fact in known.items() if fact}


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar of a chart and what it stands for."""

    label: str
    count: int
    x: int
    y: int
    width: int
    height: int


def bars(counts: Mapping[str, int]) -> list[Bar]:
    """Return one bar per value, in the given order."""
    most = max(counts.values(), default=0)
    found = []
    for place, (label, count) in enumerate(counts.items()):
        # What is there is seen, however small.
        height = max(1 if count else 0, count * _BAR_HEIGHT // most) if most else 0
        x = place * (_BAR_WIDTH + _GAP)
        found.append(Bar(label, count, x, _BAR_HEIGHT - height, _BAR_WIDTH, height))
    return found


def trend_line(shares: Sequence[float]) -> str:
    """Return the points of a line through shares from 0 to 1."""
    values = [*shares, *shares] if len(shares) == 1 else list(shares)
    step = _LINE_WIDTH / max(1, len(values) - 1)
    return " ".join(
        f"{place * step:.1f},{_LINE_HEIGHT - 1 - share * (_LINE_HEIGHT - 2):.1f}"
        for place, share in enumerate(values)
    )


def _next_url(request: Request, cursor: str | None) -> str | None:
    if cursor is None:
        return None
    given = [(name, text) for name, text in request.query_params.multi_items() if name != "cursor"]
    return f"{request.url.path}?{urlencode([*given, ('cursor', cursor)])}"


def _narrower(
    request: Request, found: SearchDocument, options: SearchOptions
) -> Mapping[str, list[tuple[str, int, str]]]:
    """Return the values of each facet with their counts and the address that keeps only them.

    What stands for all others has no address.
    """
    given = [(name, text) for name, text in request.query_params.multi_items() if name != "cursor"]
    chosen = {"language": options.languages, "domain": options.domains}
    return {
        name: [
            (value, count, f"/?{urlencode([*given, (name, value)])}" if value != OTHER else "")
            for value, count in cut_facet(found.facets[name], 12).items()
            if value not in chosen[name]
        ]
        for name in chosen
    }


def _page(
    state: AppState, request: Request, template: str, status: int = 200, /, **values: Any
) -> Answer:
    html = (
        _templates()
        .get_template(template)
        .render(
            path=request.url.path, dagster_url=state.options.dagster_url, status=status, **values
        )
    )
    return Answer(html.encode(), _HTML, status)


def _snippet(hit: HitDocument) -> list[tuple[str, bool]]:
    """Return the parts of a hit's text and whether they are words of the query."""
    parts, last = [], 0
    for start, end in hit.marks:
        parts += [(hit.snippet[last:start], False), (hit.snippet[start:end], True)]
        last = end
    parts.append((hit.snippet[last:], False))
    return [(sanitize.visible(text), is_mark) for text, is_mark in parts if text]


@cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("news_platform.server"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(
        found=None, mistake=None, newest=None, next_url=None, snippet=_snippet
    )
    environment.filters.update(
        line=sanitize.one_line,
        link=sanitize.link,
        lang=sanitize.language_code,
        path_part=lambda text: quote(str(text), safe=""),
        moment=lambda at: f"{at:%Y-%m-%d %H:%M}" if at else "",
        percent=lambda share: f"{share:.0%}",
    )
    return environment
