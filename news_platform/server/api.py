"""The JSON API under /api/v1: one function per path, described in OpenAPI 3.1."""

import json
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from starlette.requests import Request
from starlette.routing import Route

from news_platform.server.app_state import AppState
from news_platform.server.article_view import article_document, explain_document
from news_platform.server.documents import (
    API_PREFIX,
    ArticleDocument,
    Document,
    DomainDocument,
    ErrorDocument,
    ExplainDocument,
    PoliciesDocument,
    SearchDocument,
    StatusDocument,
    error_body,
)
from news_platform.server.domain_view import domain_document
from news_platform.server.parameters import day_of, policy_choice, search_options, text_of
from news_platform.server.policy_view import policies_document
from news_platform.server.response_cache import Answer, Make, ResponseCache
from news_platform.server.search_view import MAX_PAGE, search_document

_JSON = "application/json"
_DEFAULT_LIMIT = 20
_REFERENCES = "#/components/schemas/{model}"
_DAY = {"type": "string", "format": "date"}
_TEXT = {"type": "string"}
_CURSOR = ("cursor", _TEXT, "`next_cursor` of the answer before")
_LIMIT = ("limit", {"type": "integer", "minimum": 1, "maximum": MAX_PAGE}, "rows of a page")
_TEXTS = {"type": "array", "items": _TEXT}
Parameter = tuple[str, Mapping[str, Any], str]
_REQUIRED = ("q", "subject")
_PATH_PARAMETERS = {
    "url_hash": "SHA-256 hex of the canonical address",
    "domain": "registrable domain, such as bbc.co.uk",
}


def api_routes(answers: ResponseCache) -> list[Route]:
    """Return the routes of the API."""
    makers = {path: make for path, (make, *_) in ENDPOINTS.items()} | {"openapi.json": _openapi}
    return [
        Route(f"{API_PREFIX}{path}", answers.endpoint(make), name=f"api {path}")
        for path, make in makers.items()
    ]


def refused_json(_state: AppState, _request: Request, status: int, message: str) -> Answer:
    """Return the answer to a request that failed."""
    return Answer(error_body(status, message), _JSON, status)


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
    return Answer(openapi_document(version("news-platform")), _JSON)


def _json(document: Document) -> Answer:
    return Answer(document.model_dump_json().encode(), _JSON)


ENDPOINTS: Mapping[str, tuple[Make, str, type[BaseModel], Sequence[Parameter]]] = {
    "search": (
        _search,
        "Search the text of all articles.",
        SearchDocument,
        (
            ("q", _TEXT, 'words, "phrases", AND, OR, NOT, (brackets), field:word'),
            ("from", _DAY, "first day; by default the newest days are searched"),
            ("to", _DAY, "last day"),
            ("language", _TEXTS, "only these languages"),
            ("domain", _TEXTS, "only these domains"),
            ("sort", {"enum": ["score", "date"]}, "order of the hits"),
            ("one_per_cluster", {"type": "boolean"}, "leave out near-identical articles"),
            _LIMIT,
            _CURSOR,
        ),
    ),
    "articles/{url_hash}": (
        _article,
        "Return an article.",
        ArticleDocument,
        (("day", _DAY, "look only at the captures of this day, which is faster"),),
    ),
    "domains/{domain}": (_domain, "Return what is known about a domain.", DomainDocument, ()),
    "explain": (
        _explain,
        "Say where a URL, a domain or a feed is, and why.",
        ExplainDocument,
        (("subject", _TEXT, "a URL, a domain or a feed"),),
    ),
    "policies": (
        _policies,
        "Return who refuses which AI crawler.",
        PoliciesDocument,
        (
            ("bot", _TEXT, "only this crawler, as robots.txt names it"),
            ("domain", _TEXT, "only this domain"),
            ("policy", {"enum": ["disallow_all", "partial", "allow", "unspecified"]}, "only these"),
            _LIMIT,
            _CURSOR,
        ),
    ),
    "status": (_status, "Return what is behind, running, waiting or stopped.", StatusDocument, ()),
}


def openapi_document(release: str) -> bytes:
    """Return the description of the API as JSON."""
    described_models = [model for _, _, model, _ in ENDPOINTS.values()]
    models: list[type[BaseModel]] = [ErrorDocument, *described_models]
    _, schemas = models_json_schema(
        [(model, "serialization") for model in models],
        ref_template=_REFERENCES,
    )
    described = {
        "openapi": "3.1.0",
        "info": {
            "title": "News Platform",
            "version": release,
            "description": "Read only. Texts and addresses were written by others.",
        },
        "paths": {f"{API_PREFIX}{path}": _path(path) for path in ENDPOINTS},
        "components": {
            "schemas": schemas["$defs"],
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        # Only a server with a token asks for it.
        "security": [{}, {"token": []}],
    }
    return json.dumps(described, indent=1).encode()


def _path(path: str) -> Mapping[str, Any]:
    _, summary, model, parameters = ENDPOINTS[path]
    return {
        "get": {
            "summary": summary,
            "operationId": path.partition("/")[0],
            "parameters": [*_in_path(path), *map(_in_query, parameters)],
            "responses": {
                "200": _response("the answer", model),
                "304": {"description": "the answer has not changed: see If-None-Match"},
                "4XX": _response("why the request was refused", ErrorDocument),
            },
        }
    }


def _in_path(path: str) -> Sequence[Mapping[str, Any]]:
    names = [name for name in _PATH_PARAMETERS if f"{{{name}}}" in path]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": _TEXT,
            "description": _PATH_PARAMETERS[name],
        }
        for name in names
    ]


def _in_query(parameter: Parameter) -> Mapping[str, Any]:
    name, schema, text = parameter
    return {
        "name": name,
        "in": "query",
        "required": name in _REQUIRED,
        "schema": schema,
        "description": text,
    }


def _response(text: str, model: type[BaseModel]) -> Mapping[str, Any]:
    reference = {"$ref": _REFERENCES.format(model=model.__name__)}
    return {"description": text, "content": {"application/json": {"schema": reference}}}
