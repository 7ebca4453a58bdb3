"""The JSON API under /api/v1: one function per path, and its OpenAPI description."""

from importlib.metadata import version

from starlette.requests import Request
from starlette.routing import Route

from news_platform.datasets.evidence import Explanation
from news_platform.errors import InputError
from news_platform.server import openapi
from news_platform.server.app_state import AppState
from news_platform.server.article_view import article_document
from news_platform.server.documents import (
    API_PREFIX,
    Document,
    EvidenceDocument,
    ExplainDocument,
    error_body,
)
from news_platform.server.domain_view import domain_document
from news_platform.server.parameters import day_of, policy_choice, search_options, text_of
from news_platform.server.policy_view import policies_document
from news_platform.server.response_cache import Answer, ResponseCache
from news_platform.server.search_view import search_document

_JSON = "application/json"
_DEFAULT_LIMIT = 20


def api_routes(answers: ResponseCache) -> list[Route]:
    """Return the routes of the API."""
    makers = {
        "search": _search,
        "articles/{url_hash}": _article,
        "domains/{domain}": _domain,
        "explain": _explain,
        "policies": _policies,
        "status": _status,
        "openapi.json": _openapi,
    }
    return [
        Route(f"{API_PREFIX}{path}", answers.endpoint(make), name=f"api {path}")
        for path, make in makers.items()
    ]


def refused_json(_state: AppState, _request: Request, status: int, message: str) -> Answer:
    """Return the answer to a request that failed."""
    return Answer(error_body(status, message), _JSON, status)


def explain_document(state: AppState, subject: str) -> ExplainDocument:
    """Return what is known about a URL, a domain or a feed."""
    if not subject:
        raise InputError("expected a URL, a domain or a feed")
    found: Explanation = state.news.explain(subject)
    return ExplainDocument(
        subject=found.subject,
        kind=found.kind,
        known=found.known,
        evidence=tuple(
            EvidenceDocument(
                dataset=one.dataset,
                state=one.state,
                text=one.text,
                at=one.at,
                source=one.source,
                details=dict(one.details),
            )
            for one in found.evidence
        ),
        advice=found.advice,
    )


def _search(state: AppState, request: Request) -> Answer:
    options = search_options(request, limit=_DEFAULT_LIMIT)
    return _json(search_document(state, text_of(request, "q"), options))


def _article(state: AppState, request: Request) -> Answer:
    key = request.path_params["url_hash"]
    return _json(article_document(state, key, day=day_of(request, "day")))


def _domain(state: AppState, request: Request) -> Answer:
    return _json(domain_document(state, request.path_params["domain"]))


def _explain(state: AppState, request: Request) -> Answer:
    return _json(explain_document(state, text_of(request, "subject")))


def _policies(state: AppState, request: Request) -> Answer:
    return _json(policies_document(state, policy_choice(request)))


def _status(state: AppState, _request: Request) -> Answer:
    return _json(state.status.current())


def _openapi(_state: AppState, _request: Request) -> Answer:
    return Answer(openapi.document(version("news-platform")), _JSON)


def _json(document: Document) -> Answer:
    return Answer(document.model_dump_json().encode(), _JSON)
