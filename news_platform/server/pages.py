"""The pages of the explorer: one function per page, from a request to HTML.

Templates escape every value. Foreign text is never HTML, and its addresses are links only if they
are http or https.
"""

from collections.abc import Mapping
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
from news_platform.server.api import ENDPOINTS
from news_platform.server.app_state import AppState, NothingHere
from news_platform.server.article_view import (
    article_evidence,
    article_rows,
    document_of,
    explain_document,
    search_document,
)
from news_platform.server.charts import bar_chart, line_chart
from news_platform.server.documents import (
    ArticleDocument,
    ArticleLinkDocument,
    HitDocument,
    SearchDocument,
)
from news_platform.server.domain_view import (
    domain_document,
    newest_articles,
    policies_csv,
    policies_document,
)
from news_platform.server.overview import (
    attention_csv,
    attention_document,
    edits_document,
    feeds_document,
    overview_document,
)
from news_platform.server.parameters import (
    EVERYBODY,
    ArticleParameters,
    AttentionParameters,
    FeedParameters,
    PolicyChoice,
    Query,
    SearchParameters,
)
from news_platform.server.response_cache import Answer, ResponseCache
from news_platform.server.stories import (
    StoriesParameters,
    drawing,
    stories_document,
    story_around,
    timeline_document,
)

_HTML, _CSV = "text/html; charset=utf-8", "text/csv; charset=utf-8"
_NEWEST = 15
_POLICIES = 50
# A page stays below 100 KB: the rest is facts, evidence and the frame.
_TEXT_BYTES = 45_000
_SHOWN_EVIDENCE = 60
_SHOWN_DOMAINS = 200
_LISTED = 100
_MOST_DAYS = 4_000
_STATIC = {"style.css": "text/css; charset=utf-8", "icon.svg": "image/svg+xml"}


def page_routes(answers: ResponseCache) -> list[Route]:
    """Return the routes of all pages."""
    makers = {
        "/": _home,
        "/search": _search,
        "/articles/{url_hash}": _article,
        "/attention": _attention,
        "/attention.csv": _attention_csv,
        "/feeds": _feeds,
        "/edits": _edits,
        "/api": _api,
        "/stories": _stories,
        "/stories/{story_id}": _story,
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


def _home(state: AppState, request: Request) -> Answer:
    asked = SearchParameters.of(request)
    if asked.q or asked.first_day or asked.last_day or asked.languages or asked.domains:
        return _search(state, request)
    found = overview_document(state)
    days = dict.fromkeys(state.tables.newest_days(2), _NEWEST)
    # Planning takes seconds: until the status was asked for once, the page links to it.
    status = state.status.last
    return _page(
        state,
        request,
        "home.html",
        found=found,
        options=SearchOptions(),
        days=bar_chart(found.days),
        newest=list(newest_articles(state, days, limit=_NEWEST)),
        waiting=[one for one in status.assets if one.stale] if status else None,
    )


def _search(state: AppState, request: Request) -> Answer:
    asked = SearchParameters.of(request)
    query, options = asked.q, asked.options()
    if not query:
        return _page(
            state, request, "search.html", query="", options=options, newest=_listed(state, asked)
        )
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
        days=bar_chart(found.facets["day"]),
        next_url=_next_url(request, found.next_cursor),
        narrower=_narrower(request, found, options),
    )


def _listed(state: AppState, asked: SearchParameters) -> list[ArticleLinkDocument]:
    """Return the newest articles of some days, languages and domains, without a query."""
    first, last = asked.first_day or "0001-01-01", asked.last_day or "9999-12-31"
    days = [day for day in state.tables.newest_days(_MOST_DAYS) if first <= day <= last]
    chosen = {"language": asked.languages, "domain": asked.domains}
    rows = state.tables.newest(limit=_LISTED, days=days, **chosen)
    shown = (
        row for row in rows.iter_rows(named=True) if not state.takedowns.covers_url(row["url"])
    )
    return list(map(ArticleLinkDocument.of, shown))


def _feeds(state: AppState, request: Request) -> Answer:
    asked = FeedParameters.of(request)
    return _page(state, request, "feeds.html", asked=asked, found=feeds_document(state, asked))


def _edits(state: AppState, request: Request) -> Answer:
    return _page(state, request, "edits.html", found=edits_document(state))


def _attention(state: AppState, request: Request) -> Answer:
    asked = AttentionParameters.of(request)
    if not asked.queries:
        return _page(state, request, "attention.html", asked=asked)
    try:
        found = attention_document(state, asked)
    except InputError as error:
        return _page(state, request, "attention.html", 400, asked=asked, mistake=str(error))
    return _page(
        state,
        request,
        "attention.html",
        asked=asked,
        found=found,
        chart=line_chart(found.days, {one.query: one.shares for one in found.series}),
        csv_url=f"/attention.csv?{request.scope['query_string'].decode('latin-1')}",
    )


def _attention_csv(state: AppState, request: Request) -> Answer:
    found = attention_document(state, AttentionParameters.of(request))
    return Answer(attention_csv(found), _CSV, headers=_download("attention.csv"))


def _api(state: AppState, request: Request) -> Answer:
    return _page(state, request, "api.html", endpoints=ENDPOINTS)


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
        story=story_around(state, article.url_hash, article.day),
    )


def _stories(state: AppState, request: Request) -> Answer:
    asked = StoriesParameters.of(request)
    found = stories_document(state, asked)
    return _page(state, request, "stories.html", asked=asked, found=found)


def _story(state: AppState, request: Request) -> Answer:
    story = timeline_document(state, request.path_params["story_id"])
    return _page(state, request, "story.html", story=story, drawn=drawing(story))


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
    stated = [one for one in domain.policies if one.bot != EVERYBODY]
    return _page(state, request, "domain.html", domain=domain, days=bar_chart(pages), stated=stated)


def _policies(state: AppState, request: Request) -> Answer:
    choice = PolicyChoice.of(request, limit=_POLICIES)
    found = policies_document(state, choice)
    return _page(
        state,
        request,
        "policies.html",
        choice=choice,
        found=found,
        next_url=_next_url(request, found.next_cursor),
        csv_url=f"/policies.csv?{request.scope['query_string'].decode('latin-1')}",
    )


def _policies_csv(state: AppState, request: Request) -> Answer:
    body = policies_csv(state, PolicyChoice.of(request))
    return Answer(body, _CSV, headers=_download("ai_policies.csv"))


def _download(name: str) -> Mapping[str, str]:
    return {"Content-Disposition": f'attachment; filename="{name}"'}


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
            (
                value,
                count,
                f"/search?{urlencode([*given, (name, value)])}" if value != OTHER else "",
            )
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


def _span(seconds: int | None) -> str:
    """Return a rhythm as people say it; empty if it is unknown."""
    for unit, size in (("days", 86_400), ("hours", 3_600), ("minutes", 60)):
        if seconds and seconds >= 2 * size:
            return f"every {seconds / size:.0f} {unit}"
    return "every minute or two" if seconds else ""


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
        found=None, mistake=None, newest=None, next_url=None, snippet=_snippet, chart=None
    )
    environment.filters.update(
        line=sanitize.one_line,
        link=sanitize.link,
        lang=sanitize.language_code,
        path_part=lambda text: quote(str(text), safe=""),
        span=_span,
        moment=lambda at: f"{at:%Y-%m-%d %H:%M}" if at else "",
        percent=lambda share: f"{share:.0%}",
    )
    return environment
